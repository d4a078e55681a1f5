// Outages: lifetimes against their moments, renewal theory, and traces as files tell them.
// SPDX-License-Identifier: Apache-2.0
#include "sim/runs/outages.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "base/error.h"
#include "base/spread.h"

namespace interlock::outages_test {
namespace {

constexpr int kDraws = 200'000;

Spread drawn(const std::function<Seconds(Random&)>& draw) {
  Random random(7, 1);
  std::vector<double> values;
  values.reserve(kDraws);
  for (int i = 0; i < kDraws; ++i) values.push_back(draw(random).value());
  return spread_of(values);
}

/// Checks that a mean of kDraws values is where it should be, within five of its standard errors.
void check_mean(const Spread& spread, double mean) {
  const double error = spread.deviation / std::sqrt(kDraws);
  INFO("mean " << spread.mean << ", expected " << mean << " +- " << error);
  CHECK(std::abs(spread.mean - mean) < 5 * error);
}

TEST_CASE("lives have the mean that was asked for and the deviation of Weibull") {
  for (const double shape : {0.6, 1.0, 1.5, 3.0}) {
    CAPTURE(shape);
    const Spread lives =
        drawn([&](Random& random) { return draw_life(Seconds(5), shape, random); });
    check_mean(lives, 5);
    // Var = scale^2 (Gamma(1 + 2/k) - Gamma(1 + 1/k)^2) with scale = mean / Gamma(1 + 1/k).
    const double first = std::tgamma(1 + 1 / shape), second = std::tgamma(1 + 2 / shape);
    const double deviation = 5 * std::sqrt(second / (first * first) - 1);
    INFO("deviation " << lives.deviation << ", expected " << deviation);
    CHECK(lives.deviation == doctest::Approx(deviation).epsilon(0.02));
    // The median is scale * ln(2)^(1/k).
    CHECK(lives.p50 ==
          doctest::Approx(5 / first * std::pow(std::log(2.0), 1 / shape)).epsilon(0.02));
  }
}

TEST_CASE("what remains of a life has the mean of renewal theory") {
  for (const double shape : {0.6, 1.0, 1.5, 3.0}) {
    CAPTURE(shape);
    const Spread rests =
        drawn([&](Random& random) { return draw_remaining_life(Seconds(5), shape, random); });
    // E[rest] = E[life^2] / (2 E[life]); of an exponential life that is its mean again.
    const double first = std::tgamma(1 + 1 / shape), second = std::tgamma(1 + 2 / shape);
    check_mean(rests, 5 * second / (2 * first * first));
  }
}

int failures_until(const FailureModel& model, std::uint64_t seed, double end) {
  OutageStream stream(model, seed);
  int failures = 0;
  for (; stream.next() && stream.next()->time.value() < end; stream.pop()) {
    if (!stream.next()->up) ++failures;
  }
  return failures;
}

TEST_CASE("parts fail at their mean rate from the first instant on, whatever the shape") {
  for (const double shape : {0.6, 1.0, 2.0}) {
    const FailureModel model{
        .kinds = {{Seconds(100), 50, 1}}, .shape = shape, .replacement = Seconds(0)};
    // Renewals from equilibrium: 50 parts x 20 s / 100 s = 10 for each seed, early or late.
    std::vector<double> counts;
    counts.reserve(2000);
    for (int seed = 0; seed < 2000; ++seed) counts.push_back(failures_until(model, seed, 20));
    const Spread spread = spread_of(counts);
    const double error = spread.deviation / std::sqrt(2000.0);
    INFO("shape " << shape << ": mean " << spread.mean << " of 10 +- " << error);
    CHECK(std::abs(spread.mean - 10) < 4 * error);
    CHECK(mean_time_between_failures(model)->value() == doctest::Approx(2));
  }
}

TEST_CASE("events come in order, each part down and up in turn, the same for the same seed") {
  FailureModel model{.kinds = {{Seconds(3), 4, 1}, {Seconds(10), 2, 2}}, .replacement = Seconds(1)};
  model.trace = {{Seconds(0.5), 3, 1, false}, {Seconds(2), 3, 1, true}};
  OutageStream a(model, 5), b(model, 5), other(model, 6);
  bool differs = false;
  Seconds before;
  int balance = 0;
  for (int i = 0; i < 1000; ++i, a.pop(), b.pop(), other.pop()) {
    REQUIRE(a.next());
    CHECK(a.next()->time >= before);
    before = a.next()->time;
    balance += a.next()->up ? -1 : 1;
    CHECK(balance >= 0);
    CHECK(balance <= 7);  // 4 devices, 2 nodes, 1 traced
    CHECK(a.next()->time == b.next()->time);
    differs = differs || a.next()->time != other.next()->time;
  }
  CHECK(differs);
}

TEST_CASE("without replacement every part fails once") {
  const FailureModel model{.kinds = {{Seconds(3), 4, 1}, {Seconds(10), 2, 2}}};
  CHECK(failures_until(model, 1, 1e12) == 6);
}

std::string mistakes_in(const std::string& text) {
  try {
    parse_outage_trace(text, "x.csv");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a trace is read in order of time") {
  const auto events =
      parse_outage_trace("time_s,device,event\n7.5, 1, up\n\n2,0,down\r\n2,1,down", "x.csv");
  REQUIRE(events.size() == 3);
  CHECK(events[0].time == Seconds(2));
  CHECK(events[0].first == 0);
  CHECK(events[1].first == 1);
  CHECK(events[2].time == Seconds(7.5));
  CHECK(events[2].up);
  CHECK(events[2].count == 1);
}

TEST_CASE("what a trace does wrong is told with its lines, all at once") {
  CHECK(mistakes_in("") == "x.csv:1: no events; expected the head \"time_s,device,event\"");
  CHECK(mistakes_in("1,2,down") ==
        "x.csv:1: expected the head \"time_s,device,event\", got \"1,2,down\"");
  CHECK(mistakes_in("time_s,device,event\n-1,2,down\n1,x,down\n1,2,gone\n5") ==
        "x.csv:2: expected seconds from 0 to 1e10 before the first comma, got \"-1\"\n"
        "x.csv:3: expected a device from 0 to 999999 after the first comma, got \"x\"\n"
        "x.csv:4: expected \"down\" or \"up\" after the second comma, got \"gone\"\n"
        "x.csv:5: expected a device from 0 to 999999 after the first comma, got \"\"");
  CHECK(mistakes_in("time_s,device,event\n5,2,down\n1,2,down") ==
        "x.csv:2: device 2 is down since line 3; expected \"up\"");
}

}  // namespace
}  // namespace interlock::outages_test
