// Every schedule of the catalogue, simulated, beside the formulas of papers.
// SPDX-License-Identifier: Apache-2.0
#include "validate/schedule_formulas.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "scenarios/simulate/schedule_survey.h"

namespace interlock::schedule_formulas_test {
namespace {

TEST_CASE("every schedule with a formula meets it, at several sizes") {
  int met = 0;
  for (const int devices : {2, 4, 6, 8}) {
    for (const int rounds : {2, 3, 5}) {
      const SurveySize size = {devices, rounds * devices};
      for (const SurveyRow& row : survey_schedules(size)) {
        const ScheduleFormulas formulas = formulas_of(row.entry->name);
        const PipelineShape shape = {size.devices, size.micro_batches};
        INFO(row.entry->name << ", p = " << devices << ", m = " << size.micro_batches);
        if (formulas.bubble.value) {
          INFO("bubble " << formulas.bubble.text);
          CHECK(row.bubble == doctest::Approx(formulas.bubble.value(shape)).epsilon(1e-9));
          ++met;
        }
        if (formulas.stash.value) {
          INFO("stash " << formulas.stash.text);
          CHECK(row.stash == doctest::Approx(formulas.stash.value(shape)).epsilon(1e-9));
          ++met;
        }
      }
    }
  }
  MESSAGE(met << " figures");
  CHECK(met > 300);
}

TEST_CASE("every formula names a schedule of the catalogue") {
  for (const ScheduleFormulas& formulas : schedule_formulas()) {
    const auto& entries = schedule_catalogue();
    CAPTURE(formulas.schedule);
    CHECK(std::any_of(entries.begin(), entries.end(),
                      [&](const auto& entry) { return entry.name == formulas.schedule; }));
  }
}

TEST_CASE("all but one of the schedules have a formula for their bubble") {
  std::string without;
  for (const SurveyRow& row : survey_schedules({})) {
    if (!formulas_of(row.entry->name).bubble.value) without += row.entry->name + " ";
  }
  CHECK(without == "chimera ");
}

}  // namespace
}  // namespace interlock::schedule_formulas_test
