// Ranks that stand for others: the same figures as if all were simulated, or a refusal.
// SPDX-License-Identifier: Apache-2.0
//
// On shared links, ends of flows are rounded to 2^-50 of the horizon. Runs without a rhythm are
// compared in unsteady_folding_test; those that fall into one late may fall into different ones.
#include <doctest/doctest.h>

#include <algorithm>
#include <initializer_list>
#include <map>

#include "base/random.h"
#include "sim/lower/unfold.h"
#include "tests/support/cases.h"
#include "tests/validate/support/layout_trial.h"

namespace interlock::folding_test {
namespace {

struct Count {
  int equal = 0, refused = 0, apart = 0;
};

/// Returns true if runs fell into rhythms of their own, after many steps that rounding led.
bool settle_apart(const Metrics& folded, const Metrics& whole) {
  return std::min(folded.fill_steps, whole.fill_steps) > 24 &&
         folded.fill_steps != whole.fill_steps;
}

/// Runs a trial in every folding that it has, and compares each with none.
Count check_foldings(LayoutTrial trial, double epsilon) {
  Count count;
  trial.fold = "\"none\"";
  const ScenarioResult whole = run(trial);
  for (const Unfolded& unfolded : foldings(whole.plan.question.layout.mesh)) {
    if (unfolded == whole.plan.unfolded) continue;
    trial.fold = folded_dimensions(unfolded);
    INFO(document(trial));
    try {
      const ScenarioResult folded = run(trial);
      const Metrics &few = folded.measurement.metrics, &all = whole.measurement.metrics;
      if (!few.steady || !all.steady) continue;
      if (settle_apart(few, all)) {
        ++count.apart;
        continue;
      }
      CHECK(difference(folded, whole, epsilon) == "");
      ++count.equal;
    } catch (const Error& error) {
      CHECK(std::string(error.what()).find("/simulate/fold: ranks that stand for others") !=
            std::string::npos);
      ++count.refused;
    }
  }
  return count;
}

const std::map<std::string, std::string>& clusters() {
  static const auto machine = [](const std::string& more) {
    return R"({"kind": "machine", "device": "a100-40g", "devices_per_node": 4, "nodes": 4,
               "port": {"latency": "2 us", "bandwidth": "64 GB/s"}, "cards": {"latency": "4 us",
               "bandwidth": "16 GB/s", "per_node": )" +
           more + "}";
  };
  static const std::map<std::string, std::string> all = {
      {"DGX A100", R"({"machine": "dgx-a100-40g", "nodes": 2})"},
      {"a card for each device", machine("4}")},
      {"fat tree", machine(R"(1}, "network": {"kind": "fat-tree", "nodes_per_leaf": 4})")},
      {"rails", machine(R"(4}, "network": {"kind": "fat-tree", "nodes_per_leaf": 4,
                           "rail_optimised": true})")},
      {"mesh", R"({"kind": "uniform", "device": "a100-40g", "devices": 16,
                   "link": {"latency": "2 us", "bandwidth": "16 GB/s"}})"},
      {"torus", R"({"kind": "machine", "device": "a100-40g", "nodes": 16, "network":
                    {"kind": "torus", "of": "devices", "dimensions": [4, 4],
                     "link": {"latency": "1 us", "bandwidth": "16 GB/s"}}})"}};
  return all;
}

struct Layout {
  const char* name;
  const char* parallel;
  bool experts = false;
};

/// Sixteen devices each.
const std::vector<Layout>& layouts() {
  static const std::vector<Layout> all = {
      {"data", R"("pipeline": 4, "data": 4)"},
      {"data, at the end", R"("pipeline": 4, "data": 4, "overlap_gradients": false)"},
      {"ZeRO 1", R"("pipeline": 4, "data": 4, "zero_stage": 1)"},
      {"ZeRO 1, later", R"("pipeline": 4, "data": 4, "zero_stage": 1, "overlap_weights": true)"},
      {"ZeRO 2", R"("pipeline": 2, "data": 8, "zero_stage": 2, "bucket": "1 MiB")"},
      {"ZeRO 3", R"("pipeline": 2, "data": 8, "zero_stage": 3, "prefetch": 2)"},
      {"hybrid", R"("pipeline": 2, "data": 8, "zero_stage": 3, "shard": 4)"},
      {"tensor", R"("pipeline": 2, "data": 2, "tensor": 4)"},
      {"tensor, sequence", R"("pipeline": 4, "tensor": 4, "sequence_parallel": true)"},
      {"2D", R"("pipeline": 2, "data": 2, "tensor": 4, "tensor_layout": "2d")"},
      {"2.5D", R"("data": 2, "tensor": 8, "pipeline": 1, "tensor_layout": "2.5d",
                  "tensor_depth": 2)"},
      {"3D", R"("pipeline": 2, "tensor": 8, "tensor_layout": "3d")"},
      {"ring", R"("pipeline": 2, "data": 2, "context": 4)"},
      {"turned", R"("pipeline": 2, "data": 2, "context": 4, "context_layout": "all_to_all")"},
      {"both", R"("data": 4, "context": 4, "context_layout": "hybrid", "context_all_to_all": 2)"},
      {"experts", R"("pipeline": 2, "data": 8, "expert": 8)", true},
      {"experts, ZeRO", R"("pipeline": 2, "data": 8, "expert": 4, "zero_stage": 2)", true},
      {"experts on tensor devices", R"("pipeline": 2, "data": 2, "tensor": 4, "expert": 8,
                                       "expert_tensor": 1, "sequence_parallel": true)",
       true},
      {"experts on some tensor devices", R"("pipeline": 2, "data": 2, "tensor": 4, "expert": 2,
                                            "expert_tensor": 2, "sequence_parallel": true,
                                            "zero_stage": 1)",
       true},
      {"experts alone divided", R"("pipeline": 2, "data": 4, "context": 2, "expert": 2,
                                   "expert_tensor": 4, "zero_stage": 2)",
       true},
      {"all of them", R"("pipeline": 2, "data": 2, "context": 2, "tensor": 2, "expert": 4,
                         "sequence_parallel": true, "zero_stage": 1)",
       true}};
  return all;
}

LayoutTrial trial_of(const Layout& layout, const std::string& cluster,
                     const std::string& training) {
  return {.model = small_transformer(6, layout.experts),
          .cluster = cluster,
          .parallel = layout.parallel,
          .training = training + R"(, "micro_batches": 4, "global_batch_size": 128, "steps": 2,
                                      "optimizer": "adam")"};
}

TEST_CASE("every layout that folds has the figures of all its devices, on every network") {
  int turn = 0;  // a layout that one network leaves out the next one has
  for (const auto& named : clusters()) {
    const std::string &name = named.first, &cluster = named.second;
    Count all;
    for (const Layout& layout : layouts()) {
      if (++turn % 2 == 0 && !is_soak()) continue;
      CAPTURE(name);
      CAPTURE(layout.name);
      const Count count =
          check_foldings(trial_of(layout, cluster, R"("strategy": "global")"), 1e-9);
      all.equal += count.equal;
      all.refused += count.refused;
    }
    MESSAGE(name << ": " << all.equal << " foldings equal to 1e-9, " << all.refused << " refused");
    turn += layouts().size() % 2 == 0 ? 1 : 0;
    CHECK(all.equal >= (name == "torus" ? 1 : is_soak() ? 15 : 7));
  }
}

TEST_CASE("every strategy and schedule folds") {
  const char* trainings[] = {
      R"("strategy": "global", "schedule": "gpipe")",
      R"("strategy": "global", "schedule": "naive")",
      R"("strategy": "global", "schedule": "zb-h1")",
      R"("strategy": "global", "schedule": "interleaved")",
      R"("strategy": "global", "schedule": "zb-v")",
      R"("strategy": "global", "schedule": "dualpipe")",
      R"("strategy": "global", "schedule": "chimera")",
      R"("strategy": "global", "schedule": "pipedream-2bw")",
      R"("strategy": "global", "recompute": "full")",
      R"("strategy": "local")",
      R"("strategy": "local", "schedule": {"kind": "eager", "in_flight": 2})",
      R"("strategy": "pairwise")",
      R"("strategy": {"kind": "interlocking", "n_wise": 3, "gradient": "sum"})",
      R"("strategy": "pairwise", "schedule": "list")",
      R"("strategy": "greedy")"};
  const std::string& cluster = clusters().at("a card for each device");
  std::size_t turn = 0;
  for (const char* training : trainings) {
    int equal = 0;  // where neither settles, there is nothing to compare: greedy, at times
    for (const Layout& layout :
         {Layout{"tensor and ZeRO 1", R"("pipeline": 2, "data": 2, "tensor": 4, "zero_stage": 1)"},
          Layout{"ring and ZeRO 3", R"("pipeline": 2, "data": 4, "context": 2, "zero_stage": 3)"},
          Layout{"reduced one by one", R"("pipeline": 2, "data": 4, "context": 2, "zero_stage": 3,
                                          "gradient_reduction": "micro_batch")"}}) {
      if (++turn % 2 == 0 && !is_soak()) continue;
      equal += check_foldings(trial_of(layout, cluster, training), 1e-9).equal;
    }
    INFO(std::string(training));
    CHECK(equal >= 1);
  }
}

TEST_CASE("random layouts fold exactly or not at all") {
  Count all;
  int loaded = 0;
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(cases(60)); ++seed) {
    CAPTURE(seed);
    LayoutTrial trial = random_layout(seed);
    trial.engine = "native";
    try {
      if (load(trial).layout.mesh.devices() > 24) continue;
    } catch (const Error&) {
      continue;
    }
    ++loaded;
    const Count count = check_foldings(trial, 1e-7);
    all.apart += count.apart;
    all.equal += count.equal;
    all.refused += count.refused;
  }
  MESSAGE(loaded << " layouts: " << all.equal << " foldings equal, " << all.refused << " refused, "
                 << all.apart << " with other rhythms");
  CHECK(all.equal >= met_by_cases(20));
  CHECK(50 * all.apart <= all.equal);
}

/// Experts on up to 32 devices, in a soak up to 256: nodes of any size with one card or one for
/// each device, below one switch or a tree.
LayoutTrial random_experts(std::uint64_t seed) {
  Random random(173, seed);
  const auto one_of = [&](std::initializer_list<int> values) {
    return *(values.begin() + random.integer(0, static_cast<int>(values.size()) - 1));
  };
  int pipeline = 0, data = 0, tensor = 0;
  do {
    pipeline = one_of({1, 2, 2, 4});
    data = one_of({2, 4, 8, 16, 32});
    tensor = one_of({1, 1, 2});
  } while (pipeline * data * tensor > (is_soak() ? 256 : 32));
  const int devices = pipeline * data * tensor, per_node = std::min(devices, one_of({1, 2, 4, 8}));
  const int expert = std::min({data, 8, one_of({2, 4, 8})});
  const int cards = one_of({1, per_node});
  const auto text = [](int number) { return std::to_string(number); };
  const char* networks[] = {
      "", R"(, "network": {"kind": "fat-tree", "nodes_per_leaf": 2, "oversubscription": 2})",
      R"(, "network": {"kind": "fat-tree", "nodes_per_leaf": 4})"};
  return {.model = small_transformer(4, true),
          .cluster = R"({"kind": "machine", "device": "a100-40g", "devices_per_node": )" +
                     text(per_node) + R"(, "nodes": )" + text(devices / per_node) +
                     R"(, "port": {"latency": "2 us", "bandwidth": "64 GB/s"},
                          "cards": {"latency": "4 us", "bandwidth": "16 GB/s", "per_node": )" +
                     text(cards) + "}" + networks[random.integer(0, 2)] + "}",
          .parallel = R"("pipeline": )" + text(pipeline) + R"(, "data": )" + text(data) +
                      R"(, "tensor": )" + text(tensor) + R"(, "expert": )" + text(expert) +
                      R"(, "zero_stage": )" + text(random.integer(0, 1)),
          .training = R"("strategy": "global", "micro_batches": 4, "steps": 2,
                         "optimizer": "adam", "global_batch_size": )" +
                      text(4 * data)};
}

TEST_CASE("experts fold exactly or not at all, where messages, dispatch and gradients meet") {
  Count all;
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(cases(25)); ++seed) {
    CAPTURE(seed);
    const Count count = check_foldings(random_experts(seed), 1e-8);
    all.equal += count.equal;
    all.refused += count.refused;
  }
  MESSAGE(all.equal << " foldings equal, " << all.refused << " refused");
  if (times_as_many_cases() >= 1) CHECK(all.equal > 2 * all.refused);  // fewer may be any
}

/// Three replicas of two stages on nodes of two devices with one card: stage 0 of the replicas is
/// on devices 0, 1, 2, so that two of its messages leave by one card and one by another.
LayoutTrial straddling() {
  return {.model = small_transformer(2),
          .cluster = R"({"kind": "machine", "device": "a100-40g", "devices_per_node": 2,
                         "nodes": 3, "port": {"bandwidth": "64 GB/s"},
                         "cards": {"per_node": 1, "latency": "4 us", "bandwidth": "16 GB/s"}})",
          .parallel = R"("pipeline": 2, "data": 3)",
          .training = R"("strategy": "global", "micro_batches": 2, "global_batch_size": 6,
                         "steps": 2)"};
}

TEST_CASE("replicas that straddle nodes unevenly are not folded") {
  LayoutTrial trial = straddling();
  trial.fold = "[\"data\"]";
  CHECK_THROWS_WITH_AS(
      run(trial),
      "layout: layout: /simulate/fold: ranks that stand for others would not do what those do: "
      "what "
      "uses node0 nic0 up and its like at the same time differs from one to the other; expected "
      "\"auto\", which simulates them all where it must",
      Error);
}

TEST_CASE("leaves that are hit unevenly are not folded") {
  LayoutTrial trial = straddling();
  // Six nodes of one device, two to a leaf: stage 0 of the replicas is on nodes 0, 1 and 2.
  trial.cluster = R"({"kind": "machine", "device": "a100-40g", "devices_per_node": 1, "nodes": 6,
                      "port": {"bandwidth": "64 GB/s"},
                      "cards": {"per_node": 1, "latency": "4 us", "bandwidth": "16 GB/s"},
                      "network": {"kind": "fat-tree", "nodes_per_leaf": 2, "oversubscription": 2}
                     })";
  trial.fold = "[\"data\"]";
  CHECK_THROWS_WITH_AS(run(trial), doctest::Contains("ranks that stand for others"), Error);
}

TEST_CASE("auto simulates all devices where it must, with the figures of none") {
  LayoutTrial trial = straddling();
  const ScenarioResult chosen = run(trial);
  trial.fold = "\"none\"";
  const ScenarioResult whole = run(trial);
  CHECK(chosen.plan.unfolded == foldings(whole.plan.question.layout.mesh).back());
  CHECK(chosen.measurement.metrics.devices.size() == 6);
  CHECK(difference(chosen, whole, 0) == "");
}

TEST_CASE("flows of a collective over one card weigh as much folded as not") {
  // Sums of gradients leave a node from two devices by one card, beside those of two tensor groups.
  const LayoutTrial trial = {
      .model = R"({"kind": "transformer", "layers": 6, "hidden_size": 512, "attention_heads": 16,
                   "vocab_size": 1024, "sequence_length": 256})",
      .cluster = R"({"kind": "machine", "device": "a100-40g", "devices_per_node": 4, "nodes": 4,
                     "port": {"latency": "2 us", "bandwidth": "64 GB/s"},
                     "cards": {"per_node": 1, "latency": "4 us", "bandwidth": "16 GB/s"}})",
      .parallel = R"("pipeline": 2, "data": 2, "context": 2, "tensor": 2,
                     "order": ["pipeline", "context", "tensor", "data"])",
      .training = R"("strategy": "global", "schedule": "gpipe", "micro_batches": 1,
                     "global_batch_size": 64, "steps": 2, "optimizer": "adam")"};
  const Count count = check_foldings(trial, 1e-9);
  MESSAGE(count.equal << " foldings equal to 1e-9, " << count.refused << " refused");
  CHECK(count.equal + count.refused > 5);
}

TEST_CASE("collectives of one group have shares of their own, folded or not") {
  // Gathers of eight tensor devices on two nodes have one message on a port, sums have two.
  LayoutTrial trial = {
      .model = small_transformer(6, false),
      .cluster = clusters().at("a card for each device"),
      .parallel = R"("data": 2, "tensor": 8, "sequence_parallel": true)",
      .training = R"("strategy": "global", "micro_batches": 4, "global_batch_size": 128,
                     "steps": 2, "optimizer": "adam")"};
  CHECK(check_foldings(trial, 1e-9).equal == 4);
  trial.parallel = R"("pipeline": 2, "tensor": 8, "sequence_parallel": true)";
  CHECK(check_foldings(trial, 1e-9).equal == 2);
}

TEST_CASE("devices that send more and less in one collective fold exactly or not at all") {
  // Sums over three nodes go by trees, whose roots send less than others, beside tensor groups.
  LayoutTrial trial = {
      .model = R"({"kind": "transformer", "hidden_size": 384, "attention_heads": 12, "layers": 4,
                   "vocab_size": 12288, "sequence_length": 256, "tied_embeddings": false})",
      .cluster = R"({"machine": "dgx-a100-40g", "nodes": 3})",
      .parallel = "",
      .training = R"("strategy": "global", "precision": "bf16", "micro_batches": 2,
                     "global_batch_size": 48, "steps": 3, "optimizer": "adam")"};
  int equal = 0;
  for (const char* parallel :
       {R"("data": 12, "tensor": 2)", R"("data": 6, "tensor": 4)", R"("pipeline": 2, "data": 12)",
        R"("data": 12, "context": 2)", R"("data": 24)"}) {
    CAPTURE(parallel);
    trial.parallel = parallel;
    const Count count = check_foldings(trial, 1e-7);
    CHECK(count.equal + count.refused >= 1);
    equal += count.equal;
  }
  CHECK(equal >= 9);
}

TEST_CASE("groups and paths that fold otherwise than devices do fold exactly or not at all") {
  // Six of twelve replicas share a state: devices with the next context share it with others. And
  // paths by hash, which lay more of some equal messages, or groups, over a link than of others.
  const auto hashed = [](const char* per_node, const char* nodes) {
    return std::string(R"({"kind": "machine", "device": "a100-40g", "devices_per_node": )") +
           per_node + R"(, "nodes": )" + nodes +
           R"(, "port": {"latency": "2 us", "bandwidth": "64 GB/s"},
                "cards": {"latency": "4 us", "bandwidth": "16 GB/s", "per_node": )" +
           per_node +
           R"(}, "network": {"kind": "fat-tree", "nodes_per_leaf": 2, "paths": "hash"}})";
  };
  LayoutTrial trial = {
      .model = divisible_transformer(4),
      .cluster = R"({"kind": "uniform", "device": "a100-40g", "devices": 24,
                     "link": {"latency": "2 us", "bandwidth": "16 GB/s"}})",
      .parallel = R"("data": 4, "context": 3, "tensor": 2, "zero_stage": 1, "shard": 6,
                     "order": ["pipeline", "data", "tensor", "context"])",
      .training = R"("strategy": "global", "micro_batches": 2, "global_batch_size": 48,
                     "steps": 2, "optimizer": "adam")"};
  CHECK(check_foldings(trial, 1e-9).refused >= 2);
  trial.cluster = hashed("1", "6");
  trial.parallel = R"("data": 2, "tensor": 3, "order": ["data", "tensor", "context", "pipeline"])";
  CHECK(check_foldings(trial, 1e-9).refused >= 1);
  trial.cluster = hashed("4", "4");
  trial.parallel = R"("pipeline": 2, "data": 8, "zero_stage": 2, "shard": 4)";
  CHECK(check_foldings(trial, 1e-9).refused >= 1);
}

TEST_CASE("a rendezvous lets its sender go as if its message met no equal one, folded or not") {
  // Two workers that train apart send their activations by one card.
  const LayoutTrial trial = {
      .model = R"({"kind": "profile", "modules": [{"repeat": 5, "forward": "2 ms",
                   "backward_input": "1 ms", "backward_weight": "1 ms", "head": "0.6 ms",
                   "output": "10 MiB", "parameters": "49 MiB"}]})",
      .cluster = R"({"kind": "machine", "devices_per_node": 2, "nodes": 8,
                     "device": {"memory": "80 GiB", "memory_bandwidth": "400 GB/s",
                                "peak": {"fp32": "10 TFLOP/s", "bf16": "80 TFLOP/s"}},
                     "port": {"latency": "2 us", "bandwidth": "60 GB/s"},
                     "cards": {"per_node": 1, "latency": "4 us", "bandwidth": "10 GB/s"}})",
      .parallel = R"("pipeline": 4, "data": 4, "outer": {"every": 3})",
      .training = R"("strategy": {"kind": "backlink", "modules": 2}, "micro_batches": 6,
                     "schedule": {"kind": "eager", "in_flight": 1, "queue": "rendezvous"},
                     "steps": 3)"};
  CHECK(check_foldings(trial, 1e-7).equal >= 1);
}

}  // namespace
}  // namespace interlock::folding_test
