// Spatial parallelism: halos beside rows marked one by one; shares of flops and bytes.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "tests/models/exchanges.h"
#include "tests/support/model_flops.h"

namespace interlock::spatial_test {
namespace {

constexpr double kElement = 2, kBatch = 8;

BuildOptions cut(int rows, int columns = 1) {
  BuildOptions options = {.micro_batch_size = static_cast<int>(kBatch)};
  options.sharding.image_rows = rows;
  options.sharding.image_columns = columns;
  return options;
}

/// A window over square images of `channels`, before which halos have to be there.
struct Layer {
  int kernel, stride, padding, side, channels;
};

/// One dimension: lines are dealt out, and those marked that the lines of an output read.
struct Marked {
  int onwards = 0, back = 0;  // most lines of the part before, and of the next, that one reads
  int own = 0, held = 0;      // most of its own, and with those
  bool near = true;           // none of others
};

Marked mark(const Layer& layer, int parts) {
  const auto owners = [parts](int length) {
    std::vector<int> sizes(parts), owner;
    for (int i = 0; i < length; ++i) ++sizes[i % parts];
    for (int p = 0; p < parts; ++p) owner.insert(owner.end(), sizes[p], p);
    return owner;
  };
  const int span = layer.side + 2 * layer.padding - layer.kernel;
  const std::vector<int> in = owners(layer.side), out = owners(span / layer.stride + 1);
  Marked most;
  for (int p = 0; p < parts; ++p) {
    std::set<int> reads;
    for (int o = 0; o < static_cast<int>(out.size()); ++o) {
      for (int tap = 0; out[o] == p && tap < layer.kernel; ++tap) {
        reads.insert(o * layer.stride - layer.padding + tap);
      }
    }
    int before = 0, behind = 0;
    for (const int line : reads) {
      if (line < 0 || line >= layer.side || in[line] == p) continue;
      most.near = most.near && std::abs(in[line] - p) == 1;
      ++(in[line] < p ? before : behind);
    }
    const int own = static_cast<int>(std::count(in.begin(), in.end(), p));
    most.onwards = std::max(most.onwards, before);
    most.back = std::max(most.back, behind);
    most.own = std::max(most.own, own);
    most.held = std::max(most.held, own + before + behind);
  }
  return most;
}

/// The halo exchanges of some layers, equal ones together; `adjoint`: as their gradients go.
std::vector<Exchange> marked_halos(const std::vector<Layer>& layers, int rows, int columns,
                                   bool adjoint = false) {
  std::vector<Exchange> list;
  const auto add = [&](MeshAxis axis, const Marked& lines, int across, int channels) {
    const double line = kBatch * across * channels * kElement;
    const Bytes down(lines.onwards * line), up(lines.back * line);
    Exchange one = {.kind = CollectiveKind::Halo, .axis = axis, .bytes = down, .back = up};
    if (adjoint) std::swap(one.bytes, one.back);
    if (lines.onwards + lines.back == 0) return;
    for (Exchange& known : list) {
      if (known.axis == axis && known.bytes == one.bytes && known.back == one.back) {
        ++known.count;
        return;
      }
    }
    list.push_back(one);
  };
  for (const Layer& layer : layers) {
    const Marked r = mark(layer, rows), c = mark(layer, columns);
    CHECK((r.near && c.near));
    if (adjoint) add(MeshAxis::ContextColumns, c, r.held, layer.channels);
    add(MeshAxis::ContextRows, r, c.own, layer.channels);
    if (!adjoint) add(MeshAxis::ContextColumns, c, r.held, layer.channels);
  }
  return list;
}

/// The layers of each module of ResNet-50 that look further than a pixel.
std::vector<std::vector<Layer>> windows_of_resnet_50() {
  std::vector<std::vector<Layer>> modules = {{{7, 2, 3, 224, 3}, {3, 2, 1, 112, 64}}};
  const int blocks[] = {3, 4, 6, 3}, sides[] = {56, 56, 28, 14}, widths[] = {64, 128, 256, 512};
  for (int group = 0; group < 4; ++group) {
    for (int block = 0; block < blocks[group]; ++block) {
      const bool halves = group > 0 && block == 0;
      const int side = group > 0 && !halves ? sides[group] / 2 : sides[group];
      modules.push_back({{3, halves ? 2 : 1, 1, side, widths[group]}});
      // At an uneven cut the shortcut, one pixel of two, may look beyond its part as well.
      if (halves) modules.back().push_back({1, 2, 0, side, 2 * widths[group]});
    }
  }
  modules.emplace_back();  // the readout
  return modules;
}

bool same(std::vector<Exchange> a, std::vector<Exchange> b) {
  const auto halo = [](const Exchange& one) { return one.kind != CollectiveKind::Halo; };
  std::erase_if(a, halo);
  return a.size() == b.size() && std::is_permutation(a.begin(), a.end(), b.begin());
}

TEST_CASE("each layer of ResNet-50 exchanges the rows that its windows are seen to read") {
  const auto windows = windows_of_resnet_50();
  for (const auto& bands :
       {std::pair(2, 1), {4, 1}, {7, 1}, {3, 1}, {1, 2}, {2, 2}, {7, 7}, {4, 2}}) {
    const int rows = bands.first, columns = bands.second;
    const ModelGraph part = zoo("resnet-50", cut(rows, columns));
    REQUIRE(part.modules.size() == windows.size());
    for (std::size_t m = 0; m < windows.size(); ++m) {
      const Module& module = part.modules[m];
      const auto halos = marked_halos(windows[m], rows, columns);
      INFO(rows << " x " << columns << ", " << module.name << ": marked " << text_of(halos)
                << "got " << text_of(module.forward_exchanges));
      CHECK(same(module.forward_exchanges, halos));
      // Gradients of halos go back where these came from.
      CHECK(same(module.backward_input_exchanges, marked_halos(windows[m], rows, columns, true)));
      CHECK(module.backward_weight_exchanges.empty());
    }
  }
}

TEST_CASE("bands have their shares of flops and activations, keep the halos, and all weights") {
  // 256 pixels and their halves are multiples of 8, samples too.
  const std::string model = R"({"kind": "resnet", "block": "bottleneck", "blocks": [3, 4, 6, 3],
                                "stem": "imagenet", "image_size": 256})";
  const ModelGraph whole = built(model, {.micro_batch_size = static_cast<int>(kBatch)});
  for (const auto& [rows, columns] : {std::pair(4, 1), {8, 1}, {2, 2}, {4, 2}}) {
    const ModelGraph part = built(model, cut(rows, columns));
    const int parts = rows * columns;
    CAPTURE(parts);
    CHECK(model_flops(part) * parts == model_flops(whole));
    CHECK(parameters_of(part) == parameters_of(whole));
    for (std::size_t m = 0; m < whole.modules.size(); ++m) {
      const Module &one = part.modules[m], &all = whole.modules[m];
      CHECK(one.output * parts == all.output);  // without halos: each has its part
      if (columns > 1) continue;
      Bytes halos;
      for (const Exchange& exchange : one.forward_exchanges) {
        if (exchange.kind != CollectiveKind::Halo) continue;
        halos += exchange.count * (exchange.bytes + exchange.back);  // of a band inside
      }
      INFO(one.name << ": " << halos.value() << " B of halos");
      CHECK(one.stash.value() == doctest::Approx((all.stash / parts + halos).value()));
    }
  }
}

TEST_CASE("of an uneven cut one device stands for all, with the most rows") {
  // 7 rows in bands of 4 and 3: in the last 3x3 convolution of ResNet-50.
  const ModelGraph whole = zoo("resnet-50", cut(1)), part = zoo("resnet-50", cut(2));
  const std::size_t last = whole.modules.size() - 2;
  CHECK(flops_of(part.modules[last].forward) * 7 == flops_of(whole.modules[last].forward) * 4);
  CHECK(part.modules[last].output * 7 == whole.modules[last].output * 4);
  const double least = model_flops(whole) / model_flops(part);
  MESSAGE("ResNet-50 in two bands: " << 2 / least - 1 << " more flops than half on the larger");
  CHECK(least < 2);
  CHECK(least > 1.85);
}

TEST_CASE("behind the images of a ResNet sums of means are scattered, each sample to one device") {
  const Module readout = zoo("resnet-50", cut(2, 2)).modules.back();
  const Bytes sums(kBatch * 2048 * kElement);
  const Exchange scattered = {CollectiveKind::ReduceScatter, MeshAxis::Context, sums};
  const Exchange gathered = {CollectiveKind::AllGather, MeshAxis::Context, sums};
  CHECK(readout.forward_exchanges == std::vector{scattered});
  CHECK(readout.backward_input_exchanges == std::vector{gathered});
  CHECK(flops_of(readout.forward).value() == 2 * kBatch / 4 * 2048 * 1000);
  // Two of three devices have three samples, and sums are padded to nine.
  const Module uneven = zoo("resnet-50", cut(3)).modules.back();
  CHECK(uneven.forward_exchanges[0].bytes == Bytes(9 * 2048 * kElement));
  CHECK(flops_of(uneven.forward).value() == 2 * 3.0 * 2048 * 1000);
}

TEST_CASE("behind the images of a VGG bands of all samples become all of some samples") {
  const ModelGraph whole = zoo("vgg-16", cut(1)), part = zoo("vgg-16", cut(7));
  const std::size_t dense = whole.modules.size() - 3;
  // Two samples of eight at most; a device has one row of seven of all eight before.
  const Bytes turned(std::max(2 * 7, 8 * 1) * 7 * 512 * kElement);
  const Exchange turn = {CollectiveKind::AllToAll, MeshAxis::Context, turned};
  CHECK(part.modules[dense].forward_exchanges == std::vector{turn});
  CHECK(part.modules[dense].backward_input_exchanges == std::vector{turn});
  for (std::size_t m = dense; m < whole.modules.size(); ++m) {
    CHECK(flops_of(part.modules[m].forward) * 4 == flops_of(whole.modules[m].forward));
    CHECK(part.modules[m].parameters == whole.modules[m].parameters);
  }
  CHECK(part.modules[0].forward_exchanges == marked_halos({{3, 1, 1, 224, 3}}, 7, 1));
  // Poolings by 2 of even bands need nothing from others.
  CHECK(part.modules[1].forward_exchanges == marked_halos({{3, 1, 1, 224, 64}}, 7, 1));
}

TEST_CASE("an auxiliary head divides what its module divides") {
  const std::string net = R"({"kind": "resnet", "block": "basic", "blocks": [1], "image_size": 32,
                              "head": "convolution"})";
  const Head whole = built(net, cut(1)).modules[1].head;
  const Head part = built(net, cut(4)).modules[1].head;
  CHECK(flops_of(part.work) * 4 == flops_of(whole.work));
  CHECK(part.parameters == whole.parameters);
  std::vector<Exchange> expected = marked_halos({{3, 1, 1, 32, 64}, {3, 1, 1, 32, 128}}, 4, 1);
  for (Exchange& halo : expected) halo.count = 2;  // there and back
  const Bytes sums(kBatch * 64 * kElement);
  expected.push_back({CollectiveKind::ReduceScatter, MeshAxis::Context, sums});
  expected.push_back({CollectiveKind::AllGather, MeshAxis::Context, sums});
  INFO(text_of(part.exchanges));
  CHECK(std::is_permutation(part.exchanges.begin(), part.exchanges.end(), expected.begin(),
                            expected.end()));
}

TEST_CASE("what runs again before a backward asks for its halos again") {
  BuildOptions options = cut(4);
  options.recompute = Recompute::Full;
  const Module block = zoo("resnet-50", options).modules[1];
  CHECK(block.recompute_exchanges == block.forward_exchanges);
  // The first layer of all needs no gradient of its input, nor that of halos.
  const Module stem = zoo("resnet-50", options).modules[0];
  CHECK(stem.first_backward_input_exchanges == marked_halos({{7, 2, 3, 224, 3}}, 4, 1, true));
}

}  // namespace
}  // namespace interlock::spatial_test
