// Variants of local training: forward-forward, BackLink, PPLL's queues.
// SPDX-License-Identifier: Apache-2.0
//
// f, bi, bw, a, o, c as in tests/formulas/closed_form.h; q = bi + bw of the modules that BackLink's
// error from above goes down; stages and batches from 0.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "base/random.h"
#include "tests/formulas/local_methods.h"
#include "tests/validate/support/trial.h"

namespace interlock::local_variants_test {
namespace {

constexpr double kStash = 1 << 20, kTensor = 4096;
const std::string kForwardForward = "\"forward-forward\"";

std::string backlink(int modules) {
  return "{\"kind\": \"backlink\", \"modules\": " + std::to_string(modules) + "}";
}

std::string unlimited(bool split) {
  return std::string("{\"kind\": \"eager\", \"queue\": \"unlimited\", \"backward\": \"") +
         (split ? "split" : "fused") + "\"}";
}

/// Three modules a stage, the work of `times` spread over them 1 : 2 : 3.
Question with_three_modules(int stages, const StageTimes& times, int linked) {
  Trial trial;
  for (int module = 0; module < 3 * stages; ++module) {
    const double share = (1 + module % 3) / 6.0;
    trial.stages.push_back(
        {.times = {times.forward * share, times.backward_input * share,
                   times.backward_weight * share, times.head, times.update * share}});
  }
  trial.strategy = backlink(linked);
  JsonValue value = parse_json(document(trial), "trial");
  set_json(value, "parallel.pipeline", parse_override(std::to_string(stages), ""), "");
  set_json(value, "parallel.stages", parse_override(std::to_string(stages), ""), "");
  set_json(value, "partition", parse_override("uniform", ""), "");
  return load_questions(value).front();
}

TEST_CASE("forward-forward stages take 2f + 2bw + o, whatever a head or input gradients would be") {
  const StageTimes times{Seconds(1.25e-3), Seconds(7e-3), Seconds(1.5e-3), Seconds(9e-3),
                         Seconds(0.5e-3)};
  for (int stages : {1, 2, 5}) {
    Trial trial;
    trial.stages = equal_stages(stages, times);
    trial.strategy = kForwardForward;
    for (const char* schedule : {"\"eager\"", "\"ppll\""}) {
      trial.schedule = schedule;
      const double expected = 2 * 1.25e-3 + 2 * 1.5e-3 + 0.5e-3;
      INFO("K " << stages << ": " << expected << " s");
      CHECK(close(step_time(trial), expected));
    }
  }
}

TEST_CASE("forward-forward sends two tensors up and none down, and stashes two passes") {
  Trial trial;
  trial.stages.assign(4, {.times = {Seconds(1e-3), Seconds(1e-3), Seconds(1e-3), Seconds(0)},
                          .output = Bytes(kTensor),
                          .stash = Bytes(kStash)});
  trial.strategy = kForwardForward;
  const Metrics metrics = simulate(trial).metrics;
  CHECK(metrics.links.size() == 3);
  for (const LinkMetrics& link : metrics.links) {
    CHECK(link.name.front() < link.name.back());
    CHECK(link.bytes.value() == 2 * kTensor);
  }
  for (const DeviceMetrics& device : metrics.devices) {
    CHECK(device.peak_stash.value() == 2 * kStash);
    CHECK(close(device.useful, device.busy));  // no heads, no gradients for others
  }
}

TEST_CASE("equal BackLink stages take f + a + bi + max(f + 2c, bw) + q + o") {
  for (double transfer : {0.0, 0.3e-3, 2e-3}) {
    for (double head : {0.0, 0.75e-3, 4e-3}) {
      for (double weight : {0.5e-3, 6e-3}) {
        const StageTimes times{Seconds(1.25e-3), Seconds(1.75e-3), Seconds(weight), Seconds(head),
                               Seconds(0.5e-3)};
        for (int stages : {3, 4, 7}) {
          Trial trial;
          trial.stages = equal_stages(stages, times);
          trial.latency = Seconds(transfer);
          trial.strategy = backlink(1);
          const EqualChain chain = chain_of(trial);
          // A stage is one module here, so the error from above goes down all of it.
          const double expected = backlink_period(chain, times.backward()).value();
          INFO("K " << stages << ", c " << transfer << ", a " << head << ", bw " << weight);
          CHECK(close(step_time(trial), expected));
        }
      }
    }
  }
}

TEST_CASE("BackLink's error goes down the last L modules only, and all of a stage at most") {
  const StageTimes times{Seconds(6e-3), Seconds(3e-3), Seconds(2.4e-3), Seconds(1e-3)};
  for (int linked = 1; linked <= 5; ++linked) {
    const Question scenario = with_three_modules(4, times, linked);
    const double shares[] = {3 / 6.0, 5 / 6.0, 1};  // of the last one, two, three modules
    const Seconds down = shares[std::min(linked, 3) - 1] * times.backward();
    const EqualChain chain{4, times, Seconds(0)};
    const double simulated = run_scenario(scenario, false).measurement.metrics.step_time.value();
    INFO("L " << linked << ": q " << down.value() << " s");
    CHECK(close(simulated, backlink_period(chain, down).value()));
  }
}

/// Ends of the updates of BackLink stages, batch by batch: F; H; I to the stage below and W (or B
/// and then the send); the link when the gradient from above is there; U.
std::map<std::pair<int, int>, Ticks> backlink_updates(const ReferenceCase& c, bool split) {
  const int last = static_cast<int>(c.stages.size()) - 1;
  std::map<std::pair<int, int>, Ticks> updates;
  std::vector<Ticks> free(last + 1, 0);
  for (int batch = 0; batch < c.batches; ++batch) {
    std::vector<Ticks> own(last + 1), sent(last + 1);
    Ticks arrival = 0;
    for (int i = 0; i <= last; ++i) {
      const ReferenceStage& s = c.stages[i];
      Ticks now = std::max(free[i], arrival) + s.forward;
      arrival = now + c.latency;
      if (i < last) now += s.head;
      own[i] = now + s.backward_input + s.backward_weight;
      sent[i] = split ? now + s.backward_input : own[i];
    }
    for (int i = 0; i <= last; ++i) {
      const ReferenceStage& s = c.stages[i];
      Ticks now = own[i];
      if (i < last) {
        now = std::max(now, sent[i + 1] + c.latency) + s.backward_input + s.backward_weight;
      }
      updates[{i, batch}] = free[i] = now + s.update;
    }
  }
  return updates;
}

TEST_CASE("unequal BackLink stages update when an event list says, in both engines") {
  Random random(402, 0);
  for (int round = 0; round < 60; ++round) {
    ReferenceCase reference{.latency = random.integer(0, 4), .batches = random.integer(1, 6)};
    for (int i = random.integer(1, 6); i > 0; --i) {
      reference.stages.push_back({random.integer(0, 5), random.integer(0, 5), random.integer(0, 5),
                                  random.integer(0, 5), random.integer(0, 3)});
    }
    const bool split = random.integer(0, 1) == 0;
    Trial trial = trial_of(reference);
    trial.micro_batches = 1;
    trial.steps = reference.batches;
    trial.strategy = backlink(1);
    trial.schedule = unlimited(split);
    trial.engine = round % 6 == 0 ? "simgrid" : "native";
    std::map<std::pair<int, int>, Ticks> updates;
    for (const ReferenceSpan& span : spans_of(trace(trial))) {
      if (span.op == 'U') updates[{span.stage, span.batch}] = span.end;
    }
    INFO("round " << round << ": " << document(trial));
    CHECK(updates == backlink_updates(reference, split));
  }
}

TEST_CASE("BackLink sends each tensor up and one gradient down, and stashes one micro-batch") {
  Trial trial;
  trial.stages.assign(4, {.times = {Seconds(1e-3), Seconds(1e-3), Seconds(1e-3), Seconds(1e-3)},
                          .output = Bytes(kTensor),
                          .stash = Bytes(kStash)});
  trial.strategy = backlink(1);
  const Metrics metrics = simulate(trial).metrics;
  CHECK(metrics.links.size() == 6);
  for (const LinkMetrics& link : metrics.links) CHECK(link.bytes.value() == kTensor);
  for (const DeviceMetrics& device : metrics.devices) CHECK(device.peak_stash.value() == kStash);
}

/// Busy time of modules [first, last) that are stage `stage` of `stages`, added up by hand.
// NOLINTNEXTLINE(readability-function-size): a range of modules, and what it is part of
double busy_by_hand(const Trial& trial, int stage, int stages, int first, int last, int linked) {
  double busy = 0;
  for (int m = first; m < last; ++m) {
    const StageTimes& times = trial.stages[m].times;
    const double backward = times.backward().value();
    busy += times.forward.value() + backward + times.update.value();
    if (stage < stages - 1 && m >= last - linked) busy += backward;
  }
  return busy + (stage < stages - 1 ? trial.stages[last - 1].times.head.value() : 0);
}

TEST_CASE("a balanced partition counts BackLink's second traversal: no cut is less busy") {
  Random random(403, 0);
  const auto time = [&] { return Seconds(1e-3 * random.uniform()); };
  for (int round = 0; round < 20; ++round) {
    const int linked = random.integer(1, 3);
    Trial trial;
    for (int m = 0; m < 7; ++m) trial.stages.push_back({{time(), time(), time(), time(), time()}});
    trial.strategy = backlink(linked);
    JsonValue value = parse_json(document(trial), "trial");
    set_json(value, "parallel.pipeline", parse_override("3", ""), "");
    set_json(value, "parallel.stages", parse_override("3", ""), "");
    set_json(value, "partition", parse_override("balanced", ""), "");
    const std::vector<int> cuts = lay_out(load_questions(value).front()).draft.partition.boundaries;
    const auto busiest = [&](int a, int b) {
      return std::max({busy_by_hand(trial, 0, 3, 0, a, linked),
                       busy_by_hand(trial, 1, 3, a, b, linked),
                       busy_by_hand(trial, 2, 3, b, 7, linked)});
    };
    double best = busiest(1, 2);
    for (int a = 1; a < 6; ++a) {
      for (int b = a + 1; b < 7; ++b) best = std::min(best, busiest(a, b));
    }
    INFO("round " << round << ", L " << linked << ": best " << best);
    CHECK(close(busiest(cuts[1], cuts[2]), best));
  }
}

TEST_CASE("with PPLL a fast stage runs up to five micro-batches ahead of a slow one, eager two") {
  // d messages wait untaken, and one more is computed and waits to be sent.
  Trial trial;
  trial.stages = equal_stages(2, {Seconds(1e-3), Seconds(0), Seconds(1e-3), Seconds(0)});
  trial.stages[1].times.forward = Seconds(20e-3);
  trial.steps = 20;
  for (const auto& depth : {std::pair("\"ppll\"", 5), std::pair("\"eager\"", 2)}) {
    trial.schedule = depth.first;
    int most = 0;
    const std::vector<ReferenceSpan> spans = spans_of(trace(trial));
    for (const ReferenceSpan& slow : spans) {
      if (slow.op != 'F' || slow.stage != 1) continue;
      for (const ReferenceSpan& fast : spans) {
        const bool done = fast.op == 'F' && fast.stage == 0 && fast.end <= slow.end;
        if (done) most = std::max(most, fast.batch - slow.batch);
      }
    }
    INFO(depth.first);
    CHECK(most == depth.second);
  }
}

}  // namespace
}  // namespace interlock::local_variants_test
