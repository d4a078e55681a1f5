// The scenarios of a document, and the mistakes of all of them told once.
// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "scenarios/load/loader.h"
#include "scenarios/sweep/sweep_plan.h"

namespace interlock {
namespace {

Question load_one(std::shared_ptr<const JsonValue> document, KnownParts& known,
                  Diagnostics& diagnostics) {
  Question scenario = load_question(*document, known, diagnostics);
  scenario.document = std::move(document);
  return scenario;
}

}  // namespace

Question load_point(std::shared_ptr<const JsonValue> document) {
  KnownParts none;
  return load_point(std::move(document), none);
}

Question load_point(std::shared_ptr<const JsonValue> document, KnownParts& known) {
  Diagnostics diagnostics;
  Question scenario = load_one(std::move(document), known, diagnostics);
  diagnostics.throw_if_any();
  return scenario;
}

std::vector<Question> load_questions(const JsonValue& document) {
  Diagnostics diagnostics;
  const SweepPlan plan(document, kMostAtOnce, diagnostics);
  std::vector<SweepPoint> points;
  for (std::size_t i = 0; i < plan.size() && diagnostics.empty(); ++i) {
    points.push_back(plan.point(i, diagnostics));
  }
  std::vector<Question> scenarios;
  KnownParts known;
  for (SweepPoint& point : points) {
    Diagnostics own;
    scenarios.push_back(
        load_one(std::make_shared<const JsonValue>(std::move(point.document)), known, own));
    scenarios.back().swept = std::move(point.swept);
    // The scenarios of a sweep share most of their text, and so its mistakes.
    diagnostics.add_new(own);
  }
  diagnostics.throw_if_any();
  return scenarios;
}

}  // namespace interlock
