// Reads "run": how long to train, what fails, and what is done about it.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <string>

#include "base/file.h"
#include "base/text.h"
#include "scenarios/contract/contract.h"
#include "scenarios/contract/limits.h"
#include "scenarios/load/loader.h"
#include "scenarios/load/run_conditions.h"

namespace interlock {
namespace {

constexpr int kMostSpares = 1'000'000;

std::optional<Seconds> time_at(Section& section, std::string_view key) {
  const std::optional<JsonNode> node = section.get(key);
  if (!node) return std::nullopt;
  return read_seconds(*node, section.diagnostics());
}

/// "optimal" and its like, a time, or a number of steps.
void read_interval(Section& section, CheckpointConditions& checkpoint) {
  using Rule = CheckpointConditions::Rule;
  const std::optional<JsonNode> node = section.get("interval");
  if (!node) return;
  Diagnostics& diagnostics = section.diagnostics();
  checkpoint.rule = Rule::Written;
  if (node->value->kind == JsonValue::Kind::Number) {
    checkpoint.steps = read_count(*node, 1, kMostRunSteps, diagnostics);
  } else if (node->value->kind == JsonValue::Kind::String && parse_quantity(node->value->text)) {
    checkpoint.interval = read_seconds(*node, diagnostics);
  } else if (node->value->kind == JsonValue::Kind::String) {
    checkpoint.rule = static_cast<Rule>(section.choice("interval", 0));
  } else {
    report(diagnostics, *node,
           "expected \"optimal\", \"young\", \"daly\", a time such as \"30 min\" or a number of "
           "steps, got " +
               described(*node->value));
  }
}

CheckpointConditions read_checkpoint(const JsonNode& node, Diagnostics& diagnostics) {
  CheckpointConditions checkpoint;
  Section section("run.checkpoint", node, diagnostics);
  read_interval(section, checkpoint);
  checkpoint.write = time_at(section, "write");
  if (const auto bytes = section.get("bytes")) checkpoint.bytes = read_bytes(*bytes, diagnostics);
  const auto bandwidth = section.get("bandwidth");
  if (bandwidth) {
    checkpoint.bandwidth =
        read_bytes_per_second(*bandwidth, diagnostics).value_or(BytesPerSecond(1));
  }
  if (section.get("write") && (section.get("bytes") || bandwidth)) {
    report(diagnostics, *section.get("write"),
           "given beside \"bytes\" or \"bandwidth\"; expected either the time of a write, or what "
           "it follows from");
  } else if (!section.get("write") && !bandwidth && node.value->kind == JsonValue::Kind::Object) {
    report(diagnostics, node,
           "says not how long a write takes; expected a time \"write\", or the \"bandwidth\" of a "
           "device to its storage");
  }
  checkpoint.asynchronous = section.boolean("asynchronous", false);
  checkpoint.stall = time_at(section, "stall").value_or(Seconds(0));
  if (section.get("stall") && !checkpoint.asynchronous) {
    report(diagnostics, *section.get("stall"),
           "a blocking checkpoint stalls for the whole write; expected \"asynchronous\": true "
           "beside it");
  }
  section.finish();
  return checkpoint;
}

/// "optimal" and its like follow from how often a failure leads back to a checkpoint.
void check_rule(const Section& section, const RunConditions& run, Diagnostics& diagnostics) {
  if (!run.checkpoint || run.checkpoint->rule == CheckpointConditions::Rule::Written) return;
  const JsonNode checkpoint = section.node().child("checkpoint");
  if (run.on_failure != OnFailure::Restart) {
    report(
        diagnostics, checkpoint,
        "no formula has an interval for failures that replicas survive; expected an \"interval\" "
        "such as \"30 min\", or \"on_failure\": \"restart\"");
    return;
  }
  const FailureConditions& failures = run.failures;
  if (failures.device || failures.link || failures.node || !failures.trace.empty()) return;
  report(
      diagnostics, checkpoint,
      "nothing fails, so there is no best interval; expected an \"interval\" such as \"30 min\", "
      "or \"failures\"");
}

}  // namespace

RunConditions read_run(const JsonNode& node, Diagnostics& diagnostics) {
  RunConditions run;
  const Mistakes mistakes(diagnostics);
  Section section("run", node, diagnostics);
  run.length = read_length(section);
  if (const auto checkpoint = section.get("checkpoint")) {
    run.checkpoint = read_checkpoint(*checkpoint, diagnostics);
  }
  if (const auto failures = section.get("failures")) {
    run.failures = read_failures("run.failures", *failures, diagnostics);
  }
  run.on_failure = static_cast<OnFailure>(section.choice("on_failure", 0));
  run.detection = time_at(section, "detection").value_or(Seconds(0));
  run.reload = time_at(section, "reload");
  run.regroup = time_at(section, "regroup").value_or(Seconds(0));
  run.spares = section.count("spares", 0, 0, kMostSpares);
  run.seeds = section.count("seeds", 20, 1, kMostSeeds);
  section.finish();
  if (mistakes.none()) check_rule(section, run, diagnostics);
  return run;
}

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
