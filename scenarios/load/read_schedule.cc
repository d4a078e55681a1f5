// Reads training.schedule: the order of work, and its policies, with the strategy's defaults.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>

#include "base/file.h"
#include "base/text.h"
#include "scenarios/contract/contract.h"
#include "scenarios/load/loader.h"
#include "sim/plan/orders/schedule_text.h"

namespace interlock {
namespace {

constexpr const char* kSchedulePath = "training.schedule";
constexpr std::size_t kMostNamesTold = 8;

bool is_global(const Strategy& strategy) { return strategy.kind == StrategyKind::Global; }

/// Whether `entry` can train by `strategy`. The list form is defined for a loss that reaches N
/// stages, so it has no chunks and no overlapping blocks; PPLL's queues carry activations only.
bool fits(const ScheduleEntry& entry, const Strategy& strategy) {
  if (strategy.kind == StrategyKind::Inference) return entry.kind == ScheduleKind::GPipe;
  const bool n_wise =
      strategy.kind == StrategyKind::Local || strategy.kind == StrategyKind::Interlocking;
  if (entry.any_strategy) return strategy.kind != StrategyKind::Tree;  // its search is for chains
  const bool sends_no_gradients =
      strategy.kind == StrategyKind::Local || strategy.kind == StrategyKind::Greedy ||
      strategy.kind == StrategyKind::Tree || strategy.kind == StrategyKind::ForwardForward;
  if (entry.local) return sends_no_gradients;
  return entry.global == is_global(strategy) && (entry.kind != ScheduleKind::List || n_wise);
}

std::vector<std::string> fitting_names(const Strategy& strategy) {
  std::vector<std::string> names;
  for (const ScheduleEntry& entry : schedule_catalogue()) {
    if (fits(entry, strategy)) names.push_back(entry.name);
  }
  return names;
}

/// `names` where a sentence can hold them, else where to find them.
std::string choices_of(const std::vector<std::string>& names) {
  return names.size() <= kMostNamesTold ? join_choices(names)
                                        : "one of \"interlock list schedules\"";
}

ScheduleKind default_kind(const TrainingKeys& training) {
  if (names_order_file(training)) return ScheduleKind::File;
  const Strategy& strategy = training.strategy.strategy;
  if (strategy.kind == StrategyKind::Inference) return ScheduleKind::GPipe;
  if (!is_global(strategy)) return ScheduleKind::Eager;
  return training.micro_batches == 1 ? ScheduleKind::Naive : ScheduleKind::OneFOneB;
}

/// The schedule named at `node`, or a diagnostic that lists those which fit the strategy.
std::optional<ScheduleKind> read_kind(const JsonNode& node, const Strategy& strategy,
                                      Diagnostics& diagnostics) {
  const std::optional<std::string> name = read_text(node, diagnostics);
  if (!name) return std::nullopt;
  for (const ScheduleEntry& entry : schedule_catalogue()) {
    if (entry.name != *name) continue;
    if (fits(entry, strategy)) return entry.kind;
    report(diagnostics, node,
           in_quotes(*name) + " is no schedule for " + name_of(strategy) + " training; expected " +
               choices_of(fitting_names(strategy)));
    return std::nullopt;
  }
  const std::vector<std::string> names = fitting_names(strategy);
  const std::optional<std::string> meant = nearest(*name, names);
  report(diagnostics, node,
         "unknown schedule " + in_quotes(*name) + "; " +
             (meant ? "did you mean \"" + *meant + "\"? " : "") + "known for " + name_of(strategy) +
             " training: " + choices_of(names));
  return std::nullopt;
}

QueuePolicy read_queue(const JsonNode& node, Diagnostics& diagnostics) {
  QueuePolicy queue;
  if (node.value->kind == JsonValue::Kind::String) {
    const auto choice = read_choice(node, contract_names(kSchedulePath, "queue"), diagnostics);
    queue.kind = choice == 0 ? QueuePolicy::Kind::Rendezvous : QueuePolicy::Kind::Unlimited;
  } else if (node.value->kind == JsonValue::Kind::Object) {
    Section section("training.schedule.queue", node, diagnostics);
    section.require("buffered", "how many messages may wait, {\"buffered\": 1}");
    queue = {QueuePolicy::Kind::Buffered, section.count("buffered", 1)};
    section.finish();
  } else {
    report(diagnostics, node, "expected \"rendezvous\", \"unlimited\" or {\"buffered\": 1}");
  }
  return queue;
}

/// Reads "execution" into a policy that is complete but for it.
void read_execution(Section& section, SchedulePolicy& policy) {
  policy.bulk_synchronous = section.choice("execution") == 1;
  if (!policy.bulk_synchronous) return;
  const JsonNode node = *section.get("execution");
  const ScheduleEntry& entry = schedule_entry(policy.kind);
  const auto refuse = [&](const std::string& message) {
    report(section.diagnostics(), node, message);
  };
  if (policy.kind == ScheduleKind::Auto || entry.replays) {
    refuse("phases are rows of a written order, and " + in_quotes(entry.name) +
           " has none; expected \"futures\"");
  }
  if (policy.queue.kind == QueuePolicy::Kind::Rendezvous || policy.copies_on_compute_stream) {
    refuse(
        "a phase takes its messages behind its ops; expected queues with room and overlapped "
        "copies, or \"futures\"");
  }
  if (policy.barrier) {
    refuse(
        "phases end in barriers of their own; expected \"optimizer_sync\": \"per_stage\", or "
        "\"futures\"");
  }
  if (policy.in_flight > 1 || policy.overlap > 0) {
    refuse(
        "a rank has one op in a phase; expected \"in_flight\" 1 and no \"overlap\", or "
        "\"futures\"");
  }
}

/// The members that mean the same under every schedule.
void read_members(Section& section, SchedulePolicy& policy) {
  if (section.get("backward")) policy.split_backward = section.choice("backward", 0) == 1;
  if (const auto queue = section.get("queue")) {
    policy.queue = read_queue(*queue, section.diagnostics());
  }
  policy.copies_on_compute_stream = section.choice("copies") == 1;
  policy.in_flight = section.count("in_flight");
  policy.update_every = section.count("update_every", policy.update_every);
  policy.barrier = section.choice("optimizer_sync") == 1;
  policy.chunks = section.count("chunks", policy.chunks);
  policy.overlap = section.number("overlap");
  if (const auto memory = section.get("memory")) {
    policy.memory = read_bytes(*memory, section.diagnostics()).value_or(Bytes(0));
  }
  policy.evaluations = section.written_count("evaluations");
  for (const char* elsewhere : {"slices", "file"}) section.get(elsewhere);
  read_execution(section, policy);
}

SchedulePolicy default_policy(ScheduleKind kind, const TrainingKeys& training) {
  const ScheduleEntry& entry = schedule_entry(kind);
  SchedulePolicy policy{.kind = kind,
                        .split_backward = entry.split_backward,
                        .waits_for_sends = training.framework.waits_for_sends,
                        .update_every = entry.updates_each ? 1 : training.micro_batches,
                        .stash = entry.stash,
                        .replays = entry.replays,
                        .chunks = entry.chunks};
  if (!is_global(training.strategy.strategy)) {
    policy.queue = {QueuePolicy::Kind::Buffered, entry.queue};
  }
  return policy;
}

void check_backward(const JsonNode& node, const SchedulePolicy& policy, Diagnostics& diagnostics) {
  const ScheduleEntry& entry = schedule_entry(policy.kind);
  if (policy.kind == ScheduleKind::Auto) {
    report(diagnostics, node, "\"auto\" tries fused and split backwards; expected no \"backward\"");
  } else if (policy.kind == ScheduleKind::Naive && policy.split_backward) {
    report(diagnostics, node, "naive with a split backward is \"naive-split\"; expected fused");
  } else if (policy.kind == ScheduleKind::NaiveSplit && !policy.split_backward) {
    report(diagnostics, node, "naive-split with a fused backward is \"naive\"; expected split");
  } else if (policy.kind == ScheduleKind::File) {
    report(diagnostics, node, "the file says which backwards are split; expected no \"backward\"");
  } else if (policy.kind == ScheduleKind::List && policy.split_backward) {
    report(diagnostics, node, "the list form sends after its whole backward; expected fused");
  } else if (entry.overlaps) {
    report(diagnostics, node,
           in_quotes(entry.name) +
               " splits backwards where that fills bubbles; expected no \"backward\"");
  } else if (entry.split_backward && entry.flushes && !policy.split_backward) {
    report(diagnostics, node,
           in_quotes(entry.name) +
               " makes weight gradients apart from input gradients; expected split");
  }
}

/// A stage that never waits for an input keeps the last ones, and waits for nothing else.
void check_replays(Section& section, const SchedulePolicy& policy) {
  if (const auto node = section.get("queue");
      node && policy.queue.kind != QueuePolicy::Kind::Buffered) {
    report(section.diagnostics(), *node,
           "\"dgl\" learns from a buffer of inputs; expected its length, {\"buffered\": 4}");
  }
  if (const auto node = section.get("copies"); node && policy.copies_on_compute_stream) {
    report(section.diagnostics(), *node,
           "\"dgl\" computes while messages travel; expected \"overlapped\"");
  }
  if (const auto node = section.get("optimizer_sync"); node && policy.barrier) {
    report(section.diagnostics(), *node,
           "\"dgl\" lets no stage wait for another; expected \"per_stage\"");
  }
}

/// Keys that only some schedules have a use for.
void check_traits(Section& section, const SchedulePolicy& policy) {
  const ScheduleEntry& entry = schedule_entry(policy.kind);
  if (const auto node = section.get("chunks"); node && entry.layout == StageLayout::Any) {
    report(section.diagnostics(), *node,
           in_quotes(entry.name) +
               " runs stages wherever they lie; expected their number in parallel.stages");
  }
  if (const auto node = section.get("chunks");
      node && entry.layout == StageLayout::OneEach && policy.chunks != 1) {
    report(section.diagnostics(), *node,
           in_quotes(entry.name) + " gives each rank one stage; expected no \"chunks\"");
  }
  if (entry.replays) check_replays(section, policy);
  if (const auto node = section.get("overlap"); node && !entry.overlaps) {
    report(section.diagnostics(), *node,
           in_quotes(entry.name) + " overlaps no ops; expected it with a schedule that does");
  }
  for (const char* key : {"memory", "evaluations"}) {
    if (const auto node = section.get(key); node && entry.kind != ScheduleKind::Auto) {
      report(section.diagnostics(), *node,
             in_quotes(entry.name) + " searches for nothing; expected it with \"auto\"");
    }
  }
  if (const auto node = section.get("slices"); node && !entry.slices) {
    report(section.diagnostics(), *node,
           in_quotes(entry.name) + " leaves sequences whole; expected it with \"terapipe\"");
  }
  if (const auto node = section.get("queue");
      node && entry.slices && policy.queue.kind == QueuePolicy::Kind::Buffered) {
    report(section.diagnostics(), *node,
           in_quotes(entry.name) +
               " has a way of its own for each slice; expected \"unlimited\" or \"rendezvous\"");
  }
}

void check_policy(Section& section, const SchedulePolicy& policy, const TrainingKeys& training) {
  Diagnostics& diagnostics = section.diagnostics();
  const std::string name = schedule_entry(policy.kind).name;
  const bool global = is_global(training.strategy.strategy);
  const bool searches = policy.kind == ScheduleKind::Auto;
  const bool has_limit = policy.kind == ScheduleKind::Eager || (searches && !global);
  if (const auto node = section.get("backward")) check_backward(*node, policy, diagnostics);
  if (const auto node = section.get("in_flight"); node && policy.in_flight > 1 && !has_limit) {
    report(diagnostics, *node,
           "only \"eager\" and \"auto\" have a limit to set; expected 1 with \"" + name +
               "\", got " + std::to_string(policy.in_flight));
  }
  if (const auto node = section.get("copies");
      node && policy.copies_on_compute_stream && policy.in_flight > 1) {
    report(
        diagnostics, *node,
        "copies on the compute stream leave one thing to do at a time; expected \"in_flight\" 1, "
        "got " +
            std::to_string(policy.in_flight));
  }
  check_traits(section, policy);
  const auto node = section.get("update_every");
  if (!node || !training.batch_valid) return;
  const int batch = training.micro_batches, every = policy.update_every;
  const bool flushes = schedule_entry(policy.kind).flushes || (searches && global);
  if (flushes && every != batch) {
    report(diagnostics, *node,
           "\"" + name + "\" updates once for each step; expected its " + std::to_string(batch) +
               " micro-batches, got " + std::to_string(every));
  } else if (batch % every) {
    report(diagnostics, *node,
           "a step is no whole number of updates; expected a divisor of its " +
               std::to_string(batch) + " micro-batches, got " + std::to_string(every));
  }
}

bool is_text(const JsonNode& node) { return node.value->kind == JsonValue::Kind::String; }

SchedulePolicy read_policy(const TrainingKeys& training, Diagnostics& diagnostics) {
  const Strategy& strategy = training.strategy.strategy;
  const ScheduleKind otherwise = default_kind(training);
  if (!training.schedule) return default_policy(otherwise, training);
  if (is_text(*training.schedule)) {
    const auto kind = read_kind(*training.schedule, strategy, diagnostics);
    return default_policy(kind.value_or(otherwise), training);
  }
  Section section(kSchedulePath, *training.schedule, diagnostics);
  const auto written = section.get("kind");
  const auto kind = written ? read_kind(*written, strategy, diagnostics) : otherwise;
  SchedulePolicy policy = default_policy(kind.value_or(otherwise), training);
  const Mistakes mistakes(diagnostics);
  read_members(section, policy);
  const bool certain = kind && (written || training.batch_valid);
  if (certain && mistakes.none()) check_policy(section, policy, training);
  section.finish();
  return policy;
}

}  // namespace

SchedulePolicy read_schedule(const TrainingKeys& training, Diagnostics& diagnostics) {
  SchedulePolicy policy = read_policy(training, diagnostics);
  if (policy.kind == ScheduleKind::File || names_order_file(training)) {
    read_order_file(training, policy, diagnostics);
  }
  if (policy.stash != StashMode::Kept && training.recompute != Recompute::None) {
    report(diagnostics, training.node.child("recompute"),
           in_quotes(schedule_entry(policy.kind).name) +
               " says itself what a forward keeps; expected \"none\"");
  }
  if (training.balances_batch && !schedule_entry(policy.kind).slices) {
    report(diagnostics, training.node.child("micro_batch_size"),
           "a batch is balanced together with the slices of its sequences; expected a number of "
           "samples, or the schedule \"terapipe\"");
  }
  return policy;
}

void check_schedule_keys(const JsonNode& schedule, Diagnostics& diagnostics) {
  if (is_text(schedule)) {
    read_choice(schedule, contract_names(kSchedulePath, "kind"), diagnostics);
    return;
  }
  Section section(kSchedulePath, schedule, diagnostics);
  SchedulePolicy policy;
  section.choice("kind", 0);
  read_members(section, policy);
  section.finish();
}

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
