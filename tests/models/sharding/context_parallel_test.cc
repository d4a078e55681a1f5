// Context parallelism: rings and all-to-alls against movements written out, and equal shares.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "tests/models/exchanges.h"
#include "tests/support/model_flops.h"

namespace interlock::context_parallel_test {
namespace {

// b = 3, s = 32, h = 16, 8 heads of size 2, 4 of them with keys.
const std::string kModel = R"({"kind": "transformer", "layers": 2, "hidden_size": 16,
    "attention_heads": 8, "kv_heads": 4, "vocab_size": 24, "sequence_length": 32)";
constexpr double kElement = 2, kTokens = 3 * 32, kHidden = 16, kKeys = 8;

BuildOptions context(int devices, ContextLayout layout, Recompute recompute = Recompute::None) {
  BuildOptions options = {.micro_batch_size = 3, .recompute = recompute};
  options.sharding.context = devices;
  options.sharding.context_layout = layout;
  return options;
}

TEST_CASE("in a ring every block of keys and values visits all devices, beside the compute") {
  for (const int c : {2, 4, 8}) {
    // Each device hands on the block it has until all have seen all.
    std::vector<std::set<int>> seen(c);
    std::vector<int> has(c);
    for (int device = 0; device < c; ++device) seen[device].insert(has[device] = device);
    int shifts = 0;
    while (static_cast<int>(seen[0].size()) < c) {
      for (int& block : has) block = (block + c - 1) % c;
      for (int device = 0; device < c; ++device) seen[device].insert(has[device]);
      ++shifts;
    }
    for (const std::set<int>& all : seen) CHECK(static_cast<int>(all.size()) == c);
    const double block = 2 * kTokens / c * kKeys * kElement;
    const Module made = built(kModel + "}", context(c, ContextLayout::Ring)).modules[1];
    Exchange shift = {.kind = CollectiveKind::Shift,
                      .axis = MeshAxis::Context,
                      .bytes = Bytes(block),
                      .count = shifts,
                      .overlapped = true};
    INFO(c << " devices: " << shifts << " shifts of " << block << " B");
    CHECK(made.forward_exchanges == std::vector{shift});
    // Gradients of a block start at the first device it visits and end where it came from, after
    // as many shifts; what its own device adds is there already.
    shift.bytes *= 2;
    CHECK(made.backward_input_exchanges == std::vector{shift});
    CHECK(made.backward_weight_exchanges.empty());
  }
}

TEST_CASE("attention that runs again sends its keys round again") {
  const std::string stored = kModel + R"(, "attention": "materialised"})";
  for (const Recompute recompute : {Recompute::Selective, Recompute::Full}) {
    const Module block = built(stored, context(4, ContextLayout::Ring, recompute)).modules[1];
    CHECK(block.recompute_exchanges == block.forward_exchanges);
  }
  const Module turned =
      built(stored, context(4, ContextLayout::AllToAll, Recompute::Selective)).modules[1];
  CHECK(turned.recompute_exchanges.empty());  // the heads it needs are kept
}

TEST_CASE("an all-to-all turns parts of the sequence into parts of the heads, and back") {
  const int c = 4, s = 32, heads = 8;
  // A tensor of `width` numbers a head: the bytes that go from device 0 to each device.
  std::vector<double> sent(c);
  for (int token = 0; token < s / c; ++token) {
    for (int head = 0; head < heads; ++head) sent[head / (heads / c)] += 2;
  }
  for (const double part : sent) CHECK(part == sent[0]);
  const double queries = 3 * c * sent[0] * kElement;
  const Module block = built(kModel + "}", context(c, ContextLayout::AllToAll)).modules[1];
  const Exchange wide = {.kind = CollectiveKind::AllToAll,
                         .axis = MeshAxis::Context,
                         .bytes = Bytes(queries),
                         .count = 2};
  Exchange narrow = wide;
  narrow.bytes *= 0.5;  // half as many key heads
  INFO(text_of(block.forward_exchanges));
  CHECK(block.forward_exchanges == std::vector{wide, narrow});
  CHECK(block.backward_input_exchanges == std::vector{wide, narrow});
  const Module even =
      built(R"({"kind": "transformer", "layers": 1, "hidden_size": 16, "attention_heads": 8,
                "vocab_size": 24, "sequence_length": 32})",
            context(c, ContextLayout::AllToAll))
          .modules[1];
  REQUIRE(even.forward_exchanges.size() == 1);
  CHECK(even.forward_exchanges[0].count == 4);
}

TEST_CASE("a hybrid turns heads among neighbours, whose keys go round rings of such groups") {
  const int c = 8;
  const ModelGraph rings = built(kModel + "}", context(c, ContextLayout::Ring));
  const Module& ring = rings.modules[1];
  for (const int turning : {2, 4}) {
    // Device d = row * turning + column has some heads of all tokens of its row, and needs those of
    // all tokens: blocks go down its column.
    const int rows = c / turning;
    std::vector<std::set<int>> seen(c);
    std::vector<int> has(c);
    for (int d = 0; d < c; ++d) seen[d].insert(has[d] = d / turning);
    int shifts = 0;
    for (; static_cast<int>(seen[0].size()) < rows; ++shifts) {
      std::vector<int> from = has;
      for (int d = 0; d < c; ++d) seen[d].insert(has[d] = from[(d + c - turning) % c]);
    }
    for (const std::set<int>& all : seen) CHECK(static_cast<int>(all.size()) == rows);
    BuildOptions options = context(c, ContextLayout::Hybrid);
    options.sharding.context_columns = turning;
    const ModelGraph graph = built(kModel + "}", options);
    const Module& made = graph.modules[1];
    // A device has 1/c of all numbers before and after it turns them.
    const Exchange wide = {.kind = CollectiveKind::AllToAll,
                           .axis = MeshAxis::ContextColumns,
                           .bytes = Bytes(kTokens / c * kHidden * kElement)};
    Exchange narrow = wide;
    narrow.bytes = Bytes(kTokens / c * kKeys * kElement);
    const Exchange shift = {.kind = CollectiveKind::Shift,
                            .axis = MeshAxis::ContextRows,
                            .bytes = Bytes(2 * kTokens / c * kKeys * kElement),
                            .count = shifts,
                            .overlapped = true};
    INFO(text_of(made.forward_exchanges));
    int turned = 0;
    for (const Exchange& one : made.forward_exchanges) {
      Exchange single = one;
      single.count = 1;
      const bool known = single == wide || single == narrow || one == shift;
      CHECK(known);
      if (one.kind == CollectiveKind::AllToAll) turned += one.count;
    }
    CHECK(turned == 4);  // queries, keys, values, and what attention makes
    CHECK(std::count(made.forward_exchanges.begin(), made.forward_exchanges.end(), shift) == 1);
    CHECK(model_flops(graph) == model_flops(rings));
    const double other_keys = 2 * kTokens * kKeys * (1 - 1.0 / turning);
    CHECK((bytes_of(ring.forward) - bytes_of(made.forward)).value() == other_keys * kElement);
  }
}

TEST_CASE("a first and a last part of the sequence together are equal work under a causal mask") {
  // Which is why every device has 1/c of the flops: device i has chunks i and 2c - 1 - i of 2c.
  const int c = 4, s = 64, chunk = s / (2 * c);
  std::vector<long> pairs(c);
  for (int token = 0; token < s; ++token) {
    const int part = token / chunk;
    pairs[part < c ? part : 2 * c - 1 - part] += token + 1;
  }
  for (const long count : pairs) CHECK(count == s * (s + 1) / 2 / c);
}

TEST_CASE("each device has its share of flops and activations, and all weights") {
  for (const std::string more : {R"(, "attention": "materialised"})",
                                 R"(, "attention": "fused", "attention_flops": "causal"})"}) {
    const ModelGraph whole = built(kModel + more, {.micro_batch_size = 3});
    for (const ContextLayout layout : {ContextLayout::Ring, ContextLayout::AllToAll}) {
      const ModelGraph part = built(kModel + more, context(4, layout));
      CHECK(parameters_of(part) == parameters_of(whole));
      CHECK(model_flops(part) * 4 == model_flops(whole));
      CHECK(part.tokens_per_sample == whole.tokens_per_sample);
      for (std::size_t m = 0; m < whole.modules.size(); ++m) {
        CHECK(part.modules[m].output * 4 == whole.modules[m].output);
        // A fused kernel's output is kept in both orders, by itself and by the projection.
        const bool fused = more.find("fused") != std::string::npos;
        const bool twice = fused && layout == ContextLayout::AllToAll && m > 0 && m < 3;
        const Bytes extra(twice ? kTokens * kHidden * kElement : 0);
        CHECK(part.modules[m].stash * 4 == whole.modules[m].stash + extra);
      }
    }
  }
}

TEST_CASE("a ring brings the keys of all tokens past each device, an all-to-all those of its own") {
  const double other_keys = 2 * kTokens * kKeys * 3 / 4;  // keys and values
  const Module ring =
      built(kModel + R"(, "attention": "fused"})", context(4, ContextLayout::Ring)).modules[1];
  const Module turned =
      built(kModel + R"(, "attention": "fused"})", context(4, ContextLayout::AllToAll)).modules[1];
  CHECK((bytes_of(ring.forward) - bytes_of(turned.forward)).value() == other_keys * kElement);
}

TEST_CASE("context and tensor devices divide together, and slices of a sequence as well") {
  BuildOptions options = context(4, ContextLayout::Ring);
  options.sharding.tensor = 2;
  options.sharding.sequence_parallel = true;
  const ModelGraph whole = built(kModel + "}", {.micro_batch_size = 3});
  const ModelGraph part = built(kModel + "}", options);
  CHECK(model_flops(part) * 8 == model_flops(whole));
  CHECK(part.modules[1].output * 8 == whole.modules[1].output);
  CHECK(part.modules[1].stash * 8 == whole.modules[1].stash);
  Flops slices;
  for (const int first : {0, 8, 16, 24}) slices += model_flops(part.slice({8, first, 32}));
  CHECK(slices == model_flops(part));
}

}  // namespace
}  // namespace interlock::context_parallel_test
