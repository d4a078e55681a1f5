// Random layouts: engines that agree, bytes that are conserved, and figures that stay in bounds.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "hardware/collectives/collective.h"
#include "scenarios/plan/lower_plan.h"
#include "scenarios/plan/step_time.h"
#include "tests/support/cases.h"
#include "tests/validate/support/engine_times.h"
#include "tests/validate/support/layout_trial.h"

namespace interlock::layout_engines_test {
namespace {

constexpr int kMostDevices = 16;

/// Calls `check` with each of a number of random trials that load, and are small.
template <class Check>
void for_layouts(int trials, RandomCluster cluster, Check check) {
  for (int seed = 1000; seed < 1000 + trials; ++seed) {
    CAPTURE(seed);
    const LayoutTrial trial = random_layout(static_cast<std::uint64_t>(seed), cluster);
    try {
      if (load(trial).layout.mesh.devices() > kMostDevices) continue;
    } catch (const Error&) {
      continue;
    }
    check(trial);
  }
}

RunSummary run_simgrid_apart(const Program& program, const TraceSink& sink) {
  return run_program(program, EngineKind::SimGrid, sink);
}

TEST_CASE("sweep, machine and SimGrid tell the same of collectives that share nothing") {
  int compared = 0, swept = 0;
  for_layouts(cases(40), RandomCluster::Mesh, [&](LayoutTrial trial) {
    trial.fold = compared % 2 == 0 ? "\"auto\"" : "\"none\"";
    const Program program = lower_plan(make_plan(load(trial)), 2);
    if (shares_links(program) || program.collectives.empty()) return;
    ++compared;
    const auto machine = times_of(program, run_event_loop);
    CHECK(times_of(program, run_simgrid_apart) == machine);
    if (chooses_order(program)) return;
    ++swept;
    CHECK(times_of(program, run_longest_path) == machine);
  });
  MESSAGE(compared << " programs with collectives, " << swept << " of them swept");
  CHECK(compared > met_by_cases(10));
}

TEST_CASE("native and SimGrid tell the same of messages and collectives that share links") {
  int compared = 0, with_collectives = 0;
  for_layouts(cases(60), RandomCluster::Any, [&](LayoutTrial trial) {
    trial.fold = "\"none\"";
    const Program program = lower_plan(make_plan(load(trial)), 2);
    if (!shares_links(program)) return;
    ++compared;
    with_collectives += program.collectives.empty() ? 0 : 1;
    INFO(document(trial));
    CHECK(times_of(program, run_native) == times_of(program, run_simgrid_apart));
  });
  MESSAGE(compared << " programs that share links, " << with_collectives << " with collectives");
  CHECK(compared > met_by_cases(15));
}

/// Bytes on each link of a run that folds nothing, by its name: what every message and collective
/// of its trace sends from device to device, along the routes between them.
std::map<std::string, double> bytes_sent(const Plan& plan) {
  const Question& scenario = plan.question;
  const Program program = lower_plan(plan, scenario.training().steps);
  const std::vector<Coordinates> ranks = simulated_ranks(scenario.layout.mesh, plan.unfolded);
  std::map<std::string, double> bytes;
  const auto send = [&](int from, int to, Bytes sent) {
    for (const LinkId id : route(scenario.cluster, from, to).links) {
      bytes[link(scenario.cluster, id).name] += sent.value();
    }
  };
  const auto exchange = [&](int index, int times) {
    const Collective& collective = program.collectives[index];
    const Coordinates& at = ranks[program.communicators[collective.communicator].ranks.front()];
    const auto group = group_of(scenario.layout.mesh, collective.axis, at);
    const auto planned = plan_exchange(scenario.cluster, group,
                                       {.kind = collective.kind,
                                        .axis = collective.axis,
                                        .bytes = collective.bytes,
                                        .back = collective.back});
    for (const Flow& flow : planned.flows) send(flow.from, flow.to, flow.bytes * times);
  };
  TraceSink sink;
  sink.transfer = [&](const Transfer& transfer) {
    const Channel& channel = program.channels[transfer.channel];
    send(device_of(scenario.layout.mesh, ranks[channel.from_rank]),
         device_of(scenario.layout.mesh, ranks[channel.to_rank]), channel.bytes);
  };
  sink.collective = [&](const CollectiveSpan& span) { exchange(span.collective, 1); };
  sink.span = [&](const Span& span) {
    for (const auto& [collective, count] : program.ops[span.op].inside) {
      exchange(collective, count);
    }
  };
  run_program(program, scenario.simulation.engine, sink);
  return bytes;
}

TEST_CASE("links carry what messages and collectives send over them, and no more") {
  int links = 0;
  for_layouts(cases(60), RandomCluster::Any, [&](LayoutTrial trial) {
    trial.fold = "\"none\"";
    Question scenario = load(trial);
    scenario.training().steps = 1;
    const Plan plan = make_plan(scenario);
    auto sent = bytes_sent(plan);
    for (const LinkMetrics& link : estimate_step(plan, Grade::Simulation).metrics.links) {
      INFO(link.name << " of " << document(trial));
      CHECK(link.bytes.value() == doctest::Approx(sent[link.name]).epsilon(1e-12));
      sent.erase(link.name);
      ++links;
    }
    CHECK(sent.empty());
  });
  MESSAGE(links << " links");
  CHECK(links > met_by_cases(400));
}

void check_bounds(const Metrics& metrics) {
  constexpr double kRounding = 1e-9;
  for (const DeviceMetrics& device : metrics.devices) {
    CHECK(device.useful >= 0);
    CHECK(device.useful <= device.busy + kRounding);
    CHECK(device.busy <= 1 + kRounding);
  }
  for (const LinkMetrics& link : metrics.links) {
    INFO(link.name);
    CHECK(link.bytes >= Bytes(0));
    CHECK(link.utilisation <= 1 + kRounding);
  }
  REQUIRE(metrics.mfu);
  CHECK(*metrics.mfu > 0);
  CHECK(*metrics.mfu <= *metrics.hfu * (1 + kRounding));
  CHECK(*metrics.hfu <= 1);
  CHECK(metrics.exposed_communication >= Seconds(0));
  CHECK(metrics.exposed_communication <= metrics.step_time * (1 + kRounding));
}

TEST_CASE("shares stay below one, and a steady step takes as long however many are measured") {
  int steady = 0;
  for_layouts(std::max(160, cases(160)), RandomCluster::Any, [&](LayoutTrial trial) {
    // The MFU counts scores that fused kernels leave out, of tokens that see no later ones.
    const std::string fused = R"("attention": "fused")";
    trial.model.replace(trial.model.find(fused), fused.size(), R"("attention": "materialised")");
    INFO(document(trial));
    Question scenario = load(trial);
    scenario.training().steps = 2;
    const Metrics two = run_scenario(scenario, false).measurement.metrics;
    check_bounds(two);
    scenario.training().steps = 5;
    const Metrics five = run_scenario(scenario, false).measurement.metrics;
    check_bounds(five);
    if (!two.steady || !five.steady || two.engine != "native") return;
    CHECK(two.step_time.value() == doctest::Approx(five.step_time.value()).epsilon(1e-9));
    ++steady;
  });
  MESSAGE(steady << " steady runs compared");
  CHECK(steady > 5);
}

}  // namespace
}  // namespace interlock::layout_engines_test
