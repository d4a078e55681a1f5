// The C interface: JSON texts in, JSON texts out.
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <cstring>

#include "include/interlock/interlock_c.h"
#include "library/boundary.h"
#include "reports/result/value_json.h"

namespace interlock::v0 {
namespace {

/// Hands `text` over to a C caller.
void hand_over(const std::string& text, char** answer) {
  if (answer == nullptr) return;
  *answer = static_cast<char*>(std::malloc(text.size() + 1));
  if (*answer == nullptr) throw std::bad_alloc();
  std::memcpy(*answer, text.c_str(), text.size() + 1);
}

std::string error_json(const std::string& message, const std::vector<Diagnostic>& diagnostics) {
  std::vector<JsonValue> items;
  items.reserve(diagnostics.size());
  for (const Diagnostic& one : diagnostics) {
    items.push_back(json_object({{"file", json_text(one.file)},
                                 {"line", json_number(one.line)},
                                 {"path", json_text(one.path)},
                                 {"message", json_text(one.message)},
                                 {"hint", json_text(one.hint)}}));
  }
  return json_file(json_object({{"format", json_text("interlock-error/1")},
                                {"message", json_text(message)},
                                {"diagnostics", json_list(std::move(items))}}));
}

std::vector<std::string> texts_of(ObjectReader& reader, std::string_view key) {
  std::vector<std::string> texts;
  const auto node = reader.get(key);
  if (!node) return texts;
  if (node->value->kind != JsonValue::Kind::Array) {
    report(reader.diagnostics(), *node, "expected a list of texts");
    return texts;
  }
  for (std::size_t i = 0; i < node->value->items.size(); ++i) {
    texts.push_back(read_text(node->item(i), reader.diagnostics()).value_or(""));
  }
  return texts;
}

Options options_of(const char* text) {
  Options options;
  if (text == nullptr) return options;
  const JsonValue document = parse_json(text, "options");
  Diagnostics diagnostics;
  ObjectReader reader({&document, ""}, diagnostics);
  options.file = reader.text("file", "");
  options.set = texts_of(reader, "set");
  options.range_draws = reader.count("range_draws", 0, 0);
  options.threads = reader.count("threads", 0, 0);
  options.engine = reader.text("engine", "");
  reader.finish();
  diagnostics.throw_if_any();
  return options;
}

std::vector<int> sizes_of(ObjectReader& reader) {
  std::vector<int> sizes;
  const auto node = reader.require("devices", "a list of numbers of devices");
  if (!node) return sizes;
  for (std::size_t i = 0; i < node->value->items.size(); ++i) {
    sizes.push_back(read_count(node->item(i), 1, 1'000'000, reader.diagnostics()).value_or(1));
  }
  return sizes;
}

std::map<std::string, std::string> prices_of(ObjectReader& reader) {
  std::map<std::string, std::string> prices;
  const auto node = reader.get("prices");
  if (!node) return prices;
  for (const JsonMember& member : node->value->members) {
    prices[member.first] = read_text(node->child(member.first), reader.diagnostics()).value_or("");
  }
  return prices;
}

PlanQuestion plan_question_of(const char* text) {
  constexpr double kMost = 1e300;
  const JsonValue document = parse_json(text, "question");
  Diagnostics diagnostics;
  ObjectReader reader({&document, ""}, diagnostics);
  PlanQuestion question;
  question.model = reader.text("model", "");
  question.machines = texts_of(reader, "machines");
  question.devices = sizes_of(reader);
  question.tokens = reader.number("tokens", 0, 0, kMost);
  question.samples = reader.number("samples", 0, 0, kMost);
  question.batch = reader.number("batch", 0, 0, kMost);
  question.sequence_length = reader.count("sequence_length", 0, 0);
  question.weak = reader.boolean("weak", false);
  question.days = reader.number("days", 0, 0, kMost);
  question.budget = reader.text("budget", "");
  question.prices = prices_of(reader);
  question.mtbf = reader.text("mtbf", "");
  reader.finish();
  diagnostics.throw_if_any();
  return question;
}

/// Answers with what `work` makes of the options, or with what is wrong. Returns the status.
template <class Work>
int answered(const char* options, char** answer, const Work& work) {
  if (answer != nullptr) *answer = nullptr;
  try {
    try {
      const Options read = at_boundary([&] { return options_of(options); });
      hand_over(work(read), answer);
      return INTERLOCK_OK;
    } catch (const Error& error) {
      hand_over(error_json(error.what(), error.diagnostics()), answer);
      return INTERLOCK_ERROR;
    } catch (const std::logic_error& bug) {
      hand_over(error_json(bug.what(), {}), answer);
      return INTERLOCK_INTERNAL_ERROR;
    }
  } catch (...) {
    return INTERLOCK_NO_MEMORY;
  }
}

std::string results_json(const std::vector<Result>& results) {
  if (results.size() == 1) return results.front().json();
  std::string json;
  for (const Result& result : results) json += (json.empty() ? "[\n" : ",\n") + result.json();
  return json + "]\n";
}

Options without_timeline(Options options) {
  options.timeline = false;
  return options;
}

}  // namespace
}  // namespace interlock::v0

namespace v0 = interlock::v0;

const char* interlock_version(void) { return INTERLOCK_VERSION; }

void interlock_free(char* text) { std::free(text); }

int interlock_check(const char* scenario, const char* options, char** answer) {
  return v0::answered(options, answer, [&](const v0::Options& read) {
    return "{\"format\": \"interlock-check/1\", \"scenarios\": " +
           std::to_string(v0::check(scenario, read)) + "}\n";
  });
}

int interlock_simulate(const char* scenario, const char* options, char** answer) {
  return v0::answered(options, answer, [&](const v0::Options& read) {
    return v0::results_json(v0::simulate_all(scenario, v0::without_timeline(read)));
  });
}

int interlock_svg(const char* scenario, const char* options, char** answer) {
  return v0::answered(options, answer,
                      [&](const v0::Options& read) { return v0::simulate(scenario, read).svg(); });
}

int interlock_report_html(const char* scenario, const char* options, char** answer) {
  return v0::answered(options, answer, [&](const v0::Options& read) {
    return v0::report_html(v0::simulate_all(scenario, read));
  });
}

int interlock_search(const char* scenario, const char* options, char** answer) {
  return v0::answered(options, answer,
                      [&](const v0::Options& read) { return v0::search(scenario, read).json; });
}

int interlock_plan(const char* question, const char* options, char** answer) {
  return v0::answered(options, answer, [&](const v0::Options& read) {
    return v0::plan(v0::at_boundary([&] { return v0::plan_question_of(question); }), read).json;
  });
}

int interlock_explain(const char* scenario, const char* options, char** answer) {
  return v0::answered(options, answer,
                      [&](const v0::Options& read) { return v0::explain(scenario, read).json; });
}
