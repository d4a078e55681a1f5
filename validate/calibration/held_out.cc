// Divides samples, fits a part, and judges it by the rest.
// SPDX-License-Identifier: Apache-2.0
#include "validate/calibration/held_out.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/random.h"
#include "validate/calibration/model_fit.h"

namespace interlock {
namespace {

constexpr std::size_t kFewest = 10;
constexpr double kLargest = 0.15;
constexpr int kOneIn = 5;

double size_of(const Sample& sample) {
  return sample.work.flops > Flops(0) ? sample.work.flops.value() : sample.work.bytes.value();
}

}  // namespace

std::vector<SamplePart> divide_samples(const std::vector<Sample>& samples, int seed) {
  std::map<std::pair<Precision, OpClass>, std::vector<std::size_t>> classes;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    classes[{samples[i].precision, samples[i].work.op_class}].push_back(i);
  }
  std::vector<SamplePart> parts(samples.size(), SamplePart::Training);
  Random random(static_cast<std::uint64_t>(seed), 15);
  for (auto& [key, members] : classes) {
    if (members.size() < kFewest) continue;
    std::stable_sort(members.begin(), members.end(), [&](std::size_t a, std::size_t b) {
      return size_of(samples[a]) < size_of(samples[b]);
    });
    const auto largest =
        static_cast<std::size_t>(std::ceil(kLargest * static_cast<double>(members.size())));
    for (std::size_t i = 0; i < members.size(); ++i) {
      SamplePart& part = parts[members[i]];
      if (i + largest >= members.size()) {
        part = SamplePart::Largest;
      } else if (random.integer(1, kOneIn) == 1) {
        part = SamplePart::Interior;
      }
    }
  }
  return parts;
}

std::vector<HeldOutErrors> held_out_errors(const std::vector<Sample>& samples,
                                           const std::vector<StreamPoint>& stream, int seed) {
  const std::vector<SamplePart> parts = divide_samples(samples, seed);
  std::vector<Sample> training;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (parts[i] == SamplePart::Training) training.push_back(samples[i]);
  }
  const CalibratedModel model = fit_model(training, stream);
  struct Errors {
    std::vector<double> roofline, kernel;
    int known = 0;
  };
  std::map<std::tuple<Precision, OpClass, SamplePart>, Errors> found;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (parts[i] == SamplePart::Training) continue;
    const Sample& sample = samples[i];
    const auto precision = static_cast<std::size_t>(sample.precision);
    const auto& roofline =
        model.rooflines[precision][static_cast<std::size_t>(sample.work.op_class)];
    if (!roofline) continue;
    Errors& errors = found[{sample.precision, sample.work.op_class, parts[i]}];
    const KernelTime smooth = smooth_time(sample.work, *roofline, stream);
    const KernelTime priced = *calibrated_time(model, sample.work, sample.precision);
    errors.roofline.push_back(smooth.whole() / sample.time - 1);
    errors.kernel.push_back(priced.whole() / sample.time - 1);
    if (priced.priced_by != PricedBy::Roofline) ++errors.known;
  }
  std::vector<HeldOutErrors> rows;
  rows.reserve(found.size());
  for (const auto& [key, errors] : found) {
    rows.push_back({.precision = std::get<0>(key),
                    .op_class = std::get<1>(key),
                    .part = std::get<2>(key),
                    .roofline = error_summary(errors.roofline, seed),
                    .kernel = error_summary(errors.kernel, seed),
                    .known = errors.known / static_cast<double>(errors.kernel.size())});
  }
  return rows;
}

}  // namespace interlock
