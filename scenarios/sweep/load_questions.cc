// The scenarios of a document, and the mistakes of all of them told once.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "scenarios/load/loader.h"
#include "scenarios/sweep/sweep_plan.h"

namespace interlock {
namespace {

Question load_one(std::shared_ptr<const JsonValue> document, Diagnostics& diagnostics) {
  Question scenario = load_question(*document, diagnostics);
  scenario.document = std::move(document);
  return scenario;
}

}  // namespace

Question load_point(std::shared_ptr<const JsonValue> document) {
  Diagnostics diagnostics;
  Question scenario = load_one(std::move(document), diagnostics);
  diagnostics.throw_if_any();
  return scenario;
}

std::vector<Question> load_questions(const JsonValue& document) {
  Diagnostics sweep_diagnostics;
  const SweepPlan plan(document, kMostAtOnce, sweep_diagnostics);
  std::vector<SweepPoint> points;
  for (std::size_t i = 0; i < plan.size() && sweep_diagnostics.empty(); ++i) {
    points.push_back(plan.point(i, sweep_diagnostics));
  }
  // The scenarios of a sweep share most of their text, and so its mistakes.
  std::vector<std::string> messages = sweep_diagnostics.messages();
  std::vector<Question> scenarios;
  for (SweepPoint& point : points) {
    Diagnostics diagnostics;
    scenarios.push_back(
        load_one(std::make_shared<const JsonValue>(std::move(point.document)), diagnostics));
    scenarios.back().swept = std::move(point.swept);
    for (const std::string& message : diagnostics.messages()) {
      if (std::find(messages.begin(), messages.end(), message) == messages.end()) {
        messages.push_back(message);
      }
    }
  }
  if (messages.empty()) return scenarios;
  std::string whole = messages.front();
  for (std::size_t i = 1; i < messages.size(); ++i) whole += "\n" + messages[i];
  throw Error(whole);
}

}  // namespace interlock
