// Weights, gradients and states of stages under optimisers, formats and adapters, by hand.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/plan/lower_plan.h"
#include "sim/plan/data_parallel.h"
#include "tests/scenarios/documents.h"

namespace interlock::training_states_test {
namespace {

// Llama 3 8B; of a layer 2 norms of 4096 weights, and matrices.
constexpr double kTable = 128256.0 * 4096, kNorms = 65 * 4096.0;
constexpr double kMatrices = 32 * 4096.0 * (6144 + 4096 + 3 * 14336);
constexpr double kAll = 2 * kTable + kNorms + kMatrices;

struct Priced {
  StageCost stage;
  double gathered = 0, reduced = 0;  // bytes of weights and of gradients, before they are divided
};

Priced priced(std::vector<std::string> more) {
  std::vector<std::string> overrides = {"model=llama-3-8b",
                                        "cluster=dgx-h100",
                                        "parallel.pipeline=1",
                                        "parallel.data=8",
                                        "training.strategy=global",
                                        "training.optimizer=adam",
                                        "training.global_batch_size=8",
                                        "training.micro_batch_size=1"};
  overrides.insert(overrides.end(), more.begin(), more.end());
  const LowerInputs inputs = lower_inputs(make_plan(loaded(overrides)));
  Priced made{.stage = inputs.stages.front()};
  for (const Exchange& one : weight_exchanges(inputs.data_parallel, inputs.mesh, made.stage)) {
    made.gathered += one.bytes.value();
  }
  for (const Exchange& one : gradient_exchanges(inputs.data_parallel, inputs.mesh, made.stage)) {
    made.reduced += one.bytes.value();
  }
  return made;
}

TEST_CASE("states of every optimiser are divided by ZeRO") {
  for (const double devices : {1.0, 8.0}) {
    const std::string zero = devices > 1 ? "parallel.zero_stage=1" : "parallel.zero_stage=0";
    const auto states = [&](const std::string& optimizer) {
      return priced({zero, "training.optimizer=" + optimizer}).stage.state.optimizer.value() *
             devices;
    };
    CHECK(states("adam") == doctest::Approx(12 * kAll));
    CHECK(states("lion") == doctest::Approx(8 * kAll));
    CHECK(states("adam-8bit") == doctest::Approx((4 + 2 * (1 + 4.0 / 256)) * kAll));
    CHECK(states("muon") == doctest::Approx(8 * kMatrices + 12 * (kAll - kMatrices)));
    CHECK(states(R"({"kind": "adam", "masters": "none", "first_moment": "bf16"})") ==
          doctest::Approx(6 * kAll));
    const double lines = 2 * (128256 + 4096) + 32 * (2 * (4096 + 4096) + 2 * (4096 + 1024) +
                                                     (4096 + 28672) + (14336 + 4096));
    CHECK(states("adafactor") == doctest::Approx(4 * kAll + 4 * (lines + kNorms)));
  }
}

TEST_CASE("Muon's products are the time of its update, and each device does its share") {
  const Seconds adam = priced({}).stage.update.time;
  const StageCost alone = priced({"training.optimizer=muon"}).stage;
  const StageCost shared = priced({"training.optimizer=muon", "parallel.zero_stage=1"}).stage;
  const auto flops = [](double n, double m) { return 5 * (4 * n * n * m + 2 * n * n * n); };
  const double layer =
      2 * flops(4096, 4096) + 2 * flops(1024, 4096) + flops(4096, 28672) + flops(4096, 14336);
  CHECK(alone.update.flops.value() == doctest::Approx(32 * layer));
  CHECK(alone.update.counted == Flops(0));
  CHECK(alone.update.time > 3 * adam);
  CHECK(shared.update.time.value() == doctest::Approx(alone.update.time.value() / 8));
}

TEST_CASE("weights of eight bits are gathered in eight, block-scaled ones in sixteen") {
  const auto gathered = [](const std::string& format) {
    return priced({"parallel.zero_stage=1", "training.precision=fp8", "training.weights=" + format})
        .gathered;
  };
  CHECK(gathered("training") == doctest::Approx(2 * kAll));
  CHECK(gathered("fp8") == doctest::Approx(2 * (kAll - kMatrices) + kMatrices));
  CHECK(gathered("mxfp8") == doctest::Approx(2 * kAll));
  CHECK(gathered("nvfp4") == doctest::Approx(2 * kAll));
  CHECK(priced({"cluster=dgx-b200", "parallel.zero_stage=1", "training.precision=fp4",
                "training.weights=nvfp4"})
            .gathered == doctest::Approx(2 * kAll));
}

TEST_CASE("only adapters have gradients and states, and are exchanged") {
  const double adapters = 41'943'040;
  const std::string lora = R"(training.lora={"rank": 16, "fused": false})";
  for (const char* zero : {"parallel.zero_stage=0", "parallel.zero_stage=1"}) {
    const Priced made = priced({lora, zero});
    const double devices = std::string(zero).back() == '1' ? 8 : 1;
    CHECK(made.stage.state.weights.value() == doctest::Approx(2 * (kAll + adapters)));
    CHECK(made.stage.state.gradients.value() == doctest::Approx(2 * adapters));
    CHECK(made.stage.state.optimizer.value() == doctest::Approx(12 * adapters / devices));
    CHECK(made.reduced == doctest::Approx(2 * adapters));
    if (devices > 1) CHECK(made.gathered == doctest::Approx(2 * adapters));
  }
  INFO("ZeRO 3 divides all weights, and gathers them for every forward");
  const Priced sharded = priced({lora, "parallel.zero_stage=3"});
  CHECK(sharded.stage.state.weights.value() == doctest::Approx(2 * (kAll + adapters) / 8));
  CHECK(sharded.gathered == doctest::Approx(2 * (kAll + adapters)));
}

TEST_CASE("QLoRA holds matrices of layers in four bits, and the rest in sixteen") {
  const Priced made = priced({R"(training.lora={"rank": 16, "fused": false, "base": "nf4"})"});
  const double four = 0.5 + 1.0 / 64 + 4.0 / (64 * 256);
  CHECK(made.stage.state.weights.value() ==
        doctest::Approx(four * kMatrices + 2 * (kAll - kMatrices) + 2 * 41'943'040.0));
}

TEST_CASE("frozen matrices of layers are stored as all weights are") {
  const auto frozen = [](const std::string& weights) {
    return priced({R"(training.lora={"rank": 16})", "training.precision=fp8", weights})
        .stage.frozen.value();
  };
  CHECK(frozen("training.weights=training") == doctest::Approx(2 * kAll));
  const double rest = 2 * (kAll - kMatrices);
  CHECK(frozen("training.weights=fp8") == doctest::Approx(2 * kMatrices + rest));
  CHECK(frozen("training={\"weight_copies\": 1, \"weights\": \"fp8\"}") ==
        doctest::Approx(kMatrices + rest));
}

TEST_CASE("an encoder may be frozen in front of an embedding that the readout shares") {
  const std::string model = R"(model={"kind": "transformer", "layers": 2, "hidden_size": 16,
      "attention_heads": 4, "vocab_size": 10, "sequence_length": 20, "encoder": {"layers": 3,
      "hidden_size": 8, "attention_heads": 2, "patches": {"image_size": 8, "patch_size": 2}}})";
  INFO("patches, three layers and the connector come before the embedding");
  const Priced whole = priced({model}), made = priced({model, "training.frozen_modules=5"});
  CHECK(made.stage.state.weights == whole.stage.state.weights);
  CHECK(made.stage.frozen > Bytes(0));
  CHECK(made.stage.frozen + made.stage.state.gradients == whole.stage.state.gradients);
  CHECK_THROWS_AS(priced({model, "training.frozen_modules=6"}), Error);
}

}  // namespace
}  // namespace interlock::training_states_test
