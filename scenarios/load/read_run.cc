// Reads "run": how long to train, what fails, and what is done about it.
// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "base/file.h"
#include "base/text.h"
#include "scenarios/contract/contract.h"
#include "scenarios/load/loader.h"
#include "scenarios/load/run_conditions.h"

namespace interlock {
namespace {

/// Reads an interval: a rule such as "optimal", a time, or a number of steps.
void read_interval(Section& section, CheckpointConditions& checkpoint) {
  using Rule = CheckpointConditions::Rule;
  const std::optional<JsonNode> node = section.get("interval");
  if (!node) return;
  Diagnostics& diagnostics = section.diagnostics();
  checkpoint.rule = Rule::Written;
  if (node->value->kind == JsonValue::Kind::Number) {
    checkpoint.steps = section.count_at("interval", *node);
  } else if (node->value->kind == JsonValue::Kind::String && parse_quantity(node->value->text)) {
    checkpoint.interval = read_seconds(*node, diagnostics);
  } else if (node->value->kind == JsonValue::Kind::String) {
    checkpoint.rule = static_cast<Rule>(section.choice("interval"));
  } else {
    report(diagnostics, *node,
           "expected \"optimal\", \"young\", \"daly\", a time such as \"30 min\" or a number of "
           "steps, got " +
               described(*node->value));
  }
}

CheckpointConditions read_checkpoint(const JsonNode& node, Diagnostics& diagnostics) {
  CheckpointConditions checkpoint;
  Section section(contract_object("run.checkpoint"), node, diagnostics);
  read_interval(section, checkpoint);
  checkpoint.write = section.written_seconds("write");
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
  checkpoint.asynchronous = section.boolean("asynchronous");
  checkpoint.stall = section.seconds("stall");
  if (section.get("stall") && !checkpoint.asynchronous) {
    report(diagnostics, *section.get("stall"),
           "a blocking checkpoint stalls for the whole write; expected \"asynchronous\": true "
           "beside it");
  }
  section.finish();
  return checkpoint;
}

/// Refuses a rule such as "optimal" for a run that lacks its input: how often a failure leads back
/// to a checkpoint.
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
  Section section(contract_object("run"), node, diagnostics);
  run.length = read_length(section);
  if (const auto checkpoint = section.get("checkpoint")) {
    run.checkpoint = read_checkpoint(*checkpoint, diagnostics);
  }
  if (const auto failures = section.get("failures")) {
    run.failures = read_failures("run.failures", *failures, diagnostics);
  }
  run.on_failure = static_cast<OnFailure>(section.choice("on_failure"));
  run.detection = section.seconds("detection");
  run.reload = section.written_seconds("reload");
  run.regroup = section.seconds("regroup");
  run.spares = section.count("spares");
  run.seeds = section.count("seeds");
  section.finish();
  if (mistakes.none()) check_rule(section, run, diagnostics);
  return run;
}

namespace {

constexpr std::size_t kLargestTrace = std::size_t{64} << 20;

void read_shape(Section& section, FailureConditions& failures) {
  Diagnostics& diagnostics = section.diagnostics();
  const bool weibull = section.choice("distribution") == 1;
  const std::optional<JsonNode> shape = section.get("shape");
  failures.shape = section.written_number("shape").value_or(1);
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
  Section section(contract_object(path), node, diagnostics);
  failures.device = section.written_duration("device_mtbf");
  if (path == "run.failures") {  // a swarm's peers are nodes with a link each
    failures.link = section.written_duration("link_mtbf");
    failures.node = section.written_duration("node_mtbf");
  }
  read_shape(section, failures);
  read_replacement(section, failures);
  if (const auto trace = section.get("trace")) {
    if (const auto name = read_text(*trace, diagnostics)) {
      try {
        const std::string file = resolved_path(*trace->value);
        refuse_pipe(file);
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
