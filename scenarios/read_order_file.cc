// Reads training.schedule.file: the order of a step as a text, which lays out ranks and stages too.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/file.h"
#include "base/text.h"
#include "scenarios/loader.h"
#include "sim/plan/schedule_text.h"

namespace interlock {
namespace {

constexpr std::size_t kLargestFile = std::size_t{64} << 20;

}  // namespace

std::string resolved_path(const JsonValue& value) {
  if (value.line == 0 || !value.file) return value.text;
  return (std::filesystem::path(*value.file).parent_path() / value.text).string();
}

bool names_order_file(const TrainingKeys& training) {
  return training.schedule && training.schedule->value->kind == JsonValue::Kind::Object &&
         training.schedule->value->find("file") != nullptr;
}

void read_order_file(const TrainingKeys& training, SchedulePolicy& policy,
                     Diagnostics& diagnostics) {
  if (!names_order_file(training)) {
    report(diagnostics, *training.schedule,
           "\"file\" names no file; expected {\"file\": \"order.csv\"}");
    return;
  }
  const JsonNode node = training.schedule->child("file");
  if (policy.kind != ScheduleKind::File) {
    report(diagnostics, node,
           in_quotes(schedule_entry(policy.kind).name) +
               " has an order of its own; expected no \"file\", or the kind \"file\"");
    return;
  }
  if (training.strategy.strategy.kind != StrategyKind::Global) {
    report(diagnostics, node,
           "the text form has one loss only; expected the strategy \"global\", got " +
               name_of(training.strategy.strategy));
    return;
  }
  const auto written = read_text(node, diagnostics);
  if (!written) return;
  const std::string path = resolved_path(*node.value);
  try {
    StepOrder order = parse_schedule_text(read_file(path, kLargestFile), path);
    if (training.batch_valid && order.micro_batches != training.micro_batches) {
      report(diagnostics, node,
             path + ":1: a step of " + std::to_string(order.micro_batches) +
                 " micro-batches; expected the " + std::to_string(training.micro_batches) +
                 " of training, or training.micro_batches " + std::to_string(order.micro_batches));
    }
    policy.placement = order.rank_of_stage;
    policy.copies = order.copies;
    policy.order = std::make_shared<const std::vector<std::vector<Op>>>(std::move(order.ranks));
  } catch (const Error& error) {
    report(diagnostics, node, error.what());
  }
}

}  // namespace interlock
