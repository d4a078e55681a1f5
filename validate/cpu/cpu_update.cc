// Weights of a stage: where they lie, how they change, and the old ones that are still needed.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "validate/cpu/cpu_stage.h"
#include "validate/cpu/layers/update_kernels.h"

namespace interlock {
namespace {

/// Hands out the resident bytes of a rank, class by class.
template <class T>
class Resident {
 public:
  Resident(const Rank& rank, CpuMemory& memory) {
    constexpr std::int64_t kFloat = sizeof(float);
    for (std::size_t c = 0; c < kMemoryClasses; ++c) {
      const auto bytes = static_cast<std::int64_t>(rank.resident[c].value());
      left_[c] = memory.take(bytes / kFloat * static_cast<std::int64_t>(sizeof(T)),
                             static_cast<MemoryClass>(c));
      if (left_[c]) std::fill_n(reinterpret_cast<T*>(left_[c].data), bytes / kFloat, T(0));
    }
  }
  T* take(MemoryClass memory_class, std::int64_t count) {
    Block& left = left_[static_cast<std::size_t>(memory_class)];
    const std::int64_t bytes = count * static_cast<std::int64_t>(sizeof(T));
    CHECK(bytes <= left.bytes, "the program has room for what stays");
    T* begin = reinterpret_cast<T*>(left.data);
    left.data += bytes;
    left.bytes -= bytes;
    return begin;
  }
  bool is_empty() const {
    return std::all_of(left_.begin(), left_.end(), [](const Block& b) { return b.bytes == 0; });
  }
  std::int64_t left(MemoryClass memory_class) const {
    return left_[static_cast<std::size_t>(memory_class)].bytes;
  }

 private:
  std::array<Block, kMemoryClasses> left_;
};

template <class T>
std::int64_t count_weights(const CpuStage<T>& stage) {
  std::int64_t count = 0;
  for (const TrainedParameter<T>& p : stage.parameters) count += p.parameter.size();
  return count;
}

template <class T>
void place(CpuStage<T>& stage, Resident<T>& resident) {
  const Descent& descent = stage.job->descent;
  for (TrainedParameter<T>& p : stage.parameters) {
    const std::int64_t size = p.parameter.size();
    p.weight = resident.take(MemoryClass::Weights, size);
    if (descent.optimizer != Optimizer::Sgd) p.first = resident.take(MemoryClass::Optimizer, size);
    if (descent.optimizer == Optimizer::Adam) {
      p.second = resident.take(MemoryClass::Optimizer, size);
    }
    for (std::int64_t i = 0; i < size; ++i) {
      double value = first_value(p.parameter, stage.job->seed, p.number, i);
      if (stage.options->first) value = stage.options->first(p.parameter.name, i, value);
      p.weight[i] = static_cast<T>(value);
    }
    (p.of_head ? stage.head_weights : stage.weights).push_back(p.weight);
  }
}

/// The numbers from `at` on as a sum of the gradients of all parameters.
template <class T>
GradientSum<T> sum_at(const CpuStage<T>& stage, T* at) {
  GradientSum<T> sum;
  for (const TrainedParameter<T>& p : stage.parameters) {
    (p.of_head ? sum.of_head : sum.of_stage).push_back(at);
    at += p.parameter.size();
  }
  return sum;
}

/// Room for the inputs that a stage may learn from again; its rank has no other.
template <class T>
void share_inputs(const std::vector<CpuStage<T>*>& stages, Resident<T>& resident) {
  const std::int64_t bytes = stages.front()->plan.input;
  for (std::int64_t n = resident.left(MemoryClass::Boundary) / bytes; n > 0; --n) {
    T* const begin =
        resident.take(MemoryClass::Boundary, bytes / static_cast<std::int64_t>(sizeof(T)));
    stages.front()->input_room.push_back(reinterpret_cast<std::byte*>(begin));
  }
}

/// The resident room for gradients and old weights, as much of it for each stage of the rank.
template <class T>
void share_out(const std::vector<CpuStage<T>*>& stages, Resident<T>& resident) {
  std::int64_t once = 0;
  for (const CpuStage<T>* stage : stages) once += count_weights(*stage);
  if (once == 0) return;
  once *= static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t n = resident.left(MemoryClass::Gradients) / once; n > 0; --n) {
    for (CpuStage<T>* stage : stages) {
      T* const begin = resident.take(MemoryClass::Gradients, count_weights(*stage));
      stage->spare_sums.push_back(sum_at(*stage, begin));
    }
  }
  for (std::int64_t n = resident.left(MemoryClass::WeightVersions) / once; n > 0; --n) {
    for (CpuStage<T>* stage : stages) {
      const std::int64_t count = count_weights(*stage);
      Block room = {.bytes = count * static_cast<std::int64_t>(sizeof(T))};
      room.data = reinterpret_cast<std::byte*>(resident.take(MemoryClass::WeightVersions, count));
      stage->spare.push_back(room);
    }
  }
}

/// Dumps `factor` times `values`, or adds that to what is dumped.
template <class T>
void note(NamedArray& array, const T* values, double factor, bool adds) {
  for (std::size_t i = 0; i < array.values.size(); ++i) {
    array.values[i] = (adds ? array.values[i] : 0) + static_cast<double>(values[i]) * factor;
  }
}

/// Old weights that no backward under way asks for, and no later forward once the weights are of
/// version `newest`, make room.
template <class T>
void drop_versions(CpuStage<T>& stage, int newest) {
  for (auto it = stage.versions.begin(); it != stage.versions.end();) {
    const int version = it->first;
    const bool read = std::any_of(
        stage.under_way.begin(), stage.under_way.end(),
        [&](const auto& entry) { return entry.second.input && entry.second.version == version; });
    const bool later = version >= newest - stage.job->program.version_lag;
    if (read || later) {
      ++it;
      continue;
    }
    if (it->second.block) {
      stage.spare.push_back(it->second.block);
    }
    it = stage.versions.erase(it);
  }
}

/// The newest weights stay as they are for whoever began with them.
template <class T>
void keep_version(CpuStage<T>& stage) {
  if (!stage.keeps_versions) return;
  const bool read =
      std::any_of(stage.under_way.begin(), stage.under_way.end(), [&](const auto& entry) {
        return entry.second.input && entry.second.version == stage.version;
      });
  if (!read && stage.job->program.version_lag == 0) return;
  drop_versions(stage, stage.version + 1);
  WeightVersion<T> old;
  if (stage.spare.empty()) {
    stage.spare.push_back(stage.memory->take(
        count_weights(stage) * static_cast<std::int64_t>(sizeof(T)), MemoryClass::WeightVersions));
  }
  old.block = stage.spare.back();
  stage.spare.pop_back();
  T* to = reinterpret_cast<T*>(old.block.data);
  for (const TrainedParameter<T>& p : stage.parameters) {
    std::copy_n(p.weight, p.parameter.size(), to);
    if (!p.of_head) old.weights.push_back(to);
    to += p.parameter.size();
  }
  stage.versions[stage.version] = std::move(old);
}

}  // namespace

template <class T>
void place_parameters(const std::vector<CpuStage<T>*>& stages, const Rank& rank) {
  Resident<T> resident(rank, *stages.front()->memory);
  for (CpuStage<T>* stage : stages) place(*stage, resident);
  share_out(stages, resident);
  share_inputs(stages, resident);
  CHECK(resident.is_empty(), "what stays is what the program says");
}

template <class T>
EndOfOp run_update(CpuStage<T>& stage, int micro_batch) {
  const Job& job = *stage.job;
  keep_version(stage);
  ++stage.steps;
  ++stage.version;
  const bool dumps = !stage.replays && step_of(job.program, micro_batch) == job.dump_step;
  const UpdateOfStep place = update_of_step(job.program, micro_batch);
  StepFactors factors = {.correction1 = 1 - std::pow(job.descent.beta1, stage.steps),
                         .correction2 = 1 - std::pow(job.descent.beta2, stage.steps)};
  auto sum = stage.sums.extract(micro_batch / job.program.update_every);
  CHECK(!sum.empty(), "an update has gradients");
  CHECK(sum.mapped().batches == job.program.update_every, "an update covers its own micro-batches");
  auto of_stage = sum.mapped().of_stage.begin(), of_head = sum.mapped().of_head.begin();
  for (const TrainedParameter<T>& p : stage.parameters) {
    T* const gradient = p.of_head ? *of_head++ : *of_stage++;
    factors.mean = 1.0 / (p.of_head ? sum.mapped().head_batches : sum.mapped().batches);
    const auto dumped = [&](const char* what) -> NamedArray& {
      return dumped_array(stage.dump, what, p.parameter);
    };
    if (dumps && place.is_first()) note(dumped("weights"), p.weight, 1, false);
    if (dumps) {
      note(dumped("gradients"), gradient, factors.mean / place.updates, !place.is_first());
    }
    descend<T>(job.descent, factors,
               {p.weight, gradient, p.first, p.second, p.parameter.size(), p.parameter.decays});
    if (dumps) note(dumped("updated"), p.weight, 1, false);
  }
  sum.mapped().batches = sum.mapped().head_batches = 0;
  stage.spare_sums.push_back(std::move(sum.mapped()));
  return [&stage] { drop_versions(stage, stage.version); };
}

template <class T>
GradientSum<T>& sum_for(CpuStage<T>& stage, int micro_batch) {
  const int update = micro_batch / stage.job->program.update_every;
  if (const auto found = stage.sums.find(update); found != stage.sums.end()) return found->second;
  if (stage.spare_sums.empty()) {
    const std::int64_t count = count_weights(stage);
    const Block room =
        stage.memory->take(count * static_cast<std::int64_t>(sizeof(T)), MemoryClass::Gradients);
    T* const begin = reinterpret_cast<T*>(room.data);
    std::fill_n(begin, count, T(0));
    stage.spare_sums.push_back(sum_at(stage, begin));
  }
  GradientSum<T>& sum = stage.sums[update] = std::move(stage.spare_sums.back());
  stage.spare_sums.pop_back();
  return sum;
}

template <class T>
int version_of_forward(const CpuStage<T>& stage, int micro_batch) {
  const Program& program = stage.job->program;
  if (program.version_lag == 0) return stage.version;
  return std::max(0, micro_batch / program.update_every - program.version_lag);
}

template <class T>
const std::vector<T*>& weights_of(const CpuStage<T>& stage, int version) {
  if (version == stage.version) return stage.weights;
  const auto found = stage.versions.find(version);
  CHECK(found != stage.versions.end(), "old weights that are needed are there");
  return found->second.weights;
}

#define INTERLOCK_UPDATE(T)                                                         \
  template void place_parameters<T>(const std::vector<CpuStage<T>*>&, const Rank&); \
  template EndOfOp run_update<T>(CpuStage<T>&, int);                                \
  template GradientSum<T>& sum_for<T>(CpuStage<T>&, int);                           \
  template int version_of_forward<T>(const CpuStage<T>&, int)
INTERLOCK_UPDATE(float);
INTERLOCK_UPDATE(double);
#undef INTERLOCK_UPDATE
template const std::vector<float*>& weights_of<float>(const CpuStage<float>&, int);
template const std::vector<double*>& weights_of<double>(const CpuStage<double>&, int);

}  // namespace interlock
