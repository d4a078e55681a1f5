// Fits of streams, rooflines and kernels.
// SPDX-License-Identifier: Apache-2.0
#include "validate/calibration/model_fit.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "validate/calibration/least_squares.h"

namespace interlock {
namespace {

// How strongly a kernel is drawn to its class: one that was seen twice stays near it.
constexpr double kKernelRidge = 0.02;

double amount_of(const Work& work) {
  return work.flops > Flops(0) ? work.flops.value() : work.bytes.value();
}

Eigen::VectorXd parameters_of(const SmoothRoofline& roofline) {
  Eigen::VectorXd values(7);
  values << std::log(std::max(roofline.launch.value(), 1e-10)), std::log(roofline.rate),
      std::log(std::max(roofline.k0, 1e-3)), std::log(roofline.share),
      std::log(std::max(roofline.sharpness - 1, 1e-3)), std::log(std::max(roofline.m0, 1e-3)),
      std::log(std::max(roofline.n0, 1e-3));
  return values;
}

SmoothRoofline roofline_of(const Eigen::VectorXd& values, bool counts_bytes) {
  const auto bounded = [&](int i) { return std::exp(std::clamp(values[i], -60.0, 80.0)); };
  return {.launch = Seconds(bounded(0)),
          .rate = bounded(1),
          .m0 = counts_bytes ? 0 : bounded(5),
          .n0 = counts_bytes ? 0 : bounded(6),
          .k0 = counts_bytes ? 0 : bounded(2),
          .share = counts_bytes ? bounded(3) : 1,
          .sharpness = 1 + std::min(bounded(4), 100.0),
          .counts_bytes = counts_bytes};
}

/// Neighbours that come down are merged into their mean until all go up: least squares of
/// logarithms under that condition.
/// Source: pool adjacent violators, Ayer et al. (1955).
std::vector<StreamPoint> made_to_grow(const std::vector<StreamPoint>& points) {
  struct Pool {
    double sum = 0;  // of logarithms of times
    int count = 0;
    double mean() const { return sum / count; }
  };
  std::vector<Pool> pools;
  for (const StreamPoint& point : points) {
    pools.push_back({std::log(point.time.value()), 1});
    while (pools.size() > 1 && pools[pools.size() - 2].mean() >= pools.back().mean()) {
      const Pool last = pools.back();
      pools.pop_back();
      pools.back().sum += last.sum;
      pools.back().count += last.count;
    }
  }
  std::vector<StreamPoint> grown = points;
  std::size_t next = 0;
  for (const Pool& pool : pools) {
    for (int i = 0; i < pool.count; ++i) grown[next++].time = Seconds(std::exp(pool.mean()));
  }
  return grown;
}

}  // namespace

std::vector<StreamPoint> fit_stream(const std::vector<Sample>& samples, Seconds launch) {
  std::map<Bytes, std::pair<double, int>> times;  // bytes -> sum of logarithms, how many
  for (const Sample& sample : samples) {
    // A launch that was overrated leaves something of the time.
    const Seconds rest = std::max(sample.time - launch, 0.1 * sample.time);
    auto& [sum, count] = times[sample.work.bytes];
    sum += std::log(rest.value());
    ++count;
  }
  std::vector<StreamPoint> points;
  points.reserve(times.size());
  for (const auto& [bytes, logs] : times) {
    points.push_back({bytes, Seconds(std::exp(logs.first / logs.second))});
  }
  return made_to_grow(points);
}

RooflinePrior first_guess(const std::vector<Sample>& samples) {
  CHECK(!samples.empty(), "samples to guess from");
  RooflinePrior prior;
  prior.guess.counts_bytes = samples.front().work.flops <= Flops(0);
  prior.guess.launch = samples.front().time;
  prior.guess.rate = 1;
  for (const Sample& sample : samples) {
    prior.guess.launch = std::min(prior.guess.launch, sample.time);
    prior.guess.rate = std::max(prior.guess.rate, amount_of(sample.work) / sample.time.value());
  }
  prior.guess.launch *= 0.5;
  prior.guess.k0 = 8;
  prior.guess.m0 = prior.guess.n0 = 1;
  return prior;
}

SmoothRoofline fit_roofline(const std::vector<Sample>& samples,
                            const std::vector<StreamPoint>& stream, const RooflinePrior& prior) {
  CHECK(!samples.empty(), "samples to fit");
  const bool counts_bytes = prior.guess.counts_bytes;
  const Eigen::VectorXd start = parameters_of(prior.guess);
  const auto measured = static_cast<Eigen::Index>(samples.size());
  const double pull = std::sqrt(prior.ridge);
  const ResidualsOf residuals = [&](const Eigen::VectorXd& at) {
    const SmoothRoofline roofline = roofline_of(at, counts_bytes);
    Eigen::VectorXd values(measured + at.size());
    for (Eigen::Index i = 0; i < measured; ++i) {
      const Sample& sample = samples[static_cast<std::size_t>(i)];
      values[i] = std::log(smooth_time(sample.work, roofline, stream).whole() / sample.time);
    }
    values.tail(at.size()) = pull * (at - start);
    return values;
  };
  return roofline_of(least_squares(residuals, start), counts_bytes);
}

namespace {

/// Samples that are of one thing.
template <class Key>
using Groups = std::map<Key, std::vector<Sample>>;

/// Returns the models of all kernels that have a name; a row of the table says which is its own.
std::map<std::string, int> fit_kernels(const std::vector<Sample>& samples, CalibratedModel& model) {
  Groups<std::string> groups;
  for (const Sample& sample : samples) {
    if (!sample.kernel.empty()) groups[sample.kernel].push_back(sample);
  }
  std::map<std::string, int> numbers;
  for (const auto& [name, own] : groups) {
    const Sample& first = own.front();
    const auto& of_class = model.rooflines[static_cast<std::size_t>(first.precision)]
                                          [static_cast<std::size_t>(first.work.op_class)];
    numbers[name] = static_cast<int>(model.kernels.size());
    model.kernels.push_back(
        {name, fit_roofline(own, model.stream, {.guess = *of_class, .ridge = kKernelRidge})});
  }
  return numbers;
}

}  // namespace

CalibratedModel fit_model(const std::vector<Sample>& samples,
                          const std::vector<StreamPoint>& stream) {
  CalibratedModel model = {.stream = stream};
  Groups<std::pair<Precision, OpClass>> classes;
  for (const Sample& sample : samples) {
    classes[{sample.precision, sample.work.op_class}].push_back(sample);
  }
  for (const auto& [key, own] : classes) {
    model.rooflines[static_cast<std::size_t>(key.first)][static_cast<std::size_t>(key.second)] =
        fit_roofline(own, stream, first_guess(own));
  }
  const std::map<std::string, int> kernels = fit_kernels(samples, model);
  for (const Sample& sample : samples) {
    const auto kernel = kernels.find(sample.kernel);
    model.table.push_back({.precision = sample.precision,
                           .work = sample.work,
                           .time = sample.time,
                           .kernel = kernel == kernels.end() ? -1 : kernel->second});
  }
  sort_table(model);
  return model;
}

}  // namespace interlock
