// Random scenarios whose layers have degrees of their own.
// SPDX-License-Identifier: Apache-2.0
#include "tests/layers/support/random_layers.h"

#include <algorithm>

#include "base/random.h"

namespace interlock {
namespace {

template <class Item>
const Item& one_of(Random& random, const std::vector<Item>& items) {
  return items[static_cast<std::size_t>(random.integer(0, static_cast<int>(items.size()) - 1))];
}

std::string member(const char* key, int value) {
  return std::string("\"") + key + "\": " + std::to_string(value);
}

/// Returns degrees up to 12 that divide `all`, each a multiple of the one before.
std::vector<int> chain_of_degrees(Random& random, int all) {
  std::vector<int> degrees = {1};
  for (;;) {
    std::vector<int> factors;
    for (const int factor : {2, 3}) {
      if (all / degrees.back() % factor == 0) factors.push_back(factor);
    }
    if (factors.empty()) return degrees;
    const int next = degrees.back() * one_of(random, factors);
    if (next > 12) return degrees;
    degrees.push_back(next);
  }
}

std::string cluster_of(Random& random, int devices) {
  const int per_node = std::min(devices, one_of<int>(random, {2, 3, 4, 5, 6, 8, 8, 9}));
  const int cards = one_of<int>(random, {1, per_node});
  const std::vector<std::string> networks = {
      "", "", R"(, "network": {"kind": "fat-tree", "nodes_per_leaf": 2, "oversubscription": 2})",
      R"(, "network": {"kind": "fat-tree", "nodes_per_leaf": 2})"};
  if (random.uniform() < 0.3) {
    return R"({"kind": "uniform", "device": "a100-40g", "link": {"latency": "2 us",
               "bandwidth": "16 GB/s"}, )" +
           member("devices", devices) + "}";
  }
  return R"({"kind": "machine", "device": "a100-40g", )" + member("devices_per_node", per_node) +
         ", " + member("nodes", (devices + per_node - 1) / per_node) +
         R"(, "port": {"latency": "2 us", "bandwidth": "64 GB/s"}, "cards": {)" +
         member("per_node", cards) + R"(, "latency": "4 us", "bandwidth": "16 GB/s"})" +
         one_of(random, networks) + "}";
}

std::string parallel_of(Random& random, const LayersTrial& made, bool experts) {
  std::string text = member("pipeline", made.pipeline) + ", " + member("data", made.data) + ", " +
                     member("context", made.context) + ", " + member("tensor", made.tensor);
  const auto maybe = [&](double probability, const std::string& more) {
    if (random.uniform() < probability) text += ", " + more;
  };
  const int all = made.tensor * made.data * made.context;
  const bool folds = experts && random.uniform() < 0.5;
  if (folds) {
    int expert = one_of<int>(random, {2, 3, 4, 8});
    if (all % expert != 0) expert = all;
    text += R"(, "sequence_parallel": true, )" + member("expert_tensor", 1) + ", " +
            member("expert", expert);
  } else {
    maybe(0.5, R"("sequence_parallel": true)");
  }
  const int zero = random.integer(0, 3);
  text += ", " + member("zero_stage", zero);
  maybe(0.3, R"("overlap_gradients": false)");
  if (zero == 3) text += ", " + member("prefetch", random.integer(0, 3));
  if (zero == 1 || zero == 2) maybe(0.4, R"("overlap_weights": true)");
  if (zero >= 2) maybe(0.3, R"("gradient_reduction": "micro_batch")");
  maybe(0.5, R"("bucket": "1 MiB")");
  return text + ", \"order\": " +
         one_of<std::string>(random, {R"(["tensor", "data", "context", "pipeline"])",
                                      R"(["pipeline", "tensor", "data", "context"])",
                                      R"(["context", "tensor", "data", "pipeline"])"});
}

std::string training_of(Random& random, const LayersTrial& made) {
  static const std::vector<std::string> global = {
      "\"1f1b\"",        "\"gpipe\"", "\"naive\"",    "\"zb-h1\"",   "\"eager-1f1b\"",
      "\"interleaved\"", "\"zb-v\"",  "\"dualpipe\"", "\"chimera\"", "\"pipedream-2bw\""};
  static const std::vector<std::string> local = {
      "\"local\"",
      "\"pairwise\"",
      R"({"kind": "interlocking", "n_wise": 3})",
      R"({"kind": "interlocking", "n_wise": 3, "gradient": "sum"})",
      "\"overlapping\"",
      "\"greedy\"",
      R"({"kind": "chunked", "chunks": 2})",
      R"({"kind": "pairwise", "module_stages": 2})",
      "\"forward-forward\"",
      R"({"kind": "backlink", "modules": 1})"};
  const int micro_batches = made.pipeline * random.integer(1, 2);
  std::string text = member("micro_batches", micro_batches) + ", " +
                     member("global_batch_size", made.samples * micro_batches * made.data) + ", " +
                     member("steps", 2) + R"(, "optimizer": "adam")";
  if (random.uniform() < 0.3) text += R"(, "recompute": "full")";
  if (random.uniform() < 0.3) text += R"(, "framework": "megatron-lm")";
  if (random.uniform() < 0.7) {
    return text + R"(, "strategy": "global", "schedule": )" + one_of(random, global);
  }
  return text + ", \"strategy\": " + one_of(random, local);
}

/// Adds, at times, what moves memory: groups of recomputed layers, states with the host, a readout
/// that is put off.
void add_memory_keys(Random& random, LayoutTrial& trial) {
  const auto replace = [&](std::string& text, const std::string& from, const std::string& to) {
    if (const std::size_t at = text.find(from); at != std::string::npos) {
      text.replace(at, from.size(), to);
    }
  };
  if (random.uniform() < 0.3) replace(trial.training, "\"full\"", R"({"group": 2})");
  if (random.uniform() < 0.2) {
    trial.training += R"(, "offload": {"optimizer": 0.5})";
    replace(trial.cluster, "\"device\"", R"("host": {"bandwidth": "25 GB/s"}, "device")");
  }
  if (random.uniform() < 0.3) {
    for (const std::string kind : {"1f1b", "gpipe", "zb-h1", "interleaved"}) {
      replace(trial.training, "\"schedule\": \"" + kind + "\"",
              R"("schedule": {"kind": ")" + kind + R"(", "deferred_readout": 1})");
    }
  }
}

}  // namespace

std::string layers_text(const std::vector<LayersOf>& layers) {
  std::string text;
  for (const LayersOf& one : layers) {
    text += std::string(text.empty() ? "" : ", ") + "{\"modules\": [" + std::to_string(one.first) +
            ", " + std::to_string(one.end) + "], " + member("tensor", one.tensor) + ", " +
            member("data", one.data) + "}";
  }
  return "[" + text + "]";
}

LayoutTrial LayersTrial::with_layers() const {
  LayoutTrial own = trial;
  own.parallel += ", \"layer_layouts\": " + layers_text(layers);
  return own;
}

LayersTrial random_layers(std::uint64_t seed, int most) {
  Random random(211, seed);
  LayersTrial made;
  int all = 0;
  do {
    made.pipeline = one_of<int>(random, {1, 2, 2, 4});
    made.context = one_of<int>(random, {1, 1, 1, 2});
    all = one_of<int>(random, {2, 3, 4, 4, 6, 8, 12});
    if (most > 32) all = one_of<int>(random, {most, most / 2, most / 4, most / 4 * 3});
  } while (made.pipeline * made.context * all > most);
  const std::vector<int> degrees = chain_of_degrees(random, all);
  const auto degree = [&] { return one_of(random, degrees); };
  made.tensor = degree();
  made.data = all / made.tensor;
  made.samples = made.tensor * one_of<int>(random, {1, 1, 2});  // enough for any degree of data
  const bool experts = random.uniform() < 0.25;
  const int blocks = 2 * made.pipeline + random.integer(0, 2);
  made.modules = blocks + 2;
  int next = random.integer(0, 2);
  while (next < made.modules && made.layers.size() < 3) {
    const int end = random.integer(next + 1, made.modules), tensor = degree();
    made.layers.push_back({next, end, tensor, all / tensor});
    next = end + random.integer(0, 2);
  }
  made.trial.model = divisible_transformer(blocks, experts);
  if (random.uniform() < 0.8) made.trial.model.insert(1, "\"tied_embeddings\": false, ");
  made.trial.cluster = cluster_of(random, made.pipeline * made.context * all);
  made.trial.parallel = parallel_of(random, made, experts);
  made.trial.training = training_of(random, made);
  add_memory_keys(random, made.trial);
  return made;
}

}  // namespace interlock
