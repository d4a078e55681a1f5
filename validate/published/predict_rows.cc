// Predicts measured rows by a pool of processes.
// SPDX-License-Identifier: Apache-2.0
#include "validate/published/predict_rows.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <map>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "hardware/devices/device_reader.h"
#include "scenarios/plan/reserve.h"
#include "scenarios/sweep/worker_pool.h"
#include "validate/published/long_step.h"

namespace interlock {
namespace {

/// The head of a prediction that goes through a pipe; its texts follow, each with a zero behind it.
struct PipedPrediction {
  RowValues values;
  double wall_time = 0;
};
static_assert(std::is_trivially_copyable_v<PipedPrediction>);

/// Returns the texts of `row`, in the order in which they go through a pipe.
template <typename Row>
auto texts_of(Row& row) {
  return std::array{&row.choice, &row.setup.device, &row.setup.framework, &row.setup.model,
                    &row.problem};
}

std::string bytes_of(const RowPrediction& row) {
  const PipedPrediction head{row.values, row.wall_time};
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof head);
  for (const std::string* text : texts_of(row)) bytes += *text + '\0';
  return bytes;
}

RowPrediction prediction_of(const JobResult& result) {
  if (!result.problem.empty()) return {.problem = result.problem};
  PipedPrediction head;
  CHECK(result.bytes.size() >= sizeof head, "a process sends all of a prediction");
  std::memcpy(&head, result.bytes.data(), sizeof head);
  RowPrediction row{.values = head.values, .wall_time = head.wall_time};
  std::size_t at = sizeof head;
  for (std::string* text : texts_of(row)) {
    const std::size_t end = result.bytes.find('\0', at);
    CHECK(end != std::string::npos, "a process sends all of a prediction");
    *text = result.bytes.substr(at, end - at);
    at = end + 1;
  }
  return row;
}

RowPrediction timed_prediction(const MeasuredRow& row, Efficiencies efficiencies) {
  const auto begin = std::chrono::steady_clock::now();
  RowPrediction prediction = predict_row(row, efficiencies);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  prediction.wall_time = took.count();
  return prediction;
}

Bytes largest(const Metrics& metrics, Bytes (*bytes)(const DeviceMetrics&)) {
  Bytes most(0);
  for (const DeviceMetrics& device : metrics.devices) most = std::max(most, bytes(device));
  return most;
}

Bytes peak_memory(const DeviceMetrics& device) { return device.peak_memory; }
Bytes peak_stash(const DeviceMetrics& device) { return device.peak_stash; }
Bytes state_memory(const DeviceMetrics& device) {
  Bytes sum(0);
  for (const MemoryClass kind :
       {MemoryClass::Weights, MemoryClass::Gradients, MemoryClass::Optimizer}) {
    sum += device.memory[static_cast<std::size_t>(kind)];
  }
  return sum;
}

/// Returns what the stages of the last rank still hold of the last micro-batch between two steps:
/// the input that the stage before sent, and its gradient. Source: Megatron-Core keeps the input in
/// the model (set_input_tensor of megatron/core/models/gpt/gpt_model.py), and the gradient in that
/// (retain_grad of megatron/core/pipeline_parallel/schedules.py).
Bytes kept_inputs(const Program& program) {
  const int last = static_cast<int>(program.ranks.size()) - 1;
  std::map<int, Bytes> inputs;  // by stage
  for (const Channel& channel : program.channels) {
    const bool reaches = channel.to_rank == last && channel.cargo == Cargo::Activation;
    if (reaches && channel.wire >= 0) inputs[channel.to_stage] = held_by_receiver(channel);
  }
  Bytes kept;
  for (const auto& [stage, bytes] : inputs) kept += 2 * bytes;
  return kept;
}

/// Returns the memory of the last rank between two steps.
Bytes last_held(const Measurement& measured) {
  const Program& program = measured.program;
  const Rank& rank = program.ranks.back();
  return state_memory(measured.metrics.devices.back()) +
         program.memory_held * (rank.libraries + rank.update_copies + kept_inputs(program));
}

/// Returns how long a pass of the stage in the middle takes; 0: there is none of that kind.
double pass_time(const ScenarioResult& result, OpKind kind) {
  const int middle = result.plan.partition.stages() / 2;
  for (const OpInfo& op : result.measurement.program.ops) {
    if (op.kind == kind && op.stage == middle) return op.duration.value();
  }
  return 0;
}

/// Returns how long a pass takes, mean over the stages; 0: there is none of that kind.
double mean_pass_time(const ScenarioResult& result, OpKind kind) {
  double sum = 0, count = 0;
  for (const OpInfo& op : result.measurement.program.ops) {
    if (op.kind != kind) continue;
    sum += op.duration.value();
    ++count;
  }
  return count > 0 ? sum / count : 0;
}

/// Returns whether every device has memory for its tensors and for what processes hold.
bool leaves_room(const Question& question, const Metrics& metrics) {
  if (!metrics.fits_in_memory || !metrics.memory_capacity) return metrics.fits_in_memory;
  const Bytes most = usable_share(question, {}) * *metrics.memory_capacity;
  return fullest_device(metrics).peak_memory <= most;
}

/// Flops of forwards as MFU counts them, and as others would.
struct CountedForward {
  double counted = 0, whole = 0, embedding = 0;
};

/// Source: PaLM, arXiv 2204.02311, appendix B (6 N + 12 L H Q T flops a token); torchtitan,
/// torchtitan/models/utils.py, and Megatron-LM, megatron/training/training.py: the same without the
/// weights of an input embedding.
CountedForward counted_forward(const ModelGraph& graph) {
  CountedForward sum;
  bool tied = false, embeds = false;
  for (const Module& module : graph.modules) {
    tied = tied || module.tied_parameters > 0;
    for (const Work& work : module.forward) {
      const double flops = counted_flops(work).value();
      const bool halved = work.op_class == OpClass::Attention && graph.attention_flops == "causal";
      sum.counted += flops;
      sum.whole += halved ? 2 * flops : flops;
      embeds = embeds || work.op_class == OpClass::Embedding;
    }
  }
  if (embeds && !tied) {
    sum.embedding = 2 * static_cast<double>(graph.modules.front().parameters) *
                    graph.samples_per_micro_batch.value_or(0) * graph.tokens_per_sample.value_or(0);
  }
  return sum;
}

RowSetup setup_of(const Question& question) {
  const ModelGraph& graph = question.training().graph;
  return {question.cluster.machines.front().device.name, question.training().framework.name,
          graph.experts > 0         ? "experts"
          : graph.tokens_per_sample ? "dense"
                                    : "network"};
}

RowValues values_of(const LaidOut& laid_out) {
  const Plan& plan = laid_out.draft;
  const LongStepResult step = run_long_step(laid_out);
  const ScenarioResult& result = step.result;
  const Metrics& metrics = result.measurement.metrics;
  const MeasureInputs whole = measure_inputs(plan);
  const CountedForward forward = counted_forward(plan.question.training().graph);
  // The result may be of a step of fewer micro-batches.
  const double longer =
      double(plan.micro_batches) / result.plan.micro_batches * (metrics.step_time / step.step_time);
  const double mfu = metrics.mfu.value_or(0) * longer / std::max(forward.counted, 1.0);
  return {.step_time = step.step_time.value(),
          .samples_per_s = whole.samples_per_step.value_or(0) / step.step_time.value(),
          .tokens_per_s = whole.tokens_per_step.value_or(0) / step.step_time.value(),
          .devices = static_cast<double>(result.plan.question.layout.mesh.devices()),
          .forward = pass_time(result, OpKind::F),
          .backward = pass_time(result, OpKind::B) + pass_time(result, OpKind::I) +
                      pass_time(result, OpKind::W),
          .mean_forward = mean_pass_time(result, OpKind::F),
          .mean_input = mean_pass_time(result, OpKind::I),
          .mean_weight = mean_pass_time(result, OpKind::W),
          .peak_memory = largest(metrics, peak_memory).value(),
          .used_memory = number_of(step_metric("used_memory_bytes"), metrics).value_or(0),
          .peak_stash = largest(metrics, peak_stash).value(),
          .state_memory = largest(metrics, state_memory).value(),
          .last_peak = metrics.devices.back().peak_memory.value(),
          .last_held = last_held(result.measurement).value(),
          .mfu = mfu * forward.whole,
          .palm_mfu = mfu * (forward.whole + forward.embedding),
          .fits = metrics.fits_in_memory,
          .leaves_room = leaves_room(plan.question, metrics),
          .knows_memory = metrics.memory_capacity.has_value()};
}

/// Returns a message without line feeds and the folders of its file, which differ between machines.
std::string one_line(std::string message, const JsonValue& document) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  const std::string path = document.file ? *document.file : "";
  const std::size_t folders = path.find_last_of('/') + 1;  // none: 0
  for (std::size_t at = message.find(path); folders > 0 && at != std::string::npos;
       at = message.find(path, at)) {
    message.erase(at, folders);
  }
  return message;
}

RowPrediction predict_document(const JsonValue& document, Efficiencies efficiencies) {
  try {
    std::vector<Question> scenarios = load_questions(document);
    if (scenarios.size() != 1) return {.problem = "a sweep; expected one scenario"};
    if (efficiencies == Efficiencies::Borrowed) {
      for (Machine& machine : scenarios.front().cluster.machines) {
        borrow_from_others(machine.device);
      }
    }
    return {.values = values_of(lay_out(scenarios.front())), .setup = setup_of(scenarios.front())};
  } catch (const Error& error) {
    return {.problem = one_line(error.what(), document)};
  }
}

/// Orders predicted rows before refused ones, those that fit before those that do not, then by
/// speed.
bool better(const RowPrediction& a, const RowPrediction& b) {
  const auto place = [](const RowPrediction& row) {
    return std::tuple(!row.problem.empty(), !row.values.fits, row.values.step_time);
  };
  return place(a) < place(b);
}

}  // namespace

RowPrediction predict_row(const MeasuredRow& row, Efficiencies efficiencies) {
  if (row.candidates.empty()) return predict_document(row.document, efficiencies);
  std::optional<RowPrediction> best;
  for (const CandidateScenario& candidate : row.candidates) {
    RowPrediction prediction = predict_document(candidate.document, efficiencies);
    prediction.choice = candidate.name;
    if (!best || better(prediction, *best)) best = std::move(prediction);
  }
  return *best;
}

std::string borrow_from_others(Device& device) {
  if (device.calibrated) return "";
  std::vector<Lender> others;
  for (const Lender& lender : lenders()) {
    const bool related = lender.device.architecture == device.architecture ||
                         generation_of(lender.device.name) == generation_of(device.name);
    if (!related) others.push_back(lender);
  }
  device.tiles.ramp = 0;  // borrowed, too
  device.attention = {};  // likewise
  borrow_efficiency(device, others);
  return device.borrowed ? device.borrowed->from : "";
}

std::vector<RowPrediction> predict_rows(const std::vector<const MeasuredRow*>& rows,
                                        const RowJobs& jobs, Efficiencies efficiencies) {
  std::vector<RowPrediction> predictions(rows.size(), {.problem = kLeftRow});
  std::size_t next = 0, done = 0;
  run_jobs(
      {.next = [&]() -> std::optional<std::size_t> {
         return next < rows.size() ? std::optional(next++) : std::nullopt;
       },
       .work =
           [&](std::size_t row) { return bytes_of(timed_prediction(*rows[row], efficiencies)); },
       .done =
           [&](const JobResult& result) {
             refuse_unanswered(result);
             predictions[result.job] = prediction_of(result);
             if (jobs.told) jobs.told(++done, rows.size());
           },
       .stop = jobs.stop},
      jobs.processes);
  return predictions;
}

}  // namespace interlock
