// Reads texts as callers give them, and tells mistakes as they know them.
// SPDX-License-Identifier: Apache-2.0
#include "library/boundary.h"

#include <chrono>

#include "base/text.h"
#include "scenarios/contract/set_key.h"
#include "scenarios/sweep/sweep_plan.h"
#include "scenarios/sweep/told_failure.h"

namespace interlock::v0 {
namespace {

/// Returns where the hint of `message` begins: behind its first semicolon that is not quoted.
std::size_t hint_of(const std::string& message) {
  bool quoted = false;
  for (std::size_t i = 0; i + 1 < message.size(); ++i) {
    if (message[i] == '"') quoted = !quoted;
    if (!quoted && message[i] == ';' && message[i + 1] == ' ') return i;
  }
  return std::string::npos;
}

}  // namespace

std::string version() { return INTERLOCK_VERSION; }

Error::Error(const std::string& what, std::vector<Diagnostic> diagnostics)
    : std::runtime_error(what),
      diagnostics_(std::make_shared<const std::vector<Diagnostic>>(std::move(diagnostics))) {}
Error::~Error() = default;

InternalError::InternalError(const std::string& what)
    : std::logic_error("this is a bug in interlock: " + what) {}
InternalError::~InternalError() = default;

Error told(const interlock::Error& error) {
  std::vector<Diagnostic> diagnostics;
  for (const interlock::Diagnostic& mistake : error.mistakes()) {
    const std::size_t end = hint_of(mistake.message);
    diagnostics.push_back({.file = mistake.file,
                           .line = mistake.line,
                           .path = mistake.path,
                           .message = mistake.message.substr(0, end)});
    if (end != std::string::npos) diagnostics.back().hint = mistake.message.substr(end + 2);
  }
  return Error(error.what(), std::move(diagnostics));
}

void throw_told(const std::exception& failure) {
  const ToldFailure told = told_failure(failure);
  if (told.ours) throw InternalError(failure.what());
  throw Error(told.words, {{.file = {}, .path = {}, .message = told.words, .hint = {}}});
}

JsonValue document_of(std::string_view text, const Options& options) {
  JsonValue document = parse_json(text, options.file.empty() ? "scenario" : options.file);
  apply_overrides(document, options.set);
  const std::string& engine = options.engine;
  if (engine.empty()) return document;
  if (engine != "native" && engine != "simgrid" && engine != "auto") {
    throw interlock::Error("engine: unknown engine " + in_quotes(engine) +
                           "; expected native, simgrid or auto");
  }
  apply_overrides(document, {"simulate.engine=" + engine});
  return document;
}

std::vector<Question> questions_of(const JsonValue& document, const Options& options) {
  std::vector<Question> questions = load_questions(document);
  if (options.engine == "auto") return questions;
  for (Question& question : questions) {
    question.simulation.engine = engine_of_many(question.simulation.engine);
  }
  return questions;
}

namespace {

/// Calls what the caller gave. Throws: CallerThrew.
template <class... Arguments>
void call_out(const std::function<void(Arguments...)>& callback, Arguments... arguments) {
  if (!callback) return;
  try {
    callback(arguments...);
  } catch (...) {
    throw CallerThrew{std::current_exception()};
  }
}

}  // namespace

Workers workers_of(const Options& options) {
  Workers workers =
      Workers::of_threads(options.threads > 0 ? options.threads : usable_processors());
  using Clock = std::chrono::steady_clock;
  workers.meanwhile = [poll = options.poll, next = Clock::now()]() mutable {
    if (Clock::now() < next) return;
    next = Clock::now() + std::chrono::milliseconds(100);
    call_out(poll);
  };
  return workers;
}

void tell_progress(const Options& options, std::size_t done, std::size_t of) {
  call_out(options.progress, done, of);
}

}  // namespace interlock::v0
