// Stretches of a text; points under a random teacher; waves under noise.
// SPDX-License-Identifier: Apache-2.0
#include "validate/training/data_set.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <utility>
#include <vector>

#include "base/draws.h"
#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "validate/network/contrast.h"

namespace interlock {

namespace {

// Which kind of thing a stream of random numbers is for.
constexpr std::uint64_t kTeacher = 1'000'000'007, kWaves = 1'000'000'009;
constexpr int kTeacherWidth = 16;
constexpr int kBytes = 256;
constexpr int kWavesAnImage = 3;

std::size_t count(int number) { return static_cast<std::size_t>(number); }

/// A network of one hidden layer: features, tanh, the largest of the classes.
struct Teacher {
  int features = 1, classes = 1;
  std::vector<double> first, second;  // (features, width), (width, classes)

  Teacher(const NeuralNetwork& network, std::uint64_t seed)
      : features(network.features), classes(network.classes) {
    Random random(seed, kTeacher);
    const auto draw = [&](int inputs, int outputs) {
      std::vector<double> weights(count(inputs) * count(outputs));
      for (double& weight : weights) weight = draw_normal(random) / std::sqrt(inputs);
      return weights;
    };
    first = draw(features, kTeacherWidth);
    second = draw(kTeacherWidth, classes);
  }

  std::int32_t says(const float* sample) const {
    std::vector<double> scores(count(classes), 0);
    for (int unit = 0; unit < kTeacherWidth; ++unit) {
      double sum = 0;
      for (int i = 0; i < features; ++i) sum += sample[i] * first[count(i * kTeacherWidth + unit)];
      const double active = std::tanh(2 * sum);
      for (int c = 0; c < classes; ++c)
        scores[count(c)] += active * second[count(unit * classes + c)];
    }
    return static_cast<std::int32_t>(std::max_element(scores.begin(), scores.end()) -
                                     scores.begin());
  }
};

/// cos(2 pi (down * row + right * column) / side + phase), of one channel of one class.
struct Wave {
  double down = 0, right = 0, phase = 0;
};

std::vector<Wave> waves_of(const NeuralNetwork& network, std::uint64_t seed) {
  Random random(seed, kWaves);
  std::vector<Wave> waves(count(network.classes * network.features * kWavesAnImage));
  for (Wave& wave : waves) {
    wave = {.down = static_cast<double>(random.integer(-3, 3)),
            .right = static_cast<double>(random.integer(0, 3)),
            .phase = 2 * std::numbers::pi * random.uniform()};
  }
  return waves;
}

/// Appends an image of `kind`, pixel by pixel, channels side by side.
void append_image(const NeuralNetwork& network, const std::vector<Wave>& waves, int kind,
                  Random& random, std::vector<float>& features) {
  const int side = static_cast<int>(std::lround(std::sqrt(network.rows_per_sample)));
  for (int pixel = 0; pixel < network.rows_per_sample; ++pixel) {
    const int row = pixel / side, column = pixel % side;
    for (int channel = 0; channel < network.features; ++channel) {
      double value = draw_normal(random);
      for (int w = 0; w < kWavesAnImage; ++w) {
        const Wave& wave = waves[count((kind * network.features + channel) * kWavesAnImage + w)];
        const double turns = (wave.down * row + wave.right * column) / side;
        value += std::cos(2 * std::numbers::pi * turns + wave.phase);
      }
      features.push_back(static_cast<float>(value));
    }
  }
}

}  // namespace

BatchSource text_batches(std::string text, const std::string& file, const NeuralNetwork& network,
                         std::uint64_t seed) {
  CHECK(network.samples == SampleKind::Tokens, "a language model");
  const int length = network.rows_per_sample;
  if (network.classes < kBytes) {
    throw Error("the model knows " + std::to_string(network.classes) +
                " tokens; expected 256, one for each byte of " + in_quotes(file) +
                ": \"vocab_size\": 256");
  }
  if (text.size() < count(length) + 1) {
    throw Error(in_quotes(file) + " has " + std::to_string(text.size()) +
                " bytes; expected at least " + std::to_string(length + 1) +
                ", a sample and the byte after it: a longer file, or a smaller "
                "\"sequence_length\"");
  }
  const auto bytes = std::make_shared<const std::string>(std::move(text));
  const int samples = network.samples_per_micro_batch - network.false_samples;
  const bool contrasts = network.false_samples > 0;
  return [=](int micro_batch) {
    Random random(seed, static_cast<std::uint64_t>(micro_batch));
    Batch batch;
    for (int sample = 0; sample < samples; ++sample) {
      const std::size_t starts = bytes->size() - count(length);
      const auto start = static_cast<std::size_t>(random.bits() % starts);
      for (std::size_t i = start; i < start + count(length); ++i) {
        batch.tokens.push_back(static_cast<unsigned char>((*bytes)[i]));
        batch.targets.push_back(static_cast<unsigned char>((*bytes)[i + 1]));
      }
    }
    if (contrasts) append_false_samples(batch, seed, micro_batch);
    return batch;
  };
}

BatchSource generated_batches(const NeuralNetwork& network, std::uint64_t seed) {
  CHECK(network.samples != SampleKind::Tokens, "a classifier");
  const auto shape = std::make_shared<const NeuralNetwork>(network);
  const bool images = network.samples == SampleKind::Images;
  const auto teacher = std::make_shared<const Teacher>(network, seed);
  const auto waves = std::make_shared<const std::vector<Wave>>(images ? waves_of(network, seed)
                                                                      : std::vector<Wave>());
  return [=](int micro_batch) {
    Random random(seed, static_cast<std::uint64_t>(micro_batch));
    Batch batch;
    for (int sample = 0; sample < shape->samples_per_micro_batch; ++sample) {
      if (images) {
        const int kind = random.integer(0, shape->classes - 1);
        append_image(*shape, *waves, kind, random, batch.features);
        batch.targets.push_back(kind);
        continue;
      }
      const std::size_t first = batch.features.size();
      for (int i = 0; i < shape->features; ++i) {
        batch.features.push_back(static_cast<float>(draw_normal(random)));
      }
      batch.targets.push_back(teacher->says(&batch.features[first]));
    }
    return batch;
  };
}

}  // namespace interlock
