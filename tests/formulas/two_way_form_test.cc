// DualPipe, DualPipeV, Chimera and Hanayo against published forms and an event list of their own.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "tests/validate/support/trial.h"

namespace interlock::two_way_form_test {
namespace {

constexpr double kStash = 1 << 20, kWeights = 4096;

struct Times {
  double forward = 1, input = 1, weight = 1;
  double backward() const { return input + weight; }
};

/// `chunks` stages of equal times on each rank, in a V where there are several; no step overlaps
/// the next.
// NOLINTNEXTLINE(readability-function-size): a case in one line
Trial pipeline(const std::string& kind, int ranks, int micro_batches, const Times& times,
               int chunks = 1, const std::string& more = "") {
  Trial trial;
  const StageTimes stage{Seconds(times.forward), Seconds(times.input), Seconds(times.weight)};
  trial.stages.assign(std::size_t{1} * ranks * chunks,
                      {.times = stage, .stash = Bytes(kStash), .parameters = Bytes(kWeights)});
  for (int i = 0; i < ranks * chunks; ++i) {
    trial.placement.push_back(i / ranks % 2 ? ranks - 1 - i % ranks : i % ranks);
  }
  trial.bandwidth = BytesPerSecond(1e18);  // what copies of a model exchange takes no time
  trial.strategy = "\"global\"";
  trial.schedule = "{\"kind\": \"" + kind + "\", \"optimizer_sync\": \"barrier\"" + more + "}";
  trial.micro_batches = micro_batches;
  trial.steps = 3;
  return trial;
}

double idle(const Metrics& metrics, int rank) {
  return metrics.step_time.value() * (1 - metrics.devices[rank].busy);
}

constexpr Times kEqualHalves[] = {{1, 1, 1}, {2, 2, 1}, {3, 3, 2}, {4, 4, 1}};

TEST_CASE(
    "DualPipe and DualPipeV have the bubble, the weights and the activations of their table") {
  // DeepSeek-V3's table for PP = 2h stages: bubble (PP/2 - 1)(F&B + B - 3W), parameters 2x,
  // activations PP + 1. The bubble is what the ranks in the middle wait for in a step, exactly so
  // if F = B - W and W <= F; ranks nearer the ends have one pair less to overlap each, and are
  // busy instead. An activation is held from the start of its forward to the end of B or W.
  for (int half = 1; half <= 5; ++half) {
    for (const Times& t : kEqualHalves) {
      for (const double overlap : {0.0, 0.3, 1.0}) {
        for (const int each : {2 * half, 2 * half + 3}) {
          const double f = t.forward, b = t.backward(), pair = f + b - overlap * std::min(f, b);
          const double bubble = (half - 1) * (pair + b - 3 * t.weight);
          const std::string more = ", \"overlap\": " + std::to_string(overlap);
          const Metrics v = simulate(pipeline("dualpipe-v", half, each, t, 2, more)).metrics;
          const Metrics two =
              simulate(pipeline("dualpipe", 2 * half, 2 * each, t, 1, more)).metrics;
          INFO("PP " << 2 * half << ", F " << f << ", B " << b << ", W " << t.weight << ", F&B "
                     << pair << ": " << half - 1 << " x (" << pair << " + " << b << " - 3 x "
                     << t.weight << ") = " << bubble);
          CHECK(idle(v, half - 1) == doctest::Approx(bubble));
          CHECK(idle(two, half - 1) == doctest::Approx(bubble));
          CHECK(idle(two, half) == doctest::Approx(bubble));
          CHECK(v.step_time.value() == doctest::Approx(two.step_time.value()));
          for (const Metrics* metrics : {&v, &two}) {
            for (const DeviceMetrics& device : metrics->devices) {
              CHECK(device.peak_stash == Bytes(kStash * (2 * half + 1)));
              CHECK(device.memory[0] == Bytes(2 * kWeights));
              CHECK(device.stages.size() == 2);
            }
          }
        }
      }
    }
  }
}

/// A forward or backward in the order of a rank.
struct Event {
  double slot = 0;
  bool forward = true;
  int pipeline = 0, stage = 0, micro_batch = 0;
};

/// When the last of `orders` ends, if each rank runs its own as early as it can.
double span_of(const std::vector<std::vector<Event>>& orders, int stages, const Times& times) {
  std::map<std::tuple<bool, int, int, int>, double> ends;
  std::vector<std::size_t> next(orders.size(), 0);
  std::vector<double> free(orders.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t r = 0; r < orders.size(); ++r) {
      for (; next[r] < orders[r].size(); ++next[r], moved = true) {
        const Event& e = orders[r][next[r]];
        const bool first = e.forward ? e.stage == 0 : e.stage == stages - 1;
        const int from = e.forward ? e.stage - 1 : e.stage + 1;
        const auto need = first && !e.forward
                              ? ends.find({true, e.pipeline, e.stage, e.micro_batch})
                              : ends.find({e.forward, e.pipeline, from, e.micro_batch});
        if (!(first && e.forward) && need == ends.end()) break;
        const double ready = first && e.forward ? 0 : need->second;
        free[r] = std::max(free[r], ready) + (e.forward ? times.forward : times.backward());
        ends[{e.forward, e.pipeline, e.stage, e.micro_batch}] = free[r];
      }
    }
  }
  for (std::size_t r = 0; r < orders.size(); ++r) REQUIRE(next[r] == orders[r].size());
  return *std::max_element(free.begin(), free.end());
}

/// Chimera's passes put down one by one, sorted by the slot in which unit times have them.
double chimera_span(int p, int micro_batches, const Times& times) {
  std::vector<std::vector<Event>> orders(p);
  for (int b = 0; b < micro_batches; ++b) {
    const int unit = b / p, up = b % p / (p / 2), turn = b % (p / 2);
    for (int stage = 0; stage < p; ++stage) {
      const int rank = up ? p - 1 - stage : stage, begin = 2 * p * unit + 2 * turn;
      orders[rank].push_back({1.0 * begin + stage, true, up, stage, b});
      orders[rank].push_back({1.0 * begin + 2 * p - 1 - stage, false, up, stage, b});
    }
  }
  for (auto& order : orders) {
    std::sort(order.begin(), order.end(),
              [](const Event& a, const Event& b) { return a.slot < b.slot; });
  }
  return span_of(orders, p, times);
}

TEST_CASE("Chimera's step is that of its slots run in order, and (p-2)/(2M+p-2) idle if F = B") {
  for (int p = 2; p <= 8; p += 2) {
    for (int m = p; m <= 4 * p; m += p) {
      for (const Times& t : {Times{2, 1, 1}, Times{1, 1, 1}, Times{3, 1, 1}, Times{1, 2, 2}}) {
        const Metrics metrics = simulate(pipeline("chimera", p, m, t)).metrics;
        INFO("p " << p << ", M " << m << ", F " << t.forward << ", B " << t.backward());
        CHECK(metrics.step_time.value() == doctest::Approx(chimera_span(p, m, t)));
        for (const DeviceMetrics& device : metrics.devices) {
          CHECK(device.memory[0] == Bytes(2 * kWeights));
          const int least = p / 2 + 1;
          CHECK(device.peak_stash >= Bytes(kStash * least));
          CHECK(device.peak_stash <= Bytes(kStash * p));
          if (t.forward != t.backward()) continue;
          const double slots = 2 * m + p - 2;
          INFO("a rank is idle in " << p - 2 << " of " << slots << " slots");
          CHECK(1 - device.busy == doctest::Approx((p - 2) / slots));
        }
      }
    }
  }
}

Trial waves(int p, int w, int micro_batches, const Times& times) {
  return pipeline("hanayo", p, micro_batches, times, 2 * w,
                  ", \"chunks\": " + std::to_string(2 * w));
}

/// Hanayo's passes put down one by one, sorted by cells: micro-batch b begins in cell
/// 2pw (b / p) + 2 (b % p), goes on by a stage a cell, turns in the cell of its last forward and
/// goes back by a stage a cell. A forward comes first in its cell.
double wave_span(int p, int w, int micro_batches, const Times& times) {
  const int stages = 2 * p * w;
  std::vector<std::vector<Event>> orders(p);
  for (int b = 0; b < micro_batches; ++b) {
    const int begin = stages * (b / p) + 2 * (b % p);
    for (int s = 0; s < stages; ++s) {
      auto& order = orders[s / p % 2 ? p - 1 - s % p : s % p];
      order.push_back({1.0 * begin + s, true, 0, s, b});
      order.push_back({begin + 2 * (stages - 1) - s + 0.5, false, 0, s, b});
    }
  }
  for (auto& order : orders) {
    std::sort(order.begin(), order.end(),
              [](const Event& a, const Event& b) { return a.slot < b.slot; });
  }
  return span_of(orders, stages, times);
}

constexpr Times kRatios[] = {{2, 1, 1}, {1, 1, 1}, {1, 2, 2}, {3, 1, 1}};

TEST_CASE("Hanayo's step is that of its cells run in order") {
  for (int p = 1; p <= 6; ++p) {
    for (int w = 1; w <= 3; ++w) {
      for (const int m : {p, 4 * p, 4 * p + 1}) {
        for (const Times& t : kRatios) {
          INFO("p " << p << ", waves " << w << ", M " << m << ", F " << t.forward << ", B "
                    << t.backward());
          const double step = simulate(waves(p, w, m, t)).metrics.step_time.value();
          CHECK(close(step, wave_span(p, w, m, t)));
        }
      }
    }
  }
}

TEST_CASE("Hanayo is idle for 2 (p - 1) of a stage's longer pass, and holds p micro-batches") {
  // Last rank, F <= B: the first micro-batch takes (p - 1) F to reach it. The forwards that begin
  // its last wave up and the backwards that follow take (p - 1) (F + B) to rank 0 and back, during
  // which p - 1 turns of forwards down and up take 2 (p - 1) F. From its last backward the last
  // micro-batch takes (p - 1) B to rank 0: (p - 1) (F + B - F + B). F > B is that in reverse.
  for (int p = 1; p <= 8; ++p) {
    for (int w = 1; w <= 3; ++w) {
      for (const int m : {p, 2 * p, 5 * p}) {
        for (const Times& t : kRatios) {
          const Metrics metrics = simulate(waves(p, w, m, t)).metrics;
          const double bubble = 2 * (p - 1) * std::max(t.forward, t.backward());
          INFO("p " << p << ", waves " << w << ", M " << m << ": 2 x " << p - 1 << " x max("
                    << t.forward << ", " << t.backward() << ") = " << bubble);
          for (int rank = 0; rank < p; ++rank) {
            CHECK(idle(metrics, rank) == doctest::Approx(bubble));
            if (m > p) CHECK(metrics.devices[rank].peak_stash == Bytes(kStash * 2 * w * p));
          }
        }
      }
    }
  }
}

TEST_CASE("Hanayo is never slower than 1F1B and never holds more, however many micro-batches") {
  // 1F1B with all 2w stages of a rank as one: (M + p - 1) (F + B) each, min(p, M) micro-batches.
  for (int p = 2; p <= 6; ++p) {
    for (int w = 1; w <= 3; ++w) {
      for (int m = 1; m <= 3 * p + 1; ++m) {
        const Times& t = kRatios[m % 4];
        const Metrics metrics = simulate(waves(p, w, m, t)).metrics;
        const double other = (m + p - 1) * 2 * w * (t.forward + t.backward());
        INFO("p " << p << ", waves " << w << ", M " << m << ": 1F1B takes " << other);
        CHECK(metrics.step_time.value() <= other * (1 + 1e-9));
        if (m >= p) CHECK(metrics.step_time.value() < other * (1 - 1e-9));
        for (const DeviceMetrics& device : metrics.devices) {
          CHECK(device.peak_stash <= Bytes(kStash * 2 * w * std::min(p, m)));
        }
      }
    }
  }
}

TEST_CASE("long steps of two-way schedules last as long as they do in full") {
  const std::vector<std::pair<std::string, int>> chunks_of = {
      {"dualpipe", 1}, {"dualpipe-v", 2}, {"chimera", 1}, {"bitpipe", 2}, {"hanayo", 2}};
  for (const auto& family : chunks_of) {
    const std::string& kind = family.first;
    Trial trial = pipeline(kind, 4, 16000, {1.1, 1.3, 0.7}, family.second);
    trial.latency = Seconds(0.01);
    trial.steps = 2;
    Question scenario = load(trial);
    const Metrics skipped = run_scenario(scenario, false).measurement.metrics;
    scenario.simulation.skip_periods = false;
    const Metrics whole = run_scenario(scenario, false).measurement.metrics;
    INFO(kind << ": " << skipped.skipped_tasks << " of " << whole.tasks << " tasks skipped");
    CHECK(close(skipped.step_time.value(), whole.step_time.value()));
    for (int rank = 0; rank < 4; ++rank) {
      CHECK(close(skipped.devices[rank].busy, whole.devices[rank].busy));
      CHECK(skipped.devices[rank].peak_stash == whole.devices[rank].peak_stash);
    }
  }
}

}  // namespace
}  // namespace interlock::two_way_form_test
