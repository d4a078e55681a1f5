// Means, quantiles, a bootstrap over configurations, and Kendall's tau-b.
// SPDX-License-Identifier: Apache-2.0
#include "base/error_summary.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/random.h"

namespace interlock {

namespace {

constexpr int kResamples = 1000;

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

int sign(double value) { return (value > 0) - (value < 0); }

}  // namespace

double median_of(std::vector<double> values) {
  CHECK(!values.empty(), "values to take the median of");
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double quantile_of(std::vector<double> values, double part) {
  CHECK(!values.empty() && part >= 0 && part <= 1, "values, and a share of them");
  std::sort(values.begin(), values.end());
  const double rank = std::ceil(part * static_cast<double>(values.size()));
  return values[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

ErrorSummary error_summary(const std::vector<double>& errors, int seed) {
  if (errors.empty()) return {};
  std::vector<double> sizes;
  sizes.reserve(errors.size());
  for (const double error : errors) sizes.push_back(std::abs(error));
  Random random(static_cast<std::uint64_t>(seed), 0);
  std::vector<double> means;
  for (int sample = 0; sample < kResamples; ++sample) {
    double sum = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      sum += sizes[static_cast<std::size_t>(random.integer(0, static_cast<int>(sizes.size()) - 1))];
    }
    means.push_back(sum / static_cast<double>(sizes.size()));
  }
  return {.count = static_cast<int>(errors.size()),
          .mape = mean_of(sizes),
          .median = median_of(sizes),
          .p95 = quantile_of(sizes, 0.95),
          .most = *std::max_element(sizes.begin(), sizes.end()),
          .bias = mean_of(errors),
          .low = quantile_of(means, 0.025),
          .high = quantile_of(means, 0.975)};
}

RankAgreement rank_agreement(const std::vector<double>& predicted,
                             const std::vector<double>& measured, double least_gap) {
  CHECK(predicted.size() == measured.size(), "a prediction for each measurement");
  RankAgreement agreement;
  double concordance = 0, predicted_pairs = 0, measured_pairs = 0;  // ties left out
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const int foreseen = sign(predicted[i] - predicted[j]),
                seen = sign(measured[i] - measured[j]);
      concordance += foreseen * seen;
      predicted_pairs += std::abs(foreseen);
      measured_pairs += std::abs(seen);
      const double larger = std::max(predicted[i], predicted[j]);
      if (larger <= (1 + least_gap) * std::min(predicted[i], predicted[j])) continue;
      ++agreement.clear_pairs;
      if (foreseen == seen) ++agreement.clear_pairs_right;
    }
  }
  const double pairs = std::sqrt(predicted_pairs * measured_pairs);
  agreement.tau = pairs > 0 ? concordance / pairs : 0;
  return agreement;
}

}  // namespace interlock
