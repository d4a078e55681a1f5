// Greedy and exact search for the order and the options of jobs on links.
// SPDX-License-Identifier: Apache-2.0
#include "hardware/collectives/sender_search.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "base/random.h"

namespace interlock {
namespace {

constexpr int kGreedyOrders = 32;
constexpr std::size_t kExactJobs = 10;  // more have too many orders
constexpr int kExactSteps = 200'000;

/// Jobs with links numbered from 0, so that what is free when is an array.
struct Numbered {
  std::vector<SenderJob> jobs;
  std::size_t links = 0;
};

Numbered number_links(const std::vector<SenderJob>& jobs) {
  Numbered numbered{jobs, 0};
  std::unordered_map<LinkId, LinkId> number;
  for (SenderJob& job : numbered.jobs) {
    for (JobOption& option : job.options) {
      for (LinkId& id : option.links) {
        id = number.try_emplace(id, static_cast<LinkId>(number.size())).first->second;
      }
    }
  }
  numbered.links = number.size();
  return numbered;
}

using FreeAt = std::vector<Seconds>;  // by link

Seconds earliest(const JobOption& option, const FreeAt& free) {
  Seconds start;
  for (const LinkId id : option.links) start = std::max(start, free[static_cast<std::size_t>(id)]);
  return start;
}

void occupy(const JobOption& option, Seconds start, FreeAt& free) {
  for (const LinkId id : option.links) free[static_cast<std::size_t>(id)] = start + option.occupied;
}

JobTimetable empty_timetable(std::size_t jobs) {
  return {std::vector<int>(jobs), std::vector<Seconds>(jobs), {}, false};
}

enum class Options { First, All };

/// Jobs in this order, each by its first option, or by the one that is done first.
JobTimetable in_order(const Numbered& numbered, const std::vector<std::size_t>& order,
                      Options options) {
  JobTimetable table = empty_timetable(numbered.jobs.size());
  FreeAt free(numbered.links);
  for (const std::size_t index : order) {
    const std::vector<JobOption>& choices = numbered.jobs[index].options;
    std::size_t best = 0;
    for (std::size_t i = 1; options == Options::All && i < choices.size(); ++i) {
      if (earliest(choices[i], free) + choices[i].done <
          earliest(choices[best], free) + choices[best].done) {
        best = i;
      }
    }
    const Seconds start = earliest(choices[best], free);
    table.option[index] = static_cast<int>(best);
    table.start[index] = start;
    table.end = std::max(table.end, start + choices[best].done);
    occupy(choices[best], start, free);
  }
  return table;
}

JobTimetable greedy(const Numbered& numbered, std::uint64_t seed) {
  std::vector<std::size_t> order(numbered.jobs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // The longest first, then by chance.
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return numbered.jobs[a].options[0].occupied > numbered.jobs[b].options[0].occupied;
  });
  const std::size_t all = numbered.jobs.size();
  JobTimetable best = in_order(numbered, order, Options::All);
  Random random(seed, 0);
  for (int round = 1; round < kGreedyOrders; ++round) {
    for (std::size_t i = all; i > 1; --i) {
      std::swap(order[i - 1], order[static_cast<std::size_t>(random.bits() % i)]);
    }
    JobTimetable table = in_order(numbered, order, Options::All);
    if (table.end < best.end) best = std::move(table);
  }
  return best;
}

/// Depth first over jobs in the order of their starts; a branch ends where its jobs cannot end
/// before the best timetable.
class ExactSearch {
 public:
  ExactSearch(const Numbered& numbered, JobTimetable best)
      : numbered_(numbered),
        best_(std::move(best)),
        table_(empty_timetable(numbered.jobs.size())),
        placed_(numbered.jobs.size()) {}

  JobTimetable run() {
    search(FreeAt(numbered_.links), {}, 0);
    best_.exact = steps_ <= kExactSteps;
    return best_;
  }

 private:
  /// No job that is left can be done before this.
  Seconds bound(const FreeAt& free) const {
    Seconds latest;
    for (std::size_t job = 0; job < placed_.size(); ++job) {
      if (placed_[job]) continue;
      Seconds soonest;
      bool first = true;
      for (const JobOption& option : numbered_.jobs[job].options) {
        const Seconds done = earliest(option, free) + option.done;
        soonest = first ? done : std::min(soonest, done);
        first = false;
      }
      latest = std::max(latest, soonest);
    }
    return latest;
  }

  void search(const FreeAt& free, Seconds last_start, std::size_t depth) {
    if (++steps_ > kExactSteps) return;
    if (depth == placed_.size()) {
      best_ = table_;
      return;
    }
    if (std::max(table_.end, bound(free)) >= best_.end) return;
    for (std::size_t job = 0; job < placed_.size(); ++job) {
      if (placed_[job]) continue;
      placed_[job] = true;
      for (std::size_t i = 0; i < numbered_.jobs[job].options.size(); ++i) {
        place(job, i, free, last_start, depth);
      }
      placed_[job] = false;
    }
  }

  void place(std::size_t job, std::size_t option_index, const FreeAt& free, Seconds last_start,
             std::size_t depth) {
    const JobOption& option = numbered_.jobs[job].options[option_index];
    const Seconds start = earliest(option, free);
    // Every timetable can be made in the order of its starts.
    if (start < last_start || start + option.done >= best_.end) return;
    const Seconds end = table_.end;
    table_.option[job] = static_cast<int>(option_index);
    table_.start[job] = start;
    table_.end = std::max(end, start + option.done);
    FreeAt next = free;
    occupy(option, start, next);
    search(next, start, depth + 1);
    table_.end = end;
  }

  const Numbered& numbered_;
  JobTimetable best_;
  JobTimetable table_;
  std::vector<bool> placed_;
  int steps_ = 0;
};

}  // namespace

JobTimetable first_come(const std::vector<SenderJob>& jobs) {
  const Numbered numbered = number_links(jobs);
  std::vector<std::size_t> order(jobs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  return in_order(numbered, order, Options::First);
}

JobTimetable balance(const std::vector<SenderJob>& jobs, std::uint64_t seed) {
  const Numbered numbered = number_links(jobs);
  JobTimetable best = greedy(numbered, seed);
  return jobs.size() > kExactJobs ? best : ExactSearch(numbered, std::move(best)).run();
}

}  // namespace interlock
