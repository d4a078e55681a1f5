// Draws lifetimes, and merges the outages of all parts with those of a trace.
// SPDX-License-Identifier: Apache-2.0
#include "sim/runs/outages.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/draws.h"
#include "base/error.h"

namespace interlock {
namespace {

/// Returns the scale of a Weibull distribution: mean = scale * Gamma(1 + 1 / shape).
Seconds scale_of(Seconds mean, double shape) { return mean / std::tgamma(1 + 1 / shape); }

}  // namespace

std::optional<Seconds> mean_time_between_failures(const FailureModel& model) {
  double rate = 0;  // per second
  for (const FailingParts& kind : model.kinds) {
    rate += static_cast<double>(kind.parts) * (Seconds(1) / kind.mean_life);
  }
  const auto downs = std::count_if(model.trace.begin(), model.trace.end(),
                                   [](const DeviceEvent& event) { return !event.up; });
  if (downs > 0 && model.trace.back().time > Seconds(0)) {
    rate += static_cast<double>(downs) * (Seconds(1) / model.trace.back().time);
  }
  if (rate <= 0) return std::nullopt;
  return Seconds(1 / rate);
}

Seconds draw_life(Seconds mean, double shape, Random& random) {
  return scale_of(mean, shape) * std::pow(-std::log(positive_uniform(random)), 1 / shape);
}

Seconds draw_remaining_life(Seconds mean, double shape, Random& random) {
  // Its density is that of surviving, exp(-(t / scale)^shape), so that (t / scale)^shape has a
  // gamma distribution with shape 1 / shape: one with 1 + 1 / shape, times a power of a uniform.
  const double gamma = draw_gamma(1 + 1 / shape, random);
  return scale_of(mean, shape) * std::pow(gamma, 1 / shape) * positive_uniform(random);
}

OutageStream::OutageStream(const FailureModel& model, std::uint64_t seed) : model_(&model) {
  std::uint64_t stream = 0;
  for (std::size_t kind = 0; kind < model.kinds.size(); ++kind) {
    for (int index = 0; index < model.kinds[kind].parts; ++index, ++stream) {
      Part part{.kind = kind, .index = index, .random = Random(seed, stream)};
      part.time = draw_remaining_life(model.kinds[kind].mean_life, model.shape, part.random);
      heap_.push_back(part);
    }
  }
  std::make_heap(heap_.begin(), heap_.end(), later);
  for (std::size_t i = 0; i < model.trace.size(); ++i) {
    if (model.trace[i].up) last_traced_up_ = i + 1;
  }
  find_next();
}

bool OutageStream::later(const Part& a, const Part& b) {
  return std::tie(a.time, a.kind, a.index) > std::tie(b.time, b.kind, b.index);
}

void OutageStream::find_next() {
  const bool traced = traced_ < model_->trace.size();
  if (heap_.empty() && !traced) {
    next_.reset();
    return;
  }
  from_trace_ = traced && (heap_.empty() || model_->trace[traced_].time <= heap_.front().time);
  if (from_trace_) {
    next_ = model_->trace[traced_];
    return;
  }
  const Part& part = heap_.front();
  const int devices = model_->kinds[part.kind].devices_per_part;
  next_ = {part.time, part.index * devices, devices, part.up};
}

/// A part that went down comes back if it can; one that came back lives again.
void OutageStream::advance_part() {
  std::pop_heap(heap_.begin(), heap_.end(), later);
  Part& part = heap_.back();
  if (part.up) {
    part.time += draw_life(model_->kinds[part.kind].mean_life, model_->shape, part.random);
  } else if (model_->replacement) {
    part.time += *model_->replacement;
  } else {
    heap_.pop_back();
    return;
  }
  part.up = !part.up;
  std::push_heap(heap_.begin(), heap_.end(), later);
}

bool OutageStream::brings_up() const {
  return (model_->replacement && !heap_.empty()) || traced_ < last_traced_up_;
}

void OutageStream::pop() {
  CHECK(next_.has_value(), "there is an event to pop");
  if (from_trace_) {
    ++traced_;
  } else {
    advance_part();
  }
  find_next();
}

}  // namespace interlock
