// Results that every executor words alike: the batches that it dumps, and losses that went wrong.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/error.h"
#include "validate/network/job.h"

namespace interlock {

ModuleRange modules_of(const Job& job, int stage) {
  const auto s = static_cast<std::size_t>(model_stage(job.program, stage));
  return {job.first_module[s], job.first_module[s + 1]};
}

int batch_number(const Program& program, int stage, int micro_batch) {
  const int replica = stage / (program.stages / program.replicas);
  return micro_batch * program.replicas + replica;
}

bool divides_updates(const Program& program) {
  return std::any_of(program.collectives.begin(), program.collectives.end(),
                     [](const Collective& collective) {
                       return collective.kind == CollectiveKind::ReduceScatter;
                     });
}

namespace {

std::vector<NamedArray> dumped_batches(const Job& job) {
  if (job.dump_step < 0) return {};
  const NeuralNetwork& network = job.network;
  const int count = job.program.micro_batches * job.program.replicas;
  const std::int64_t samples = std::int64_t{count} * network.samples_per_micro_batch;
  NamedArray inputs = {.name = "inputs", .shape = {samples, network.rows_per_sample}};
  NamedArray targets = {.name = "targets"};
  if (network.samples != SampleKind::Tokens) inputs.shape.push_back(network.features);
  for (int m = 0; m < count; ++m) {
    const Batch batch = job.batch(job.dump_step * count + m);
    inputs.values.insert(inputs.values.end(), batch.tokens.begin(), batch.tokens.end());
    inputs.values.insert(inputs.values.end(), batch.features.begin(), batch.features.end());
    targets.values.insert(targets.values.end(), batch.targets.begin(), batch.targets.end());
  }
  targets.shape = {static_cast<std::int64_t>(targets.values.size())};
  return {std::move(inputs), std::move(targets)};
}

void add_dump(const std::vector<NamedArray>& dump, bool first, std::vector<NamedArray>& all) {
  if (first) {
    all.insert(all.end(), dump.begin(), dump.end());
    return;
  }
  for (const NamedArray& array : dump) {
    const auto known = std::find_if(
        all.begin(), all.end(), [&](const NamedArray& other) { return other.name == array.name; });
    CHECK(known != all.end(), "replicas dump the same arrays");
    for (std::size_t i = 0; i < array.values.size(); ++i) known->values[i] += array.values[i];
  }
}

}  // namespace

Outcome empty_outcome(const Job& job) {
  Outcome outcome;
  const auto stages = static_cast<std::size_t>(job.program.stages / job.program.replicas);
  outcome.losses.resize(stages);
  outcome.chain_terms.resize(stages);
  outcome.dump = dumped_batches(job);
  return outcome;
}

void add_results(const Job& job, int stage, const StageLosses& losses,
                 const std::vector<NamedArray>& dump, Outcome& outcome) {
  const int of_model = model_stage(job.program, stage);
  const auto s = static_cast<std::size_t>(of_model);
  for (const auto& [micro_batch, loss] : losses.own) {
    outcome.losses[s][batch_number(job.program, stage, micro_batch)] = loss;
  }
  for (const auto& [micro_batch, term] : losses.chain_terms) {
    outcome.chain_terms[s][batch_number(job.program, stage, micro_batch)] = term;
  }
  const bool first = stage == of_model;
  if (first || divides_updates(job.program)) add_dump(dump, first, outcome.dump);
}

UpdateOfStep update_of_step(const Program& program, int micro_batch) {
  return {.earlier = micro_batch % program.micro_batches / program.update_every,
          .updates = program.micro_batches / program.update_every};
}

NamedArray& dumped_array(std::vector<NamedArray>& dump, const std::string& what,
                         const Parameter& parameter) {
  const std::string name = what + "/" + parameter.name;
  const auto known = std::find_if(dump.begin(), dump.end(),
                                  [&](const NamedArray& array) { return array.name == name; });
  if (known != dump.end()) return *known;
  NamedArray array = {.name = name, .shape = {parameter.rows, parameter.columns}};
  if (parameter.rows == 1) array.shape = {parameter.columns};
  array.values.resize(static_cast<std::size_t>(parameter.size()));
  dump.push_back(std::move(array));
  return dump.back();
}

std::string loss_problem(const Job& job, int stage, int micro_batch) {
  const int last = modules_of(job, stage).end - 1;
  return "the loss at module " + job.network.modules[static_cast<std::size_t>(last)].name +
         " is not a number at step " + std::to_string(micro_batch / job.program.micro_batches) +
         "; expected a smaller rate";
}

}  // namespace interlock
