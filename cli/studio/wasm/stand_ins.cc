// Stand-ins: processes, modules and zlib, as far as the engine of a page has them.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/error.h"
#include "base/module_file.h"
#include "reports/result/gzip.h"
#include "scenarios/sweep/rank_pool.h"
#include "scenarios/sweep/told_failure.h"
#include "scenarios/sweep/worker_pool.h"
#include "sim/processes/child.h"

namespace interlock {

/// Runs one after the other, here.
bool run_jobs(const Jobs& jobs, const Workers& workers) {
  while (!jobs.stop || !jobs.stop()) {
    if (workers.meanwhile) workers.meanwhile();
    const std::optional<std::size_t> job = jobs.next();
    if (!job) return true;
    JobResult result{.job = *job};
    try {
      result.bytes = jobs.work(*job);
    } catch (const std::exception& failure) {
      const ToldFailure told = told_failure(failure);
      result.problem = told.words;
      result.unanswered = told.lacking;
    }
    jobs.done(result);
  }
  return false;
}

/// One worker, hired for the first order, answers here.
WorkerPool::WorkerPool(std::function<OrderAnswerer()> hire, const Workers& workers) {
  answer_ = [hire = std::move(hire), workers,
             answerer = OrderAnswerer()](const Orders& orders) mutable {
    if (!answerer) answerer = hire();
    std::size_t next = 0;
    run_jobs({.next = [&]() { return next < orders.count ? std::optional(next++) : std::nullopt; },
              .work = [&](std::size_t job) { return answerer(orders.order(job)); },
              .done = orders.done},
             workers);
  };
}

int usable_processors() { return 1; }

std::unique_ptr<RankPool> RankPool::open() { return nullptr; }

const std::filesystem::path& own_file() {
  static const std::filesystem::path none;
  return none;
}

ModuleEntry open_module(const std::string& name, const std::string&, bool) {
  return {.path = name, .problem = "a page opens no modules"};
}

RunSummary run_in_child(const Program&, const TraceSink&,
                        RunSummary (*)(const Program&, const TraceSink&)) {
  throw Error("a page starts no processes; expected the engine \"auto\" or \"native\"");
}

/// Blocks that are stored as they are (RFC 1951, 3.2.4) between the head and the sum of RFC 1950:
/// what the page expands the next moment is not worth packing.
std::string deflated(std::string_view bytes) {
  constexpr std::size_t kLargest = 65535;
  constexpr std::uint32_t kPrime = 65521;
  std::string packed = "\x78\x01";
  std::uint32_t low = 1, high = 0;
  for (const char byte : bytes) {
    low = (low + static_cast<unsigned char>(byte)) % kPrime;
    high = (high + low) % kPrime;
  }
  do {
    const std::string_view block = bytes.substr(0, std::min(bytes.size(), kLargest));
    bytes.remove_prefix(block.size());
    packed += bytes.empty() ? '\x01' : '\x00';
    for (const std::size_t size : {block.size(), ~block.size()}) {
      packed += static_cast<char>(size);
      packed += static_cast<char>(size >> 8U);
    }
    packed += block;
  } while (!bytes.empty());
  for (const std::uint32_t sum : {high, low}) {
    packed += static_cast<char>(sum >> 8U);
    packed += static_cast<char>(sum);
  }
  return packed;
}

}  // namespace interlock
