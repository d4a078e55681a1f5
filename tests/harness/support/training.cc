// Small trainings, and the executions of them.
// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/support/training.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/random.h"
#include "scenarios/plan/lower_plan.h"
#include "sim/engines/engines.h"
#include "sim/measure/memory.h"
#include "tests/harness/support/clocked_ranks.h"
#include "validate/executors/executor.h"
#include "validate/network/contrast.h"
#include "validate/training/execution.h"

namespace interlock {

SmallTraining make_training(const TrainingText& text) {
  const int global = text.samples * text.micro_batches * text.replicas;
  const std::string schedule = text.schedule.empty() ? "" : R"(, "schedule": )" + text.schedule;
  const std::string stages =
      text.stages == 0 ? "" : R"(, "stages": )" + std::to_string(text.stages);
  const std::string replicas =
      text.replicas == 1 && text.stages == 0
          ? ""
          : R"(, "parallel": {"overlap_gradients": false, "zero_stage": )" +
                std::to_string(text.zero_stage) + R"(, "data": )" + std::to_string(text.replicas) +
                R"(, "pipeline": )" + std::to_string(text.devices / text.replicas) + stages + "}";
  const std::string device = text.precision == "fp32" ? "v100-32g" : "a100-80g";
  const std::string document =
      R"({"model": )" + text.model + R"(, "cluster": {"kind": "uniform", "devices": )" +
      std::to_string(text.devices) + R"(, "device": ")" + device +
      R"(", "link": {"latency": "3 us", "bandwidth": "1 GB/s"}},
          "training": {"strategy": )" +
      text.strategy + schedule + R"(, "global_batch_size": )" + std::to_string(global) +
      R"(, "micro_batches": )" + std::to_string(text.micro_batches) + R"(, "precision": ")" +
      text.precision + R"(", "optimizer": ")" + text.optimizer + R"(", "steps": )" +
      std::to_string(text.steps) + text.more_training + "}" + replicas + text.more + "}";
  SmallTraining training;
  try {
    training.plan = make_plan(load_questions(parse_json(document, "training.json")).front());
    unfold_replicas(training.plan);
  } catch (const Error& error) {
    FAIL(document, "\n", std::string(error.what()));
  }
  const Question& scenario = training.plan.question;
  training.program = lower_plan(training.plan, text.steps);
  training.network = network_of(scenario);
  training.descent.optimizer = scenario.training().optimizer.kind;
  return training;
}

Job job_of(const SmallTraining& training) {
  const NeuralNetwork& network = training.network;
  const std::uint64_t seed = training.seed;
  return job_of(training.plan, training.program, network,
                {.batches = [&network, seed](int b) { return made_up_batch(network, seed, b); },
                 .descent = training.descent,
                 .seed = seed,
                 .dump_step = training.dump_step});
}

Batch made_up_batch(const NeuralNetwork& network, std::uint64_t seed, int micro_batch) {
  Batch batch;
  const int samples = network.samples_per_micro_batch - network.false_samples;
  for (int i = 0; i < samples; ++i) {
    const int sample = micro_batch * samples + i;
    Random random(seed + 77, static_cast<std::uint64_t>(sample) << 20);
    const bool tokens = network.samples == SampleKind::Tokens;
    for (int row = 0; row < network.rows_per_sample; ++row) {
      if (tokens) batch.tokens.push_back(random.integer(0, network.classes - 1));
      for (int f = 0; !tokens && f < network.features; ++f) {
        batch.features.push_back(static_cast<float>(2 * random.uniform() - 1));
      }
      if (tokens || row == 0) batch.targets.push_back(random.integer(0, network.classes - 1));
    }
  }
  if (network.false_samples > 0) append_false_samples(batch, seed, micro_batch);
  return batch;
}

Outcome train(const SmallTraining& training, RunMode mode, const CpuOptions& options) {
  const Job job = job_of(training);
  const Program& program = training.program;
  if (mode == RunMode::Clock) return train_by_the_clock(job, options);
  const CpuRun run = make_cpu_run(job, options);
  if (mode == RunMode::Threads) {
    run_threads(program, run.workload, {}, {});
  } else {
    run_in_order(program, run.workload);
  }
  return run.outcome();
}

std::vector<double> simulated_peaks(const Program& program) {
  MemoryTracker tracker(program);
  run_native(program, {.span = [&](const Span& span) { tracker.pass(span.rank, span.start); },
                       .memory = [&](const MemoryChange& change) { tracker.add(change); }});
  std::vector<double> peaks;
  for (const MemoryPeak& peak : tracker.finish()) peaks.push_back(peak.total.value());
  return peaks;
}

std::map<std::string, std::vector<double>> by_name(const Outcome& outcome) {
  std::map<std::string, std::vector<double>> arrays;
  for (const NamedArray& array : outcome.dump) arrays[array.name] = array.values;
  return arrays;
}

std::map<std::string, std::vector<double>> part_of(const Outcome& outcome,
                                                   const std::string& prefix) {
  std::map<std::string, std::vector<double>> arrays;
  for (const NamedArray& array : outcome.dump) {
    if (array.name.rfind(prefix, 0) == 0) arrays[array.name.substr(prefix.size())] = array.values;
  }
  return arrays;
}

double worst_mean_loss(const Losses& all, const Losses& one, int replicas) {
  const auto as_many = [&](const auto& of_all, const auto& of_one) {
    return of_all.size() == of_one.size() * static_cast<std::size_t>(replicas);
  };
  if (!std::equal(all.begin(), all.end(), one.begin(), one.end(), as_many)) {
    throw Error("not as many losses as replicas have");
  }
  double worst = 0;
  for (std::size_t stage = 0; stage < one.size(); ++stage) {
    for (const auto& [batch, loss] : one[stage]) {
      double mean = 0;
      for (int r = 0; r < replicas; ++r) mean += all[stage].at(batch * replicas + r) / replicas;
      worst = std::max(worst, std::abs(mean - loss) / (1 + std::abs(loss)));
    }
  }
  return worst;
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    size += b[i] * b[i];
  }
  return size > 0 ? std::sqrt(difference / size) : std::sqrt(difference);
}

}  // namespace interlock
