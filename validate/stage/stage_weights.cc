// Keeps the weights of a stage: their places, their updates, and the old versions.
// SPDX-License-Identifier: Apache-2.0
#include "validate/stage/stage_weights.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "models/layers/footprint.h"

namespace interlock {

Resident::Resident(const Job& job, const Rank& rank, StageDevice& device,
                   std::optional<std::int64_t> states) {
  const auto program_number = static_cast<std::int64_t>(element_bytes(job.precision));
  for (std::size_t c = 0; c < kMemoryClasses; ++c) {
    const auto bytes = static_cast<std::int64_t>(rank.resident[c].value());
    const auto memory_class = static_cast<MemoryClass>(c);
    const bool divided = memory_class == MemoryClass::Optimizer && states.has_value();
    left_[c] = device.allocate(divided ? *states : bytes / program_number * device.number_bytes(),
                               memory_class);
    if (left_[c]) device.clear(left_[c].data, left_[c].bytes);
  }
}

char* Resident::take(MemoryClass memory_class, std::int64_t bytes) {
  Block& left = left_[static_cast<std::size_t>(memory_class)];
  CHECK(bytes <= left.bytes, "the program has room for what stays");
  char* const begin = left.data;
  left.data += bytes;
  left.bytes -= bytes;
  return begin;
}

bool Resident::is_empty() const {
  return std::all_of(left_.begin(), left_.end(), [](const Block& b) { return b.bytes == 0; });
}

StageWeights::StageWeights(const Job& job, int stage, bool keeps_versions, StageDevice& device)
    : job_(job), stage_(stage), keeps_versions_(keeps_versions), device_(device) {
  const ModuleRange modules = modules_of(job, stage);
  for (int m = modules.first; m < modules.end; ++m) add_parameters(m, false);
  if (job.roles[static_cast<std::size_t>(stage)].head) add_parameters(modules.end - 1, true);
  divide();
}

/// Gives the replica its numbers of each parameter: those of its shard, or all.
void StageWeights::divide() {
  const Program& program = job_.program;
  const bool divides = divides_updates(program);
  const std::int64_t shards = divides ? program.replicas : 1;
  const std::int64_t replica = divides ? stage_ / (program.stages / program.replicas) : 0;
  shard_ = (numbers() + shards - 1) / shards;
  std::int64_t before = 0;  // numbers of earlier parameters
  for (TrainedParameter& p : parameters_) {
    const std::int64_t size = p.parameter.size();
    p.first_own = std::clamp<std::int64_t>(replica * shard_ - before, 0, size);
    p.own = std::clamp<std::int64_t>((replica + 1) * shard_ - before, 0, size) - p.first_own;
    before += size;
  }
}

int StageWeights::states_of_number() const {
  const Optimizer optimizer = job_.descent.optimizer;
  const bool has_master = device_.number_bytes() < device_.state_bytes();
  return (has_master ? 1 : 0) + (optimizer != Optimizer::Sgd ? 1 : 0) +
         (optimizer == Optimizer::Adam ? 1 : 0);
}

std::int64_t StageWeights::state_bytes() const {
  return shard_ * states_of_number() * device_.state_bytes();
}

void StageWeights::add_parameters(int module, bool of_head) {
  const NetworkModule& one = job_.network.modules[static_cast<std::size_t>(module)];
  int number = first_parameter(job_.network, module, of_head);
  const auto parameters =
      of_head ? parameters_of(one.name + ".head", one.head) : parameters_of(one.name, one.layers);
  for (const Parameter& parameter : parameters) {
    parameters_.push_back({.parameter = parameter, .number = number++, .of_head = of_head});
  }
}

std::int64_t StageWeights::numbers() const {
  std::int64_t count = 0;
  for (const TrainedParameter& p : parameters_) count += p.parameter.size();
  return count;
}

void StageWeights::place(Resident& resident) {
  const Optimizer optimizer = job_.descent.optimizer;
  std::int64_t unused = state_bytes();  // of a last shard that has less than others
  for (TrainedParameter& p : parameters_) {
    const std::int64_t size = p.parameter.size();
    const auto state = [&] {
      unused -= p.own * device_.state_bytes();
      return resident.take(MemoryClass::Optimizer, p.own * device_.state_bytes());
    };
    p.weight = resident.take(MemoryClass::Weights, size * device_.number_bytes());
    if (device_.number_bytes() < device_.state_bytes()) p.master = state();
    if (optimizer != Optimizer::Sgd) p.first = state();
    if (optimizer == Optimizer::Adam) p.second = state();
    device_.begin(p);
    (p.of_head ? head_weights_ : weights_).push_back(p.weight);
  }
  resident.take(MemoryClass::Optimizer, unused);
}

std::optional<std::int64_t> divided_states(const std::vector<StageWeights*>& stages) {
  if (!divides_updates(stages.front()->job_.program)) return std::nullopt;
  std::int64_t bytes = 0;
  for (const StageWeights* stage : stages) bytes += stage->state_bytes();
  return bytes;
}

void place_weights(const std::vector<StageWeights*>& stages, Resident& resident) {
  std::int64_t once = 0;
  for (StageWeights* stage : stages) {
    stage->place(resident);
    once += stage->bytes();
  }
  if (once == 0) return;
  // The room for gradients and old weights, as much of it for each stage.
  for (std::int64_t n = resident.left(MemoryClass::Gradients) / once; n > 0; --n) {
    for (StageWeights* stage : stages) {
      char* const room = resident.take(MemoryClass::Gradients, stage->bytes());
      stage->spare_sums_.push_back(stage->sum_at(room));
    }
  }
  for (std::int64_t n = resident.left(MemoryClass::WeightVersions) / once; n > 0; --n) {
    for (StageWeights* stage : stages) {
      stage->spare_.push_back(resident.take(MemoryClass::WeightVersions, stage->bytes()));
    }
  }
}

/// Returns the bytes from `room` on as a sum of the gradients of all parameters.
GradientSum StageWeights::sum_at(char* room) const {
  GradientSum sum;
  for (const TrainedParameter& p : parameters_) {
    (p.of_head ? sum.of_head : sum.of_stage).push_back(room);
    room += p.parameter.size() * device_.number_bytes();
  }
  return sum;
}

GradientSum& StageWeights::sum_for(int micro_batch) {
  const int update = micro_batch / job_.program.update_every;
  if (const auto found = sums_.find(update); found != sums_.end()) return found->second;
  if (spare_sums_.empty()) {
    const Block room = device_.allocate(bytes(), MemoryClass::Gradients);
    device_.clear(room.data, room.bytes);
    spare_sums_.push_back(sum_at(room.data));
  }
  GradientSum& sum = sums_[update] = std::move(spare_sums_.back());
  spare_sums_.pop_back();
  return sum;
}

Block StageWeights::gradients(int micro_batch) {
  if (parameters_.empty()) return {};
  const GradientSum& sum = sum_for(micro_batch);
  // They lie one after the other, those of the head behind those of the stage.
  char* const first = sum.of_stage.empty() ? sum.of_head.front() : sum.of_stage.front();
  return {.data = first, .bytes = bytes()};
}

Block StageWeights::newest() const {
  if (parameters_.empty()) return {};
  return {.data = parameters_.front().weight, .bytes = bytes()};
}

int StageWeights::version_of_forward(int micro_batch) const {
  const Program& program = job_.program;
  if (program.version_lag == 0) return version_;
  return std::max(0, micro_batch / program.update_every - program.version_lag);
}

const std::vector<char*>& StageWeights::of_version(int version) const {
  if (!keeps_versions_ || version == version_) return weights_;
  const auto found = versions_.find(version);
  CHECK(found != versions_.end(), "old weights that are needed are there");
  return found->second.weights;
}

/// Frees the room of versions that nothing reads, nor a later forward once `newest` is the newest.
void StageWeights::drop_versions_before(int newest, const std::set<int>& read) {
  for (auto it = versions_.begin(); it != versions_.end();) {
    if (it->first >= newest - job_.program.version_lag || read.count(it->first) > 0) {
      ++it;
      continue;
    }
    spare_.push_back(it->second.room);
    it = versions_.erase(it);
  }
}

/// Copies the newest weights aside for micro-batches that went forward with them.
void StageWeights::keep_version(const std::set<int>& read) {
  if (!keeps_versions_) return;
  if (read.count(version_) == 0 && job_.program.version_lag == 0) return;
  drop_versions_before(version_ + 1, read);
  if (spare_.empty()) spare_.push_back(device_.allocate(bytes(), MemoryClass::WeightVersions).data);
  Version old = {.room = spare_.back()};
  spare_.pop_back();
  char* to = old.room;
  for (const TrainedParameter& p : parameters_) {
    const std::int64_t size = p.parameter.size() * device_.number_bytes();
    device_.copy(to, p.weight, size);
    if (!p.of_head) old.weights.push_back(to);
    to += size;
  }
  versions_[version_] = std::move(old);
}

/// Dumps `factor` times the replica's own of the `values` of a parameter, or adds that to what is
/// dumped; of others, zeros.
void StageWeights::note(NamedArray& array, const TrainedParameter& parameter, const char* values,
                        double factor, bool adds) {
  const std::vector<double> numbers =
      device_.fetch(values + parameter.first_own * device_.number_bytes(), parameter.own);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    double& noted = array.values[static_cast<std::size_t>(parameter.first_own) + i];
    noted = (adds ? noted : 0) + numbers[i] * factor;
  }
}

void StageWeights::update(int micro_batch, const std::set<int>& read, bool dumps) {
  keep_version(read);
  ++version_;
  const UpdateOfStep place = update_of_step(job_.program, micro_batch);
  StepFactors factors = {.correction1 = 1 - std::pow(job_.descent.beta1, version_),
                         .correction2 = 1 - std::pow(job_.descent.beta2, version_)};
  auto sum = sums_.extract(micro_batch / job_.program.update_every);
  CHECK(!sum.empty(), "an update has gradients");
  GradientSum& added = sum.mapped();
  CHECK(added.batches == job_.program.update_every, "an update covers its own micro-batches");
  auto of_stage = added.of_stage.begin(), of_head = added.of_head.begin();
  for (const TrainedParameter& p : parameters_) {
    char* const gradient = p.of_head ? *of_head++ : *of_stage++;
    factors.mean = 1.0 / (p.of_head ? added.head_batches : added.batches);
    const auto dumped = [&](const char* what) -> NamedArray& {
      return dumped_array(dump_, what, p.parameter);
    };
    if (dumps && place.is_first()) note(dumped("weights"), p, p.weight, 1, false);
    if (dumps) {
      note(dumped("gradients"), p, gradient, factors.mean / place.updates, !place.is_first());
    }
    device_.descend(p, gradient, factors);
    if (dumps) note(dumped("updated"), p, p.weight, 1, false);
  }
  added.batches = added.head_batches = 0;
  spare_sums_.push_back(std::move(added));
}

}  // namespace interlock
