// Data that a training run reads: the right bytes, the same on every rank, and learnable.
// SPDX-License-Identifier: Apache-2.0
#include "validate/training/data_set.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "base/error.h"

namespace interlock::data_set_test {

namespace {

NeuralNetwork language(int length, int samples, int classes = 256) {
  return {.samples = SampleKind::Tokens,
          .samples_per_micro_batch = samples,
          .rows_per_sample = length,
          .classes = classes};
}

}  // namespace

TEST_CASE("targets are the bytes that follow, and every stretch of the text comes up") {
  const std::string text = "abcdefghij\xff";
  const BatchSource source = text_batches(text, "f", language(4, 3), 1);
  std::set<int> starts;
  for (int micro_batch = 0; micro_batch < 200; ++micro_batch) {
    const Batch batch = source(micro_batch);
    REQUIRE(batch.tokens.size() == 12);
    REQUIRE(batch.targets.size() == 12);
    for (std::size_t sample = 0; sample < 3; ++sample) {
      const auto start = text.find(static_cast<char>(batch.tokens[sample * 4]));
      starts.insert(static_cast<int>(start));
      for (std::size_t i = 0; i < 4; ++i) {
        CHECK(batch.tokens[sample * 4 + i] == static_cast<unsigned char>(text[start + i]));
        CHECK(batch.targets[sample * 4 + i] == static_cast<unsigned char>(text[start + i + 1]));
      }
    }
  }
  CHECK(starts == std::set<int>{0, 1, 2, 3, 4, 5, 6});
}

TEST_CASE("a micro-batch depends on its number and the seed only") {
  const std::string text(1000, 'x');
  std::string mixed;
  for (int i = 0; i < 1000; ++i) mixed += static_cast<char>(i * 37);
  const BatchSource one = text_batches(mixed, "f", language(16, 2), 5);
  const BatchSource two = text_batches(mixed, "f", language(16, 2), 5);
  two(0);
  CHECK(one(7).tokens == two(7).tokens);
  CHECK(one(7).tokens != one(8).tokens);
  CHECK(one(7).tokens != text_batches(mixed, "f", language(16, 2), 6)(7).tokens);
}

TEST_CASE("a text that is too short, or a model of too few tokens, is refused with the numbers") {
  CHECK_THROWS_WITH_AS(text_batches("abc", "t.txt", language(4, 1), 1), doctest::Contains("5"),
                       Error);
  CHECK_THROWS_WITH_AS(text_batches("abcdefgh", "t.txt", language(4, 1, 50), 1),
                       doctest::Contains("\"vocab_size\": 256"), Error);
  CHECK(text_batches("abcde", "t.txt", language(4, 1), 1)(0).tokens.front() == 'a');
}

TEST_CASE("the teacher's classes are a function of the sample, and none has nearly all") {
  const NeuralNetwork network{
      .samples = SampleKind::Vectors, .samples_per_micro_batch = 2000, .features = 8, .classes = 4};
  const Batch batch = generated_batches(network, 3)(0);
  std::vector<int> counts(4, 0);
  double sum = 0, squares = 0;
  for (const int target : batch.targets) ++counts[target];
  for (const float value : batch.features) {
    sum += value;
    squares += value * value;
  }
  const double n = static_cast<double>(batch.features.size());
  CHECK(std::abs(sum / n) < 4 / std::sqrt(n));
  CHECK(squares / n == doctest::Approx(1).epsilon(0.05));
  for (const int count : counts) CHECK(count < 1800);
  CHECK(generated_batches(network, 3)(0).targets == batch.targets);
}

TEST_CASE("images of a class have its waves in common, others do not") {
  const NeuralNetwork network{.samples = SampleKind::Images,
                              .samples_per_micro_batch = 600,
                              .rows_per_sample = 64,
                              .features = 3,
                              .classes = 2};
  const Batch batch = generated_batches(network, 1)(0);
  constexpr std::size_t kSize = 192;  // 64 pixels of 3 channels
  REQUIRE(batch.features.size() == 600 * kSize);
  std::vector<std::vector<double>> mean(2, std::vector<double>(kSize, 0));
  std::vector<double> count(2, 0);
  for (std::size_t sample = 0; sample < 600; ++sample) {
    const int kind = batch.targets[sample];
    ++count[kind];
    for (std::size_t i = 0; i < kSize; ++i) mean[kind][i] += batch.features[sample * kSize + i];
  }
  double apart = 0;
  for (std::size_t i = 0; i < kSize; ++i) {
    apart += std::pow(mean[0][i] / count[0] - mean[1][i] / count[1], 2);
  }
  // Six independent waves of mean square 1/2 lie between two classes, and hardly any noise.
  INFO("mean square between classes " << apart / kSize << ", 3 expected");
  CHECK(apart / kSize == doctest::Approx(3).epsilon(0.4));
}

}  // namespace interlock::data_set_test
