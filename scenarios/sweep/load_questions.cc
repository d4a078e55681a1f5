// The scenarios of a document, and the mistakes of all of them told once.
// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include "base/error.h"
#include "models/config_file.h"
#include "scenarios/contract/key_places.h"
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

/// Throws: Error with all mistakes, if there is any.
void throw_mistakes(const Diagnostics& diagnostics) {
  try {
    diagnostics.throw_if_any();
  } catch (const Error& error) {
    throw with_places_of_keys(error);
  }
}

/// Throws: Error if `document` is what interlock wrote of other commands, or a list of results.
void refuse_result(const JsonValue& document) {
  const JsonValue& first = document.items.empty() ? document : document.items.front();
  const JsonValue* format = first.find("format");
  if (format == nullptr || !format->text.starts_with("interlock-")) return;
  const std::string file = document.file ? *document.file : "the document";
  if (!format->text.starts_with("interlock-result/")) {
    throw Error(file + " is an " + format->text + "; expected a scenario");
  }
  throw Error(file + " is a result; expected a scenario (interlock report " + file + " shows it)");
}

/// Throws: Error if `document` is a model or a machine alone, of which a scenario has both.
void refuse_part(const JsonValue& document) {
  for (const char* section : {"model", "cluster", "training", "workload", "jobs", "sweep"}) {
    if (document.find(section) != nullptr) return;
  }
  const bool model = document.find("kind") != nullptr || is_config(document);
  if (!model && document.find("device") == nullptr) return;
  const std::string file = document.file ? *document.file : "the document";
  throw Error(file + " is a " + (model ? "model" : "machine") +
              "; expected a scenario: interlock init --model " + (model ? file : "gpt2-xl") +
              " --machine " + (model ? "dgx-h100" : file) + " --devices 8 --out scenario.json");
}

}  // namespace

Question load_point(std::shared_ptr<const JsonValue> document) {
  KnownParts none;
  return load_point(std::move(document), none);
}

Question load_point(std::shared_ptr<const JsonValue> document, KnownParts& known) {
  Diagnostics diagnostics;
  Question scenario = load_one(std::move(document), known, diagnostics);
  throw_mistakes(diagnostics);
  return scenario;
}

std::vector<Question> load_questions(const JsonValue& document) {
  refuse_result(document);
  refuse_part(document);
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
  throw_mistakes(diagnostics);
  return scenarios;
}

}  // namespace interlock
