// 2D, 2.5D and 3D tensor layouts against Colossal-AI's tables and movements written out.
// SPDX-License-Identifier: Apache-2.0
#include "tests/models/exchanges.h"

namespace interlock::tensor_grid_test {
namespace {

struct Grid {
  TensorLayout layout;
  int side, depth;
  int devices() const {
    if (layout == TensorLayout::OneD) return side;
    return layout == TensorLayout::ThreeD ? side * side * side : side * side * depth;
  }
};

BuildOptions on(const Grid& grid, int batch) {
  BuildOptions options = {.micro_batch_size = batch};
  options.sharding.tensor = grid.devices();
  options.sharding.tensor_layout = grid.layout;
  options.sharding.tensor_depth = grid.depth;
  return options;
}

TEST_CASE("local shapes are those of Colossal-AI's example, 256 to 1024 to 256 and 16 rows") {
  struct Case {
    Grid grid;
    int w1[2], w2[2], hidden[2], output[2];
    int biases[2];
  };
  using enum TensorLayout;
  for (const Case& c :
       {Case{{OneD, 2, 1}, {256, 512}, {512, 256}, {16, 512}, {16, 256}, {512, 256}},
        Case{{TwoD, 2, 1}, {128, 512}, {512, 128}, {8, 512}, {8, 128}, {512, 128}},
        Case{{TwoAndAHalfD, 2, 2}, {128, 512}, {512, 128}, {4, 512}, {4, 128}, {512, 128}},
        Case{{ThreeD, 2, 1}, {128, 256}, {512, 64}, {4, 512}, {4, 128}, {512, 128}}}) {
    const ModelGraph graph = built(R"({"kind": "mlp", "input_size": 256,
        "hidden_sizes": [1024, 256], "classes": 8})",
                                   on(c.grid, 16));
    INFO("layout " << static_cast<int>(c.grid.layout));
    CHECK(graph.modules[0].parameters == c.w1[0] * c.w1[1] + c.biases[0]);
    CHECK(graph.modules[1].parameters == c.w2[0] * c.w2[1] + c.biases[1]);
    CHECK(graph.modules[0].output.value() == 2 * c.hidden[0] * c.hidden[1]);
    CHECK(graph.modules[1].output.value() == 2 * c.output[0] * c.output[1]);
  }
}

/// Every message of one linear layer's forward and backward, one device's share of them: X, W and Y
/// have n x n elements of 2 bytes.
struct Ledger {
  double bytes = 0, messages = 0;
  void receive(double elements) {
    bytes += 2 * elements;
    ++messages;
  }
};

/// Returns what device (0, 0) of a q x q grid receives. A block of X is an owner's (i, k), of W (k,
/// j).
Ledger summa(int q, double x_block, double w_block) {
  Ledger here;
  for (int product = 0; product < 3; ++product) {  // Y; the gradient of X; that of W
    for (int k = 0; k < q; ++k) {
      // Along my row: the block of X or of its gradient that step k broadcasts or adds up. What is
      // broadcast comes to all but its owner; a sum goes to its owner from q - 1 others.
      const bool own = k == 0;
      const bool sums_rows = product == 1, sums_columns = product == 2;
      if (!sums_rows && !own) here.receive(x_block);
      if (sums_rows && own) {
        for (int other = 1; other < q; ++other) here.receive(x_block);
      }
      if (!sums_columns && !own) here.receive(w_block);
      if (sums_columns && own) {
        for (int other = 1; other < q; ++other) here.receive(w_block);
      }
    }
  }
  return here;
}

/// Returns what a device of a q x q x q cube receives, in rings: X and W gathered, Y scattered;
/// backward the gradient of Y gathered, those of X and W scattered.
Ledger cube(int q, double part) {
  Ledger here;
  for (int collective = 0; collective < 6; ++collective) {
    for (int step = 1; step < q; ++step) here.receive(part);
  }
  return here;
}

Received total_of(const Module& layer, const Grid& grid, bool with_depth) {
  Received total;
  for (const auto* list : {&layer.forward_exchanges, &layer.backward_input_exchanges,
                           &layer.backward_weight_exchanges}) {
    for (const Exchange& one : *list) {
      const bool copies =
          grid.layout == TensorLayout::TwoAndAHalfD && one.axis == MeshAxis::TensorDepth;
      if (copies && !with_depth) continue;
      const Received got = received_by_one(one, copies ? grid.depth : grid.side);
      total.bytes += got.bytes;
      total.messages += got.messages;
    }
  }
  return total;
}

Module layer_of(const Grid& grid, int n, int index = 0) {
  const std::string size = std::to_string(n);
  return built(R"({"kind": "mlp", "input_size": )" + size + R"(, "hidden_sizes": [)" + size + ", " +
                   size + R"(], "classes": )" + size + "}",
               on(grid, n))
      .modules[static_cast<std::size_t>(index)];
}

TEST_CASE("the cost of a layer follows Colossal-AI's table as q and d vary") {
  const int n = 144;
  const double tensor = 2.0 * n * n;
  for (const int index : {0, 1}) {
    for (const double q : {2.0, 3.0, 4.0}) {
      const int side = static_cast<int>(q);
      // One all-reduce a layer: of the outputs, or of the gradient of the inputs.
      const Grid line = {TensorLayout::OneD, side, 1};
      const Received one = total_of(layer_of(line, n, index), line, true);
      CHECK(one.bytes == doctest::Approx(tensor * 2 * (q - 1) / q));
      CHECK(one.messages == 2 * (q - 1));
      const Grid square = {TensorLayout::TwoD, side, 1};
      const Received two = total_of(layer_of(square, n, index), square, true);
      // The table's unit for squares is what a row of devices holds, 1/q of the tensor.
      INFO("q = " << q << ": " << two.bytes << " B in " << two.messages << " messages");
      CHECK(two.bytes == doctest::Approx(tensor / q * 6 * (q - 1) / q));
      CHECK(two.messages == doctest::Approx(6 * (q - 1)));
      const Ledger list = summa(side, n * n / (q * q), n * n / (q * q));
      CHECK(two.bytes == doctest::Approx(list.bytes));
      CHECK(two.messages == doctest::Approx(list.messages));
    }
    for (const double q : {2.0, 3.0, 4.0}) {
      const int side = static_cast<int>(q);
      const Grid cubic = {TensorLayout::ThreeD, side, 1};
      const Received three = total_of(layer_of(cubic, n, index), cubic, true);
      CHECK(three.bytes == doctest::Approx(tensor * 6 * (q - 1) / (q * q * q)));
      CHECK(three.messages == 6 * (q - 1));
      CHECK(three.bytes == doctest::Approx(cube(side, n * n / (q * q * q)).bytes));
    }
  }
}

TEST_CASE("deeper grids cost less for activations, and a sum of the weights' gradients") {
  const int n = 144;
  const double tensor = 2.0 * n * n;
  for (const double q : {2.0, 3.0}) {
    for (const double d : {2.0, 4.0}) {
      const Grid grid = {TensorLayout::TwoAndAHalfD, static_cast<int>(q), static_cast<int>(d)};
      const Module layer = layer_of(grid, n);
      const Received got = total_of(layer, grid, false);
      CHECK(got.bytes == doctest::Approx(tensor / q * 3 * (q - 1) * (d + 1) / (d * q)));
      CHECK(got.messages == doctest::Approx(6 * (q - 1)));
      const Ledger list = summa(grid.side, n * n / (q * q * d), n * n / (q * q));
      CHECK(got.bytes == doctest::Approx(list.bytes));
      const Exchange& copies = layer.backward_weight_exchanges.back();
      CHECK(copies == Exchange{.kind = CollectiveKind::AllReduce,
                               .axis = MeshAxis::TensorDepth,
                               .bytes = Bytes(tensor / (q * q))});
    }
  }
}

TEST_CASE("a square in one grid of 2.5D is 2D") {
  const Module flat = layer_of({TensorLayout::TwoD, 3, 1}, 144);
  const Module deep = layer_of({TensorLayout::TwoAndAHalfD, 3, 1}, 144);
  CHECK(flat.forward_exchanges == deep.forward_exchanges);
  CHECK(flat.backward_weight_exchanges == deep.backward_weight_exchanges);
  CHECK(flat.parameters == deep.parameters);
}

const std::string kTransformer = R"({"kind": "transformer", "layers": 2, "hidden_size": 64,
    "attention_heads": 8, "vocab_size": 64, "sequence_length": 16, "dropout": 0.1)";
const std::vector<Grid> kGrids = {
    {TensorLayout::TwoD, 2, 1},         {TensorLayout::TwoD, 4, 1},
    {TensorLayout::TwoAndAHalfD, 2, 2}, {TensorLayout::TwoAndAHalfD, 2, 4},
    {TensorLayout::ThreeD, 2, 1},       {TensorLayout::ThreeD, 4, 1}};

TEST_CASE("devices of every grid together have the flops of one, and its activations") {
  for (const std::string more : {"}", R"(, "attention": "retention", "chunk_size": 4})"}) {
    const ModelGraph whole = built(kTransformer + more, {.micro_batch_size = 16});
    for (const Grid& grid : kGrids) {
      const ModelGraph part = built(kTransformer + more, on(grid, 16));
      const int devices = grid.devices();
      for (std::size_t m = 0; m < whole.modules.size(); ++m) {
        INFO("layout " << static_cast<int>(grid.layout) << ", q = " << grid.side << ", module "
                       << m);
        CHECK(flops_of(part.modules[m].forward) * devices == flops_of(whole.modules[m].forward));
        CHECK(flops_of(part.modules[m].backward_input) * devices ==
              flops_of(whole.modules[m].backward_input));
        CHECK(flops_of(part.modules[m].backward_weight) * devices ==
              flops_of(whole.modules[m].backward_weight));
        CHECK(part.modules[m].output * devices == whole.modules[m].output);
      }
      if (grid.layout != TensorLayout::ThreeD) {
        CHECK(part.modules[1].stash * devices == whole.modules[1].stash);
      }
    }
  }
}

TEST_CASE("a cube keeps gathered inputs and weights, which are q times its own") {
  const int n = 64;
  const double q = 4, own = 2.0 * n * n / (q * q * q);
  CHECK(layer_of({TensorLayout::ThreeD, 4, 1}, n).stash.value() == 2 * q * own);
}

TEST_CASE("devices of a grid together have the weights of one, and copies") {
  const std::int64_t h = 64;
  const std::string model = kTransformer + R"(, "bias": false})";
  const std::int64_t whole = parameters_of(built(model));
  const std::int64_t vectors = 4 * (2 * h) + 2 * h + 16 * h;  // norms, positions
  for (const Grid& grid : kGrids) {
    const std::int64_t part = parameters_of(built(model, on(grid, 16)));
    const std::int64_t devices = grid.devices();
    // A grid has one copy of the matrices; vectors are divided by columns alone.
    const std::int64_t matrices =
        grid.layout == TensorLayout::TwoAndAHalfD ? grid.depth : std::int64_t{1};
    INFO("layout " << static_cast<int>(grid.layout) << ", " << devices << " devices");
    CHECK(devices * part == matrices * (whole - vectors) + devices / grid.side * vectors);
  }
}

TEST_CASE("norms add up two numbers a token where columns are divided") {
  const Module block = built(kTransformer + "}", on({TensorLayout::TwoD, 2, 1}, 4)).modules[1];
  int found = 0;
  for (const Exchange& one : block.forward_exchanges) {
    if (one.kind != CollectiveKind::AllReduce) continue;
    found += one.count;
    CHECK(one.axis == MeshAxis::TensorRow);
    CHECK(one.bytes.value() == 2 * 4 * 16 * 4 / 2);  // 2 numbers of 4 B; half of 4 x 16 tokens
  }
  CHECK(found == 2);
}

}  // namespace
}  // namespace interlock::tensor_grid_test
