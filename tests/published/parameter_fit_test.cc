// Fits of one number again: against rows whose best factor and errors are known by hand.
// SPDX-License-Identifier: Apache-2.0
#include "validate/published/parameter_fit.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "base/json/json.h"
#include "validate/published/accuracy_report.h"
#include "validate/published/predict_rows.h"

namespace interlock::parameter_fit_test {
namespace {

/// A row whose time is `slope` times as sensitive as the number, and right at `factor` times it.
VariedRow row_of(const std::string& source, double factor, double slope = 1) {
  VariedRow row{source, "model", "device", {}};
  for (const double tried : varied_factors()) {
    row.errors.push_back(slope * std::log(tried / factor));
  }
  return row;
}

TEST_CASE("a factor that all rows agree on is found, and serves rows that had no part in it") {
  const ParameterFit fit =
      fit_rows({row_of("a", 1.3), row_of("a", 1.3, 0.5), row_of("b", 1.3), row_of("c", 1.3, 2)});
  CHECK(fit.rows == 4);
  INFO("found in steps of a fortieth of the logarithm of two and wider");
  CHECK(fit.best == doctest::Approx(1.3).epsilon(0.03));
  INFO("as it is: 1 / 1.3, 1 / sqrt(1.3) and 1 / 1.69, less one; the middle of four");
  CHECK(fit.error_now == doctest::Approx(1 - 1 / 1.3).epsilon(1e-6));
  CHECK(fit.error_best < 0.03);
  CHECK(fit.source.groups == 3);
  CHECK(fit.source.error < 0.03);
  INFO("one model and one device: nothing can be left out");
  CHECK(fit.model.groups == 0);
  CHECK(fit.device.groups == 0);
}

TEST_CASE("sources that disagree are as far off as the others' factor is from theirs") {
  const ParameterFit fit = fit_rows({row_of("a", 1.0), row_of("a", 1.0), row_of("b", 1.5)});
  CHECK(fit.best == doctest::Approx(1));
  CHECK(fit.error_now == doctest::Approx(0).epsilon(1e-9));
  INFO("a's rows with b's 1.5: +50 %, twice; b's with a's: -33 %; the middle is 50 %");
  CHECK(fit.source.error == doctest::Approx(0.5).epsilon(0.03));
}

TEST_CASE("the tables name fitted keys of frameworks and devices, with the rows they rest on") {
  const JsonValue file = parse_json(R"({"kind": "measurements", "source": {"paper": "we"},
    "tables": [{"name": "t", "scenario": {"model": "gpt2-xl"},
      "columns": ["id", "measured.step_time_s"], "rows": [["a", 1], ["b", 2], ["c", 3]],
      "fitted": [
        {"parameters": "megatron-lm: kernel_issue, exchange_issue; A100: tile_ramp",
         "rows": ["a", "b"]},
        {"parameters": "rate of the cards", "rows": ["c"]}]}]})",
                                    "lab.json");
  const std::vector<FittedParameter> found = fitted_parameters({read_measurements(file, "lab")});
  REQUIRE(found.size() == 3);
  CHECK(found[1].entry == "megatron-lm");
  CHECK(found[1].key == "exchange_issue");
  CHECK(found[2].entry == "A100");
  CHECK(found[2].key == "tile_ramp");
  for (const FittedParameter& one : found) {
    CHECK(one.rests_on == std::vector<std::string>{"lab: 2 rows"});
  }
}

TEST_CASE("a number of several devices is varied from what each of them has") {
  const auto error = [](const std::string& cluster) {
    const JsonValue file = parse_json(R"({"kind": "measurements", "source": {"paper": "we"},
      "tables": [{"name": "t", "scenario": {"model": "gpt2-xl", "cluster": ")" +
                                          cluster + R"(",
          "training": {"strategy": "global", "global_batch_size": 4, "steps": 1}},
        "columns": ["id", "measured.step_time_s"], "rows": [["a", 1], ["b", 1]],
        "fitted": [{"parameters": "A100: efficiency.gemm.compute", "rows": ["a"]}]}]})",
                                      "lab.json");
    const std::vector<MeasurementFile> files = {read_measurements(file, "lab")};
    const std::vector<FittedParameter> found = fitted_parameters(files);
    const std::vector<SpeedRow> rows = speed_rows(files, found, 1);
    REQUIRE(rows.size() == 2);
    const std::optional<double> plain = predicted_value(
        Measurand::StepTime, *rows[0].row, predict_rows({rows[0].row}, {1})[0].values, nullptr);
    const ParameterFit fit = refit(found.front(), rows, 2, 1);
    INFO("at once its number, a row is predicted as it stands");
    CHECK(fit.error_now == doctest::Approx(std::abs(*plain - 1)).epsilon(1e-9));
    return fit.error_now;
  };
  CHECK(error("dgx-a100-80g") != error("pcie-a100-80g"));
}

TEST_CASE("a number that a framework has from the one that it stands on is varied in it alone") {
  const std::vector<MeasurementFile> files = {read_measurements(published_path("torchtitan"))};
  const std::vector<FittedParameter> found = {{"torchtitan-2024", "product_speed", {}},
                                              {"torchtitan", "product_speed", {}}};
  const std::vector<SpeedRow> rows = speed_rows(files, found, 1);
  const ParameterFit own = refit(found[0], rows, 4, 1), base = refit(found[1], rows, 4, 1);
  CHECK(own.problem == "");
  CHECK(own.value == base.value);
  CHECK(own.origin == base.origin);
  INFO("each has rows of its own, and other errors");
  CHECK(own.error_now != base.error_now);
}

TEST_CASE("every fitted number that a shipped table names is varied, or told why not") {
  std::vector<MeasurementFile> files = {read_measurements(published_path("primus"))};
  const std::vector<FittedParameter> found = fitted_parameters(files);
  REQUIRE(found.size() == 1);
  const std::vector<SpeedRow> rows = speed_rows(files, found, 1);
  INFO("rows of other frameworks are left alone");
  CHECK(speed_rows(files, {{"transformers", "backward_issue", {}}}, 1).empty());
  const ParameterFit fit = refit(found.front(), rows, 2, 1);
  CHECK(fit.problem == "");
  CHECK(fit.rows == 2);
  CHECK(fit.value != "");
  CHECK(fit.origin.find("fit on one row") != std::string::npos);
  INFO("its errors are a percent or two: the best factor is near one");
  CHECK(fit.best == doctest::Approx(1).epsilon(0.1));
  CHECK(fit_markdown({fit}, "me").find("primus: product_speed") != std::string::npos);
  const JsonValue json =
      parse_json(fit_json({fit, {.parameter = fit.parameter, .problem = "no"}}), "fits.json");
  CHECK(json.find("format")->text == "interlock-fit/1");
  const std::vector<JsonValue>& both = json.find("parameters")->items;
  REQUIRE(both.size() == 2);
  CHECK(both[0].find("entry")->text == "primus");
  CHECK(both[0].find("best_factor")->number == doctest::Approx(fit.best));
  CHECK(both[0].find("error")->number == doctest::Approx(fit.error_now));
  INFO("one source: none can be left out");
  CHECK(both[0].find("source_left_out")->kind == JsonValue::Kind::Null);
  CHECK(both[1].find("problem")->text == "no");
  CHECK(both[1].find("value") == nullptr);
}

}  // namespace
}  // namespace interlock::parameter_fit_test
