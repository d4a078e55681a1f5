// Metrics of small runs that can be worked out by hand.
// SPDX-License-Identifier: Apache-2.0
#include "sim/measure/metrics.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/measure/collect.h"
#include "tests/sim/support/test_chain.h"

namespace interlock::metrics_test {
namespace {

Metrics measured(const TestChain& chain, const MeasureInputs& inputs = {}) {
  return measure(programs_of(chain), inputs, false).metrics;
}

TEST_CASE("with one step there is no fill, and the step lasts as long as the run") {
  // Two naive stages of F 1 s and B 2 s, transfers of 3 s: 1 + 3 + 1 + 2 + 3 + 2 = 12 s.
  TestChain chain = make_chain(2, "naive");
  chain.cluster.machines.front().port_latency = Seconds(3);
  const Metrics metrics = measured(chain, {.steps = 1});
  CHECK(metrics.step_time == Seconds(12));
  CHECK(metrics.makespan == Seconds(12));
  CHECK(metrics.fill_steps == 0);
  CHECK(metrics.measured_steps == 1);
  CHECK(metrics.steady);
  CHECK(metrics.busy == 0.25);  // 3 s of 12 on each device
}

TEST_CASE("the fill latency is the way of the first micro-batch to the last stage") {
  // Three stages of F 2 s; each transfer is 2 kB at 1 kB/s and 3 s of latency.
  for (const std::string_view kind : {"naive", "eager", "1f1b"}) {
    TestChain chain = make_chain(std::vector<ChainStage>(3, {.forward = 2, .output = 2000}), kind);
    chain.cluster.machines.front().port_latency = Seconds(3);
    CHECK(measured(chain).fill_latency == Seconds(2 + 5 + 2 + 5));
  }
}

TEST_CASE("busy counts all that a device executes, useful the main network's own work") {
  // Local: stage 0 does F 1, head 2, B 2, U 1 = 6 s, which is the period; stage 1 F 1, B 2, U 1.
  const Metrics metrics =
      measured(make_chain(std::vector<ChainStage>{{1, 1, 1, 2, 1}, {1, 1, 1, 0, 1}}, "eager"));
  CHECK(metrics.step_time == Seconds(6));
  CHECK(metrics.devices[0].busy == 1);
  CHECK(metrics.devices[1].busy == doctest::Approx(4.0 / 6));
  CHECK(metrics.devices[0].useful == 0.5);
  CHECK(metrics.devices[1].useful == 0.5);
  CHECK(metrics.busy == doctest::Approx(5.0 / 6));
  CHECK(metrics.useful == 0.5);
  CHECK(metrics.limiting_device == 0);
}

TEST_CASE("a gradient that only passes through a stage is busy, but not useful") {
  // Pairwise, three equal stages of F, bi, bw of 1 s, no head time. The middle stage does F, I of
  // its own loss, and B; the loop of pairs is 2 F + bi + B = 5 s.
  TestChain chain = make_chain(3, "eager");
  chain.strategy = n_wise(2);
  const Metrics metrics = measured(chain);
  CHECK(metrics.step_time == Seconds(5));
  CHECK(metrics.devices[1].busy == doctest::Approx(4.0 / 5));
  CHECK(metrics.devices[1].useful == doctest::Approx(3.0 / 5));
  CHECK(metrics.devices[0].busy == metrics.devices[0].useful);
  CHECK(metrics.devices[2].busy == metrics.devices[2].useful);
}

TEST_CASE("a transfer that a device only waits for is exposed") {
  // Two naive stages: each waits once a step for a transfer of 2 s on the wire and 3 s of latency.
  TestChain chain = make_chain(std::vector<ChainStage>{{.output = 2000}, {.output = 0}}, "naive");
  chain.cluster.machines.front().port_latency = Seconds(3);
  CHECK(measured(chain).exposed_communication == Seconds(5));
}

TEST_CASE(
    "waiting for work that is not yet sent is not exposed communication, and overlap is free") {
  // Local, stage 1 takes 3 s a batch, transfers 1 s. Stage 0 takes 3 s plus its head.
  // Head 0: the message arrives as stage 1 becomes free. Head 1: stage 1 is free when the message
  // is sent, and waits 1 s. Head 2: it is free 1 s before, and of its 2 s only the last is exposed.
  // Mean over two devices; stage 0 waits for nothing.
  const auto exposed = [](double head) {
    TestChain chain = make_chain(std::vector<ChainStage>{{.head = head}, {}}, "eager");
    chain.cluster.machines.front().port_latency = Seconds(1);
    return measured(chain).exposed_communication.value();
  };
  CHECK(exposed(0) == 0);
  CHECK(exposed(0.5) == 0.25);
  CHECK(exposed(1) == 0.5);
  CHECK(exposed(2) == 0.5);
}

TEST_CASE("w micro-batches in flight make gradients w - 1 updates stale") {
  // Two stages under one loss; stage 1 takes 6 s a micro-batch, stage 0 only 3 s, so stage 0 has
  // all of its w begun: F of n + w follows U of n, and the w - 1 between are updated on before B.
  for (int w : {1, 2, 3}) {
    TestChain chain = make_chain(std::vector<ChainStage>{{1, 1, 1}, {2, 2, 2}}, "eager");
    chain.strategy = n_wise(2);
    chain.policy.in_flight = w;
    const Metrics metrics = measured(chain);
    INFO(w << " in flight");
    REQUIRE(metrics.steady);
    CHECK(metrics.staleness == std::map<int, std::int64_t>{{w - 1, metrics.measured_steps}});
  }
}

/// The histogram again from the definition: the updates that a stage made between the forward of a
/// micro-batch and the update that uses its gradients, the most over stages.
std::map<int, std::int64_t> staleness_of(const TestChain& chain, const Measurement& measurement) {
  const Metrics& metrics = measurement.metrics;
  const int batches = chain.micro_batches, every = chain.policy.update_every;
  std::map<int, std::int64_t> histogram;
  const int first = metrics.fill_steps * batches;
  for (int b = first; b < first + metrics.measured_steps * batches; ++b) {
    int most = 0;
    for (int stage = 0; stage < static_cast<int>(chain.costs.size()); ++stage) {
      int updates = 0;
      bool between = false;
      for (const Span& span : measurement.log.spans) {
        const OpInfo& op = measurement.program.ops[span.op];
        if (op.stage != stage) continue;
        if (op.kind == OpKind::F && span.micro_batch == b) between = true;
        if (op.kind != OpKind::U || !between) continue;
        if (span.micro_batch / every == b / every) break;
        ++updates;
      }
      most = std::max(most, updates);
    }
    ++histogram[most];
  }
  return histogram;
}

TEST_CASE("the histogram of staleness is that of its definition") {
  int stale = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    Random random(161, seed);
    const TestChain chain = random_choosing_chain(random);
    INFO("seed " << seed << ": " << describe(chain));
    try {
      const Measurement measurement = measure(programs_of(chain), {.steps = 3}, true);
      CHECK(measurement.metrics.staleness == staleness_of(chain, measurement));
      stale += measurement.metrics.staleness.rbegin()->first > 0 ? 1 : 0;
    } catch (const Error&) {  // a deadlock
    }
  }
  CHECK(stale > 30);
}

// In these chains an op has as many flops as seconds, so that with a peak of 1 flop/s MFU is the
// useful share of time, and HFU what is busy with anything but updates.
constexpr FlopsPerSecond kUnitPeak(1);

TEST_CASE("MFU and HFU are equal without heads, recompute or gradients that pass through") {
  for (const std::string_view kind : {"naive", "naive-split", "gpipe", "1f1b"}) {
    TestChain chain = make_chain(3, kind);
    chain.micro_batches = kind == "naive" || kind == "naive-split" ? 1 : 4;
    const Metrics metrics = measured(chain, {.peak = kUnitPeak});
    REQUIRE(metrics.mfu);
    CHECK(*metrics.mfu == *metrics.hfu);
    CHECK(*metrics.mfu == doctest::Approx(metrics.useful));
  }
}

TEST_CASE("MFU has what is counted of useful ops, HFU what is executed") {
  // 1F1B over 3 stages and 4 micro-batches, ops of 1 s: 12 forwards, 12 halves of a backward each.
  // Counted are 3 of a forward's 1 flop, and half of the first half's.
  TestChain chain = make_chain(3, "1f1b");
  chain.micro_batches = 4;
  for (StageCost& cost : chain.costs) {
    cost.forward.counted = Flops(3);
    cost.backward_input.counted = Flops(0.5);
    cost.recompute = {Seconds(1), Flops(2), Flops(100)};  // of which nothing counts
  }
  const Metrics metrics = measured(chain, {.peak = kUnitPeak});
  REQUIRE(metrics.mfu);
  const double possible = 3 * metrics.step_time.value();
  MESSAGE("counted 12 (3 + 0.5 + 1) = 54, executed 12 (1 + 1 + 1 + 2) = 60, of " << possible);
  CHECK(*metrics.mfu == doctest::Approx(54 / possible));
  CHECK(*metrics.hfu == doctest::Approx(60 / possible));
}

TEST_CASE("heads, recompute and gradients that pass through count for HFU alone") {
  const auto check = [](const TestChain& chain, double extra_seconds) {
    const Metrics metrics = measured(chain, {.peak = kUnitPeak});
    REQUIRE(metrics.mfu);
    CHECK(*metrics.mfu == doctest::Approx(metrics.useful));
    const double devices = static_cast<double>(chain.costs.size());
    CHECK(*metrics.hfu - *metrics.mfu ==
          doctest::Approx(extra_seconds / (devices * metrics.step_time.value())));
  };
  TestChain heads = make_chain(std::vector<ChainStage>(3, {.head = 2}), "eager");
  check(heads, 2 * 2);  // two heads of 2 s
  TestChain pairs = make_chain(4, "eager");
  pairs.strategy = n_wise(2);
  check(pairs, 2 * 1);  // two input halves that pass through
  TestChain recompute = make_chain(2, "gpipe");
  recompute.micro_batches = 4;
  for (StageCost& cost : recompute.costs) cost.recompute = {Seconds(1), Flops(1)};
  check(recompute, 2 * 4 * 1);
}

TEST_CASE("0 <= MFU <= HFU <= 1 in every steady run, and useful <= busy <= 1") {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    Random random(162, seed);
    TestChain chain = random_chain(random);
    chain.policy.overlap = 0;  // ops at the peak rate leave nothing for another
    for (StageCost& cost : chain.costs) {
      for (OpCost* op :
           {&cost.forward, &cost.backward_input, &cost.backward_weight, &cost.head, &cost.recompute,
            &cost.next_forward, &cost.first_backward_input, &cost.link.backward_input,
            &cost.link.backward_weight, &cost.link.recompute, &cost.link.first_backward_input}) {
        op->flops = op->counted = Flops(op->time.value());
      }
    }
    INFO("seed " << seed << ": " << describe(chain));
    Metrics metrics;
    try {
      metrics = measured(chain, {.steps = 3, .peak = kUnitPeak});
    } catch (const Error&) {  // a deadlock
      continue;
    }
    const double one = 1 + 1e-9;
    for (const DeviceMetrics& device : metrics.devices) {
      CHECK(device.useful <= device.busy * one);
      CHECK(device.busy <= one);
    }
    if (!metrics.mfu || !metrics.steady) continue;
    CHECK(*metrics.mfu >= 0);
    CHECK(*metrics.mfu <= *metrics.hfu * one);
    CHECK(*metrics.hfu <= one);
  }
}

TEST_CASE("what is not known is left out") {
  const Metrics unknown = measured(make_chain(2, "naive"));
  CHECK_FALSE(unknown.mfu);
  CHECK_FALSE(unknown.hfu);
  CHECK_FALSE(unknown.samples_per_s);
  CHECK_FALSE(unknown.tokens_per_s);
  TestChain no_flops = make_chain(2, "naive");
  for (StageCost& cost : no_flops.costs) {
    for (OpCost* op : {&cost.forward, &cost.backward_input, &cost.backward_weight}) {
      op->flops = op->counted = Flops(0);
    }
  }
  CHECK_FALSE(measured(no_flops, {.peak = kUnitPeak}).mfu);
}

TEST_CASE("throughput is what a step holds over the time of a step") {
  const Metrics metrics =
      measured(make_chain(2, "naive"), {.samples_per_step = 12, .tokens_per_step = 600});
  REQUIRE(metrics.step_time == Seconds(6));
  CHECK(*metrics.samples_per_s == 2);
  CHECK(*metrics.tokens_per_s == 100);
}

TEST_CASE("a run fits if no device ever holds more than it has") {
  TestChain chain = make_chain(std::vector<ChainStage>(2, {.stash = 500}), "naive");
  chain.costs[1].state.weights = Bytes(300);
  Metrics metrics = measured(chain, {.memory_capacity = {Bytes(800), Bytes(800)}});
  CHECK(metrics.fits_in_memory);
  CHECK(metrics.devices[0].peak_memory == Bytes(500));
  CHECK(metrics.devices[1].peak_memory == Bytes(800));
  CHECK(metrics.devices[1].peak_stash == Bytes(500));
  metrics = measured(chain, {.memory_capacity = {Bytes(799), Bytes(799)}});
  CHECK_FALSE(metrics.fits_in_memory);
  metrics = measured(chain, {});
  CHECK(metrics.fits_in_memory);
  CHECK(metrics.memory_capacity == std::nullopt);
}

TEST_CASE("where nothing repeats, the window cuts what devices and links do") {
  // A window of 10 s, from 5 to 15. The op is inside for its last half, the message for 2 of 8 s.
  Program program;
  program.ranks.resize(2);
  program.ops = {{.duration = Seconds(4)}};
  program.links = {{"a", BytesPerSecond(100)}};
  program.wires = {{.from_rank = 0, .to_rank = 1, .links = {0}}};
  program.channels = {{.from_rank = 0, .to_rank = 1, .wire = 0, .bytes = Bytes(800)}};
  Collector collector(program, {.steps = 1, .steady = false}, {Seconds(5), Seconds(15)});
  collector.add(Span{.start = Seconds(3), .end = Seconds(7)});
  collector.add(Transfer{.start = Seconds(13), .end = Seconds(21), .arrival = Seconds(21)});
  const Metrics metrics = collector.finish({});
  CHECK(metrics.devices[0].busy == doctest::Approx(0.2));
  CHECK(metrics.links[0].bytes.value() == doctest::Approx(200));
  CHECK(metrics.links[0].utilisation == doctest::Approx(0.2));
}

TEST_CASE("a long run that is measured as it comes gives the figures of one that is kept") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Random random(163, seed);
    const TestChain chain = random_chain(random);
    INFO("seed " << seed << ": " << describe(chain));
    try {
      const Measurement kept = measure(programs_of(chain), {.steps = 3}, true);
      const Metrics lean = measured(chain, {.steps = 3});
      const auto replays = std::count_if(
          kept.log.spans.begin(), kept.log.spans.end(),
          [&](const Span& span) { return kept.program.ops[span.op].replay; });  // are no tasks
      const auto run =
          static_cast<std::int64_t>(kept.log.spans.size() + kept.log.transfers.size()) - replays;
      // A collective is a task of each that joins it.
      const bool joins = !kept.log.collectives.empty();
      CHECK((joins ? run < kept.metrics.tasks : run == kept.metrics.tasks));
      CHECK(kept.metrics.step_time == lean.step_time);
      CHECK(kept.metrics.busy == lean.busy);
      const Seconds window = kept.metrics.window_end - kept.metrics.window_begin;
      const Seconds steps = kept.metrics.step_time * kept.metrics.measured_steps;
      CHECK(window.value() == doctest::Approx(steps.value()).epsilon(1e-12));
    } catch (const Error&) {  // a deadlock
    }
  }
}

}  // namespace
}  // namespace interlock::metrics_test
