// Schedules made in code: a scenario of measured stages, run in an order of its own.
// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <cmath>

#include "base/text.h"
#include "library/boundary.h"
#include "reports/report.h"
#include "reports/result/value_json.h"
#include "sim/plan/orders/schedule_text.h"

namespace interlock::v0 {
namespace {

/// Returns `amount` as scenarios write it, to the last digit: "0.001 s".
JsonValue quantity(double amount, const char* unit, const char* what) {
  if (!(amount >= 0) || !std::isfinite(amount)) {
    throw interlock::Error(std::string(what) + ": expected a number from 0 on, got " +
                           format_number(amount));
  }
  char digits[32];
  const auto [end, failed] = std::to_chars(digits, digits + sizeof digits, amount);
  CHECK(failed == std::errc{}, "room for every number");
  return json_text(std::string(digits, end) + " " + unit);
}

JsonValue module_of(const StageCost& stage) {
  return json_object(
      {{"forward", quantity(stage.forward_s, "s", "forward_s")},
       {"backward_input", quantity(stage.backward_input_s, "s", "backward_input_s")},
       {"backward_weight", quantity(stage.backward_weight_s, "s", "backward_weight_s")},
       {"update", quantity(stage.update_s, "s", "update_s")},
       {"output", quantity(stage.output_bytes, "B", "output_bytes")},
       {"stash", quantity(stage.stash_bytes, "B", "stash_bytes")},
       {"parameters", quantity(stage.weight_bytes, "B", "weight_bytes")}});
}

JsonValue model_of(const std::vector<StageCost>& stages) {
  std::vector<JsonValue> modules;
  modules.reserve(stages.size());
  for (const StageCost& stage : stages) modules.push_back(module_of(stage));
  return json_object({{"kind", json_text("profile")}, {"modules", json_list(std::move(modules))}});
}

JsonValue cluster_of(const Schedule& schedule) {
  const double bandwidth = schedule.link_bandwidth_bytes_per_s;
  return json_object(
      {{"kind", json_text("uniform")},
       {"devices", json_number(static_cast<double>(schedule.ranks.size()))},
       {"memory", quantity(schedule.memory_bytes, "B", "memory_bytes")},
       {"link",
        json_object({{"latency", quantity(schedule.link_latency_s, "s", "link_latency_s")},
                     {"bandwidth", quantity(bandwidth, "B/s", "link_bandwidth_bytes_per_s")}})}});
}

std::string word_of(const Op& op, std::size_t rank) {
  if (std::string_view("FBIW").find(op.op) != std::string_view::npos) {
    return std::to_string(op.stage) + op.op + std::to_string(op.micro_batch);
  }
  throw interlock::Error("rank " + std::to_string(rank) + ": op " +
                         in_quotes(std::string(1, op.op)) + "; expected F, B, I or W");
}

std::vector<std::string> rows_of(const Schedule& schedule) {
  std::vector<std::string> rows;
  for (const std::vector<Op>& ops : schedule.ranks) {
    std::string row;
    for (const Op& op : ops) row += (row.empty() ? "" : ",") + word_of(op, rows.size());
    rows.push_back(std::move(row));
  }
  return rows;
}

int micro_batches_of(const Schedule& schedule) {
  int most = 0;
  for (const std::vector<Op>& ops : schedule.ranks) {
    for (const Op& op : ops) most = std::max(most, op.micro_batch);
  }
  return most + 1;
}

std::string scenario_of(const Schedule& schedule) {
  const JsonValue order =
      json_object({{"kind", json_text("file")}, {"order", json_texts(rows_of(schedule))}});
  const JsonValue training =
      json_object({{"strategy", json_text("global")},
                   {"micro_batches", json_number(micro_batches_of(schedule))},
                   {"steps", json_number(schedule.steps)},
                   {"schedule", order}});
  const std::vector<JsonValue> ones(schedule.stages.size(), json_number(1));
  return json_file(json_object({{"name", json_text(schedule.name)},
                                {"model", model_of(schedule.stages)},
                                {"cluster", cluster_of(schedule)},
                                {"partition", json_list(ones)},
                                {"training", training}}));
}

/// Returns a scenario of equal stages under a schedule of the catalogue.
JsonValue scenario_of_named(const std::string& name, int ranks, int stages, int micro_batches) {
  const Schedule equal{.ranks = std::vector<std::vector<Op>>(static_cast<std::size_t>(ranks))};
  const std::vector<StageCost> costs(static_cast<std::size_t>(stages), {1e-3, 1e-3, 1e-3});
  return json_object({{"model", model_of(costs)},
                      {"cluster", cluster_of(equal)},
                      {"parallel", json_object({{"pipeline", json_number(ranks)},
                                                {"stages", json_number(stages)}})},
                      {"training", json_object({{"strategy", json_text("global")},
                                                {"micro_batches", json_number(micro_batches)},
                                                {"schedule", json_text(name)}})}});
}

/// Returns the ops of every rank of `order`, stages counted along the model.
std::vector<std::vector<Op>> ranks_of(const StepOrder& order) {
  std::vector<std::vector<Op>> ranks;
  for (const auto& ops : order.ranks) {
    ranks.emplace_back();
    for (const interlock::Op& op : ops) {
      ranks.back().push_back(
          {letter(op.kind), op.stage % (order.stages / order.copies), op.micro_batch});
    }
  }
  return ranks;
}

}  // namespace

Schedule Schedule::named(const std::string& schedule, int ranks, int stages, int micro_batches) {
  return at_boundary([&] {
    if (ranks < 1 || stages < ranks) {
      throw interlock::Error(std::to_string(ranks) + " ranks and " + std::to_string(stages) +
                             " stages; expected at least one rank, and a stage for each");
    }
    const JsonValue document = scenario_of_named(schedule, ranks, stages, micro_batches);
    const Question question = load_questions(document).front();
    const ScenarioResult planned{.plan = make_plan(question)};
    Schedule found{.name = schedule};
    found.ranks =
        ranks_of(parse_schedule_text(schedule_csv(planned, TextMessages::None), schedule));
    found.stages.resize(static_cast<std::size_t>(stages));
    return found;
  });
}

std::string Schedule::text() const {
  return at_boundary([&] {
    std::string text;
    for (const std::string& row : rows_of(*this)) text += row + "\n";
    return text;
  });
}

std::string Schedule::scenario() const {
  return at_boundary([&] { return scenario_of(*this); });
}

Result simulate(const Schedule& schedule, const Options& options) {
  Options named = options;
  if (named.file.empty()) named.file = schedule.name;
  return simulate(schedule.scenario(), named);
}

}  // namespace interlock::v0
