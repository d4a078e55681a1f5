// VGG networks against published counts, and SplitBrain's groups against its saving.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "models/build_model.h"
#include "tests/models/built.h"
#include "tests/support/model_flops.h"

namespace interlock::vgg_test {
namespace {

ModelGraph in_groups(const std::string& model, int group, BuildOptions options = {}) {
  options.sharding.split_brain = group;
  return zoo(model, options);
}

std::int64_t divided_of(const ModelGraph& graph) {
  std::int64_t total = 0;
  for (const Module& module : graph.modules) total += module.expert_parameters;
  return total;
}

/// Bytes that one device receives in `exchanges` of a group of n (base/exchange.h).
double received(const std::vector<Exchange>& exchanges, int n) {
  double bytes = 0;
  for (const Exchange& exchange : exchanges) {
    REQUIRE(exchange.axis == MeshAxis::Expert);
    bytes += exchange.bytes.value() * exchange.count * (n - 1) / n;
  }
  return bytes;
}

TEST_CASE("parameters of the ImageNet networks are torchvision's") {
  CHECK(parameters_of(zoo("vgg-11")) == 132'863'336);
  CHECK(parameters_of(zoo("vgg-13")) == 133'047'848);
  CHECK(parameters_of(zoo("vgg-16")) == 138'357'544);
  CHECK(parameters_of(zoo("vgg-19")) == 143'667'240);
}

TEST_CASE("VGG-16 does 15.47 G multiply-adds on an ImageNet picture") {
  // 9 c c' s^2 for each convolution of c to c' channels whose output has side s; then the layers.
  double products = 0, inputs = 3, side = 224, width = 64;
  for (const int convolutions : {2, 2, 3, 3, 3}) {
    for (int i = 0; i < convolutions; ++i, inputs = width) {
      products += 9 * inputs * width * side * side;
    }
    side /= 2;
    width = std::min(2 * width, 512.0);
  }
  products += 512 * 7 * 7 * 4096.0 + 4096 * 4096.0 + 4096 * 1000.0;
  CHECK(products == doctest::Approx(15.47e9).epsilon(0.001));
  CHECK(products_of(zoo("vgg-16")) == products);
}

TEST_CASE("VGG-16 for CIFAR-10 has the convolutions of ImageNet's and 512 features") {
  const std::int64_t convolutions = 14'714'688;  // 138,357,544 less the three layers below
  CHECK(convolutions ==
        138'357'544 - (25'088LL * 4096 + 4096) - (4096LL * 4096 + 4096) - (4096LL * 1000 + 1000));
  CHECK(parameters_of(zoo("vgg-16-cifar10")) ==
        convolutions + (512LL * 4096 + 4096) + (4096LL * 4096 + 4096) + (4096LL * 10 + 10));
}

TEST_CASE("a group of k saves f (1 - 1/k) of the parameters, f the share of the divided layers") {
  for (const char* model : {"vgg-11", "vgg-16", "vgg-19"}) {
    const std::int64_t whole = parameters_of(zoo(model));
    const std::int64_t layers = (25'088LL * 4096 + 4096) + (4096LL * 4096 + 4096) + 4'097'000;
    for (const int k : {2, 4, 8}) {
      const ModelGraph graph = in_groups(model, k);
      INFO("saved ", layers, " (1 - 1/", k, ") of ", whole);
      CHECK(divided_of(graph) * k == layers);
      CHECK((whole - parameters_of(graph)) * k == layers * (k - 1));
    }
  }
}

TEST_CASE("a last layer that the group does not divide is whole on each device") {
  const std::int64_t divided = (512LL * 4096 + 4096) + (4096LL * 4096 + 4096);
  CHECK(divided_of(in_groups("vgg-16-cifar10", 4)) * 4 == divided);
  CHECK(divided_of(in_groups("vgg-16-cifar10", 2)) * 2 == divided + 4096LL * 10 + 10);
}

TEST_CASE("a device of a group does the work of one without, and keeps the inputs of one round") {
  const BuildOptions options = {.micro_batch_size = 32};
  const ModelGraph whole = zoo("vgg-16", options);
  for (const int k : {2, 4, 8}) {
    const ModelGraph graph = in_groups("vgg-16", k, options);
    CHECK(model_flops(graph).value() == model_flops(whole).value());
    for (std::size_t i = 0; i + 3 < graph.modules.size(); ++i) {
      CHECK(graph.modules[i].forward_exchanges.empty());
      CHECK(graph.modules[i].stash == whole.modules[i].stash);
    }
    for (std::size_t i = graph.modules.size() - 3; i < graph.modules.size(); ++i) {
      CHECK(graph.modules[i].stash <= whole.modules[i].stash);
      CHECK(graph.modules[i].output == whole.modules[i].output);
    }
  }
}

TEST_CASE("each gather brings a device k - 1 times its own batch, and the backward as much") {
  constexpr int kBatch = 32;
  const BuildOptions options = {.micro_batch_size = kBatch};
  for (const int k : {2, 4, 8}) {
    const ModelGraph graph = in_groups("vgg-16", k, options);
    const std::size_t first = graph.modules.size() - 3;
    const std::int64_t inputs[] = {25'088, 4096, 4096};
    for (std::size_t i = 0; i < 3; ++i) {
      const Module& module = graph.modules[first + i];
      // 2 bytes each. Outputs of the last layer: from k rounds, b / k samples of its own each, of
      // which it has made a k-th itself.
      const double gathered = 2.0 * kBatch * static_cast<double>(inputs[i]) * (k - 1);
      const double turned = i == 2 ? 2.0 * kBatch * 1000 * (k - 1) / k : 0;
      CHECK(received(module.forward_exchanges, k) == doctest::Approx(gathered + turned));
      CHECK(received(module.backward_input_exchanges, k) == doctest::Approx(gathered + turned));
      CHECK(module.backward_weight_exchanges.empty());
    }
  }
}

TEST_CASE("what a VGG or a group cannot have is said with the numbers") {
  const auto mistake = [](const std::string& text, const BuildOptions& options = {}) {
    const JsonValue value = parse_json(text, "test.json");
    Diagnostics diagnostics;
    build_model({&value, "/model"}, options, diagnostics);
    REQUIRE(diagnostics.messages().size() == 1);
    return diagnostics.messages().front();
  };
  CHECK(mistake(R"({"kind": "vgg", "layers": 12})").find("11, 13, 16 or 19, got 12") !=
        std::string::npos);
  CHECK(mistake(R"({"kind": "vgg", "layers": 16, "image_size": 100})")
            .find("multiple of 32, got 100") != std::string::npos);
  BuildOptions groups;
  groups.sharding.split_brain = 3;
  CHECK(mistake(R"("vgg-16")", groups).find("hidden_size 4096 cannot be divided among 3") !=
        std::string::npos);
  for (const char* other : {R"("resnet-50")", R"("gpt2")"}) {
    CHECK(mistake(other, groups).find("expected split_brain 1, or a VGG") != std::string::npos);
  }
}

}  // namespace
}  // namespace interlock::vgg_test
