// Memory of a process beside its tensors, and of optimisers between updates, by hand.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/plan/lower_plan.h"
#include "tests/scenarios/plan/small_run.h"

namespace interlock::used_memory_test {
namespace {

constexpr double kMebibyte = 1024 * 1024;
constexpr const char* kBatch = "training.global_batch_size=16";

const DeviceMetrics& device_of(const ScenarioResult& result) {
  return result.measurement.metrics.devices.front();
}

double used(const ScenarioResult& result) { return device_of(result).used_memory.value().value(); }
double peak(const ScenarioResult& result) { return device_of(result).peak_memory.value(); }

double held(const ScenarioResult& result, MemoryClass what) {
  return device_of(result).memory[static_cast<std::size_t>(what)].value();
}

double parameters_of(const ScenarioResult& result) {
  double parameters = 0;
  for (const Module& module : result.plan.question.training().graph.modules) {
    parameters += static_cast<double>(module.parameters);
  }
  return parameters;
}

std::string framework(const std::string& members) { return "training.framework={" + members + "}"; }

TEST_CASE("memory in use has a context, communicators and what the allocator keeps") {
  const ScenarioResult alone = run(small_run({}));
  CHECK(used(alone) == doctest::Approx(1.1 * peak(alone) + 0.4e9));
  const ScenarioResult four = run(small_run({"parallel.tensor=2", "parallel.data=4", kBatch}));
  CHECK(used(four) == doctest::Approx(1.1 * peak(four) + 0.4e9 + (544 + 688) * kMebibyte));
  INFO("a framework says its own context, and peaks have its allocator's reserve");
  const ScenarioResult own =
      run(small_run({framework(R"("context_memory": "1573 MiB", "reserve": 0.25)")}));
  CHECK(used(own) == doctest::Approx(peak(own) + 1573 * kMebibyte));
}

TEST_CASE("memory in use is unknown on a device whose architecture is not told") {
  const ScenarioResult result =
      run(small_run({R"(cluster={"kind": "uniform", "devices": 1, "link": {"bandwidth": "1 GB/s"},
           "device": {"memory": "80 GiB", "memory_bandwidth": "2 TB/s",
                      "peak": {"bf16": "300 TFLOP/s"}}})"}));
  CHECK_FALSE(device_of(result).used_memory.has_value());
}

TEST_CASE("a device that is no GPU has neither contexts nor communicators of GPUs") {
  const ScenarioResult result = run(
      small_run({"cluster=tpu-v6e-pod", "parallel.data=256", "training.global_batch_size=256"}));
  CHECK_FALSE(device_of(result).used_memory.has_value());
}

TEST_CASE("what updates make anew is kept by the devices that update, for their share") {
  const std::string buffers = framework(R"("update_buffers": 6)");
  const auto more = [&](const Overrides& layout) {
    Overrides with = layout;
    with.push_back(buffers);
    const ScenarioResult plain = run(small_run(layout)), kept = run(small_run(with));
    CHECK(peak(kept) - peak(plain) == doctest::Approx(held(kept, MemoryClass::Optimizer) -
                                                      held(plain, MemoryClass::Optimizer)));
    CHECK(step_of(kept) == step_of(plain));
    return (peak(kept) - peak(plain)) / parameters_of(plain);
  };
  CHECK(more({}) == doctest::Approx(6));
  CHECK(more({"parallel.data=8", kBatch}) == doctest::Approx(6));
  CHECK(more({"parallel.data=8", "parallel.zero_stage=1", kBatch}) == doctest::Approx(6.0 / 8));
  INFO("states that hosts keep are updated there");
  CHECK(more({"training.optimizer=adam", "training.offload.optimizer=0.5"}) == doctest::Approx(3));
}

TEST_CASE("gradients of both formats take six bytes a parameter, and travel in fp32") {
  const auto with = [](const std::string& gradients) {
    return run(small_run({"parallel.data=8", "parallel.zero_stage=1", kBatch,
                          framework(R"("gradients": ")" + gradients + "\"")}));
  };
  const ScenarioResult wide = with("fp32"), both = with("both");
  const double parameters = parameters_of(wide);
  CHECK(held(wide, MemoryClass::Gradients) == doctest::Approx(4 * parameters));
  CHECK(held(both, MemoryClass::Gradients) == doctest::Approx(6 * parameters));
  CHECK(step_of(both) == step_of(wide));
}

TEST_CASE("gradients that updates copy to fp32 keep 16 bits, and leave room before the next step") {
  const auto with = [](const std::string& gradients, const Overrides& layout) {
    Overrides all = layout;
    all.push_back(framework(R"("gradients": ")" + gradients + "\""));
    return run(small_run(all));
  };
  const auto copies = [](const ScenarioResult& result) {
    return result.measurement.program.ranks.front().update_copies.value() / parameters_of(result);
  };
  const ScenarioResult plain = run(small_run({})), copied = with("fp32_for_updates", {});
  CHECK(copies(plain) == 0);
  CHECK(copies(copied) == doctest::Approx(4));
  CHECK(held(copied, MemoryClass::Gradients) == held(plain, MemoryClass::Gradients));
  INFO("where activations are few, a device holds most during its update");
  const Overrides bare = {"model.sequence_length=16", "training.recompute=full"};
  const ScenarioResult small = with("fp32_for_updates", bare);
  const double states = held(small, MemoryClass::Weights) + held(small, MemoryClass::Gradients) +
                        held(small, MemoryClass::Optimizer);
  CHECK(peak(small) == doctest::Approx(states + 4 * parameters_of(small)));
  INFO("copies of all stages of a rank are there in its last update");
  const ScenarioResult chunks =
      with("fp32_for_updates", {"model.sequence_length=16", "training.recompute=full",
                                "parallel.pipeline=2", "parallel.stages=4", "partition=[1,1,1,1]",
                                R"(training.schedule={"kind": "interleaved", "chunks": 2})",
                                "training.global_batch_size=4", "training.micro_batch_size=2"});
  const DeviceMetrics& last = chunks.measurement.metrics.devices.back();
  double resident = 0;
  for (const MemoryClass kind :
       {MemoryClass::Weights, MemoryClass::Gradients, MemoryClass::Optimizer}) {
    resident += last.memory[static_cast<std::size_t>(kind)].value();
  }
  const double all_copies = chunks.measurement.program.ranks.back().update_copies.value();
  CHECK(all_copies > 0);
  CHECK(last.peak_memory.value() >= resident + all_copies);
  CHECK(last.peak_memory.value() < 1.01 * (resident + all_copies));  // with what stages exchange
  INFO("each device of ZeRO copies what it updates");
  CHECK(copies(with("fp32_for_updates", {"parallel.data=8", "parallel.zero_stage=1", kBatch})) ==
        doctest::Approx(4.0 / 8));
}

TEST_CASE("libraries take more where a device holds experts") {
  const std::string sizes =
      R"("library_memory": "1 MiB", "expert_library_memory": {"NVIDIA Ampere": "16 MiB"})";
  const auto libraries = [&](const Overrides& model) {
    Overrides all = model;
    all.push_back(framework(sizes));
    std::vector<double> of_rank;
    for (const Rank& rank : run(small_run(all)).measurement.program.ranks) {
      of_rank.push_back(rank.libraries.value() / kMebibyte);
    }
    return of_rank;
  };
  CHECK(libraries({}) == std::vector<double>{1});
  CHECK(libraries({"model.experts=4"}) == std::vector<double>{17});
  INFO("the first of two stages has dense layers alone");
  CHECK(libraries({"model.experts=4", "model.dense_layers=1", "model.layers=2",
                   "parallel.pipeline=2", "partition=[2,2]"}) == std::vector<double>{1, 17});
}

TEST_CASE("a buffer of scores is as large as those of a layer, and none where none are stored") {
  const auto buffer = [](const std::string& attention) {
    const std::string mixer = "model.attention=" + attention;
    const ScenarioResult result =
        run(small_run({mixer, framework(R"("attention_scores_buffer": true)")}));
    return result.measurement.program.ranks.front().libraries.value();
  };
  const double samples = 2, heads = 4, tokens = 128;
  CHECK(buffer("materialised") == samples * heads * tokens * tokens * 2);
  INFO("of slices, as large as that of the last one, which reads all tokens");
  const ScenarioResult sliced = run(
      small_run({R"(training.schedule={"kind": "terapipe", "slices": 4})", "parallel.pipeline=2",
                 "training.micro_batch_size=2", framework(R"("attention_scores_buffer": true)")}));
  CHECK(sliced.measurement.program.ranks.front().libraries.value() ==
        samples * heads * (tokens / 4) * tokens * 2);
  CHECK(buffer("fused") == 0);
}

}  // namespace
}  // namespace interlock::used_memory_test
