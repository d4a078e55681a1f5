// Messages in 8 and 4 bits: casts against all values that a format has, trainings in plain loops.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/random.h"
#include "sim/plan/schedules/message_bytes.h"
#include "tests/harness/support/training.h"
#include "tests/harness/support/written_network.h"
#include "validate/cpu/layers/cast_kernels.h"
#include "validate/executors/settled_program.h"

namespace interlock::sent_formats_test {
namespace {

struct Format {
  std::string name;
  SentFormat format = SentFormat::Computed;
  int group = 1;               // numbers that share a scale
  std::vector<double> values;  // all that it has
};

/// Returns the formats; of e4m3 every number of three bits behind a point, by exponent.
std::vector<Format> formats() {
  std::vector<Format> all = {{"fp8", SentFormat::Fp8, 128, {}},
                             {"int8", SentFormat::Int8, 4096, {}},
                             {"int4", SentFormat::Int4, 128, {}}};
  for (int exponent = -6; exponent <= 8; ++exponent) {
    for (int eighths = exponent == -6 ? 0 : 8; eighths < 16; ++eighths) {
      const double value = eighths * std::pow(2.0, exponent - 3);
      if (value > 448) continue;
      all[0].values.insert(all[0].values.end(), {value, -value});
    }
  }
  for (int value = -127; value <= 127; ++value) all[1].values.push_back(value);
  for (int value = -7; value <= 7; ++value) all[2].values.push_back(value);
  return all;
}

/// Returns numbers as they come out of a cast, by looking at every value of the format.
std::vector<double> through(const Format& format, const std::vector<double>& numbers) {
  std::vector<double> cast;
  const double largest = *std::ranges::max_element(format.values);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::size_t first = i / format.group * format.group,
                      end = std::min(first + format.group, numbers.size());
    double most = 0;
    for (std::size_t k = first; k < end; ++k) most = std::max(most, std::abs(numbers[k]));
    const double scale = static_cast<float>(most / largest);
    double nearest = 0;
    for (const double value : format.values) {
      if (std::abs(value * scale - numbers[i]) < std::abs(nearest * scale - numbers[i])) {
        nearest = value;
      }
    }
    cast.push_back(nearest * scale);
  }
  return cast;
}

TEST_CASE("a cast takes the nearest of the values that its format has") {
  Random random(29, 1);
  for (const Format& format : formats()) {
    for (const int count : {1, 127, 128, 300, 5000}) {
      INFO(format.name << ", " << count << " numbers");
      std::vector<double> numbers(static_cast<std::size_t>(count));
      for (double& number : numbers) {
        number = std::exp(20 * random.uniform() - 15) * (random.integer(0, 1) == 0 ? 1 : -1);
      }
      numbers[static_cast<std::size_t>(count / 2)] = 0;
      std::vector<char> message(static_cast<std::size_t>(cast_bytes(format.format, count)));
      cast_numbers(format.format, numbers.data(), count, message.data());
      std::vector<double> back(numbers.size());
      cast_back(format.format, message.data(), count, back.data());
      const std::vector<double> expected = through(format, numbers);
      int wrong = 0;
      for (std::size_t i = 0; i < back.size(); ++i) wrong += back[i] == expected[i] ? 0 : 1;
      CHECK(wrong == 0);
      numbers[0] = std::numeric_limits<double>::infinity();
      cast_numbers(format.format, numbers.data(), count, message.data());
      cast_back(format.format, message.data(), count, back.data());
      CHECK(std::isnan(back[0]));
    }
  }
}

std::string casts(const std::string& kind, const std::string& up, const std::string& down) {
  return "{" + kind + R"(, "activation_format": ")" + up + R"(", "gradient_format": ")" + down +
         "\"}";
}

written::Vector through(const Format* format, const written::Vector& vector) {
  if (!format) return vector;
  std::vector<double> numbers;
  for (const written::Number number : vector) numbers.push_back(number.real());
  const std::vector<double> cast = through(*format, numbers);
  return {cast.begin(), cast.end()};
}

TEST_CASE("global training with casts learns what stages in plain loops learn") {
  const std::vector<Format> all = formats();
  const std::vector<const Format*> choices = {nullptr, &all[0], &all[1], &all[2]};
  constexpr int kSteps = 4;
  for (const Format* up : choices) {
    for (const Format* down : choices) {
      const auto name = [](const Format* format) { return format ? format->name : "training"; };
      INFO(name(up) << " up, " << name(down) << " down");
      SmallTraining training =
          make_training({.model = kResidualMlp,
                         .strategy = casts(R"("kind": "global")", name(up), name(down)),
                         .devices = 3,
                         .steps = kSteps});
      training.dump_step = 0;
      const auto first =
          part_of(train(training, RunMode::Sequential, {.doubles = true}), "weights/");
      training.dump_step = kSteps - 1;
      const Job job = job_of(training);
      const Outcome own = train(training, RunMode::Threads, {.doubles = true, .poison = true});
      std::vector<written::Stage> stages = written::stages_of(job, first);
      for (int b = 0; b < kSteps; ++b) {
        const Batch data = job.batch(b);
        std::vector<written::Vector> inputs = {{data.features.begin(), data.features.end()}};
        for (const written::Stage& stage : stages) {
          const written::Vector output = written::forward(stage, inputs.back(), data.targets);
          inputs.push_back(stage.has_loss() ? output : through(up, output));
        }
        CHECK(own.losses.back().at(b) == doctest::Approx(inputs.back()[0].real()).epsilon(1e-12));
        written::Vector delta = {1};
        for (std::size_t s = stages.size(); s-- > 0;) {
          const written::Slopes slopes =
              written::backward(stages[s], inputs[s], delta, data.targets);
          delta = through(down, slopes.input);
          written::descend(stages[s].weights, slopes.weights, job.descent.rate);
        }
      }
      const auto updated = part_of(own, "updated/");
      for (const written::Stage& stage : stages) {
        for (const auto& [parameter, values] : stage.weights) {
          std::vector<double> expected;
          for (const written::Number value : values) expected.push_back(value.real());
          INFO(parameter);
          CHECK(distance(updated.at(parameter), expected) <= 1e-12);
        }
      }
    }
  }
}

const std::string kMlp = R"({"kind": "residual-mlp", "input_size": 6, "layers": 3,
    "hidden_size": 64, "classes": 4})";

TEST_CASE("gradients that come after an op has computed again are cast back, too") {
  const auto losses = [](const std::string& early) {
    return train(make_training({.model = kMlp,
                                .strategy = casts(R"("kind": "global")", "fp8", "int4"),
                                .schedule = R"({"kind": "1f1b", "early_recompute": )" + early + "}",
                                .devices = 4,
                                .micro_batches = 4,
                                .steps = 3,
                                .more_training = R"(, "recompute": "full")"}),
                 RunMode::Clock, {.poison = true})
        .losses;
  };
  CHECK(losses("true") == losses("false"));
}

TEST_CASE("inputs that are learnt from again are not cast") {
  const auto refusal = [](const std::string& format) {
    const std::string strategy = R"({"kind": "local", "activation_format": ")" + format + "\"}";
    return why_not_trainable(
        job_of(make_training({.model = kMlp,
                              .strategy = strategy,
                              .schedule = R"({"kind": "dgl", "queue": {"buffered": 4}})",
                              .devices = 4,
                              .micro_batches = 4})));
  };
  CHECK(refusal("training").empty());
  CHECK(refusal("fp8").find(R"(expected "activation_format": "training")") != std::string::npos);
}

TEST_CASE("stages that cast hold what is simulated, to the byte, in any order of threads") {
  const std::string odd = R"({"kind": "residual-mlp", "input_size": 6, "layers": 3,
      "hidden_size": 25, "classes": 4})";
  const std::string transformer = R"({"kind": "transformer", "layers": 2, "hidden_size": 16,
      "attention": "materialised", "attention_heads": 2, "vocab_size": 11, "sequence_length": 4,
      "tied_embeddings": false})";
  const std::vector<std::pair<std::string, std::string>> kinds = {
      {R"("kind": "global")", R"("1f1b")"},
      {R"("kind": "global")", R"("zb-h1")"},
      {R"("kind": "pairwise")", R"("eager")"},
      {R"("kind": "pairwise", "gradient_every": 2)", R"({"kind": "eager", "in_flight": 3})"},
      {R"("kind": "interlocking", "n_wise": 3, "gradient": "sum")", R"("eager")"}};
  for (const std::string& model : {kMlp, odd, transformer}) {
    for (const auto& [kind, schedule] : kinds) {
      for (const std::string recompute : {"none", "full"}) {
        if (schedule == R"("zb-h1")" && recompute == "full") continue;  // refused
        INFO(model << ", " << kind << ", " << schedule << ", recompute " << recompute);
        SmallTraining training =
            make_training({.model = model,
                           .strategy = casts(kind, "fp8", "int4"),
                           .schedule = schedule,
                           .devices = 4,
                           .micro_batches = 4,
                           .steps = 2,
                           .more_training = R"(, "recompute": ")" + recompute + "\""});
        const std::vector<double> simulated = simulated_peaks(training.program);
        const Outcome clocked = train(training, RunMode::Clock, {.poison = true});
        for (std::size_t rank = 0; rank < simulated.size(); ++rank) {
          CHECK(static_cast<double>(clocked.memory[rank].peak) == simulated[rank]);
        }
        training.program = settled(training.program, EngineKind::Native);
        CHECK(train(training, RunMode::Threads, {.poison = true}).losses == clocked.losses);
      }
    }
  }
}

}  // namespace
}  // namespace interlock::sent_formats_test
