// Inputs of independent stages, and the bound on the loss of their chain.
// SPDX-License-Identifier: Apache-2.0
#include "validate/network/denoising.h"

#include <Eigen/Core>
#include <cmath>
#include <numbers>

#include "base/draws.h"
#include "base/error.h"
#include "base/random.h"

namespace interlock {
namespace {

constexpr double kDeviation = 0.5;  // of the logarithm of the levels

// Which kind of thing a stream of random numbers is for.
constexpr std::uint64_t kTargetTable = 2'000'000'011, kBatchTable = 2'000'000'033,
                        kPlaceTable = 2'000'000'063, kNoiseStream = 2'000'000'089;

using Table = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

std::size_t at(std::int64_t row, std::int64_t columns, std::int64_t column = 0) {
  return static_cast<std::size_t>(row * columns + column);
}

/// Returns x such that a normal number of variance 1 is below it with `probability`.
double normal_quantile(double probability) {
  double low = -10, high = 10;
  for (int halvings = 0; halvings < 60; ++halvings) {
    const double middle = (low + high) / 2;
    (std::erfc(-middle / std::numbers::sqrt2) / 2 < probability ? low : high) = middle;
  }
  return (low + high) / 2;
}

std::vector<double> draw_table(std::uint64_t seed, std::uint64_t kind, int rows, int columns) {
  Random random(mix64(seed), kind);
  std::vector<double> table(at(rows, columns));
  for (double& value : table) value = draw_normal(random);
  return table;
}

/// Scales every row to the length 1.
void normalise_rows(std::vector<double>& table, int columns) {
  for (std::size_t row = 0; row < table.size(); row += static_cast<std::size_t>(columns)) {
    double squares = 0;
    for (int c = 0; c < columns; ++c) squares += table[row + at(c, 1)] * table[row + at(c, 1)];
    for (int c = 0; c < columns; ++c) table[row + at(c, 1)] /= std::sqrt(squares);
  }
}

/// Returns 1 / level^2 of a stage: nothing of the first, whose noise has no bound.
double precision_of(NoiseSchedule schedule, int stage, int stages) {
  return stage == 0 ? 0 : 1 / std::pow(noise_level(schedule, stage, stages), 2);
}

/// Returns the share of the variance that is signal when `share` of the way to noise is gone, but
/// for a factor.
double cosine_signal(double share) {
  constexpr double kOffset = 0.008;
  return std::pow(std::cos(std::numbers::pi / 2 * (share + kOffset) / (1 + kOffset)), 2);
}

}  // namespace

double noise_level(NoiseSchedule schedule, int stage, int stages) {
  CHECK(1 <= stage && stage < stages, "a stage behind the first");
  if (schedule == NoiseSchedule::Cosine) {
    const double gone = 1 - static_cast<double>(stage) / stages;
    return std::sqrt(cosine_signal(0) / cosine_signal(gone) - 1);
  }
  return std::exp(kDeviation * normal_quantile(1 - (stage - 0.5) / (stages - 1)));
}

std::string why_no_chain(const Job& job, const std::vector<int>& columns) {
  if (job.network.samples == SampleKind::Images) {
    return "independent stages of images have no kernels; expected a transformer, a residual-mlp "
           "or an mlp";
  }
  for (std::size_t stage = 2; stage < columns.size(); ++stage) {
    if (columns[stage] == columns[1]) continue;
    return "independent stages denoise one vector after the other, and stage " +
           std::to_string(stage) + " reads " + std::to_string(columns[stage]) +
           " columns where stage 1 reads " + std::to_string(columns[1]) +
           "; expected modules of one width";
  }
  if (columns.size() == 1 && job.strategy.noise == NoiseSchedule::Cosine) {
    return "\"noise\" is of stages behind the first, and there is one stage; expected several, or "
           "no \"noise\"";
  }
  if (columns.size() > 1 && columns[1] < 2) {
    return "independent stages read the batch and a noisy target side by side; expected a width "
           "of 2 at least";
  }
  return "";
}

Denoising::Denoising(const Job& job, int stage, int columns)
    : job_(job),
      stage_(stage),
      stages_(job.program.stages / job.program.replicas),
      of_batch_(columns - columns / 2),
      of_target_(columns / 2),
      targets_(draw_table(job.seed, kTargetTable, job.network.classes, of_target_)) {
  normalise_rows(targets_, of_target_);
  if (stage == 0) return;
  const bool tokens = job.network.samples == SampleKind::Tokens;
  const Layer& first = job.network.modules.front().layers.front();
  batch_ =
      draw_table(job.seed, kBatchTable, tokens ? first.inputs : job.network.features, of_batch_);
  if (tokens) places_ = draw_table(job.seed, kPlaceTable, first.positions, of_batch_);
}

std::vector<double> Denoising::input(const Batch& batch, int number) const {
  CHECK(stage_ > 0, "the first stage reads the batch by its own layers");
  const double level = noise_level(job_.strategy.noise, stage_, stages_);
  const double scale = 1 / std::sqrt(1.0 / of_target_ + level * level);
  const int features = batch.tokens.empty() ? job_.network.features : 0;
  const int columns = of_batch_ + of_target_, length = job_.network.rows_per_sample;
  Random noise(mix64(job_.seed) ^ mix64(kNoiseStream + static_cast<std::uint64_t>(stage_)),
               static_cast<std::uint64_t>(number));
  std::vector<double> rows(at(static_cast<std::int64_t>(batch.targets.size()), columns));
  for (std::size_t row = 0; row < batch.targets.size(); ++row) {
    double* const to = rows.data() + row * static_cast<std::size_t>(columns);
    for (int f = 0; f < features; ++f) {
      const double value = batch.features[row * at(features, 1) + at(f, 1)] / std::sqrt(features);
      for (int c = 0; c < of_batch_; ++c) to[c] += value * batch_[at(f, of_batch_, c)];
    }
    for (int c = 0; features == 0 && c < of_batch_; ++c) {
      const double token = batch_[at(batch.tokens[row], of_batch_, c)];
      const auto place = static_cast<std::int64_t>(row) % length;
      to[c] = places_.empty() ? token
                              : (token + places_[at(place, of_batch_, c)]) / std::numbers::sqrt2;
    }
    const double* const target = targets_.data() + at(batch.targets[row], of_target_);
    for (int c = 0; c < of_target_; ++c) {
      to[of_batch_ + c] = scale * (target[c] + level * draw_normal(noise));
    }
  }
  return rows;
}

double Denoising::term(const std::vector<double>& scores,
                       const std::vector<std::int32_t>& targets) const {
  const auto rows = static_cast<Eigen::Index>(targets.size());
  const int classes = job_.network.classes;
  const Eigen::Map<const Table> given(scores.data(), rows, classes);
  // Probabilities, but for a factor of each row.
  const Eigen::ArrayXd most = given.rowwise().maxCoeff();
  const Table weights = (given.array().colwise() - most).exp();
  const Eigen::ArrayXd totals = weights.rowwise().sum();
  double sum = 0;
  if (stage_ == stages_ - 1) {
    for (Eigen::Index row = 0; row < rows; ++row) {
      sum += std::log(totals[row]) + most[row] - given(row, targets[static_cast<std::size_t>(row)]);
    }
    return sum / static_cast<double>(rows);
  }
  const Eigen::Map<const Table> vectors(targets_.data(), classes, of_target_);
  Table expected(rows, of_target_);
  expected.noalias() = weights * vectors;
  for (Eigen::Index row = 0; row < rows; ++row) {
    const std::int32_t target = targets[static_cast<std::size_t>(row)];
    sum += (vectors.row(target) - expected.row(row) / totals[row]).squaredNorm();
  }
  const NoiseSchedule noise = job_.strategy.noise;
  const double growth =
      precision_of(noise, stage_ + 1, stages_) - precision_of(noise, stage_, stages_);
  return sum / static_cast<double>(rows) * growth / 2;
}

}  // namespace interlock
