// DualPipe, DualPipeV, Chimera and Hanayo against published forms and an event list of their own.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "tests/validate/support/trial.h"

namespace interlock {
namespace {

constexpr double kStash = 1 << 20, kWeights = 4096;

struct Times {
  double forward = 1, input = 1, weight = 1;
  double backward() const { return input + weight; }
};

/// `chunks` stages of equal times on each rank, in a V where there are several; no step overlaps
/// the next.
Trial pipeline(const std::string& kind, int ranks, int micro_batches, const Times& times,
               int chunks = 1, const std::string& more = "") {
  Trial trial;
  const StageTimes stage{Seconds(times.forward), Seconds(times.input), Seconds(times.weight)};
  trial.stages.assign(ranks * chunks,
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
          CHECK(device.peak_stash >= Bytes(kStash * (p / 2 + 1)));
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

/// What a free rank of a V would take: a backward before a forward, then the older micro-batch,
/// then, of forwards, the later stage. Simulated second by second with F = 1 and B = 2.
double wave_span(int p, int chunks, int micro_batches) {
  const int stages = p * chunks;
  std::vector<int> forward_end(stages * micro_batches, -1), backward_end = forward_end;
  std::vector<int> forwards(stages, 0), backwards(stages, 0), free(p, 0);
  const auto at = [&](int stage, int b) { return stage * micro_batches + b; };
  const auto done = [](int end, int now) { return 0 <= end && end <= now; };
  int last = 0;
  for (int now = 0, left = 2 * stages * micro_batches; left > 0; ++now) {
    REQUIRE(now < 1000);
    for (int rank = 0; rank < p; ++rank) {
      if (free[rank] > now) continue;
      std::tuple<int, int, int> best{2, 0, 0};  // kind (0: backward), micro-batch, minus the stage
      for (int s = 0; s < stages; ++s) {
        if ((s / p % 2 ? p - 1 - s % p : s % p) != rank) continue;
        const int f = forwards[s], b = backwards[s];
        if (f < micro_batches && (s == 0 || done(forward_end[at(s - 1, f)], now))) {
          best = std::min(best, {1, f, -s});
        }
        const int before = s + 1 == stages ? 0 : at(s + 1, b);
        if (b < f && done(forward_end[at(s, b)], now) &&
            (s + 1 == stages || done(backward_end[before], now))) {
          best = std::min(best, {0, b, -s});
        }
      }
      const auto [kind, b, minus_stage] = best;
      if (kind == 2) continue;
      --left;
      last = std::max(last, free[rank] = now + (kind == 0 ? 2 : 1));
      (kind == 0 ? backward_end : forward_end)[at(-minus_stage, b)] = free[rank];
      ++(kind == 0 ? backwards : forwards)[-minus_stage];
    }
  }
  return last;
}

TEST_CASE("Hanayo's unit of p micro-batches takes what a simulation of its rule takes") {
  for (int p = 1; p <= 6; ++p) {
    for (int waves = 1; waves <= 3; ++waves) {
      const int chunks = 2 * waves;
      const Metrics metrics = simulate(pipeline("hanayo", p, p, {1, 1, 1}, chunks,
                                                ", \"chunks\": " + std::to_string(chunks)))
                                  .metrics;
      const double span = metrics.step_time.value(), work = 3.0 * chunks * p;
      const double of_1f1b = 3.0 * chunks * (p - 1);
      INFO("p " << p << ", waves " << waves << ": idle " << span - work << ", 1F1B " << of_1f1b
                << ", ratio " << (span - work) / of_1f1b << ", 1/(2w) " << 0.5 / waves);
      CHECK(span == wave_span(p, chunks, p));
      CHECK(span - work >= of_1f1b * 2 / (3 * waves) - 1e-9);
      CHECK(span - work <= of_1f1b * 3 / (4 * waves) + 1e-9);
      for (const DeviceMetrics& device : metrics.devices) {
        CHECK(device.peak_stash <= Bytes(kStash * chunks * p));
      }
    }
  }
}

TEST_CASE("Hanayo on two ranks is idle for 2 (k + 1) forwards of a chunk in k units, whatever w") {
  // Drawn for w = 1 and k = 2, a letter a second, a dot an idle one; rank 0 has stages 0 (F, BB)
  // and 3 (f, bb):
  //   F0 F1 . f0 bb0 f1 bb1 . BB0 F2 . BB1 F3 f2 bb2 f3 bb3 . BB2 .. BB3
  // The last unit, and so one alone, has two idle seconds before its last backward; any unit one
  // before its first backward of stage 0; a unit before another one between its backwards; and the
  // first unit one before its way up: 2 + k + (k - 1) + 1.
  for (int waves = 1; waves <= 4; ++waves) {
    for (int units = 1; units <= 6; ++units) {
      const int chunks = 2 * waves, m = 2 * units;
      const Metrics metrics = simulate(pipeline("hanayo", 2, m, {1, 1, 1}, chunks,
                                                ", \"chunks\": " + std::to_string(chunks)))
                                  .metrics;
      INFO("waves " << waves << ", units " << units);
      CHECK(metrics.step_time.value() - 3 * chunks * m == 2 * (units + 1));
    }
  }
}

TEST_CASE("long steps of two-way schedules last as long as they do in full") {
  const std::vector<std::pair<std::string, int>> chunks_of = {
      {"dualpipe", 1}, {"dualpipe-v", 2}, {"chimera", 1}, {"hanayo", 2}};
  for (const auto& [kind, chunks] : chunks_of) {
    Trial trial = pipeline(kind, 4, 16000, {1.1, 1.3, 0.7}, chunks);
    trial.latency = Seconds(0.01);
    trial.steps = 2;
    Scenario scenario = load(trial);
    const Metrics skipped = run_scenario(scenario, false).measurement.metrics;
    scenario.skip_periods = false;
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
}  // namespace interlock
