// Asynchronous pipelines against their definitions: periods, staleness, versions, stash, traffic.
// SPDX-License-Identifier: Apache-2.0
//
// Stages are numbered s = 0..K-1. Stage s does F(b + K-1-s), then B(b), then U(b) where b ends a
// window of u micro-batches.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/random.h"
#include "tests/formulas/asynchronous_form.h"
#include "tests/validate/support/trial.h"

namespace interlock::asynchronous_test {
namespace {

const std::vector<std::string> kFamilies = {
    "pipedream", "pipelined-backprop", "ddg", "features-replay", "petra", "pipedream-2bw"};
constexpr StageTimes kTimes{Seconds(1.25e-3), Seconds(1.75e-3), Seconds(1.5e-3), Seconds(0),
                            Seconds(0.5e-3)};
constexpr double kStash = 1 << 20, kTensor = 4096, kWeights = 1 << 16;

bool runs_again(const std::string& family) {
  return family == "features-replay" || family == "petra";
}

Trial make_trial(int stages, const std::string& family) {
  Trial trial;
  trial.stages.assign(stages, {.times = kTimes,
                               .output = Bytes(kTensor),
                               .stash = Bytes(kStash),
                               .parameters = Bytes(kWeights)});
  trial.bandwidth = BytesPerSecond(1e15);
  trial.strategy = "\"global\"";
  trial.schedule = "\"" + family + "\"";
  if (family == "pipedream-2bw") trial.micro_batches = stages;
  return trial;
}

std::string with_window(const std::string& family, int update_every) {
  return "{\"kind\": \"" + family + "\", \"update_every\": " + std::to_string(update_every) + "}";
}

TEST_CASE("equal stages take F + B + o a micro-batch, replaying and reversible ones 2F + B + o") {
  for (const std::string& family : kFamilies) {
    for (int stages = 1; stages <= 6; ++stages) {
      const Trial trial = make_trial(stages, family);
      // A window of u = M micro-batches: u (F + B) + o; and u = 1 for all but 2BW.
      const double work =
          kTimes.forward.value() * (runs_again(family) ? 2 : 1) + kTimes.backward().value();
      const double expected = trial.micro_batches * work + kTimes.update.value();
      INFO(family << ", K " << stages << ": " << expected << " s");
      CHECK(std::abs(step_time(trial) - expected) < 1e-9);
    }
  }
}

TEST_CASE("transfers add max over k of (2kc + o)/(k + 1) - o to the period") {
  for (const std::string& family : kFamilies) {
    if (family == "pipedream-2bw") continue;  // an update in each turn
    for (int stages = 1; stages <= 6; ++stages) {
      for (double transfer : {0.05e-3, 0.2e-3, 0.25e-3, 0.3e-3, 1e-3, 8e-3}) {
        Trial trial = make_trial(stages, family);
        for (TrialStage& stage : trial.stages) stage.output = Bytes(0);
        trial.latency = Seconds(transfer);
        EqualChain chain = chain_of(trial);
        const double expected = asynchronous_period(chain, runs_again(family)).value();
        const double simulated = step_time(trial);
        INFO(family << ", K " << stages << ", c " << transfer << ": expected " << expected
                    << " s, simulated " << simulated << " s");
        CHECK(close(simulated, expected));
      }
    }
  }
}

/// Starts and ends of every op by relaxation: an op starts when the one before it on its stage has
/// ended and what it reads has arrived.
class EventList {
 public:
  EventList(const std::vector<TrialStage>& stages, Ticks latency, int batches, int every)
      : stages_(stages), latency_(latency) {
    const int k = static_cast<int>(stages.size());
    for (int s = 0; s < k; ++s) {
      std::vector<std::pair<char, int>> order;
      for (int b = 0; b < std::min(k - 1 - s, batches); ++b) order.push_back({'F', b});
      for (int b = 0; b < batches; ++b) {
        if (b + k - 1 - s < batches) order.push_back({'F', b + k - 1 - s});
        order.push_back({'B', b});
        if ((b + 1) % every == 0) order.push_back({'U', b});
      }
      orders_.push_back(order);
    }
    while (relax()) {
    }
  }

  std::vector<ReferenceSpan> spans() const {
    std::vector<ReferenceSpan> all;
    const int last = static_cast<int>(stages_.size()) - 1;
    for (const auto& [op, end] : ends_) {
      const auto [kind, s, b] = op;
      const int loss = kind == 'B' ? last : s;
      all.push_back({kind, s, b, loss, end - duration(kind, s), end});
    }
    std::sort(all.begin(), all.end());
    return all;
  }

 private:
  using Op = std::tuple<char, int, int>;  // kind, stage, batch

  Ticks duration(char kind, int stage) const {
    const StageTimes& times = stages_[stage].times;
    const Seconds time = kind == 'F'   ? times.forward
                         : kind == 'B' ? times.backward()
                                       : times.update;
    return std::llround(time.value() / kTick);
  }

  bool relax() {
    bool moved = false;
    const int last = static_cast<int>(stages_.size()) - 1;
    for (int s = 0; s <= last; ++s) {
      Ticks free = 0;
      for (const auto& [kind, b] : orders_[s]) {
        Ticks start = free;
        if (kind == 'F' && s > 0) start = std::max(start, ends_[{'F', s - 1, b}] + latency_);
        if (kind == 'B' && s < last) start = std::max(start, ends_[{'B', s + 1, b}] + latency_);
        free = start + duration(kind, s);
        Ticks& end = ends_[{kind, s, b}];
        moved = moved || end != free;
        end = free;
      }
    }
    return moved;
  }

  const std::vector<TrialStage>& stages_;
  Ticks latency_;
  std::vector<std::vector<std::pair<char, int>>> orders_;  // (stages)
  std::map<Op, Ticks> ends_;
};

TEST_CASE("every op of unequal stages starts when an event list says, in both engines") {
  Random random(401, 0);
  const auto ticks = [&](int most) { return Seconds(random.integer(0, most) * kTick); };
  for (int round = 0; round < 60; ++round) {
    Trial trial = make_trial(random.integer(1, 6), "pipedream");
    for (TrialStage& stage : trial.stages) {
      stage.times = {ticks(5), ticks(5), ticks(5), Seconds(0), ticks(3)};
      stage.output = Bytes(0);
    }
    const int latency = random.integer(0, 4), every = random.integer(1, 3);
    trial.latency = Seconds(latency * kTick);
    trial.micro_batches = every * random.integer(1, 3);
    trial.steps = random.integer(1, 4);
    trial.schedule = with_window(kFamilies[round % 3], every);
    trial.engine = round % 6 == 0 ? "simgrid" : "native";
    INFO("round " << round << ": " << document(trial));
    const EventList events(trial.stages, latency, trial.micro_batches * trial.steps, every);
    CHECK(spans_of(trace(trial)) == events.spans());
  }
}

/// floor(a / b) for any a.
int floor_divided(int a, int b) { return (a - (a < 0 ? b - 1 : 0)) / b; }

TEST_CASE("a micro-batch is stale by the updates that come in the K - 1 turns before its own") {
  // Stage 0 is the stalest: F(b) comes after turn b - K, with floor((b - (K-1)) / u) updates done
  // (none before the first), and the own update is number floor(b / u). Steps measured lie past the
  // fill, so b mod M decides.
  for (const std::string& family : kFamilies) {
    if (family == "pipedream-2bw") continue;
    for (int stages = 1; stages <= 5; ++stages) {
      for (int every : {1, 2, 3}) {
        Trial trial = make_trial(stages, family);
        trial.micro_batches = 6;
        trial.steps = 4;
        trial.schedule = with_window(family, every);
        const Metrics metrics = simulate(trial).metrics;
        std::map<int, std::int64_t> expected;
        for (int b = 0; b < 6; ++b) {
          expected[b / every - floor_divided(b - (stages - 1), every)] += metrics.measured_steps;
        }
        INFO(family << ", K " << stages << ", an update every " << every);
        CHECK(metrics.staleness == expected);
        // Stage s is K - 1 - s turns ahead of its gradients; a mean over the six micro-batches.
        REQUIRE(metrics.stage_staleness.size() == (stages > 1 ? stages : 0));
        for (int s = 0; s < stages && stages > 1; ++s) {
          int most = 0, sum = 0;
          for (int b = 0; b < 6; ++b) {
            const int missed = b / every - floor_divided(b - (stages - 1 - s), every);
            most = std::max(most, missed);
            sum += missed;
          }
          CHECK(metrics.stage_staleness[s].most == most);
          CHECK(metrics.stage_staleness[s].mean == doctest::Approx(sum / 6.0));
          if (every == 1) CHECK(metrics.stage_staleness[s].most == stages - 1 - s);
        }
      }
    }
  }
}

TEST_CASE("with double-buffered weights every micro-batch is one update late, at any K <= M") {
  for (int stages = 2; stages <= 5; ++stages) {
    for (int m = stages; m <= 7; ++m) {
      Trial trial = make_trial(stages, "pipedream-2bw");
      trial.micro_batches = m;
      const Metrics metrics = simulate(trial).metrics;
      INFO("K " << stages << ", M " << m);
      CHECK(metrics.staleness == std::map<int, std::int64_t>{{1, m * metrics.measured_steps}});
      REQUIRE(metrics.stage_staleness.size() == stages);
      for (const StageStaleness& stage : metrics.stage_staleness) {
        CHECK(stage.most == 1);
        CHECK(stage.mean == 1);
      }
      for (const DeviceMetrics& device : metrics.devices) {
        CHECK(device.weight_versions == 2);
        // Weights in bf16 are the parameters' bytes, once more for the older version.
        CHECK(device.memory[static_cast<int>(MemoryClass::WeightVersions)] == Bytes(kWeights));
      }
    }
  }
}

TEST_CASE("stashed weights are K - s versions on stage s; the others keep one") {
  for (const std::string& family : kFamilies) {
    if (family == "pipedream-2bw") continue;
    for (int stages = 1; stages <= 5; ++stages) {
      const Metrics metrics = simulate(make_trial(stages, family)).metrics;
      for (int s = 0; s < stages; ++s) {
        const DeviceMetrics& device = metrics.devices[s];
        const int versions = family == "pipedream" ? stages - s : 1;
        INFO(family << ", K " << stages << ", stage " << s);
        CHECK(device.weight_versions == versions);
        CHECK(device.memory[static_cast<int>(MemoryClass::WeightVersions)].value() ==
              kWeights * (versions - 1));
      }
    }
  }
}

TEST_CASE("an update every u micro-batches leaves 1 + ceil((K - 1 - s) / u) versions to stash") {
  // Under way between F and B on stage s are K - s micro-batches in a row; they lie in that many
  // windows at most, and each forward uses the weights of its turn.
  for (int every : {1, 2, 3, 6}) {
    Trial trial = make_trial(6, "pipedream");
    trial.micro_batches = 6;
    trial.schedule = with_window("pipedream", every);
    const Metrics metrics = simulate(trial).metrics;
    for (int s = 0; s < 6; ++s) {
      int most = 0;  // versions that the forwards under way used, and the newest
      for (int b = 12; b < 24; ++b) {
        const int oldest = floor_divided(b - (5 - s) - (5 - s), every);
        most = std::max(most, floor_divided(b - (5 - s), every) - oldest + 1);
      }
      INFO("u " << every << ", stage " << s << ": " << most);
      CHECK(metrics.devices[s].weight_versions == most);
    }
  }
}

TEST_CASE("stage s stashes K - s micro-batches; replaying ones inputs, a reversible last one its") {
  for (const std::string& family : kFamilies) {
    for (int stages = 1; stages <= 5; ++stages) {
      const Metrics metrics = simulate(make_trial(stages, family)).metrics;
      for (int s = 0; s < stages; ++s) {
        double each = kStash;
        if (family == "features-replay") each = s == 0 ? 0 : kTensor;  // samples count nowhere
        // A loss tells nothing of the input; the last stage goes back right after its forward.
        if (family == "petra") each = s > 0 && s + 1 == stages ? kTensor : 0;
        INFO(family << ", K " << stages << ", stage " << s);
        CHECK(metrics.devices[s].peak_stash.value() == each * (stages - s));
      }
    }
  }
}

TEST_CASE("each boundary carries a tensor up and a gradient down; reversible outputs come back") {
  for (const std::string& family : kFamilies) {
    Trial trial = make_trial(4, family);
    const Metrics metrics = simulate(trial).metrics;
    CHECK(metrics.links.size() == 6);
    for (const LinkMetrics& link : metrics.links) {
      const bool down = link.name.front() > link.name.back();
      const double tensors = trial.micro_batches * (down && family == "petra" ? 2 : 1);
      INFO(family << ", " << link.name);
      CHECK(link.bytes.value() == tensors * kTensor);
    }
  }
}

TEST_CASE("a slow first stage, behind which gradients pile up, is measured while it is busy") {
  for (const std::string& family : kFamilies) {
    for (int stages : {2, 5}) {
      Trial trial = make_trial(stages, family);
      trial.stages.front().times.forward = Seconds(4e-3);
      const double forward = 4e-3 * (runs_again(family) ? 2 : 1);
      const double expected =
          trial.micro_batches * (forward + kTimes.backward().value()) + kTimes.update.value();
      const Metrics metrics = simulate(trial).metrics;
      INFO(family << ", K " << stages);
      CHECK(metrics.steady);
      CHECK(close(metrics.step_time.value(), expected));
      CHECK(close(metrics.devices[0].busy, 1));
    }
  }
}

}  // namespace
}  // namespace interlock::asynchronous_test
