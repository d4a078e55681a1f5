// Weights of a stage on a GPU: where they lie, how they change, and the old ones still needed.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "validate/cuda/cuda_call.h"
#include "validate/cuda/gpu_stage.h"

namespace interlock::cuda {

namespace {

/// Hands out the resident bytes of a rank, class by class; all begin as zeros.
class Resident {
 public:
  Resident(const Rank& rank, const GpuStage& stage) {
    for (std::size_t c = 0; c < kMemoryClasses; ++c) {
      const auto bytes = static_cast<std::int64_t>(rank.resident[c].value());
      left_[c] = stage.take(bytes, static_cast<MemoryClass>(c), "what stays");
      if (left_[c]) {
        require(cudaMemsetAsync(left_[c].data, 0, static_cast<std::size_t>(bytes),
                                stage.engine.lane.stream),
                "begin with zeros");
      }
    }
  }
  char* take(MemoryClass memory_class, std::int64_t bytes) {
    Extent& left = left_[static_cast<std::size_t>(memory_class)];
    CHECK(bytes <= left.bytes, "the program has room for what stays");
    char* begin = left.data;
    left.data += bytes;
    left.bytes -= bytes;
    return begin;
  }
  std::int64_t left(MemoryClass memory_class) const {
    return left_[static_cast<std::size_t>(memory_class)].bytes;
  }

 private:
  std::array<Extent, kMemoryClasses> left_;
};

std::int64_t weight_bytes(const GpuStage& stage) {
  std::int64_t count = 0;
  for (const GpuParameter& p : stage.parameters) count += p.parameter.size();
  return count * bytes_of(stage.engine.lane.element);
}

/// The first values of a parameter, as every executor has them; masters are exact, weights rounded.
void begin_parameter(const GpuStage& stage, const GpuParameter& p) {
  std::vector<float> values(static_cast<std::size_t>(p.parameter.size()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(
        first_value(p.parameter, stage.job->seed, p.number, static_cast<std::int64_t>(i)));
  }
  const auto send = [&](void* to, const auto& numbers) {
    require(cudaMemcpyAsync(to, numbers.data(), numbers.size() * sizeof(numbers[0]),
                            cudaMemcpyHostToDevice, stage.engine.lane.stream),
            "send weights");
    require(cudaStreamSynchronize(stage.engine.lane.stream), "send weights");
  };
  if (p.at.masters != nullptr) send(p.at.masters, values);
  if (stage.engine.lane.element == Element::Fp32) return send(p.at.weights, values);
  std::vector<__nv_bfloat16> rounded(values.size());
  std::transform(values.begin(), values.end(), rounded.begin(),
                 [](float value) { return __float2bfloat16_rn(value); });
  send(p.at.weights, rounded);
}

void place(GpuStage& stage, Resident& resident) {
  const Optimizer optimizer = stage.job->descent.optimizer;
  const std::int64_t element = bytes_of(stage.engine.lane.element);
  const auto fp32 = [&](std::int64_t size) {
    return reinterpret_cast<float*>(
        resident.take(MemoryClass::Optimizer, size * static_cast<std::int64_t>(sizeof(float))));
  };
  for (GpuParameter& p : stage.parameters) {
    const std::int64_t size = p.parameter.size();
    char* weight = resident.take(MemoryClass::Weights, size * element);
    p.at.weights = weight;
    if (stage.engine.lane.element == Element::Bf16) p.at.masters = fp32(size);
    if (optimizer != Optimizer::Sgd) p.at.first = fp32(size);
    if (optimizer == Optimizer::Adam) p.at.second = fp32(size);
    begin_parameter(stage, p);
    (p.of_head ? stage.head_weights : stage.weights).push_back(weight);
  }
}

/// The bytes from `at` on as a sum of the gradients of all parameters.
GpuSum sum_at(const GpuStage& stage, char* at) {
  GpuSum sum;
  for (const GpuParameter& p : stage.parameters) {
    (p.of_head ? sum.of_head : sum.of_stage).push_back(at);
    at += p.parameter.size() * bytes_of(stage.engine.lane.element);
  }
  return sum;
}

/// The resident room for gradients and old weights, as much of it for each stage of the rank.
void share_out(const std::vector<GpuStage*>& stages, Resident& resident) {
  std::int64_t once = 0;
  for (const GpuStage* stage : stages) once += weight_bytes(*stage);
  if (once == 0) return;
  for (std::int64_t n = resident.left(MemoryClass::Gradients) / once; n > 0; --n) {
    for (GpuStage* stage : stages) {
      char* const begin = resident.take(MemoryClass::Gradients, weight_bytes(*stage));
      stage->spare_sums.push_back(sum_at(*stage, begin));
    }
  }
  for (std::int64_t n = resident.left(MemoryClass::WeightVersions) / once; n > 0; --n) {
    for (GpuStage* stage : stages) {
      stage->spare.push_back(resident.take(MemoryClass::WeightVersions, weight_bytes(*stage)));
    }
  }
}

/// Dumps `factor` times `values`, or adds that to what is dumped.
void note(GpuStage& stage, NamedArray& array, const void* values, double factor, bool adds) {
  const Lane& lane = stage.engine.lane;
  const std::size_t size = array.values.size();
  auto* exact = reinterpret_cast<float*>(
      stage.engine.scratch->take(static_cast<std::int64_t>(size * sizeof(float)), lane.stream));
  to_fp32(lane, exact, values, static_cast<std::int64_t>(size));
  std::vector<float> numbers(size);
  require(cudaMemcpyAsync(numbers.data(), exact, size * sizeof(float), cudaMemcpyDeviceToHost,
                          lane.stream),
          "fetch a dump");
  require(cudaStreamSynchronize(lane.stream), "fetch a dump");
  for (std::size_t i = 0; i < size; ++i) {
    array.values[i] = (adds ? array.values[i] : 0) + numbers[i] * factor;
  }
}

bool is_read(const GpuStage& stage, int version) {
  return std::any_of(stage.under_way.begin(), stage.under_way.end(), [&](const auto& entry) {
    return entry.second.input && entry.second.version == version;
  });
}

/// Old weights that no backward under way and no later forward will ask for are dropped.
void drop_versions(GpuStage& stage) {
  for (auto it = stage.versions.begin(); it != stage.versions.end();) {
    const bool later = it->first >= stage.version - stage.job->program.version_lag;
    if (later || is_read(stage, it->first)) {
      ++it;
      continue;
    }
    stage.spare.push_back(it->second.data);
    it = stage.versions.erase(it);
  }
}

/// The newest weights stay as they are for whoever began with them.
void keep_version(GpuStage& stage) {
  if (!stage.keeps_versions) return;
  if (!is_read(stage, stage.version) && stage.job->program.version_lag == 0) return;
  drop_versions(stage);
  if (stage.spare.empty()) {
    stage.spare.push_back(
        stage.take(weight_bytes(stage), MemoryClass::WeightVersions, "old weights").data);
  }
  GpuWeights old = {.data = stage.spare.back(), .weights = {}};
  stage.spare.pop_back();
  char* to = old.data;
  for (const GpuParameter& p : stage.parameters) {
    scale(stage.engine.lane, to, p.at.weights, 1, p.parameter.size());
    if (!p.of_head) old.weights.push_back(to);
    to += p.parameter.size() * bytes_of(stage.engine.lane.element);
  }
  stage.versions[stage.version] = std::move(old);
}

DescentStep step_of(const GpuStage& stage) {
  const Descent& d = stage.job->descent;
  DescentStep step = {.kind = static_cast<int>(d.optimizer)};
  step.rate = static_cast<float>(d.rate);
  step.momentum = static_cast<float>(d.momentum);
  step.beta1 = static_cast<float>(d.beta1);
  step.beta2 = static_cast<float>(d.beta2);
  step.epsilon = static_cast<float>(d.epsilon);
  step.unbias1 = static_cast<float>(1 / (1 - std::pow(d.beta1, stage.steps)));
  step.unbias2 = static_cast<float>(1 / (1 - std::pow(d.beta2, stage.steps)));
  return step;
}

}  // namespace

void place_parameters(const std::vector<GpuStage*>& stages, const Rank& rank) {
  static_assert(static_cast<int>(Optimizer::Sgd) == 0 &&
                static_cast<int>(Optimizer::SgdMomentum) == 1 &&
                static_cast<int>(Optimizer::Adam) == 2);
  Resident resident(rank, *stages.front());
  for (GpuStage* stage : stages) place(*stage, resident);
  share_out(stages, resident);
}

void run_update(GpuStage& stage, int micro_batch) {
  keep_version(stage);
  ++stage.steps;
  ++stage.version;
  const Job& job = *stage.job;
  const bool dumps = stage.dumps && micro_batch / job.program.micro_batches == job.dump_step;
  const UpdateOfStep place = update_of_step(job.program, micro_batch);
  DescentStep step = step_of(stage);
  auto sum = stage.sums.extract(micro_batch / job.program.update_every);
  CHECK(!sum.empty(), "an update has gradients");
  CHECK(sum.mapped().batches == job.program.update_every, "an update covers its own micro-batches");
  auto of_stage = sum.mapped().of_stage.begin(), of_head = sum.mapped().of_head.begin();
  for (GpuParameter& p : stage.parameters) {
    p.at.gradients = p.of_head ? *of_head++ : *of_stage++;
    const int batches = p.of_head ? sum.mapped().head_batches : sum.mapped().batches;
    step.share = 1 / static_cast<float>(batches);
    step.decay = static_cast<float>(p.parameter.decays ? job.descent.decay : 0);
    const auto dumped = [&](const char* what) -> NamedArray& {
      return dumped_array(stage.dump, what, p.parameter);
    };
    if (dumps && place.is_first()) note(stage, dumped("weights"), p.at.weights, 1, false);
    if (dumps) {
      const double share = 1.0 / batches / place.updates;
      note(stage, dumped("gradients"), p.at.gradients, share, !place.is_first());
    }
    descend(stage.engine.lane, p.at, step, p.parameter.size());
    if (dumps) note(stage, dumped("updated"), p.at.weights, 1, false);
  }
  sum.mapped().batches = sum.mapped().head_batches = 0;
  stage.spare_sums.push_back(std::move(sum.mapped()));
  drop_versions(stage);
}

GpuSum& sum_for(GpuStage& stage, int micro_batch) {
  const int update = micro_batch / stage.job->program.update_every;
  if (const auto found = stage.sums.find(update); found != stage.sums.end()) return found->second;
  if (stage.spare_sums.empty()) {
    const std::int64_t bytes = weight_bytes(stage);
    const Extent room = stage.take(bytes, MemoryClass::Gradients, "gradients of another update");
    require(
        cudaMemsetAsync(room.data, 0, static_cast<std::size_t>(bytes), stage.engine.lane.stream),
        "begin with zeros");
    stage.spare_sums.push_back(sum_at(stage, room.data));
  }
  GpuSum& sum = stage.sums[update] = std::move(stage.spare_sums.back());
  stage.spare_sums.pop_back();
  return sum;
}

int version_of_forward(const GpuStage& stage, int micro_batch) {
  const Program& program = stage.job->program;
  if (program.version_lag == 0) return stage.version;
  return std::max(0, micro_batch / program.update_every - program.version_lag);
}

const std::vector<char*>& weights_of(const GpuStage& stage, int version) {
  if (version == stage.version) return stage.weights;
  const auto found = stage.versions.find(version);
  CHECK(found != stage.versions.end(), "old weights that are needed are there");
  return found->second.weights;
}

}  // namespace interlock::cuda
