// Runs the work of a stage on a CPU: every call is done when it returns.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cpu/cpu_device.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "validate/cpu/cpu_steps.h"
#include "validate/cpu/layers/cast_kernels.h"
#include "validate/cpu/layers/dense_kernels.h"
#include "validate/cpu/layers/update_kernels.h"
#include "validate/network/job_plan.h"

namespace interlock {
namespace {

template <class T>
T* numbers_at(char* data) {
  return reinterpret_cast<T*>(data);
}

template <class T>
std::int64_t numbers_in(const Block& block) {
  return block.bytes / static_cast<std::int64_t>(sizeof(T));
}

bool is_loss(const Step& step) {
  return step.layer != nullptr && step.layer->kind == LayerKind::CrossEntropy;
}

}  // namespace

template <class T>
CpuDevice<T>::CpuDevice(const Job& job, int stage, const CpuOptions& options, CpuMemory& memory,
                        StageLosses& losses)
    : job_(job), stage_(stage), options_(options), memory_(memory), losses_(losses) {
  if (job.strategy.kind != StrategyKind::Independent) return;
  denoising_.emplace(job, model_stage(job.program, stage), input_columns(job).back());
}

template <class T>
void CpuDevice<T>::clear(char* to, std::int64_t bytes) {
  std::memset(to, 0, static_cast<std::size_t>(bytes));
}

template <class T>
void CpuDevice<T>::copy(char* to, const char* from, std::int64_t bytes) {
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

template <class T>
void CpuDevice<T>::add(const Block& from, const Block& to) {
  add_to(numbers_at<T>(from.data), numbers_in<T>(from), numbers_at<T>(to.data));
}

template <class T>
void CpuDevice<T>::scale(const Block& block, double factor) {
  T* const numbers = numbers_at<T>(block.data);
  for (std::int64_t i = 0; i < numbers_in<T>(block); ++i) numbers[i] *= static_cast<T>(factor);
}

template <class T>
void CpuDevice<T>::cast(const Block& from, const Block& to, SentFormat format) {
  cast_numbers(format, numbers_at<T>(from.data), numbers_in<T>(from), to.data);
}

template <class T>
void CpuDevice<T>::cast_back(const Block& from, const Block& to, SentFormat format) {
  interlock::cast_back(format, from.data, numbers_in<T>(to), numbers_at<T>(to.data));
}

template <class T>
const Batch& CpuDevice<T>::batch(int micro_batch) {
  if (asked_ != micro_batch) {
    batch_ = job_.batch(batch_number(job_.program, stage_, micro_batch));
  }
  asked_ = micro_batch;
  return batch_;
}

template <class T>
void CpuDevice<T>::read_input(char* to, std::int64_t bytes, int micro_batch) {
  const Batch& data = batch(micro_batch);
  if (denoising_ && model_stage(job_.program, stage_) > 0) {
    const auto input = denoising_->input(data, batch_number(job_.program, stage_, micro_batch));
    CHECK(bytes == static_cast<std::int64_t>(input.size() * sizeof(T)), "a row for each target");
    std::copy(input.begin(), input.end(), numbers_at<T>(to));
    return;
  }
  const bool tokens = job_.network.samples == SampleKind::Tokens;
  const std::size_t given =
      tokens ? data.tokens.size() * sizeof(std::int64_t) : data.features.size() * sizeof(T);
  CHECK(bytes == static_cast<std::int64_t>(given),
        "a batch has a token, or the features, of each row of the input");
  if (tokens) {
    std::copy(data.tokens.begin(), data.tokens.end(), numbers_at<std::int64_t>(to));
  } else {
    std::copy(data.features.begin(), data.features.end(), numbers_at<T>(to));
  }
}

template <class T>
void CpuDevice<T>::run(const std::vector<Step>& steps, const StageTensors& tensors, StepPart part) {
  const bool reads_targets = std::any_of(steps.begin(), steps.end(), is_loss);
  loss_ = run_steps<T>(steps, tensors,
                       reads_targets ? batch(tensors.micro_batch).targets.data() : nullptr, part);
  if (!denoising_) return;
  for (const Step& step : steps) {
    if (is_loss(step) && step.kind == StepKind::Forward) chain_term_ = chain_term(step, tensors);
  }
}

/// Returns what the stage adds to the loss of its chain, by the scores that `loss` has read.
template <class T>
double CpuDevice<T>::chain_term(const Step& loss, const StageTensors& tensors) {
  const char* const block = tensors.places[static_cast<std::size_t>(loss.x.place)];
  const T* const scores = reinterpret_cast<const T*>(block + loss.x.offset);
  return denoising_->term({scores, scores + loss.x.size()}, batch(tensors.micro_batch).targets);
}

template <class T>
void CpuDevice<T>::note_loss(int micro_batch, bool replay) {
  if (!std::isfinite(loss_)) throw Error(loss_problem(job_, stage_, micro_batch));
  if (replay) return;
  losses_.own[micro_batch] = loss_;
  if (denoising_) losses_.chain_terms[micro_batch] = chain_term_;
}

template <class T>
void CpuDevice<T>::begin(const TrainedParameter& p) {
  for (std::int64_t i = 0; i < p.parameter.size(); ++i) {
    double value = first_value(p.parameter, job_.seed, p.number, i);
    if (options_.first) value = options_.first(p.parameter.name, i, value);
    numbers_at<T>(p.weight)[i] = static_cast<T>(value);
  }
}

template <class T>
void CpuDevice<T>::descend(const TrainedParameter& p, char* gradient, const StepFactors& factors) {
  interlock::descend<T>(
      job_.descent, factors,
      {numbers_at<T>(p.weight) + p.first_own, numbers_at<T>(gradient) + p.first_own,
       numbers_at<T>(p.first), numbers_at<T>(p.second), p.own, p.parameter.decays});
}

template <class T>
std::vector<double> CpuDevice<T>::fetch(const char* numbers, std::int64_t count) {
  const T* const begin = reinterpret_cast<const T*>(numbers);
  return {begin, begin + count};
}

template class CpuDevice<float>;
template class CpuDevice<double>;

}  // namespace interlock
