// Devices that state no efficiency borrow it; those that state the peak have no range.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/ranges/peak_rates.h"

#include "hardware/devices/device_reader.h"
#include "scenarios/ranges/published_errors.h"
#include "scenarios/simulate/run_scenario.h"
#include "tests/scenarios/documents.h"

namespace interlock::peak_rates_test {
namespace {

/// An MI300X as its data sheet has it, with `more`: eight, of a small GPT each.
Question from_data_sheet(const std::string& more, const Overrides& overrides = {}) {
  Overrides all = {
      R"(model={"kind": "transformer", "layers": 4, "hidden_size": 2048, "attention_heads": 16,
                "vocab_size": 32000, "sequence_length": 2048, "attention": "fused"})",
      R"(cluster={"kind": "uniform", "devices": 8, "link": {"bandwidth": "448 GB/s"},
                  "device": {"name": "MI300X", "memory": "192 GB",
                             "memory_bandwidth": "5300 GB/s",
                             "peak": {"bf16": "1307 TFLOP/s"})" +
          more + "}}",
      "parallel.data=8", "training.global_batch_size=8", "training.precision=bf16"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  const std::string text = R"({"model": "gpt2", "cluster": "dgx-a100-80g",
                               "training": {"strategy": "global"}})";
  return load_questions(document(text, all)).front();
}

std::string every_class(const std::string& but) {
  std::string list;
  for (const std::string& name : op_class_names()) {
    if (name == but) continue;
    list += (list.empty() ? "\"" : ", \"") + name + R"(": {"compute": 0.7, "memory": 0.85})";
  }
  return R"(, "efficiency": {)" + list + "}";
}

TEST_CASE("a device without efficiency borrows it, says from whom, and has a wider range") {
  const Question bare = from_data_sheet(""), peak = from_data_sheet(R"(, "efficiency": "peak")");
  REQUIRE(bare.cluster.machines.front().device.borrowed);
  CHECK(bare.cluster.machines.front().device.borrowed->from == "mi300x");
  const ScenarioResult borrowed = run_scenario(bare, false);
  const Confidence& confidence = borrowed.confidence;
  CHECK(confidence.at_peak.empty());
  REQUIRE(confidence.range);
  CHECK(confidence.extrapolates.front() ==
        "\"MI300X\" states no efficiency; it borrows those of mi300x (the same generation)");
  const Seconds step = borrowed.measurement.metrics.step_time;
  CHECK(run_scenario(peak, false).measurement.metrics.step_time < step);
  MESSAGE("the range of a device that states the same efficiencies is that of all devices");
  const Confidence own =
      range_from(published_errors(), {"MI300X", "", "global", "1f1b", "bf16", 8}, step);
  REQUIRE(own.range);
  CHECK(confidence.range->high / confidence.range->low > own.range->high / own.range->low);
}

TEST_CASE("a device priced at its peak says so and has no range") {
  const ScenarioResult bare = run_scenario(from_data_sheet(R"(, "efficiency": "peak")"), false);
  const std::string& told = bare.confidence.at_peak;
  CHECK(told ==
        "kernels are priced at the peak rates of \"MI300X\", which states no efficiency for them: "
        "real kernels take longer, and no measured run says by how much");
  CHECK(!bare.confidence.range);
  CHECK(bare.confidence.extrapolates == std::vector<std::string>{told});
}

TEST_CASE("a device that states all efficiencies has a range and no such words") {
  const Confidence confidence = run_scenario(from_data_sheet(every_class("")), false).confidence;
  CHECK(confidence.at_peak.empty());
  CHECK(confidence.range);
  for (const std::string& name : device_names()) {
    const Question shipped =
        loaded({"training.global_batch_size=1", "model=\"gpt2\"",
                "training.precision=" + std::string(name == "tpu-v3" ? "bf16" : "fp32"),
                R"(cluster={"kind": "uniform", "devices": 1, "link": {"bandwidth": "1 GB/s"},
                     "device": ")" +
                    name + "\"}"});
    CAPTURE(name);
    CHECK(!peak_rates(lay_out(shipped).draft));
  }
}

TEST_CASE("classes that an efficiency leaves out are named, with their share of the time") {
  const Question scenario = from_data_sheet(every_class("gemm"));
  Seconds products, all;
  for (const Module& module : scenario.training().graph.modules) {
    for (const auto* works : {&module.forward, &module.backward_input, &module.backward_weight,
                              &module.first_backward_input, &module.update}) {
      for (const Work& work : *works) {
        const Seconds time =
            time_of(work, scenario.cluster.machines.front().device, Precision::Bf16);
        all += time;
        if (work.op_class == OpClass::Gemm) products += time;
      }
    }
  }
  const double percent = 100 * (products / all);
  const std::string told = peak_rates(lay_out(scenario).draft).value_or("");
  MESSAGE(percent << " % of the time is products: " << told);
  CHECK(std::abs(std::stod(told) - percent) < 0.06);
  CHECK(told.find("of the kernels' time (gemm) is priced at the peak rates") != std::string::npos);
  CHECK(!run_scenario(scenario, false).confidence.range);
}

TEST_CASE("stored scores are products, whose efficiency is that of gemm") {
  const Overrides stored = {"model.attention=materialised"};
  CHECK(peak_rates(lay_out(from_data_sheet(every_class("attention"))).draft));
  CHECK(!peak_rates(lay_out(from_data_sheet(every_class("attention"), stored)).draft));
}

TEST_CASE("what a profile measured is priced by no device") {
  CHECK(!peak_rates(lay_out(loaded()).draft));
}

}  // namespace
}  // namespace interlock::peak_rates_test
