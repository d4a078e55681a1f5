// What ops and messages of a program do to the stages of a run.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cpu/cpu_workload.h"

#include <cmath>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "validate/cpu/cpu_stage.h"
#include "validate/network/job_plan.h"

namespace interlock {
namespace {

/// One message that has been sent and not been taken.
struct Mail {
  int micro_batch = 0;
  std::vector<std::pair<int, Block>> tensors;  // with their losses
};

struct Mailbox {
  std::mutex mutex;
  std::deque<Mail> mail;
};

template <class T>
struct WorkloadRun {
  Job job;
  CpuOptions options;
  std::vector<std::unique_ptr<CpuMemory>> memories;  // by rank
  std::vector<std::unique_ptr<CpuStage<T>>> stages;
  std::vector<std::unique_ptr<Mailbox>> mailboxes;  // by channel
  Outcome outcome;

  CpuStage<T>& stage(int index) { return *stages[static_cast<std::size_t>(index)]; }
  CpuMemory& memory(int rank) { return *memories[static_cast<std::size_t>(rank)]; }
};

template <class T>
void add_parameters(CpuStage<T>& stage, int module, bool of_head) {
  const NeuralNetwork& network = stage.job->network;
  const NetworkModule& one = network.modules[static_cast<std::size_t>(module)];
  int number = first_parameter(network, module, of_head);
  const auto parameters =
      of_head ? parameters_of(one.name + ".head", one.head) : parameters_of(one.name, one.layers);
  for (const Parameter& parameter : parameters) {
    stage.parameters.push_back({.parameter = parameter, .number = number++, .of_head = of_head});
  }
}

template <class T>
std::unique_ptr<CpuStage<T>> make_stage(WorkloadRun<T>& run, int index) {
  auto stage = std::make_unique<CpuStage<T>>();
  const Job& job = run.job;
  const int first = job.first_module[static_cast<std::size_t>(index)];
  const int end = job.first_module[static_cast<std::size_t>(index) + 1];
  stage->job = &run.job;
  stage->stage = index;
  stage->losses = &run.outcome.losses[static_cast<std::size_t>(index)];
  stage->role = job.roles[static_cast<std::size_t>(index)];
  StageJob plans = plan_stage_of_job(job, index, sizeof(T));
  stage->layers = plans.layers;
  stage->plan = std::move(plans.plan);
  stage->plan_without = std::move(plans.plan_without);
  stage->head_plan = std::move(plans.head_plan);
  stage->head_layers = plans.head_layers;
  stage->runs_again = plans.runs_again;
  stage->rereads_input = plans.rereads_input;
  stage->rebuilds = plans.rebuilds;
  stage->returns_input = plans.returns_input;
  constexpr std::int64_t kFloat = 4;  // bytes that the program counts for a number
  constexpr std::int64_t kNumber = sizeof(T);
  stage->bytes = {plans.workspace / kFloat * kNumber, plans.head / kFloat * kNumber};
  for (int module = first; module < end; ++module) add_parameters(*stage, module, false);
  if (stage->role.head) add_parameters(*stage, end - 1, true);
  return stage;
}

template <class T>
void set_up(WorkloadRun<T>& run) {
  const Program& program = run.job.program;
  run.outcome.losses.resize(static_cast<std::size_t>(program.stages));
  for (int stage = 0; stage < program.stages; ++stage) {
    run.stages.push_back(make_stage(run, stage));
  }
  for (std::size_t r = 0; r < program.ranks.size(); ++r) {
    run.memories.push_back(std::make_unique<CpuMemory>(static_cast<int>(r), run.options.poison));
    std::vector<CpuStage<T>*> stages;
    for (const int stage : program.ranks[r].stages) {
      stages.push_back(&run.stage(stage));
      stages.back()->memory = run.memories.back().get();
      stages.back()->options = &run.options;
      stages.back()->keeps_versions = program.ranks[r].weight_versions > 1;
    }
    if (!stages.empty()) place_parameters(stages, program.ranks[r]);
  }
  for (std::size_t c = 0; c < program.channels.size(); ++c) {
    run.mailboxes.push_back(std::make_unique<Mailbox>());
  }
}

template <class T>
EndOfOp begin(WorkloadRun<T>& run, int op, int micro_batch) {
  const OpInfo& info = run.job.program.ops[static_cast<std::size_t>(op)];
  CpuStage<T>& stage = run.stage(info.stage);
  if (info.replay) return run_replay(stage);
  switch (info.kind) {
    case OpKind::F:
      return run_forward(stage, micro_batch);
    case OpKind::H:
      return run_head(stage, micro_batch);
    case OpKind::I:
    case OpKind::W:
    case OpKind::B:
      return run_backward(stage, info.kind, info.loss, micro_batch);
    case OpKind::U:
      return run_update(stage, micro_batch);
    case OpKind::R:
      return run_again(stage, info.loss, micro_batch);
  }
  CHECK(false, "an op of a known kind");
}

/// What was made on one rank is now on another; the sender's is given back unless it is kept.
Block moved(CpuMemory& from, CpuMemory& to, Block& block, bool keeps) {
  if (&from == &to && !keeps) return std::exchange(block, {});
  const Block there = to.take(block.bytes, MemoryClass::Boundary);
  std::memcpy(there.data, block.data, static_cast<std::size_t>(block.bytes));
  if (!keeps) from.give_back(block);
  return there;
}

template <class T>
Mail pack(WorkloadRun<T>& run, const Channel& channel, int micro_batch) {
  CpuStage<T>& from = run.stage(channel.from_stage);
  CpuMemory& there = run.memory(channel.to_rank);
  MicroBatch& batch = from.under_way.at(micro_batch);
  const bool keeps = run.options.keeps_sent && channel.wire >= 0;
  Mail mail = {.micro_batch = micro_batch};
  if (channel.cargo == Cargo::Activation) {
    const bool stays = keeps || batch.head_is_due;
    mail.tensors.emplace_back(0, moved(*from.memory, there, batch.output, stays));
    if (!keeps) release_output(from, micro_batch);
    return mail;
  }
  // In list form a message holds a tensor for each loss.
  const double tensors = channel.bytes.value() * sizeof(T) / sizeof(float) /
                         static_cast<double>(from.sent_down_bytes());
  for (auto n = static_cast<std::size_t>(std::lround(tensors)); n > 0; --n) {
    CHECK(batch.outgoing.size() >= n, "a gradient is made before it is sent");
    auto& [loss, block] = batch.outgoing[batch.leaving];
    mail.tensors.emplace_back(loss, moved(*from.memory, there, block, keeps));
    if (keeps) {
      ++batch.leaving;
    } else {
      batch.outgoing.pop_front();
    }
  }
  if (!keeps) forget(from, micro_batch);
  return mail;
}

template <class T>
void send(WorkloadRun<T>& run, int index, int micro_batch) {
  Mail mail = pack(run, run.job.program.channels[static_cast<std::size_t>(index)], micro_batch);
  Mailbox& box = *run.mailboxes[static_cast<std::size_t>(index)];
  const std::scoped_lock lock(box.mutex);
  box.mail.push_back(std::move(mail));
}

template <class T>
void note_sent(WorkloadRun<T>& run, int index, int micro_batch) {
  const Channel& channel = run.job.program.channels[static_cast<std::size_t>(index)];
  if (!run.options.keeps_sent || channel.wire < 0) return;
  CpuStage<T>& from = run.stage(channel.from_stage);
  if (channel.cargo == Cargo::Activation) return release_output(from, micro_batch);
  MicroBatch& batch = from.under_way.at(micro_batch);
  const double tensors = channel.bytes.value() * sizeof(T) / sizeof(float) /
                         static_cast<double>(from.sent_down_bytes());
  for (auto n = static_cast<std::size_t>(std::lround(tensors)); n > 0; --n) {
    from.memory->give_back(batch.outgoing.front().second);
    batch.outgoing.pop_front();
    --batch.leaving;
  }
  forget(from, micro_batch);
}

template <class T>
void receive(WorkloadRun<T>& run, int index, int micro_batch) {
  const Channel& channel = run.job.program.channels[static_cast<std::size_t>(index)];
  Mailbox& box = *run.mailboxes[static_cast<std::size_t>(index)];
  Mail mail;
  {
    const std::scoped_lock lock(box.mutex);
    CHECK(!box.mail.empty(), "a message is sent before it is taken");
    mail = std::move(box.mail.front());
    box.mail.pop_front();
  }
  CHECK(mail.micro_batch == micro_batch, "messages of a channel keep their order");
  MicroBatch& batch = run.stage(channel.to_stage).under_way[micro_batch];
  for (const auto& [loss, block] : mail.tensors) {
    (channel.cargo == Cargo::Activation ? batch.input : batch.gradients[loss]) = block;
  }
}

template <class T>
Outcome finish(WorkloadRun<T>& run) {
  for (const auto& memory : run.memories) run.outcome.memory.push_back(memory->held());
  run.outcome.dump = dumped_batches(run.job);
  for (const auto& stage : run.stages) {
    run.outcome.dump.insert(run.outcome.dump.end(), stage->dump.begin(), stage->dump.end());
  }
  return std::move(run.outcome);
}

template <class T>
CpuRun make_run(const Job& job, const CpuOptions& options) {
  const auto run = std::make_shared<WorkloadRun<T>>(WorkloadRun<T>{.job = job, .options = options});
  set_up(*run);
  return {.workload = {.compute = [run](int op, int batch) { begin(*run, op, batch)(); },
                       .send = [run](int channel, int batch) { send(*run, channel, batch); },
                       .receive = [run](int channel, int batch) { receive(*run, channel, batch); }},
          .begin = [run](int op, int batch) { return begin(*run, op, batch); },
          .sent = [run](int channel, int batch) { note_sent(*run, channel, batch); },
          .outcome = [run] { return finish(*run); }};
}

}  // namespace

CpuRun make_cpu_run(const Job& job, const CpuOptions& options) {
  if (const std::string problem = why_not_trainable(job); !problem.empty()) throw Error(problem);
  if (job.precision != Precision::Fp32) {
    throw Error("the CPU trains in fp32 only; expected \"precision\": \"fp32\"");
  }
  return options.doubles ? make_run<double>(job, options) : make_run<float>(job, options);
}

}  // namespace interlock
