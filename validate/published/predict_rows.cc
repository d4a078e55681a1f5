// Worker processes take one row after the other, and leave results in memory that all share.
// SPDX-License-Identifier: Apache-2.0
#include "validate/published/predict_rows.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <new>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "validate/published/long_step.h"

namespace interlock {
namespace {

/// A prediction as plain bytes.
struct SharedPrediction {
  static constexpr std::size_t kLongest = 1000;
  RowFigures figures;
  double wall_time;
  bool done;
  char choice[kLongest], problem[kLongest];
};
static_assert(std::is_trivially_copyable_v<SharedPrediction>);

/// What workers and we have in common: the next row that nobody took, then a place for each.
class SharedRows {
 public:
  explicit SharedRows(std::size_t rows) : bytes_(kHead + rows * sizeof(SharedPrediction)) {
    void* memory =
        ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      throw Error(std::string("no memory to share with workers: ") + std::strerror(errno));
    }
    memory_ = static_cast<char*>(memory);
    next_ = new (memory_) std::atomic<std::size_t>(0);
  }
  ~SharedRows() { ::munmap(memory_, bytes_); }
  SharedRows(const SharedRows&) = delete;
  SharedRows& operator=(const SharedRows&) = delete;

  std::size_t take() { return next_->fetch_add(1); }
  SharedPrediction& row(std::size_t i) {
    return reinterpret_cast<SharedPrediction*>(memory_ + kHead)[i];
  }

 private:
  static constexpr std::size_t kHead = 64;
  std::size_t bytes_;
  char* memory_ = nullptr;
  std::atomic<std::size_t>* next_ = nullptr;
};

SharedPrediction shared_form(const RowPrediction& row) {
  SharedPrediction shared{row.figures, row.wall_time, true, {}, {}};
  std::strncpy(shared.choice, row.choice.c_str(), SharedPrediction::kLongest - 1);
  std::strncpy(shared.problem, row.problem.c_str(), SharedPrediction::kLongest - 1);
  return shared;
}

RowPrediction own_form(const SharedPrediction& shared) {
  if (!shared.done) return {.problem = "the process that simulated it died"};
  return {shared.figures, shared.wall_time, shared.choice, shared.problem};
}

[[noreturn]] void work(const std::vector<const MeasuredRow*>& rows, SharedRows& shared) {
  for (std::size_t i = shared.take(); i < rows.size(); i = shared.take()) {
    const auto begin = std::chrono::steady_clock::now();
    RowPrediction prediction = predict_row(*rows[i]);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    prediction.wall_time = took.count();
    shared.row(i) = shared_form(prediction);
  }
  _exit(0);
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

/// How long a pass of the stage in the middle takes; 0: there is none of that kind.
double pass_time(const ScenarioResult& result, OpKind kind) {
  const int middle = result.scenario.partition.stages() / 2;
  for (const OpInfo& op : result.measurement.program.ops) {
    if (op.kind == kind && op.stage == middle) return op.duration.value();
  }
  return 0;
}

/// How long a pass takes, mean over the stages; 0: there is none of that kind.
double mean_pass_time(const ScenarioResult& result, OpKind kind) {
  double sum = 0, count = 0;
  for (const OpInfo& op : result.measurement.program.ops) {
    if (op.kind != kind) continue;
    sum += op.duration.value();
    ++count;
  }
  return count > 0 ? sum / count : 0;
}

RowFigures figures_of(const Scenario& scenario) {
  const LongStepResult step = run_long_step(scenario);
  const ScenarioResult& result = step.result;
  const Metrics& metrics = result.measurement.metrics;
  const MeasureInputs whole = measure_inputs(scenario);
  return {.step_time = step.step_time.value(),
          .samples_per_s = whole.samples_per_step.value_or(0) / step.step_time.value(),
          .tokens_per_s = whole.tokens_per_step.value_or(0) / step.step_time.value(),
          .devices = static_cast<double>(result.scenario.mesh.devices()),
          .forward = pass_time(result, OpKind::F),
          .backward = pass_time(result, OpKind::B) + pass_time(result, OpKind::I) +
                      pass_time(result, OpKind::W),
          .mean_forward = mean_pass_time(result, OpKind::F),
          .mean_input = mean_pass_time(result, OpKind::I),
          .mean_weight = mean_pass_time(result, OpKind::W),
          .peak_memory = largest(metrics, peak_memory).value(),
          .peak_stash = largest(metrics, peak_stash).value(),
          .state_memory = largest(metrics, state_memory).value(),
          .fits = metrics.fits_in_memory};
}

/// A message without line feeds and the folders of its file, which differ between machines.
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

RowPrediction predict_document(const JsonValue& document) {
  try {
    const std::vector<Scenario> scenarios = load_scenarios(document);
    if (scenarios.size() != 1) return {.problem = "a sweep; expected one scenario"};
    return {.figures = figures_of(scenarios.front())};
  } catch (const Error& error) {
    return {.problem = one_line(error.what(), document)};
  }
}

/// What was predicted before what was refused, what fits before what does not, then the faster one.
bool better(const RowPrediction& a, const RowPrediction& b) {
  const auto place = [](const RowPrediction& row) {
    return std::tuple(!row.problem.empty(), !row.figures.fits, row.figures.step_time);
  };
  return place(a) < place(b);
}

}  // namespace

RowPrediction predict_row(const MeasuredRow& row) {
  if (row.candidates.empty()) return predict_document(row.document);
  std::optional<RowPrediction> best;
  for (const CandidateScenario& candidate : row.candidates) {
    RowPrediction prediction = predict_document(candidate.document);
    prediction.choice = candidate.name;
    if (!best || better(prediction, *best)) best = std::move(prediction);
  }
  return *best;
}

std::vector<RowPrediction> predict_rows(const std::vector<const MeasuredRow*>& rows, int jobs) {
  SharedRows shared(rows.size());
  std::fflush(nullptr);  // or a worker might print what waits here a second time
  std::vector<pid_t> workers;
  for (int i = 0; i < jobs; ++i) {
    const pid_t id = ::fork();
    if (id == 0) work(rows, shared);
    if (id > 0) workers.push_back(id);
  }
  if (workers.empty()) throw Error("cannot start a process: " + std::string(std::strerror(errno)));
  for (const pid_t id : workers) {
    int status = 0;
    while (::waitpid(id, &status, 0) < 0 && errno == EINTR) {
    }
  }
  std::vector<RowPrediction> predictions;
  predictions.reserve(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) predictions.push_back(own_form(shared.row(i)));
  return predictions;
}

}  // namespace interlock
