// Reads training.schedule: the order of work, and its policies, with the strategy's defaults.
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <filesystem>
#include <limits>
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

bool is_global(const Strategy& strategy) { return strategy.kind == StrategyKind::Global; }

/// Returns whether `entry` can train by `strategy`. The list form is defined for a loss that
/// reaches N stages, so it has no chunks, modules of several stages or overlapping blocks; PPLL's
/// queues carry activations only.
bool fits(const ScheduleEntry& entry, const Strategy& strategy) {
  const StrategyKind kind = strategy.kind;
  if (kind == StrategyKind::Inference) return entry.infers;
  switch (entry.trains) {
    case Trains::Global:
      return is_global(strategy);
    case Trains::Partial:
      return !is_global(strategy);
    case Trains::NWise:
      return kind == StrategyKind::Local ||
             (kind == StrategyKind::Interlocking && strategy.module_stages == 1);
    case Trains::Local:
      return kind == StrategyKind::Local || kind == StrategyKind::Greedy ||
             kind == StrategyKind::Tree || kind == StrategyKind::ForwardForward;
    case Trains::Any:
      // Its search is for chains.
      return kind != StrategyKind::Tree && kind != StrategyKind::Independent;
  }
  return false;
}

std::vector<std::string> fitting_names(const Strategy& strategy) {
  std::vector<std::string> names;
  for (const ScheduleEntry& entry : schedule_catalogue()) {
    if (fits(entry, strategy)) names.push_back(entry.name);
  }
  return names;
}

const ScheduleEntry& default_kind(const TrainingKeys& training) {
  if (writes_order(training)) return schedule_named("file");
  const Strategy& strategy = training.strategy.strategy;
  if (strategy.kind == StrategyKind::Inference) return schedule_named("gpipe");
  if (!is_global(strategy)) return schedule_named("eager");
  const bool alike = training.asked.replica_batches.kind == ReplicaBatches::Kind::Equal;
  return schedule_named(alike && training.asked.micro_batches == 1 ? "naive" : "1f1b");
}

/// Returns the schedule named at `node`, or null and a diagnostic that lists those which fit the
/// strategy.
const ScheduleEntry* read_kind(const JsonNode& node, const Strategy& strategy,
                               Diagnostics& diagnostics) {
  const std::optional<std::string> name = read_text(node, diagnostics);
  if (!name) return nullptr;
  if (const ScheduleEntry* const entry = find_schedule(*name)) {
    if (fits(*entry, strategy)) return entry;
    report(diagnostics, node,
           in_quotes(*name) + " is no schedule for " + name_of(strategy) + " training; expected " +
               join_choices(fitting_names(strategy)));
    return nullptr;
  }
  const std::vector<std::string> names = fitting_names(strategy);
  const std::optional<std::string> meant = nearest(*name, names);
  report(diagnostics, node,
         "unknown schedule " + in_quotes(*name) + "; " +
             (meant ? "did you mean " + in_quotes(*meant) + "?"
                    : "known for " + name_of(strategy) + " training: " + join_choices(names)));
  return nullptr;
}

QueuePolicy read_queue(const JsonNode& node, Diagnostics& diagnostics) {
  QueuePolicy queue;
  if (node.value->kind == JsonValue::Kind::String) {
    const auto choice = read_choice(node, contract_names(kSchedulePath, "queue"), diagnostics);
    queue.kind = choice == 0 ? QueuePolicy::Kind::Rendezvous : QueuePolicy::Kind::Unlimited;
  } else if (node.value->kind == JsonValue::Kind::Object) {
    Section section(contract_object("training.schedule.queue"), node, diagnostics);
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
  const ScheduleEntry& entry = *policy.kind;
  const auto refuse = [&](const std::string& message) {
    report(section.diagnostics(), node, message);
  };
  if (entry.order == OrderSource::Search || entry.replays) {
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

/// Reads the members that mean the same under every schedule.
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
  policy.round = section.written_count("round").value_or(0);
  policy.folds = section.count("folds");
  section.boolean("transfer_weights");  // of the model, see parted_attention()
  policy.overlap = section.number("overlap");
  policy.recomputes_early = section.boolean("early_recompute");
  if (policy.recomputes_early && policy.overlap > 0) {
    report(section.diagnostics(), *section.get("early_recompute"),
           "pairs of ops compute again as they begin; expected no \"overlap\" beside it");
  }
  if (const auto deferred = section.get("deferred_readout")) {
    const bool all = deferred->value->kind == JsonValue::Kind::String;
    if (all) section.choice("deferred_readout", 0);
    policy.deferred_readout = all ? std::numeric_limits<int>::max()
                                  : section.written_count("deferred_readout").value_or(0);
  }
  policy.vocabulary = static_cast<VocabularySplit>(section.choice("vocabulary"));
  policy.messages = {.lines = static_cast<MessageOrder::Lines>(section.choice("message_order")),
                     .batched = section.boolean("batched_messages"),
                     .late = section.choice("receives") == 1};
  if (const auto memory = section.get("memory")) {
    policy.memory = read_bytes(*memory, section.diagnostics()).value_or(Bytes(0));
  }
  policy.evaluations = section.written_count("evaluations");
  const bool trades = section.boolean("context_exchange");
  policy.trades_context = policy.kind->even_slices && trades;
  for (const char* elsewhere : {"slices", "equal_in", "file", "order"}) section.get(elsewhere);
  read_execution(section, policy);
}

SchedulePolicy default_policy(const ScheduleEntry& entry, const TrainingKeys& training) {
  SchedulePolicy policy{.kind = &entry,
                        .split_backward = entry.split_backward,
                        .waits_for_sends = training.asked.framework.waits_for_sends,
                        .update_every = entry.updates_each ? 1 : training.asked.micro_batches,
                        .stash = entry.stash,
                        .replays = entry.replays,
                        .chunks = entry.chunks,
                        .trades_context = entry.even_slices};
  if (!is_global(training.strategy.strategy)) {
    policy.queue = {QueuePolicy::Kind::Buffered, entry.queue};
  }
  return policy;
}

void check_backward(const JsonNode& node, const SchedulePolicy& policy, Diagnostics& diagnostics) {
  const ScheduleEntry& entry = *policy.kind;
  if (entry.order == OrderSource::Search) {
    report(diagnostics, node, "\"auto\" tries fused and split backwards; expected no \"backward\"");
  } else if (!entry.other_backward.empty() && policy.split_backward != entry.split_backward) {
    const char* const words[] = {"fused", "split"};
    report(diagnostics, node,
           entry.name + " with a " + words[policy.split_backward] + " backward is " +
               in_quotes(entry.other_backward) + "; expected " + words[entry.split_backward]);
  } else if (entry.order == OrderSource::File) {
    report(diagnostics, node, "the file says which backwards are split; expected no \"backward\"");
  } else if (entry.sends_lists && policy.split_backward) {
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

/// Checks the replays of a schedule: a stage that never waits for an input keeps the last ones, and
/// waits for nothing else.
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

/// Reports keys of an order that is searched for, unless that of `entry` is.
void refuse_search_keys(Section& section, const ScheduleEntry& entry) {
  for (const char* key : {"memory", "evaluations"}) {
    if (const auto node = section.get(key); node && entry.order != OrderSource::Search) {
      report(section.diagnostics(), *node,
             in_quotes(entry.name) + " searches for nothing; expected it with \"auto\"");
    }
  }
}

/// Reports weight gradients of the readout that are put off where no backward makes them, or where
/// no step ends.
void check_deferral(Section& section, const SchedulePolicy& policy, bool global) {
  const auto node = section.get("deferred_readout");
  if (!node) return;
  const std::string problem =
      global ? deferral_problem(policy)
             : "every stage has a readout; expected it with the strategy \"global\"";
  if (problem.empty()) return;
  report(section.diagnostics(), *node, problem);
}

/// Reports a vocabulary that this schedule cannot divide among ranks.
void check_vocabulary(Section& section, const SchedulePolicy& policy, bool global) {
  const auto node = section.get("vocabulary");
  if (!node || policy.vocabulary == VocabularySplit::Whole) return;
  const std::string problem =
      global ? vocabulary_problem(policy)
             : "every stage has a readout; expected it with the strategy \"global\"";
  if (!problem.empty()) report(section.diagnostics(), *node, problem);
}

/// Reports messages that cannot stand in lines, and keys of lines where there are none.
void check_messages(Section& section, const SchedulePolicy& policy, bool global) {
  const MessageOrder& messages = policy.messages;
  const auto report_at = [&](const char* key, const std::string& problem) {
    if (!problem.empty()) report(section.diagnostics(), *section.get(key), problem);
  };
  if (messages.lines == MessageOrder::Lines::Free) {
    const char* const free =
        "messages are free to leave; expected \"message_order\" \"rank\" or \"pair\" beside it";
    if (messages.batched) report_at("batched_messages", free);
    if (messages.late) report_at("receives", free);
    return;
  }
  report_at("message_order", global ? message_problem(policy)
                                    : "messages of this strategy stand in no line; expected it "
                                      "with the strategy \"global\"");
  report_at("receives", late_problem(policy));
}

/// Reports keys that only other schedules have a use for.
void check_traits(Section& section, const SchedulePolicy& policy) {
  const ScheduleEntry& entry = *policy.kind;
  if (const auto node = section.get("chunks"); node && entry.layout == StageLayout::Any) {
    report(section.diagnostics(), *node,
           in_quotes(entry.name) +
               " runs stages wherever they lie; expected their number in parallel.stages");
  }
  if (const auto node = section.get("chunks");
      node && policy.chunks != 1 &&
      (entry.layout == StageLayout::OneEach || entry.layout >= StageLayout::Ring)) {
    report(section.diagnostics(), *node,
           in_quotes(entry.name) +
               (entry.layout == StageLayout::Helix ? " cuts the model around attention"
                                                   : " gives each rank one stage") +
               "; expected no \"chunks\"");
  }
  if (const auto node = section.get("round"); node && !entry.rounds) {
    report(section.diagnostics(), *node,
           in_quotes(entry.name) +
               " has no rounds; expected it with \"interleaved\" or \"interleaved-zb\"");
  }
  for (const char* const key : {"folds", "transfer_weights"}) {
    const auto node = section.get(key);
    if (!node || entry.layout == StageLayout::Helix) continue;
    report(section.diagnostics(), *node,
           in_quotes(entry.name) + " leaves layers whole; expected it with \"helixpipe\"");
  }
  if (entry.replays) check_replays(section, policy);
  check_even_slices(section, policy);
  if (const auto node = section.get("overlap"); node && !entry.overlaps) {
    report(section.diagnostics(), *node,
           in_quotes(entry.name) + " overlaps no ops; expected it with a schedule that does");
  }
  refuse_search_keys(section, entry);
  if (const auto node = section.get("slices"); node && !entry.slices) {
    report(
        section.diagnostics(), *node,
        in_quotes(entry.name) +
            " leaves sequences whole; expected it with \"terapipe\", \"seq1f1b\" or \"slimpipe\"");
  }
  if (const auto node = section.get("equal_in"); node) {
    const auto slices = section.get("slices");
    if (!slices || slices->value->kind != JsonValue::Kind::Number) {
      report(section.diagnostics(), *node,
             "says what equal slices have in common; expected it beside a number of \"slices\"");
    }
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
  const std::string name = policy.kind->name;
  const bool global = is_global(training.strategy.strategy);
  const bool searches = policy.kind->order == OrderSource::Search;
  const bool has_limit = policy.kind->limits_in_flight && !global;
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
  check_deferral(section, policy, global);
  check_vocabulary(section, policy, global);
  check_messages(section, policy, global);
  const auto node = section.get("update_every");
  if (!node || !training.batch_valid) return;
  const int batch = training.asked.micro_batches, every = policy.update_every;
  const bool flushes = policy.kind->flushes || (searches && global);
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
  const ScheduleEntry& otherwise = default_kind(training);
  if (!training.schedule) return default_policy(otherwise, training);
  if (is_text(*training.schedule)) {
    const auto* const kind = read_kind(*training.schedule, strategy, diagnostics);
    return default_policy(kind ? *kind : otherwise, training);
  }
  Section section(contract_object(kSchedulePath), *training.schedule, diagnostics);
  const auto written = section.get("kind");
  const auto* const kind = written ? read_kind(*written, strategy, diagnostics) : &otherwise;
  SchedulePolicy policy = default_policy(kind ? *kind : otherwise, training);
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
  if (policy.kind->order == OrderSource::File || writes_order(training)) {
    read_written_order(training, policy, diagnostics);
  }
  if (policy.stash != StashMode::Kept && training.asked.recompute != Recompute::None) {
    report(diagnostics, training.node.child("recompute"),
           in_quotes(policy.kind->name) + " says itself what a forward keeps; expected \"none\"");
  }
  if (training.asked.balances_batch && (!policy.kind->slices || policy.kind->even_slices)) {
    report(diagnostics, training.node.child("micro_batch_size"),
           "a batch is balanced together with the slices of its sequences; expected a number of "
           "samples, or the schedule \"terapipe\" or \"seq1f1b\"");
  }
  return policy;
}

void check_schedule_keys(const JsonNode& schedule, Diagnostics& diagnostics) {
  if (is_text(schedule)) {
    read_choice(schedule, contract_names(kSchedulePath, "kind"), diagnostics);
    return;
  }
  Section section(contract_object(kSchedulePath), schedule, diagnostics);
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

namespace {

/// Returns the member `key` of training.schedule; nothing if there is none.
std::optional<JsonNode> schedule_member(const TrainingKeys& training, const char* key) {
  const auto& schedule = training.schedule;
  const bool object = schedule && schedule->value->kind == JsonValue::Kind::Object;
  if (!object || schedule->value->find(key) == nullptr) return std::nullopt;
  return schedule->child(key);
}

/// An order as text, and its name in messages.
struct OrderText {
  std::string text, name;
};

/// Returns the text at `node`: of a file, or rows one below the other.
std::optional<OrderText> order_text(const JsonNode& node, Diagnostics& diagnostics) {
  if (node.value->kind == JsonValue::Kind::Array) {
    OrderText order{.name = "order"};
    for (std::size_t i = 0; i < node.value->items.size(); ++i) {
      const auto row = read_text(node.item(i), diagnostics);
      if (!row) return std::nullopt;
      order.text += *row + "\n";
    }
    return order;
  }
  if (!read_text(node, diagnostics)) return std::nullopt;
  const std::string path = resolved_path(*node.value);
  refuse_pipe(path);
  return OrderText{read_file(path, kLargestFile), path};
}

/// Reports why the order at `node` cannot be taken. Returns whether it can.
bool takes_order(const TrainingKeys& training, const SchedulePolicy& policy, const JsonNode& node,
                 Diagnostics& diagnostics) {
  if (policy.kind->order != OrderSource::File) {
    report(diagnostics, node,
           in_quotes(policy.kind->name) + " has an order of its own; expected no " +
               in_quotes(node.path.substr(node.path.rfind('/') + 1)) + ", or the kind \"file\"");
    return false;
  }
  if (training.strategy.strategy.kind == StrategyKind::Global) return true;
  report(diagnostics, node,
         "the text form has one loss only; expected the strategy \"global\", got " +
             name_of(training.strategy.strategy));
  return false;
}

}  // namespace

bool writes_order(const TrainingKeys& training) {
  return schedule_member(training, "file") || schedule_member(training, "order");
}

void read_written_order(const TrainingKeys& training, SchedulePolicy& policy,
                        Diagnostics& diagnostics) {
  const auto file = schedule_member(training, "file"), rows = schedule_member(training, "order");
  if (!file && !rows) {
    report(diagnostics, *training.schedule,
           "\"file\" names no file; expected {\"file\": \"order.csv\"}");
    return;
  }
  if (file && rows) report(diagnostics, *rows, "a second order; expected \"file\" or \"order\"");
  const JsonNode node = file ? *file : *rows;
  if (!takes_order(training, policy, node, diagnostics)) return;
  try {
    const std::optional<OrderText> written = order_text(node, diagnostics);
    if (!written) return;
    StepOrder order = parse_schedule_text(written->text, written->name);
    if (training.batch_valid && order.micro_batches != training.asked.micro_batches) {
      report(diagnostics, node,
             written->name + ":1: a step of " + std::to_string(order.micro_batches) +
                 " micro-batches; expected the " + std::to_string(training.asked.micro_batches) +
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
