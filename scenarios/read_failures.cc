// Reads what fails, and when: lives, replacement, a trace.
// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "base/file.h"
#include "base/text.h"
#include "scenarios/contract.h"
#include "scenarios/loader.h"
#include "scenarios/run_conditions.h"

namespace interlock {
namespace {

constexpr double kLeastShape = 0.1, kMostShape = 100;
constexpr std::size_t kLargestTrace = std::size_t{64} << 20;

/// A mean life, which cannot be zero.
std::optional<Seconds> life_at(Section& section, std::string_view key) {
  const std::optional<JsonNode> node = section.get(key);
  return node ? read_duration(*node, section.diagnostics()) : std::nullopt;
}

void read_shape(Section& section, FailureConditions& failures) {
  Diagnostics& diagnostics = section.diagnostics();
  const bool weibull = section.choice("distribution", 0) == 1;
  const std::optional<JsonNode> shape = section.get("shape");
  if (shape) {
    failures.shape = read_number(*shape, kLeastShape, kMostShape, diagnostics).value_or(1);
  }
  if (shape && !weibull) {
    report(diagnostics, *shape,
           "exponential lives have no shape; expected \"distribution\": \"weibull\" beside it");
  } else if (weibull && !shape) {
    report(diagnostics, *section.get("distribution"),
           "missing key \"shape\"; expected a number such as 0.7");
  }
}

void read_replacement(Section& section, FailureConditions& failures) {
  const std::optional<JsonNode> node = section.get("replacement");
  if (!node) return;
  const bool text = node->value->kind == JsonValue::Kind::String;
  if (text && !parse_quantity(node->value->text)) {
    section.choice("replacement", 0);
    failures.replacement.reset();
  } else {
    failures.replacement = read_seconds(*node, section.diagnostics());
  }
}

}  // namespace

FailureConditions read_failures(std::string_view path, const JsonNode& node,
                                Diagnostics& diagnostics) {
  FailureConditions failures;
  Section section(path, node, diagnostics);
  failures.device = life_at(section, "device_mtbf");
  if (path == "run.failures") {  // a swarm's peers are nodes with a link each
    failures.link = life_at(section, "link_mtbf");
    failures.node = life_at(section, "node_mtbf");
  }
  read_shape(section, failures);
  read_replacement(section, failures);
  if (const auto trace = section.get("trace")) {
    if (const auto name = read_text(*trace, diagnostics)) {
      try {
        const std::string file = resolved_path(*trace->value);
        failures.trace = parse_outage_trace(read_file(file, kLargestTrace), file);
      } catch (const Error& error) {
        report(diagnostics, *trace, error.what());
      }
    }
  }
  section.finish();
  return failures;
}

}  // namespace interlock
