// Models of random widths: what the memory model counts is enough to train them, to the byte.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "base/random.h"
#include "tests/harness/support/training.h"

namespace interlock::random_widths_test {
namespace {

class Picker {
 public:
  explicit Picker(std::uint64_t seed) : random_(seed, 0) {}
  int up_to(int most) { return 1 + static_cast<int>(random_.uniform() * most); }
  const std::string& of(const std::vector<std::string>& all) {
    return all[static_cast<std::size_t>(up_to(static_cast<int>(all.size()))) - 1];
  }

 private:
  Random random_;
};

std::string text_of(int value) { return std::to_string(value); }

std::string random_transformer(Picker& pick) {
  const int heads = pick.up_to(3), hidden = heads * pick.up_to(12);
  return R"({"kind": "transformer", "layers": 3, "tied_embeddings": false, "hidden_size": )" +
         text_of(hidden) + R"(, "ffn_hidden_size": )" + text_of(pick.up_to(5 * hidden)) +
         R"(, "attention": "materialised", "attention_heads": )" + text_of(heads) +
         R"(, "vocab_size": )" + text_of(1 + pick.up_to(12)) + R"(, "sequence_length": )" +
         text_of(pick.up_to(9)) + "}";
}

std::string random_residual_mlp(Picker& pick) {
  const int hidden = pick.up_to(24);
  return R"({"kind": "residual-mlp", "layers": 3, "input_size": )" + text_of(pick.up_to(9)) +
         R"(, "hidden_size": )" + text_of(hidden) + R"(, "ffn_hidden_size": )" +
         text_of(pick.up_to(5 * hidden)) + R"(, "classes": )" + text_of(1 + pick.up_to(5)) + "}";
}

std::string random_resnet(Picker& pick) {
  return R"({"kind": "resnet", "block": "basic", "blocks": [1, 2], "image_size": )" +
         text_of(3 + pick.up_to(5)) + R"(, "base_width": )" + text_of(pick.up_to(5)) +
         R"(, "classes": )" + text_of(1 + pick.up_to(4)) + "}";
}

TEST_CASE("models of random widths train without refusal, in the simulated memory to the byte") {
  Picker pick(11);
  for (int n = 0; n < 150; ++n) {
    const std::string model = n % 3 == 0   ? random_transformer(pick)
                              : n % 3 == 1 ? random_residual_mlp(pick)
                                           : random_resnet(pick);
    TrainingText text = {.model = model, .devices = 1 + pick.up_to(3), .samples = pick.up_to(3)};
    text.micro_batches = 2;
    text.strategy =
        pick.of({R"("global")", R"("local")", R"({"kind": "interlocking", "n_wise": 2})",
                 R"({"kind": "interlocking", "n_wise": 3})",
                 R"({"kind": "interlocking", "n_wise": 3, "gradient": "sum"})"});
    if (n % 5 == 4) text.more_training = R"(, "recompute": "selective")";
    INFO(model, ", ", text.strategy, text.more_training, ", ", text.devices, " devices");
    const SmallTraining training = make_training(text);
    REQUIRE(why_not_trainable(job_of(training)) == "");
    const std::vector<double> simulated = simulated_peaks(training.program);
    const Outcome outcome = train(training, RunMode::Clock, {.poison = true});
    for (std::size_t rank = 0; rank < simulated.size(); ++rank) {
      CHECK(static_cast<double>(outcome.memory[rank].peak) == simulated[rank]);
    }
  }
}

}  // namespace
}  // namespace interlock::random_widths_test
