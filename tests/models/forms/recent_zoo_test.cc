// Models of 2026 in the zoo: their weights, and those that a token uses, counted by hand.
// SPDX-License-Identifier: Apache-2.0
#include "tests/models/built.h"

namespace interlock::recent_zoo_test {
namespace {

using Count = std::int64_t;

Count weights_of(const std::string& model) {
  const Count all = parameters_of(zoo(model));
  MESSAGE(model << ": " << all);
  return all;
}

TEST_CASE("Nemotron 3 Ultra has 550 G weights, of which a token uses 55 G") {
  const Count h = 8192, vocabulary = 131072 * h;
  const Count inner = 256 * 64, mixed = inner + 2 * 8 * 128;
  const Count mamba = h * (inner + mixed + 256) + mixed * (4 + 1) + 3 * 256 + inner + inner * h + h;
  const Count attention = 2 * h * 64 * 128 + 2 * h * 2 * 128 + h;
  const Count expert = 2 * 2048 * Count{5120};
  const Count beside = 2 * h * 2048 + 2 * h * 10240 + 512 * h + 512 + h;
  const Count rest = 2 * vocabulary + h + 48 * mamba + 12 * attention + 48 * beside;
  CHECK(weights_of("nemotron-3-ultra") == rest + 48 * 512 * expert);
  CHECK(static_cast<double>(rest + 48 * 512 * expert) == doctest::Approx(550e9).epsilon(0.01));
  INFO("without the embedding, which is looked up");
  CHECK(static_cast<double>(rest - vocabulary + 48 * 22 * expert) ==
        doctest::Approx(55e9).epsilon(0.01));
}

TEST_CASE("GLM-5 has 744 G weights and a layer for later tokens, and a token uses 40 G") {
  const Count h = 6144, vocabulary = 154880 * h;
  const Count queries = h * 2048 + 2048 + 2048 * 64 * 256;
  const Count keys = h * (512 + 64) + 512 + 512 * 64 * (192 + 256);
  const Count indexer = 2048 * 32 * 128 + h * 128 + 2 * 128 + h * 32;
  const Count attention = queries + keys + indexer + 64 * 256 * h + 2 * h;
  const Count expert = 3 * h * 2048, router = 256 * h + 256;
  const Count rest = 2 * vocabulary + h + 78 * attention + 3 * 3 * h * 12288 + 75 * router;
  const Count trunk = rest + 75 * 257 * expert;
  const Count later = attention + router + 257 * expert + 2 * h * h + 3 * h;
  CHECK(weights_of("glm-5") == trunk + later);
  CHECK(static_cast<double>(trunk) == doctest::Approx(744e9).epsilon(0.001));
  INFO("without embedding and indexers, which are 0.7 G");
  CHECK(static_cast<double>(rest + 75 * 9 * expert - vocabulary - 78 * indexer) ==
        doctest::Approx(40e9).epsilon(0.01));
}

TEST_CASE("MiniMax-M2 has 229 G weights, and a token uses 10 G") {
  const Count h = 3072, vocabulary = 200064 * h;
  const Count attention = 2 * h * 48 * 128 + 2 * h * 8 * 128 + (48 + 8) * 128 + 2 * h;
  const Count expert = 3 * h * 1536, router = 256 * h + 256;
  const Count rest = 2 * vocabulary + h + 62 * (attention + router);
  CHECK(weights_of("minimax-m2") == rest + 62 * 256 * expert);
  CHECK(static_cast<double>(rest + 62 * 8 * expert - 2 * vocabulary) ==
        doctest::Approx(10e9).epsilon(0.05));
}

TEST_CASE("Qwen3.5 397B has three gated delta layers for each of attention, and one more block") {
  const Count h = 4096, vocabulary = 248320 * h, expert = 3 * h * 1024;
  const Count keys = 16 * 128, values = 64 * 128;
  const Count delta =
      h * (2 * keys + 2 * values + 2 * 64) + 4 * (2 * keys + values) + 2 * 64 + 128 + values * h;
  const Count attention = h * 32 * 256 * 2 + 2 * h * 2 * 256 + 32 * 256 * h + 2 * 256;
  const Count beside = 2 * h + 512 * h + expert + h;
  const Count rest = 2 * vocabulary + h + 45 * delta + 15 * attention + 60 * beside;
  const Count trunk = rest + 60 * 512 * expert;
  INFO("a count of the published tensors has 396,346,350,336 and 6,595,568,128");
  CHECK(trunk == 396'346'350'336);
  CHECK(weights_of("qwen3.5-397b-a17b") == trunk + 6'595'568'128);
  CHECK(static_cast<double>(rest + 60 * 10 * expert) == doctest::Approx(17e9).epsilon(0.05));
}

}  // namespace
}  // namespace interlock::recent_zoo_test
