// Calls of NCCL that replicas make: equal on all members, in an order in which none waits in vain.
// SPDX-License-Identifier: Apache-2.0
//
// Needs the emulated NCCL, which keeps a record.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "sim/engines/engines.h"
#include "tests/cuda/emulator/nccl_record.h"
#include "tests/harness/support/training.h"
#include "validate/cuda/stage/gpu_run.h"

using namespace interlock;
using emulated::NcclCall;
using emulated::NcclPassage;
using emulated::NcclRecord;

namespace interlock::nccl_order_checks {
namespace {

/// Returns the record of the NCCL that the module opens; null of a real one.
NcclRecord* record() {
  void* library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  const auto find = reinterpret_cast<NcclRecord* (*)()>(dlsym(library, "emulated_nccl_record"));
  return find == nullptr ? nullptr : find();
}

bool is_message(const NcclCall& call) { return call.what == "send" || call.what == "receive"; }

/// Appends what is wrong with the collectives of a communicator: members that do not say the same.
void compare_members(const NcclRecord& record, int communicator,
                     std::vector<std::string>& problems) {
  std::map<int, std::vector<NcclCall>> said;
  for (const NcclCall& call : record.calls) {
    if (call.communicator != communicator || is_message(call)) continue;
    said[call.member].push_back(call);
    said[call.member].back().member = 0;
  }
  const auto members = static_cast<std::size_t>(record.members[communicator]);
  if (said.empty()) return;
  if (said.size() != members) problems.emplace_back("a member says nothing");
  for (const auto& [member, calls] : said) {
    if (calls != said.begin()->second) {
      problems.push_back("member " + std::to_string(member) + " says something else");
    }
  }
}

/// Appends messages of a group that do not meet.
void meet_messages(const NcclRecord& record, std::vector<std::string>& problems) {
  using Way = std::tuple<int, int, int, int, std::size_t, int>;
  std::map<Way, int> open;  // by group, communicator, sender, receiver, count, type
  for (const NcclCall& c : record.calls) {
    if (!is_message(c)) continue;
    const bool sends = c.what == "send";
    const int from = sends ? c.member : c.other, to = sends ? c.other : c.member;
    open[{c.group, c.communicator, from, to, c.count, c.type}] += sends ? 1 : -1;
  }
  for (const auto& [way, left] : open) {
    if (left != 0) problems.emplace_back("a message has one end");
  }
}

/// Appends works that a GPU has no place for while another waits there for its peers, or that it
/// comes to in another order than that of their issue, which is one for all GPUs.
void follow_devices(const NcclRecord& record, std::vector<std::string>& problems) {
  std::map<int, int> at_work, last;
  for (const NcclPassage& p : record.passages) {
    const std::string where =
        "GPU " + std::to_string(p.device) + ", work " + std::to_string(p.work) + ": ";
    const auto inside = at_work.find(p.device);
    if (p.enters) {
      if (inside != at_work.end()) problems.push_back(where + "another one is at work");
      if (last.count(p.device) > 0 && last[p.device] >= p.work) {
        problems.push_back(where + "a later one came first");
      }
      at_work[p.device] = last[p.device] = p.work;
    } else if (inside == at_work.end() || inside->second != p.work) {
      problems.push_back(where + "leaves what it did not enter");
    } else {
      at_work.erase(inside);
    }
  }
  if (!at_work.empty()) problems.emplace_back("a work is not left");
}

/// Returns why a real NCCL could refuse the calls, or wait for ever.
std::vector<std::string> problems_of(const NcclRecord& record) {
  std::vector<std::string> problems;
  for (int c = 0; c < static_cast<int>(record.members.size()); ++c) {
    compare_members(record, c, problems);
  }
  meet_messages(record, problems);
  follow_devices(record, problems);
  if (record.starts != record.ends || record.unpaired > 0) problems.emplace_back("an open group");
  for (const NcclCall& call : record.calls) {
    if (call.group < 0 || call.group >= record.starts) problems.emplace_back("outside of a group");
  }
  return problems;
}

struct Trial {
  std::string schedule = R"("1f1b")";
  std::string strategy = R"("global")";
  int replicas = 2, zero_stage = 0;
  std::string precision = "fp32";
  int steps = 2;
  int stages = 0;
};

SmallTraining training_of(const Trial& trial) {
  SmallTraining training = make_training({.model = kResidualMlp,
                                          .strategy = trial.strategy,
                                          .schedule = trial.schedule,
                                          .devices = 2 * trial.replicas,
                                          .replicas = trial.replicas,
                                          .zero_stage = trial.zero_stage,
                                          .stages = trial.stages,
                                          .micro_batches = 4,
                                          .steps = trial.steps,
                                          .precision = trial.precision});
  if (chooses_order(training.program)) {
    training.program = freeze(training.program, EngineKind::Native);
  }
  return training;
}

/// Runs a training on GPUs of their own; returns what its NCCL was asked for.
NcclRecord recorded(const SmallTraining& training, bool messages) {
  NcclRecord* const kept = record();
  *kept = {};
  CudaRun run;
  cuda::run_job(job_of(training), {.nccl = messages, .memory = 1 << 20}, {}, run);
  const std::string groups = std::to_string(training.program.communicators.size());
  CHECK(run.record.replicas.rfind("NCCL 2.0.0: " + groups + " groups of ", 0) == 0);
  return *kept;
}

/// Returns the numbers of all weights of a stage, counted from its layers.
std::size_t numbers_of(const SmallTraining& training, int stage) {
  const Job job = job_of(training);
  const ModuleRange modules = modules_of(job, stage);
  std::int64_t numbers = 0;
  const auto add = [&](const std::vector<Layer>& layers) {
    for (const Parameter& p : parameters_of("m", layers)) numbers += p.size();
  };
  for (int m = modules.first; m < modules.end; ++m) {
    add(training.network.modules[static_cast<std::size_t>(m)].layers);
  }
  if (job.roles[static_cast<std::size_t>(stage)].head) {
    add(training.network.modules[static_cast<std::size_t>(modules.end - 1)].head);
  }
  return static_cast<std::size_t>(numbers);
}

constexpr int kFp32 = 7, kBf16 = 9, kSum = 0;  // of NCCL's reference

/// Returns what the first member of a stage's group has to say in a run, as it follows from the
/// numbers of the stage.
std::vector<NcclCall> wanted_of(const Trial& trial, std::size_t numbers) {
  const int type = trial.precision == "bf16" ? kBf16 : kFp32;
  const auto replicas = static_cast<std::size_t>(trial.replicas);
  const std::size_t shard = (numbers + replicas - 1) / replicas;
  std::vector<NcclCall> step;
  if (trial.zero_stage == 0) {
    step.push_back({"all-reduce", 0, 0, numbers, type, kSum, -1, 0});
  } else if (numbers % replicas == 0) {
    step.push_back({"reduce-scatter", 0, 0, shard, type, kSum, -1, 0});
    step.push_back({"all-gather", 0, 0, shard, type, -1, -1, 0});
  } else {
    for (const bool weights : {false, true}) {
      std::size_t left = numbers;
      for (int root = 0; root < trial.replicas; ++root) {
        const std::size_t own = std::min(left, shard);
        step.push_back(
            {weights ? "broadcast" : "reduce", 0, 0, own, type, weights ? -1 : kSum, root, 0});
        left -= own;
      }
    }
  }
  std::vector<NcclCall> all;
  for (int n = 0; n < trial.steps; ++n) all.insert(all.end(), step.begin(), step.end());
  return all;
}

}  // namespace

TEST_CASE(
    "members of a communicator say the same to NCCL, in an order in which none waits in vain") {
  if (record() == nullptr) {
    MESSAGE("NCCL keeps no record: left out");
    return;
  }
  struct Way {
    std::string strategy, schedule;
    int stages = 0;
  };
  const std::vector<Way> ways = {
      {R"("global")", R"("1f1b")"},          {R"("global")", R"("interleaved")", 4},
      {R"("global")", R"("pipedream-2bw")"}, {R"("global")", R"("pipedream")"},
      {R"("local")", R"("eager")"},          {R"("greedy")", ""}};
  std::size_t calls = 0, works = 0;
  for (const Way& way : ways) {
    for (const int replicas : {2, 3}) {
      for (const int zero_stage : {0, 1}) {
        for (const bool messages : {false, true}) {
          const Trial trial = {.schedule = way.schedule,
                               .strategy = way.strategy,
                               .replicas = replicas,
                               .zero_stage = zero_stage,
                               .stages = way.stages};
          CAPTURE(way.strategy);
          CAPTURE(way.schedule);
          CAPTURE(replicas);
          CAPTURE(zero_stage);
          CAPTURE(messages);
          const SmallTraining training = training_of(trial);
          const NcclRecord said = recorded(training, messages);
          for (const std::string& problem : problems_of(said)) FAIL_CHECK(problem);
          CHECK(said.members.size() == training.program.communicators.size() + (messages ? 1 : 0));
          calls += said.calls.size();
          works += said.passages.size() / static_cast<std::size_t>(2 * replicas);
        }
      }
    }
  }
  MESSAGE(calls, " calls, at least ", works, " works");
}

TEST_CASE("replicas say to NCCL what the weights of their stage ask for") {
  if (record() == nullptr) return;
  int even = 0, uneven = 0;
  for (const std::string precision : {"fp32", "bf16"}) {
    for (const int replicas : {2, 3}) {
      for (const int zero_stage : {0, 1}) {
        const Trial trial = {
            .replicas = replicas, .zero_stage = zero_stage, .precision = precision, .steps = 3};
        const SmallTraining training = training_of(trial);
        const NcclRecord said = recorded(training, false);
        REQUIRE(said.members == std::vector<int>(2, replicas));
        for (int stage = 0; stage < 2; ++stage) {
          std::vector<NcclCall> calls;
          for (NcclCall call : said.calls) {
            if (call.communicator != stage || call.member != 0) continue;
            call.communicator = call.group = 0;
            calls.push_back(call);
          }
          const std::size_t numbers = numbers_of(training, stage);
          CAPTURE(numbers);
          // A run begins with its first step, to warm up, and then anew.
          const std::vector<NcclCall> wanted = wanted_of(trial, numbers);
          REQUIRE(calls.size() >= wanted.size());
          const auto anew = calls.end() - static_cast<std::ptrdiff_t>(wanted.size());
          CHECK(std::vector<NcclCall>(anew, calls.end()) == wanted);
          REQUIRE(anew - calls.begin() <= static_cast<std::ptrdiff_t>(wanted.size()) / trial.steps);
          CHECK(std::equal(calls.begin(), anew, wanted.begin()));
          ++(numbers % static_cast<std::size_t>(replicas) == 0 ? even : uneven);
        }
      }
    }
  }
  CHECK(even > 0);
  CHECK(uneven > 0);
}

TEST_CASE("what could make NCCL wait for ever is found in a record") {
  if (record() == nullptr) return;
  const NcclRecord said = recorded(training_of({.replicas = 2, .zero_stage = 1}), true);
  REQUIRE(problems_of(said).empty());
  const auto spoilt = [&](auto spoil) {
    NcclRecord other = said;
    spoil(other);
    return !problems_of(other).empty();
  };
  // Each call that another follows on its communicator and member, unlike it, exchanged with that.
  int swaps = 0;
  for (std::size_t i = 0; i < said.calls.size(); ++i) {
    if (is_message(said.calls[i])) continue;
    for (std::size_t j = i + 1; j < said.calls.size(); ++j) {
      const NcclCall &a = said.calls[i], &b = said.calls[j];
      if (a.communicator != b.communicator || a.member != b.member || is_message(b)) continue;
      CHECK(spoilt([&](NcclRecord& other) { std::swap(other.calls[i], other.calls[j]); }));
      ++swaps;
      break;
    }
  }
  CHECK(swaps >= 8);
  for (std::size_t i = 0; i < said.calls.size(); ++i) {
    CHECK(spoilt([&](NcclRecord& other) {
      other.calls.erase(other.calls.begin() + static_cast<std::ptrdiff_t>(i));
    }));
    CHECK(spoilt([&](NcclRecord& other) { ++other.calls[i].count; }));
    CHECK(spoilt([&](NcclRecord& other) { other.calls[i].type = 2; }));
  }
  // Two works that one GPU comes to in turn, in the other order; and one before the other is done.
  for (const bool whole : {true, false}) {
    CHECK(spoilt([&](NcclRecord& other) {
      std::vector<NcclPassage*> own;
      for (NcclPassage& p : other.passages) {
        if (p.device == 0) own.push_back(&p);
      }
      REQUIRE(own.size() >= 4);
      std::swap(*own[1], *own[2]);
      if (whole) {
        std::swap(*own[0], *own[1]);
        std::swap(*own[2], *own[3]);
        std::swap(*own[1], *own[2]);
      }
    }));
  }
  CHECK(spoilt([](NcclRecord& other) { ++other.starts; }));
  CHECK(spoilt([](NcclRecord& other) { ++other.unpaired; }));
}

}  // namespace interlock::nccl_order_checks
