// Random scenarios of parallel layouts.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "base/random.h"
#include "tests/validate/support/layout_trial.h"

namespace interlock {
namespace {

using Texts = std::vector<std::string>;

template <class Item>
const Item& one_of(Random& random, const std::vector<Item>& items) {
  return items[static_cast<std::size_t>(random.integer(0, static_cast<int>(items.size()) - 1))];
}

struct Degrees {
  int pipeline = 1, data = 1, context = 1, tensor = 1;
  int devices() const { return pipeline * data * context * tensor; }
};

Degrees random_degrees(Random& random) {
  constexpr int kMostDevices = 32;
  Degrees degrees;
  do {
    degrees = {
        one_of<int>(random, {1, 1, 2, 2, 3, 4}), one_of<int>(random, {1, 2, 2, 3, 4, 6, 8, 9, 12}),
        one_of<int>(random, {1, 1, 1, 2, 3, 4}), one_of<int>(random, {1, 1, 2, 2, 3, 4, 6, 8})};
  } while (degrees.devices() > kMostDevices);
  return degrees;
}

std::string member(const char* key, int value) {
  return std::string("\"") + key + "\": " + std::to_string(value);
}

std::string inline_machine(int per_node, int nodes, int cards, const std::string& network) {
  return R"({"kind": "machine", "device": "a100-40g", )" + member("devices_per_node", per_node) +
         ", " + member("nodes", nodes) +
         R"(, "port": {"latency": "2 us", "bandwidth": "64 GB/s"},
             "cards": {)" +
         member("per_node", cards) + R"(, "latency": "4 us", "bandwidth": "16 GB/s"})" +
         (network.empty() ? "" : ", \"network\": " + network) + "}";
}

/// Draws a cluster of at least `devices` devices.
std::string random_cluster(Random& random, int devices, RandomCluster kind) {
  const int per_node = one_of<int>(random, {1, 2, 3, 4, 5, 6, 8, 9});
  const int nodes = (devices + per_node - 1) / per_node;
  const int cards = one_of<int>(random, {1, per_node});
  const int drawn = random.integer(0, 8);
  switch (kind == RandomCluster::Mesh ? 0 : drawn) {
    case 0:
      return R"({"kind": "uniform", "device": "a100-40g", "link": {"latency": "2 us",
                 "bandwidth": "16 GB/s"}, )" +
             member("devices", devices) + "}";
    case 1:
      return R"({"machine": "dgx-a100-40g", )" + member("nodes", (devices + 7) / 8) + "}";
    case 2:
      return R"({"machine": "pcie-a100-80g", )" + member("nodes", (devices + 7) / 8) + "}";
    case 3:
      return inline_machine(per_node, nodes, cards, "");
    case 4:
      return inline_machine(per_node, nodes, cards,
                            R"({"kind": "fat-tree", "nodes_per_leaf": 2, "oversubscription": 2})");
    case 5:
      return inline_machine(per_node, nodes, cards,
                            R"({"kind": "fat-tree", "nodes_per_leaf": 2, "rail_optimised": true})");
    case 6:
      return R"({"kind": "machine", "device": "a100-40g", "devices_per_node": 1,
                 "network": {"kind": "torus", "of": "devices", "dimensions": [)" +
             std::to_string(devices) +
             R"(], "link": {"latency": "1 us", "bandwidth": "16 GB/s"}}, )" +
             member("nodes", devices) + "}";
    case 7:
      return inline_machine(per_node, nodes, cards,
                            R"({"kind": "torus", "link": {"latency": "1 us",
                                "bandwidth": "16 GB/s"}, "dimensions": [1, )" +
                                std::to_string(nodes) + "]}");
    default:
      return inline_machine(per_node, nodes, cards,
                            R"({"kind": "fat-tree", "nodes_per_leaf": 2, "paths": "hash"})");
  }
}

std::string random_parallel(Random& random, const Degrees& degrees, bool experts) {
  std::string text = member("pipeline", degrees.pipeline) + ", " + member("data", degrees.data) +
                     ", " + member("context", degrees.context) + ", " +
                     member("tensor", degrees.tensor);
  const auto maybe = [&](double probability, const std::string& more) {
    if (random.uniform() < probability) text += ", " + more;
  };
  const int replicas = degrees.data * degrees.context;
  if (degrees.tensor == 4) maybe(0.3, R"("tensor_layout": "2d")");
  if (degrees.tensor == 8) {
    maybe(0.4, one_of<std::string>(random, {R"("tensor_layout": "3d")",
                                            R"("tensor_layout": "2.5d", "tensor_depth": 2)"}));
  }
  if (text.find("layout") == std::string::npos) maybe(0.4, R"("sequence_parallel": true)");
  if (degrees.context >= 4 && degrees.context % 2 == 0 && random.uniform() < 0.4) {
    maybe(1, R"("context_layout": "hybrid", "context_all_to_all": 2)");
  } else if (degrees.context > 1) {
    maybe(0.5, R"("context_layout": "all_to_all")");
  }
  if (experts) {
    const int devices = replicas * degrees.tensor;
    const bool own_tokens = degrees.tensor == 1 || text.find("sequence") != std::string::npos;
    if (own_tokens && random.uniform() < 0.5) {
      int parts = random.integer(1, 2);
      if (devices % parts != 0) parts = 1;
      text += ", " + member("expert_tensor", parts);
      maybe(0.8, member("expert", devices / parts));
    } else {
      maybe(0.7, member("expert", replicas));
    }
    maybe(0.3, R"("expert_imbalance": 1.5)");
  }
  const int zero = random.integer(0, 3);
  text += ", " + member("zero_stage", zero);
  if (zero > 0 && replicas % 2 == 0) maybe(0.4, member("shard", replicas / 2));
  maybe(0.3, R"("overlap_gradients": false)");
  if (zero == 1 || zero == 2) maybe(0.4, R"("overlap_weights": true)");
  maybe(0.5, R"("bucket": "1 MiB")");
  if (zero == 3) maybe(0.5, member("prefetch", random.integer(0, 3)));
  maybe(0.4, "\"order\": " +
                 one_of<std::string>(random, {R"(["data", "tensor", "context", "pipeline"])",
                                              R"(["pipeline", "data", "tensor", "context"])",
                                              R"(["tensor", "pipeline", "data", "context"])",
                                              R"(["context", "data", "pipeline", "tensor"])"}));
  return text;
}

std::string random_training(Random& random, const Degrees& degrees) {
  static const Texts global = {"\"1f1b\"",        "\"gpipe\"",     "\"naive\"",
                               "\"zb-h1\"",       "\"zb-h2\"",     "\"eager-1f1b\"",
                               "\"interleaved\"", "\"zb-v\"",      "\"dualpipe\"",
                               "\"chimera\"",     "\"pipedream\"", "\"pipedream-2bw\""};
  static const Texts local = {"\"local\"", "\"pairwise\"", "\"greedy\"",
                              R"({"kind": "interlocking", "n_wise": 3})",
                              R"({"kind": "interlocking", "n_wise": 3, "gradient": "sum"})"};
  const int micro_batches = degrees.pipeline * random.integer(1, 3);
  std::string text = member("micro_batches", micro_batches) + ", " +
                     member("global_batch_size", 2 * micro_batches * degrees.data) + ", " +
                     member("steps", random.integer(1, 4)) + R"(, "optimizer": "adam")";
  if (random.uniform() < 0.3) text += R"(, "recompute": "full")";
  if (random.uniform() < 0.6) {
    return text + R"(, "strategy": "global", "schedule": )" + one_of(random, global);
  }
  text += ", \"strategy\": " + one_of(random, local);
  if (random.uniform() < 0.3) {
    text += R"(, "schedule": {"kind": "eager", "in_flight": )" +
            std::to_string(random.integer(1, 3)) + ", " +
            member("update_every", random.uniform() < 0.5 ? 1 : micro_batches) + "}";
  } else if (random.uniform() < 0.3) {
    text += R"(, "schedule": {"kind": "list"})";
  }
  return text;
}

/// Lets some clusters have two machines, a slow link, or cards over which sums go by trees. Drawn
/// apart, so that seeds keep the rest.
void vary(std::uint64_t seed, int devices, LayoutTrial& trial) {
  Random random(seed, 8);
  const double drawn = random.uniform();
  if (drawn < 0.2) {
    const int per_node = one_of<int>(random, {1, 2, 3, 4, 6});
    const int nodes = (devices + per_node - 1) / per_node;
    if (nodes < 2) return;
    const int first = random.integer(1, nodes - 1), cards = one_of<int>(random, {1, per_node});
    std::string other = inline_machine(per_node, nodes - first, cards, "");
    other.replace(other.find("a100-40g"), 8, "a100-80g");
    trial.cluster =
        R"({"machines": [)" + inline_machine(per_node, first, cards, "") + ", " + other + "]}";
  } else if (drawn < 0.4 && devices > 1) {
    const int from = random.integer(0, devices - 1);
    const int to = (from + random.integer(1, devices - 1)) % devices;
    trial.variation = R"("slow_links": [{)" + member("from", from) + ", " + member("to", to) +
                      R"(, "slowdown": 1.3}])";
  }
  if (random.uniform() > 0.4) return;
  for (std::size_t at = 0; (at = trial.cluster.find("4 us", at)) != std::string::npos; ++at) {
    trial.cluster.replace(at, 4, "200 us");
  }
}

}  // namespace

LayoutTrial random_layout(std::uint64_t seed, RandomCluster cluster) {
  Random random(seed, 7);
  const Degrees degrees = random_degrees(random);
  const bool experts = random.uniform() < 0.25;
  LayoutTrial trial;
  trial.model = divisible_transformer(2 * degrees.pipeline, experts);
  trial.cluster = random_cluster(random, degrees.devices(), cluster);
  trial.parallel = random_parallel(random, degrees, experts);
  trial.training = random_training(random, degrees);
  if (cluster == RandomCluster::Any) vary(seed, degrees.devices(), trial);
  return trial;
}

}  // namespace interlock
