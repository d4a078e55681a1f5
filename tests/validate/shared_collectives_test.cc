// Collectives and messages on the same links: worked by hand, and against progressive filling.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/random.h"
#include "hardware/collectives/collective.h"
#include "scenarios/plan/lower_plan.h"
#include "tests/validate/support/layout_trial.h"
#include "tests/validate/support/progressive_filling.h"

namespace interlock::shared_collectives_test {
namespace {

constexpr double kMs = 1e-3;

struct Traced {
  Program program;
  TraceLog log;
};

Traced trace(const LayoutTrial& trial) {
  const Question scenario = load(trial);
  Traced traced{.program = lower_plan(make_plan(scenario), scenario.training().steps)};
  run_program(traced.program, scenario.simulation.engine, log_sink(traced.log));
  return traced;
}

std::string module_of(int forward_ms, int backward_ms, int output_mb, int parameters_mb) {
  const auto text = [](const char* key, int value, const char* unit) {
    return std::string("\"") + key + "\": \"" + std::to_string(value) + unit + "\"";
  };
  return "{" + text("forward", forward_ms, " ms") + ", " +
         text("backward_input", backward_ms, " ms") + ", " + text("output", output_mb, " MB") +
         ", " + text("parameters", parameters_mb, " MB") + "}";
}

/// Returns nodes of `per_node` devices, all behind one card of 1 MB per ms; ports are a hundred
/// times faster.
LayoutTrial card_trial(const std::vector<std::string>& modules, int per_node, int nodes) {
  std::string list;
  for (const std::string& module : modules) list += (list.empty() ? "" : ", ") + module;
  return {.model = R"({"kind": "profile", "modules": [)" + list + "]}",
          .cluster = R"({"kind": "machine", "device": "a100-80g", "devices_per_node": )" +
                     std::to_string(per_node) + ", \"nodes\": " + std::to_string(nodes) +
                     R"(, "port": {"bandwidth": "100 GB/s"},
                         "cards": {"per_node": 1, "latency": "0 s", "bandwidth": "1 GB/s"}})",
          .parallel = R"("pipeline": )" + std::to_string(modules.size()) +
                      R"(, "data": 2, "overlap_gradients": false, "bucket": "1 GB")",
          .training = R"("strategy": "local", "micro_batches": 1, "steps": 1, "precision": "bf16")",
          .engine = "simgrid"};
}

Transfer message_between(const Traced& traced, int from_rank, int to_rank) {
  for (const Transfer& transfer : traced.log.transfers) {
    const Channel& channel = traced.program.channels[transfer.channel];
    if (channel.from_rank == from_rank && channel.to_rank == to_rank) return transfer;
  }
  FAIL("no message from rank " << from_rank << " to rank " << to_rank);
  return {};
}

CollectiveSpan ring_of(const Traced& traced, int stage) {
  for (const CollectiveSpan& span : traced.log.collectives) {
    if (traced.program.collectives[span.collective].stage == stage) return span;
  }
  FAIL("no collective of stage " << stage);
  return {};
}

void check_ms(const char* what, Seconds time, double expected) {
  INFO(what << ": expected " << expected << " ms, simulated " << time.value() / kMs);
  CHECK(std::abs(time.value() / kMs - expected) <= 1e-9 * std::max(1.0, expected));
}

TEST_CASE("a ring that meets a message on a card gets half of it until the message is through") {
  MESSAGE(
      "Two stages, two replicas, a node and a card of 1 MB/ms for each device; local training.\n"
      "Stage 0: F 0..1, its 4 MB leave at 1. B 1..3 (its head takes no time); then its gradients,\n"
      "6 MB, go round a ring of two: 2 (2-1)/2 x 6 = 6 MB over each edge, from 3.\n"
      "Until 3, 2 of the 4 MB are through. Then half each: 2 more MB take 4 ms, until 7.\n"
      "By then 2 MB of the ring are through; 4 more take 4 ms.\n"
      "Expectations: message 1..7, ring 3..11; so on both replicas, folded or not.");
  for (const char* fold : {"\"none\"", "[\"data\"]"}) {
    CAPTURE(fold);
    LayoutTrial trial = card_trial({module_of(1, 2, 4, 6), module_of(1, 2, 0, 0)}, 1, 4);
    trial.fold = fold;
    const Traced traced = trace(trial);
    const Transfer message = message_between(traced, 0, 1);
    const CollectiveSpan ring = ring_of(traced, 0);
    check_ms("message starts", message.start, 1);
    check_ms("message ends", message.end, 7);
    check_ms("ring starts", ring.start, 3);
    check_ms("ring ends", ring.end, 11);
  }
}

TEST_CASE("rings of two stages on one card share it, and the later one ends alone") {
  MESSAGE(
      "Order pipeline, data: a node holds both stages of a replica, so no message uses a card.\n"
      "Stage 0: F 0..1, B 1..3, ring of 6 MB from 3. Stage 1 gets its input at 1 (1 MB over ports\n"
      "of 100 MB/ms: 0.01 ms), F 1.01..2.01, B 2.01..6.01, ring of 5 MB from 6.01.\n"
      "By 6.01 stage 0 has sent 3.01 of 6 MB. Half each: its last 2.99 MB take 5.98 ms, to 11.99.\n"
      "Stage 1 has then sent 2.99 of 5 MB; 2.01 more: 14.\n"
      "Expectations: rings 3..11.99 and 6.01..14.");
  for (const char* fold : {"\"none\"", "[\"data\"]"}) {
    CAPTURE(fold);
    LayoutTrial trial = card_trial({module_of(1, 2, 1, 6), module_of(1, 4, 0, 5)}, 2, 2);
    trial.parallel += R"(, "order": ["pipeline", "data", "tensor", "context"])";
    trial.fold = fold;
    const Traced traced = trace(trial);
    check_ms("first ring starts", ring_of(traced, 0).start, 3);
    check_ms("first ring ends", ring_of(traced, 0).end, 11.99);
    check_ms("second ring starts", ring_of(traced, 1).start, 6.01);
    check_ms("second ring ends", ring_of(traced, 1).end, 14);
  }
}

/// A few stages and replicas on cards that several devices share; arbitrary times and sizes.
LayoutTrial random_card_trial(std::uint64_t seed) {
  Random random(seed, 3);
  const int stages = random.integer(1, 3), per_node = random.integer(1, 3), data = 2;
  std::vector<std::string> modules;
  modules.reserve(static_cast<std::size_t>(stages));
  for (int s = 0; s < stages; ++s) {
    modules.push_back(module_of(random.integer(1, 9), random.integer(1, 9), random.integer(0, 40),
                                random.integer(1, 60)));
  }
  LayoutTrial trial = card_trial(modules, per_node, (stages * data + per_node - 1) / per_node);
  trial.cluster.insert(trial.cluster.size() - 1, ", \"devices\": " + std::to_string(stages * data));
  if (random.uniform() < 0.5) trial.parallel += R"(, "zero_stage": 3)";
  if (random.uniform() < 0.5) {
    trial.parallel += R"(, "order": ["pipeline", "data", "tensor", "context"])";
  }
  const char* strategies[] = {"global", "local", "pairwise"};
  trial.training = std::string(R"("micro_batches": 2, "steps": 1, "strategy": ")") +
                   strategies[random.integer(0, 2)] + "\"";
  if (random.uniform() < 0.5) {
    trial.cluster.replace(trial.cluster.find("0 s"), 3,
                          std::to_string(random.integer(1, 2000)) + " us");
  }
  trial.parallel.replace(trial.parallel.find("1 GB"), 4,
                         std::to_string(random.integer(5, 50)) + " MB");
  trial.fold = "\"none\"";
  return trial;
}

/// Everything of a trace that goes over shared links, as flows; and when the trace says that it
/// was through.
struct SharedFlows {
  std::vector<FluidFlow> flows;
  std::vector<std::size_t> owner;  // of each flow, in `ends`
  std::vector<double> ends;
};

SharedFlows shared_flows(const Traced& traced) {
  SharedFlows shared;
  const Program& program = traced.program;
  for (const Transfer& transfer : traced.log.transfers) {
    const Channel& channel = program.channels[transfer.channel];
    if (!program.wires[channel.wire].shared || channel.bytes <= Bytes(0)) continue;
    shared.flows.push_back(
        {transfer.start.value(), channel.bytes.value(), program.wires[channel.wire].links});
    shared.owner.push_back(shared.ends.size());
    shared.ends.push_back(transfer.end.value());
  }
  for (const CollectiveSpan& span : traced.log.collectives) {
    const Collective& collective = program.collectives[span.collective];
    if (!collective.shared) continue;
    for (const Collective::Flow& flow : collective.flows) {
      shared.flows.push_back(
          {span.start.value(), flow.bytes.value(), program.wires[flow.wire].links});
      shared.owner.push_back(shared.ends.size());
    }
    shared.ends.push_back((span.end - collective.latency).value());
  }
  return shared;
}

TEST_CASE("shared transfers end when progressive filling says so, in 400 random runs") {
  int messages = 0, crowded = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    const Traced traced = trace(random_card_trial(seed));
    SharedFlows shared = shared_flows(traced);
    std::vector<double> bandwidths;
    for (const ProgramLink& link : traced.program.links) {
      bandwidths.push_back(link.bandwidth.value());
    }
    fill_progressively(shared.flows, bandwidths);
    std::vector<double> expected(shared.ends.size(), 0);
    for (std::size_t f = 0; f < shared.flows.size(); ++f) {
      double& end = expected[shared.owner[f]];
      end = std::max(end, shared.flows[f].end);
    }
    for (std::size_t i = 0; i < expected.size(); ++i) {
      INFO("transfer " << i << " of " << expected.size() << ": expected " << expected[i]
                       << " s, simulated " << shared.ends[i]);
      REQUIRE(std::abs(expected[i] - shared.ends[i]) <= 1e-9 * expected[i]);
    }
    messages += static_cast<int>(expected.size());
    crowded += expected.empty() ? 0 : 1;
  }
  MESSAGE(messages << " messages and collectives in " << crowded << " runs with shared links");
  CHECK(crowded > 250);
}

/// The makespan of one step, all durations longer by their share of a 10^-12th.
double jittered(const LayoutTrial& trial, std::uint64_t seed) {
  const Question scenario = load(trial);
  Program program = lower_plan(make_plan(scenario), scenario.training().steps);
  Random random(seed, 5);
  for (OpInfo& op : program.ops) {
    const double longer = op.duration.value() * 1e-12 * random.uniform();
    op.duration += Seconds(std::ceil(longer * program.ticks_per_second) / program.ticks_per_second);
  }
  return run_program(program, scenario.simulation.engine, {}).makespan.value();
}

TEST_CASE("jitter of 10^-12 moves what shares no links by as little; crowds are reported") {
  const auto spread_of = [](const LayoutTrial& trial) {
    double least = 1e300, most = 0;
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      const double makespan = jittered(trial, seed);
      least = std::min(least, makespan);
      most = std::max(most, makespan);
    }
    return most / least - 1;
  };
  LayoutTrial crowd = {.model = small_transformer(8),
                       .cluster = R"({"kind": "machine", "device": "a100-40g",
                           "devices_per_node": 4, "nodes": 4,
                           "port": {"latency": "2 us", "bandwidth": "64 GB/s"},
                           "cards": {"per_node": 1, "latency": "4 us", "bandwidth": "4 GB/s"}})",
                       .parallel = R"("pipeline": 4, "data": 4, "zero_stage": 3)",
                       .training = R"("strategy": "pairwise", "micro_batches": 6,
                                      "global_batch_size": 24, "steps": 1)",
                       .fold = "\"none\""};
  MESSAGE("16 devices on 4 cards: makespans differ by " << spread_of(crowd) << " of the least");
  LayoutTrial alone = crowd;
  alone.cluster = R"({"kind": "uniform", "device": "a100-40g", "devices": 16,
                      "link": {"latency": "2 us", "bandwidth": "16 GB/s"}})";
  alone.parallel = R"("pipeline": 4, "data": 4)";
  const double spread = spread_of(alone);
  INFO("a link for each pair: makespans differ by " << spread);
  CHECK(spread <= 1e-9);
}

/// Two tensor devices in each data rank, whose gradients are added up by trees after the backward.
LayoutTrial trees(int nodes, int cards) {
  const auto text = [](int number) { return std::to_string(number); };
  return {.model = R"({"kind": "transformer", "hidden_size": 384, "attention_heads": 12,
                       "layers": 4, "vocab_size": 12288, "sequence_length": 256,
                       "tied_embeddings": false})",
          .cluster = R"({"kind": "machine", "device": "a100-40g", "devices_per_node": 4,
                         "port": {"latency": "2 us", "bandwidth": "64 GB/s"},
                         "cards": {"latency": "200 us", "bandwidth": "16 GB/s", "per_node": )" +
                     text(cards) + "}, \"nodes\": " + text(nodes) + "}",
          .parallel = R"("tensor": 2, "overlap_gradients": false, "data": )" + text(2 * nodes),
          .training = R"("strategy": "global", "precision": "bf16", "micro_batches": 2, "steps": 3,
                         "optimizer": "adam", "global_batch_size": )" +
                      text(8 * nodes)};
}

/// Returns when the flows of all groups of data devices end, from the definition of fair shares.
double filled(const Question& question, Bytes bytes, std::set<double>& sizes) {
  std::vector<FluidFlow> flows;
  std::vector<double> bandwidths;
  std::map<LinkId, int> numbers;
  for (int tensor = 0; tensor < question.layout.mesh.degree(Dimension::Tensor); ++tensor) {
    const auto group = group_of(question.layout.mesh, MeshAxis::Data, {tensor, 0, 0, 0});
    const CollectivePlan plan =
        plan_collective(question.cluster, group, CollectiveKind::AllReduce, bytes, {});
    REQUIRE(plan.algorithm == CollectiveAlgorithm::Tree);
    for (const Flow& flow : plan.flows) {
      FluidFlow& fluid = flows.emplace_back(FluidFlow{.bytes = flow.bytes.value()});
      for (const LinkId id : route(question.cluster, flow.from, flow.to).links) {
        const auto [entry, fresh] = numbers.try_emplace(id, static_cast<int>(bandwidths.size()));
        if (fresh) bandwidths.push_back(link(question.cluster, id).bandwidth.value());
        fluid.links.push_back(entry->second);
      }
      sizes.insert(flow.bytes.value());
    }
  }
  fill_progressively(flows, bandwidths);
  return std::ranges::max_element(flows, {}, &FluidFlow::end)->end;
}

/// The longest sum of gradients that a program does.
struct LongestSum {
  Seconds time, latency;
  Bytes bytes;
  bool shared = false;
};
LongestSum longest_sum(const Program& program) {
  LongestSum longest;
  TraceSink sink;
  sink.collective = [&](const CollectiveSpan& span) {
    const Collective& one = program.collectives[span.collective];
    if (one.axis != MeshAxis::Data || span.end - span.start <= longest.time) return;
    longest = {span.end - span.start, one.latency, one.bytes, one.shared};
  };
  run_program(program, EngineKind::Native, sink);
  return longest;
}

/// Checks that the sums of gradients take what the flows of all groups take together.
void check_sums(const Plan& plan, bool shared) {
  const LongestSum sum = longest_sum(lower_plan(plan, 2));
  CHECK(sum.shared == shared);
  std::set<double> sizes;
  const double end = filled(plan.question, sum.bytes, sizes);
  CHECK(sizes.size() > 1);
  CHECK(sum.time.value() == doctest::Approx(end + sum.latency.value()).epsilon(1e-9));
}

TEST_CASE("folded trees beside tensor groups take what all their flows take") {
  for (const int cards : {1, 4}) {
    for (const int nodes : {3, 5, 6, 7, 12}) {
      const LayoutTrial trial = trees(nodes, cards);
      INFO(document(trial));
      const Plan plan = make_plan(load(trial));
      CHECK(plan.unfolded == kFolded);
      check_sums(plan, true);
    }
  }
}

TEST_CASE("trees of tensor groups on one card take as long in the op as beside it") {
  LayoutTrial trial = trees(12, 1);
  trial.cluster.replace(trial.cluster.find("_node\": 4") + 8, 1, "2");
  trial.cluster.replace(trial.cluster.find("200 us"), 6, "50 us");
  trial.cluster.replace(trial.cluster.find("16 GB/s"), 7, "5 GB/s");
  trial.parallel = R"("tensor": 12, "data": 2, "order": ["data", "tensor", "context", "pipeline"])";
  INFO(document(trial));
  const ScenarioResult folded = run(trial);
  CHECK(folded.measurement.metrics.devices.size() == 1);
  trial.fold = "\"none\"";
  CHECK(difference(folded, run(trial), 1e-9) == "");
}

/// Nodes of four tensor devices with one card, whose gradients are added up by trees.
LayoutTrial crossing_trees(const std::string& cluster, int nodes) {
  LayoutTrial trial = trees(nodes, 1);
  trial.cluster = cluster;
  trial.parallel = R"("tensor": 4, "bucket": "1 MiB", "data": )" + std::to_string(nodes);
  return trial;
}

TEST_CASE("trees of several groups on one card fold, though their members are all simulated") {
  const auto machine = [](const char* device, int nodes) {
    return std::string(R"({"kind": "machine", "devices_per_node": 4, "device": ")") + device +
           R"(", "port": {"latency": "2 us", "bandwidth": "64 GB/s"}, "cards": {"per_node": 1,
               "latency": "50 us", "bandwidth": "5 GB/s"}, "nodes": )" +
           std::to_string(nodes) + "}";
  };
  std::vector<LayoutTrial> trials = {
      crossing_trees(
          R"({"machines": [)" + machine("a100-40g", 5) + ", " + machine("a100-80g", 6) + "]}", 11),
      crossing_trees(machine("a100-40g", 11), 11), crossing_trees(machine("a100-40g", 11), 11),
      crossing_trees(machine("a100-40g", 11), 11)};
  trials[1].variation = R"("slow_links": [{"from": 40, "to": 0, "slowdown": 1.3}])";
  trials[2].variation = R"("slow_links": [{"from": 4, "to": 8, "slowdown": 1.02}])";
  trials[3].fold = R"(["tensor"])";
  for (LayoutTrial trial : trials) {
    INFO(document(trial));
    const ScenarioResult folded = run(trial);
    CHECK(folded.measurement.metrics.devices.size() == 11);
    check_sums(folded.plan, false);
    trial.fold = "\"none\"";
    CHECK(difference(folded, run(trial), 1e-9) == "");
  }
}

}  // namespace
}  // namespace interlock::shared_collectives_test
