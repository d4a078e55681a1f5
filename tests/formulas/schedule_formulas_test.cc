// Every schedule of the catalogue, simulated, beside the formulas of papers.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "scenarios/simulate/schedule_survey.h"

namespace interlock::schedule_formulas_test {
namespace {

TEST_CASE("every schedule with a formula meets it, at several sizes") {
  int met = 0;
  for (const int devices : {2, 4, 6, 8}) {
    for (const int rounds : {2, 3, 5}) {
      const SurveySize size = {devices, rounds * devices};
      for (const SurveyRow& row : survey_schedules(size)) {
        const Formula &bubble = row.entry->bubble, &stash = row.entry->stashed;
        const PipelineShape shape = {size.devices, size.micro_batches};
        INFO(row.entry->name << ", p = " << devices << ", m = " << size.micro_batches);
        if (bubble.value) {
          INFO("bubble " << bubble.text);
          CHECK(row.bubble == doctest::Approx(bubble.value(shape)).epsilon(1e-9));
          ++met;
        }
        if (stash.value) {
          INFO("stash " << stash.text);
          CHECK(row.stash == doctest::Approx(stash.value(shape)).epsilon(1e-9));
          ++met;
        }
      }
    }
  }
  MESSAGE(met << " figures");
  CHECK(met > 300);
}

TEST_CASE("options of schedules meet their formulas, at several sizes") {
  for (const int devices : {2, 4, 6, 8}) {
    for (const int rounds : {2, 3, 5}) {
      const SurveySize size = {devices, rounds * devices};
      const double p = devices, m = size.micro_batches;
      for (const SurveyRow& row : survey_options(size)) {
        const PipelineShape shape = {size.devices, size.micro_batches};
        INFO(row.entry->name << ", " << row.option->words << ", p = " << p << ", m = " << m);
        CHECK(row.bubble == doctest::Approx(row.option->bubble.value(shape)).epsilon(1e-3));
        CHECK(row.stash == doctest::Approx(row.option->stashed.value(shape)).epsilon(3e-3));
      }
    }
  }
}

TEST_CASE("all but one of the schedules have a formula for their bubble") {
  std::string without;
  for (const SurveyRow& row : survey_schedules({})) {
    if (!row.entry->bubble.value) without += row.entry->name + " ";
  }
  CHECK(without == "chimera ");
}

}  // namespace
}  // namespace interlock::schedule_formulas_test
