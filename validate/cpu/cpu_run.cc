// Carries out the ops and messages of a program on the stages of a run on the CPU.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cpu/cpu_run.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "validate/cpu/replica_exchange.h"

namespace interlock {
namespace {

/// A message that has been sent and not been taken.
struct Mail {
  int micro_batch = 0;
  MessageBlocks blocks;
};

struct Mailbox {
  std::mutex mutex;
  std::deque<Mail> mail;
  std::deque<MessageBlocks> leaving;  // what the sender keeps until the transfer is over
};

/// A collective that not all have joined yet: of each rank that has, a stage, and its gradients or
/// weights.
using Joined = std::map<int, std::pair<int, Block>>;  // by rank

struct RunOnCpu {
  Job job;
  CpuOptions options;
  Outcome outcome;
  std::vector<std::unique_ptr<CpuMemory>> memories;   // by rank
  std::vector<std::unique_ptr<StageDevice>> devices;  // by stage
  std::vector<std::unique_ptr<Stage>> stages;
  std::vector<std::unique_ptr<Mailbox>> mailboxes;                       // by channel
  std::vector<StageLosses> losses;                                       // by stage
  std::unique_ptr<std::mutex> joining = std::make_unique<std::mutex>();  // guards `joined`
  std::map<std::pair<int, int>, Joined> joined;  // by event and its generation

  Stage& stage(int index) { return *stages[static_cast<std::size_t>(index)]; }
  const Channel& channel(int index) const {
    return job.program.channels[static_cast<std::size_t>(index)];
  }
  Mailbox& mailbox(int index) { return *mailboxes[static_cast<std::size_t>(index)]; }
};

void add_stage(RunOnCpu& run, const Rank& rank, int index) {
  const auto s = static_cast<std::size_t>(index);
  CpuMemory& memory = *run.memories.back();
  StageLosses& losses = run.losses[s];
  if (run.options.doubles) {
    run.devices[s] =
        std::make_unique<CpuDevice<double>>(run.job, index, run.options, memory, losses);
  } else {
    run.devices[s] =
        std::make_unique<CpuDevice<float>>(run.job, index, run.options, memory, losses);
  }
  run.stages[s] = std::make_unique<Stage>(run.job, rank, index, *run.devices[s]);
}

void set_up(RunOnCpu& run) {
  const Program& program = run.job.program;
  const auto stages = static_cast<std::size_t>(program.stages);
  run.losses.resize(stages);
  run.devices.resize(stages);
  run.stages.resize(stages);
  const std::int64_t capacity = addresses_of_rank(program.ranks.size());
  for (const Rank& rank : program.ranks) {
    run.memories.push_back(std::make_unique<CpuMemory>(static_cast<int>(run.memories.size()),
                                                       capacity, run.options.poison));
    std::vector<Stage*> own;
    for (const int stage : rank.stages) {
      add_stage(run, rank, stage);
      own.push_back(&run.stage(stage));
    }
    if (!own.empty()) place_parameters(own, rank);
  }
  for (std::size_t c = 0; c < program.channels.size(); ++c) {
    run.mailboxes.push_back(std::make_unique<Mailbox>());
  }
}

EndOfOp begin(RunOnCpu& run, int op, int micro_batch) {
  const OpInfo& info = run.job.program.ops[static_cast<std::size_t>(op)];
  return run.stage(info.stage).run(info, micro_batch);
}

void send(RunOnCpu& run, int index, int micro_batch) {
  const Channel& channel = run.channel(index);
  Stage& from = run.stage(channel.from_stage);
  Mailbox& box = run.mailbox(index);
  Mail mail = {.micro_batch = micro_batch};
  if (channel.wire < 0) {
    mail.blocks = from.hand_over(channel, micro_batch);
  } else {
    CpuMemory& there = *run.memories[static_cast<std::size_t>(channel.to_rank)];
    MessageBlocks own = from.pack(channel, micro_batch);
    for (const auto& [loss, block] : own) {
      const Block copy = there.allocate(block.bytes, MemoryClass::Boundary);
      std::memcpy(copy.data, block.data, static_cast<std::size_t>(block.bytes));
      mail.blocks.emplace_back(loss, copy);
    }
    if (run.options.keeps_sent) {
      box.leaving.push_back(std::move(own));
    } else {
      from.release(channel, micro_batch, own);
    }
  }
  const std::scoped_lock lock(box.mutex);
  box.mail.push_back(std::move(mail));
}

void note_sent(RunOnCpu& run, int index, int micro_batch) {
  const Channel& channel = run.channel(index);
  if (!run.options.keeps_sent || channel.wire < 0) return;
  std::deque<MessageBlocks>& leaving = run.mailbox(index).leaving;
  run.stage(channel.from_stage).release(channel, micro_batch, leaving.front());
  leaving.pop_front();
}

void receive(RunOnCpu& run, int index, int micro_batch) {
  Mailbox& box = run.mailbox(index);
  Mail mail;
  {
    const std::scoped_lock lock(box.mutex);
    CHECK(!box.mail.empty(), "a message is sent before it is taken");
    mail = std::move(box.mail.front());
    box.mail.pop_front();
  }
  CHECK(mail.micro_batch == micro_batch, "messages of a channel keep their order");
  const Channel& channel = run.channel(index);
  run.stage(channel.to_stage).receive(channel, micro_batch, mail.blocks);
}

int generation_of(const RunOnCpu& run, int event, int micro_batch) {
  return micro_batch / run.job.program.events[static_cast<std::size_t>(event)].micro_batches;
}

CollectiveKind kind_of(const RunOnCpu& run, int event) {
  const Program& program = run.job.program;
  const int collective = program.events[static_cast<std::size_t>(event)].collective;
  return program.collectives[static_cast<std::size_t>(collective)].kind;
}

/// Has a rank join what the replicas of a stage exchange.
void join(RunOnCpu& run, int event, int rank, int micro_batch) {
  const Program& program = run.job.program;
  const int collective = program.events[static_cast<std::size_t>(event)].collective;
  const int wanted = program.collectives[static_cast<std::size_t>(collective)].stage;
  const bool weights = kind_of(run, event) == CollectiveKind::AllGather;
  for (const int index : program.ranks[static_cast<std::size_t>(rank)].stages) {
    if (model_stage(program, index) != wanted) continue;
    Stage& stage = run.stage(index);
    const Block block = weights ? stage.newest_weights() : stage.gradients(micro_batch);
    const std::scoped_lock lock(*run.joining);
    run.joined[{event, generation_of(run, event, micro_batch)}][rank] = {index, block};
  }
}

/// Carries out a collective that all replicas of a stage have joined, in the order of their ranks.
void exchange(RunOnCpu& run, int event, int micro_batch) {
  Joined joined;
  {
    const std::scoped_lock lock(*run.joining);
    joined =
        std::move(run.joined.extract({event, generation_of(run, event, micro_batch)}).mapped());
  }
  std::vector<Block> blocks;
  for (const auto& [rank, given] : joined) blocks.push_back(given.second);
  const int stage = joined.begin()->second.first;
  exchange_replicas(*run.devices[static_cast<std::size_t>(stage)], kind_of(run, event), blocks,
                    run.stage(stage).shard_bytes());
}

Outcome finish(RunOnCpu& run) {
  for (const auto& memory : run.memories) run.outcome.memory.push_back(memory->held());
  for (int stage = 0; stage < run.job.program.stages; ++stage) {
    add_results(run.job, stage, run.losses[static_cast<std::size_t>(stage)],
                run.stage(stage).dump(), run.outcome);
  }
  return std::move(run.outcome);
}

}  // namespace

CpuRun make_cpu_run(const Job& job, const CpuOptions& options) {
  if (const std::string problem = why_not_trainable(job); !problem.empty()) throw Error(problem);
  if (job.precision != Precision::Fp32) {
    throw Error("the CPU trains in fp32 only; expected \"precision\": \"fp32\"");
  }
  const auto run = std::make_shared<RunOnCpu>(
      RunOnCpu{.job = job, .options = options, .outcome = empty_outcome(job)});
  set_up(*run);
  return {.workload = {.compute = [run](int op, int batch) { begin(*run, op, batch)(); },
                       .send = [run](int channel, int batch) { send(*run, channel, batch); },
                       .receive = [run](int channel, int batch) { receive(*run, channel, batch); },
                       .join = [run](int event, int rank,
                                     int batch) { join(*run, event, rank, batch); },
                       .exchange = [run](int event, int batch) { exchange(*run, event, batch); }},
          .begin = [run](int op, int batch) { return begin(*run, op, batch); },
          .sent = [run](int channel, int batch) { note_sent(*run, channel, batch); },
          .outcome = [run] { return finish(*run); }};
}

}  // namespace interlock
