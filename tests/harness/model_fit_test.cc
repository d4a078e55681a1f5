// Fits of cost models: known parameters come back from noisy times, and errors are told honestly.
// SPDX-License-Identifier: Apache-2.0
#include "validate/calibration/model_fit.h"

#include <doctest/doctest.h>

#include <Eigen/LU>
#include <algorithm>
#include <cmath>

#include "base/draws.h"
#include "validate/calibration/held_out.h"
#include "validate/calibration/least_squares.h"

namespace interlock::model_fit_test {

namespace {

/// 4 MB in cache at 2 TB/s, memory at 500 GB/s.
const std::vector<StreamPoint> kStream = {
    {Bytes(4e6), Seconds(2e-6)}, {Bytes(16e6), Seconds(32e-6)}, {Bytes(1e9), Seconds(2e-3)}};

/// The formula in plain arithmetic, apart from the program's.
double true_time(double amount, const ProductShape& shape, double bytes,
                 const SmoothRoofline& truth) {
  double stream = 0;
  if (bytes <= 4e6) {
    stream = bytes / 2e12;
  } else if (bytes <= 16e6) {
    stream = 2e-6 * std::pow(bytes / 4e6, 2);  // from 2 to 32 us while bytes grow by 4
  } else {
    stream = bytes / 5e11;
  }
  const auto& [m, n, k, batch] = shape;
  const double filling = k > 0 ? 1 + truth.m0 / m + truth.n0 / n + truth.k0 / k : 1;
  const double a = amount * filling / truth.rate;
  const double b = stream / truth.share;
  const double g = truth.sharpness;
  return truth.launch.value() + std::pow(std::pow(a, g) + std::pow(b, g), 1 / g);
}

double size_between(double least, double most, Random& random) {
  return std::round(least * std::pow(most / least, random.uniform()));
}

Sample product(Random& random) {
  const double m = size_between(16, 8192, random), n = size_between(16, 8192, random);
  const double k = size_between(16, 4096, random);
  Sample sample;
  sample.work = {.op_class = OpClass::Gemm,
                 .flops = Flops(2 * m * n * k),
                 .bytes = Bytes(2 * (m * k + k * n + m * n)),
                 .role = OpRole::Forward,
                 .shape = {m, n, k}};
  return sample;
}

const SmoothRoofline kProducts = {
    .launch = Seconds(3e-6), .rate = 1e13, .m0 = 12, .n0 = 6, .k0 = 24, .sharpness = 2.5};
const SmoothRoofline kMovers = {
    .launch = Seconds(2e-6), .rate = 7e11, .share = 0.8, .sharpness = 3, .counts_bytes = true};

void set_time(Sample& sample, const SmoothRoofline& truth, double noise, Random& random) {
  const Work& work = sample.work;
  const double amount = truth.counts_bytes ? work.bytes.value() : work.flops.value();
  sample.time = Seconds(true_time(amount, work.shape, work.bytes.value(), truth) *
                        std::exp(noise * draw_normal(random)));
}

std::vector<Sample> products(int count, double noise, std::uint64_t seed) {
  Random random(seed, 1);
  std::vector<Sample> samples;
  for (int i = 0; i < count; ++i) {
    samples.push_back(product(random));
    set_time(samples.back(), kProducts, noise, random);
  }
  return samples;
}

std::vector<Sample> movers(int count, double noise, std::uint64_t seed) {
  Random random(seed, 2);
  std::vector<Sample> samples(static_cast<std::size_t>(count));
  for (Sample& sample : samples) {
    sample.work = {.op_class = OpClass::Normalisation,
                   .bytes = Bytes(size_between(1e3, 1e9, random))};
    set_time(sample, kMovers, noise, random);
  }
  return samples;
}

/// The parameters that times of such a kernel depend on.
std::vector<std::pair<std::string, double*>> parameters_of(SmoothRoofline& model, double& launch) {
  if (model.counts_bytes) {
    return {{"launch", &launch},
            {"rate", &model.rate},
            {"share", &model.share},
            {"sharpness", &model.sharpness}};
  }
  return {{"launch", &launch}, {"rate", &model.rate}, {"m0", &model.m0},
          {"n0", &model.n0},   {"k0", &model.k0},     {"sharpness", &model.sharpness}};
}

double log_time(const Sample& sample, const SmoothRoofline& model) {
  const Work& work = sample.work;
  const double amount = model.counts_bytes ? work.bytes.value() : work.flops.value();
  return std::log(true_time(amount, work.shape, work.bytes.value(), model));
}

/// The least relative deviations that any unbiased fit can have where logarithms of times scatter
/// by `noise` (Cramer and Rao): noise sqrt(diag((J^T J)^-1)), J the slopes of log time against the
/// logarithms of parameters, here by differences.
Eigen::VectorXd least_deviations(const std::vector<Sample>& samples, SmoothRoofline model,
                                 double noise) {
  double launch = model.launch.value();
  const auto parameters = parameters_of(model, launch);
  const auto count = static_cast<Eigen::Index>(parameters.size());
  Eigen::MatrixXd slopes(static_cast<Eigen::Index>(samples.size()), count);
  constexpr double kStep = 1e-5;
  for (Eigen::Index p = 0; p < count; ++p) {
    double& value = *parameters[static_cast<std::size_t>(p)].second;
    const double truth = value;
    for (const double step : {kStep, -kStep}) {
      value = truth * std::exp(step);
      model.launch = Seconds(launch);
      for (std::size_t i = 0; i < samples.size(); ++i) {
        double& slope = slopes(static_cast<Eigen::Index>(i), p);
        slope = (step > 0 ? 0 : slope) + log_time(samples[i], model) / (2 * step);
      }
    }
    value = truth;
    model.launch = Seconds(launch);
  }
  return noise * (slopes.transpose() * slopes).inverse().diagonal().cwiseSqrt();
}

/// The fit is off by at most 2 %, or three of the deviations above where these are more. Without
/// noise it is off by what the first guess, which weighs a little, pulls.
void check_recovered(const std::vector<Sample>& samples, const SmoothRoofline& truth,
                     double noise) {
  constexpr double kPrior = 5e-3;
  SmoothRoofline fit = fit_roofline(samples, kStream, first_guess(samples)), wanted = truth;
  double launch = fit.launch.value(), wanted_launch = truth.launch.value();
  const auto found = parameters_of(fit, launch), known = parameters_of(wanted, wanted_launch);
  const Eigen::VectorXd least = least_deviations(samples, truth, noise);
  for (std::size_t p = 0; p < found.size(); ++p) {
    const double off = *found[p].second / *known[p].second - 1;
    const double deviation = least[static_cast<Eigen::Index>(p)];
    INFO(known[p].first << ": truth " << *known[p].second << ", fitted " << *found[p].second
                        << ", off by " << 100 * off << " %, least deviation " << 100 * deviation
                        << " %");
    CHECK(std::abs(off) <= std::max(noise > 0 ? 0.02 : kPrior, 3 * deviation));
  }
}

}  // namespace

TEST_CASE("least squares of a linear model is what the normal equations say") {
  // Lines through (0, 1), (1, 3), (2, 4): slope 1.5, intercept 7/6.
  const Eigen::Vector3d x(0, 1, 2), y(1, 3, 4);
  const auto residuals = [&](const Eigen::VectorXd& p) -> Eigen::VectorXd {
    return (p[0] * x.array() + p[1]).matrix() - y;
  };
  const Eigen::VectorXd found = least_squares(residuals, Eigen::Vector2d(-7, 100));
  CHECK(found[0] == doctest::Approx(1.5).epsilon(1e-6));
  CHECK(found[1] == doctest::Approx(7.0 / 6).epsilon(1e-6));
}

TEST_CASE("known parameters come back within 2 %, or three deviations that noise must cost") {
  constexpr double kNoise = 0.02;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    CAPTURE(seed);
    check_recovered(products(2000, kNoise, seed), kProducts, kNoise);
    check_recovered(movers(2000, kNoise, seed), kMovers, kNoise);
  }
}

TEST_CASE("without noise the fit is the truth, to half a percent") {
  check_recovered(products(200, 0, 5), kProducts, 0);
  check_recovered(movers(200, 0, 5), kMovers, 0);
}

TEST_CASE("where only arithmetic counts, the rate is the geometric mean") {
  // Long sums of next to no bytes: log(rate) is the mean of the logarithms of flops / time.
  std::vector<Sample> samples;
  for (const double seconds : {1.0, 2.0, 4.0}) {
    Sample sample;
    sample.work = {.op_class = OpClass::Gemm, .flops = Flops(8e12), .shape = {1e4, 1e4, 1e12}};
    sample.time = Seconds(seconds);
    samples.push_back(sample);
  }
  RooflinePrior prior = first_guess(samples);
  prior.guess.launch = Seconds(1e-9);
  INFO("8e12 flops in a geometric mean of 2 s");
  CHECK(fit_roofline(samples, kStream, prior).rate == doctest::Approx(4e12).epsilon(1e-3));
}

TEST_CASE("a stream is what is left without launches, and never takes less time for more bytes") {
  std::vector<Sample> samples;
  for (const auto& [bytes, seconds] : std::vector<std::pair<double, double>>{
           {4e3, 5e-6}, {1e3, 2e-6}, {2e3, 9e-6}, {8e3, 101e-6}}) {
    Sample sample;
    sample.work.bytes = Bytes(bytes);
    sample.time = Seconds(seconds);
    samples.push_back(sample);
  }
  const std::vector<StreamPoint> stream = fit_stream(samples, Seconds(1e-6));
  REQUIRE(stream.size() == 4);
  INFO("1, 8, 4 and 100 us: 8 and 4 come down, so both take sqrt(32)");
  CHECK(stream[0].time.value() == doctest::Approx(1e-6));
  CHECK(stream[1].time.value() == doctest::Approx(std::sqrt(32.0) * 1e-6));
  CHECK(stream[2].time.value() == doctest::Approx(std::sqrt(32.0) * 1e-6));
  CHECK(stream[3].time.value() == doctest::Approx(100e-6));
}

TEST_CASE("the largest of a class are held out, and a seed chooses the others") {
  const std::vector<Sample> samples = products(100, 0, 3);
  const std::vector<SamplePart> parts = divide_samples(samples, 9);
  CHECK(parts == divide_samples(samples, 9));
  CHECK(parts != divide_samples(samples, 10));
  CHECK(std::count(parts.begin(), parts.end(), SamplePart::Largest) == 15);
  double inside = 0, beyond = 1e300;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double flops = samples[i].work.flops.value();
    (parts[i] == SamplePart::Largest) ? beyond = std::min(beyond, flops)
                                      : inside = std::max(inside, flops);
  }
  CHECK(inside <= beyond);
}

TEST_CASE("held-out errors of a true model are its noise") {
  std::vector<Sample> samples = products(300, 0.02, 7);
  for (const Sample& sample : movers(300, 0.02, 7)) samples.push_back(sample);
  // |N(0, 2 %)| has a mean of 0.02 sqrt(2 / pi) = 1.6 %; 45 samples tell it to some 0.2 %.
  const std::vector<HeldOutErrors> rows = held_out_errors(samples, kStream, 1);
  CHECK(rows.size() == 4);
  for (const HeldOutErrors& row : rows) {
    INFO("class " << static_cast<int>(row.op_class) << ", part " << static_cast<int>(row.part)
                  << ": mean " << row.roofline.mape << " of " << row.roofline.count);
    CHECK(row.roofline.mape > 0.01);
    CHECK(row.roofline.mape < 0.023);
    CHECK(row.known == 0);
  }
}

TEST_CASE("kernels of different speeds are told apart by the nearest shape") {
  std::vector<Sample> samples = products(400, 0.02, 11);
  for (Sample& sample : samples) {
    const bool wide = sample.work.shape.n >= 512;
    sample.kernel = wide ? "wide" : "narrow";
    if (!wide) sample.time *= 1.6;
  }
  for (const HeldOutErrors& row : held_out_errors(samples, kStream, 1)) {
    INFO("part " << static_cast<int>(row.part) << ": roofline " << row.roofline.mape << ", kernel "
                 << row.kernel.mape << ", known " << row.known);
    if (row.part == SamplePart::Interior) {
      CHECK(row.kernel.mape < 0.7 * row.roofline.mape);
      CHECK(row.known > 0.8);
    }
  }
}

}  // namespace interlock::model_fit_test
