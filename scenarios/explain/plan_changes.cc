// Another plan on the same machine: micro-batches, order, partition, what is kept and where.
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "scenarios/explain/change.h"
#include "sim/plan/schedules/message_bytes.h"
#include "sim/plan/stage_cost.h"

namespace interlock {
namespace {

using ChangeKind = Change::Kind;
using Settings = std::vector<std::string>;

std::string set(const std::string& path, double value) {
  const JsonValue number = {.kind = JsonValue::Kind::Number, .number = value};
  return path + "=" + scaled_text(&number, 1);
}

const std::string* text_at(const JsonValue& document, const char* path) {
  const JsonValue* value = value_at(document, path);
  return value && value->kind == JsonValue::Kind::String ? &value->text : nullptr;
}

void micro_batches(const Baseline& baseline, std::vector<Change>& changes) {
  const int count = baseline.result.plan.micro_batches;
  const JsonValue* size = value_at(baseline.document, "training.micro_batch_size");
  if (size != nullptr && size->kind == JsonValue::Kind::String) return;  // chosen already
  const bool batch = value_at(baseline.document, "training.global_batch_size") != nullptr;
  const char* of_all = batch ? "" : ", and so a batch";
  const auto add = [&](const std::string& words, const std::string& setting) {
    changes.push_back({batch ? ChangeKind::Plan : ChangeKind::Training, words, {setting}});
  };
  if (size != nullptr) {
    const std::string path = "training.micro_batch_size";
    if (size->number > 1) add("micro-batches half as large", set(path, size->number / 2));
    add("micro-batches twice as large", set(path, size->number * 2));
    return;
  }
  const std::string path = "training.micro_batches";
  add(std::string("twice as many micro-batches") + of_all + (batch ? "" : " twice as large"),
      set(path, 2 * count));
  if (count % 2 == 0) {
    add(std::string("half as many micro-batches") + of_all + (batch ? "" : " half as large"),
        set(path, count / 2.0));
  }
}

/// Micro-batches by the speed of replicas, where machines differ.
void shares(const Baseline& baseline, std::vector<Change>& changes) {
  const Question& question = baseline.result.plan.question;
  const bool equal = question.training().replica_batches.kind == ReplicaBatches::Kind::Equal;
  if (!is_mixed(question.cluster) || question.layout.mesh.degree(Dimension::Data) == 1) return;
  if (!equal || value_at(baseline.document, "training.micro_batch_size") == nullptr) return;
  changes.push_back({ChangeKind::Plan,
                     "micro-batches by the speed of replicas",
                     {"training.replica_micro_batches=by_speed"}});
}

/// The number of stages that a loss reaches, one more and one less.
void n_wise(const Baseline& baseline, std::vector<Change>& changes) {
  const Strategy& strategy = baseline.result.plan.question.training().strategy;
  const bool local = strategy.kind == StrategyKind::Local;
  if (!local && strategy.kind != StrategyKind::Interlocking) return;
  if (!strategy.n_of_losses.empty()) return;
  const int n = local ? 1 : strategy.n_wise;
  const int length = strategy.module_stages;
  const int modules = baseline.result.plan.partition.stages() / length;
  const std::string unit = length == 1 ? " stage" : " module";
  const auto add = [&](int wise) {
    if (wise < 1 || wise > modules) return;
    changes.push_back(
        {ChangeKind::Training,
         "losses that reach " + std::to_string(wise) + unit +
             (wise > 1      ? "s"
              : length == 1 ? ": local training"
                            : ""),
         {"training.strategy.kind=interlocking", set("training.strategy.n_wise", wise)}});
  };
  add(n + 1);
  add(n - 1);
}

/// Returns true if each step ends before the next begins, so that no weights are stale.
bool is_synchronous(const ScheduleEntry& entry) {
  if (entry.trains == Trains::Any) return true;
  return entry.global() ? entry.parts_steps() : !entry.replays;
}

/// Returns true if `entry` is another schedule of the strategy, with an order of its own.
bool is_other_schedule(const ScheduleEntry& entry, const Plan& plan) {
  const bool global = plan.question.training().strategy.kind == StrategyKind::Global;
  return entry.order == OrderSource::Function && &entry != plan.schedule.kind &&
         entry.global() == global;
}

/// Returns the setting of another schedule, whose messages stand in line as those of `own` do; none
/// if they cannot.
std::optional<std::string> set_schedule(const ScheduleEntry& entry, const SchedulePolicy& own) {
  const MessageOrder& messages = own.messages;
  if (messages.lines == MessageOrder::Lines::Free) return "training.schedule=" + entry.name;
  SchedulePolicy policy = own;
  policy.kind = &entry;
  if (!message_problem(policy).empty() || !late_problem(policy).empty()) return std::nullopt;
  std::string members = R"("kind": ")" + entry.name + R"(", "message_order": )";
  members += messages.lines == MessageOrder::Lines::Rank ? R"("rank")" : R"("pair")";
  if (messages.batched) members += R"(, "batched_messages": true)";
  if (messages.late) members += R"(, "receives": "late")";
  return "training.schedule={" + members + "}";
}

void schedules(const Baseline& baseline, std::vector<Change>& changes) {
  const Plan& plan = baseline.result.plan;
  const ScheduleEntry& own = *plan.schedule.kind;
  for (const ScheduleEntry& entry : schedule_catalogue()) {
    if (!is_other_schedule(entry, plan)) continue;
    const std::optional<std::string> setting = set_schedule(entry, plan.schedule);
    if (!setting) continue;
    Change change{
        is_synchronous(entry) == is_synchronous(own) ? ChangeKind::Plan : ChangeKind::Training,
        "the schedule " + entry.name,
        {*setting}};
    if (entry.layout != own.layout || entry.chunks != own.chunks) {
      lay_stages_anew(baseline, change, entry.layout == StageLayout::Helix);
    }
    changes.push_back(change);
  }
  if (own.chunks > 1 || own.even_slices) {
    changes.push_back({ChangeKind::Plan,
                       "one more stage on each rank",
                       {set("training.schedule.chunks", plan.schedule.chunks + 1)}});
  }
}

/// Has ranks trade the attention of slices, or keep their own: messages may cost more than it
/// gains.
void traded_attention(const SchedulePolicy& schedule, std::vector<Change>& changes) {
  if (!schedule.kind->even_slices) return;
  const bool trades = schedule.trades_context;
  changes.push_back(
      {ChangeKind::Plan,
       trades ? "no attention traded by ranks" : "attention traded by ranks",
       {std::string("training.schedule.context_exchange=") + (trades ? "false" : "true")}});
}

/// Divides the vocabulary, and has replicas reduce gradients behind the last backward as it must.
void divided_vocabulary(const Question& question, std::vector<Change>& changes) {
  const Training& training = question.training();
  const bool whole = training.schedule.vocabulary == VocabularySplit::Whole;
  if (!whole || training.strategy.kind != StrategyKind::Global) return;
  Layout layout = question.layout;
  Settings beside;
  if (layout.mesh.replicas() > 1 && layout.data_parallel.overlap_gradients) {
    layout.data_parallel.overlap_gradients = false;
    beside = {"parallel.overlap_gradients=false"};
  }
  if (!vocabulary_problem(training.schedule).empty() ||
      !vocabulary_problem(layout, training, training.graph).empty()) {
    return;
  }
  for (const char* const ways : {"vocab-1", "vocab-2"}) {
    Settings settings = {std::string("training.schedule.vocabulary=") + ways};
    settings.insert(settings.end(), beside.begin(), beside.end());
    changes.push_back({ChangeKind::Plan,
                       std::string("embedding and readout on all pipeline ranks, ") + ways,
                       settings});
  }
}

void queues(const Baseline& baseline, std::vector<Change>& changes) {
  const SchedulePolicy& schedule = baseline.result.plan.schedule;
  if (schedule.queue.kind == QueuePolicy::Kind::Buffered) {
    changes.push_back({ChangeKind::Plan,
                       "room for one more message between stages",
                       {"training.schedule.queue={\"buffered\": " +
                        std::to_string(schedule.queue.depth + 1) + "}"}});
  }
  if (schedule.copies_on_compute_stream) {
    changes.push_back({ChangeKind::Plan,
                       "transfers beside computation",
                       {"training.schedule.copies=overlapped"}});
  }
  if (schedule.messages.lines == MessageOrder::Lines::Rank) {
    changes.push_back({ChangeKind::Plan,
                       "messages to each rank in a line of their own",
                       {"training.schedule.message_order=pair"}});
  }
  if (schedule.bulk_synchronous) {
    changes.push_back(
        {ChangeKind::Plan, "no barrier after every op", {"training.schedule.execution=futures"}});
  }
  const Question& question = baseline.result.plan.question;
  const Training& training = question.training();
  const bool again = training.recompute != Recompute::None || !training.recompute_parts.empty() ||
                     training.stage_recompute.any();
  if (again && !schedule.recomputes_early && schedule.overlap == 0) {
    changes.push_back({ChangeKind::Plan,
                       "recompute before gradients have come",
                       {"training.schedule.early_recompute=true"}});
  }
  if (training.strategy.kind == StrategyKind::Global && deferral_problem(schedule).empty() &&
      schedule.deferred_readout == 0 && question.layout.ranks() > 1 &&
      question.layout.data_parallel.keeps_whole_gradients() &&
      deferrable_bytes(training.graph, training.precision)) {
    changes.push_back({ChangeKind::Plan,
                       "weight gradients of the readout at the end of the step",
                       {"training.schedule.deferred_readout=all"}});
  }
  divided_vocabulary(question, changes);
  traded_attention(schedule, changes);
  if (schedule.barrier) {
    changes.push_back({ChangeKind::Plan,
                       "updates without a barrier",
                       {"training.schedule.optimizer_sync=per_stage"}});
  }
  if (schedule.kind->limits_in_flight && schedule.kind->order == OrderSource::Function) {
    changes.push_back({ChangeKind::Training,
                       "one more micro-batch in flight on each stage",
                       {set("training.schedule.in_flight", schedule.in_flight + 1)}});
  }
}

/// Returns whether a hundredth of the step or more waits for messages between stages.
bool waits_for_messages(const Baseline& baseline) {
  const Metrics& metrics = baseline.result.measurement.metrics;
  if (baseline.result.plan.question.layout.ranks() == 1 || metrics.devices.empty()) return false;
  const double step = metrics.step_time.value();
  double waits = 0;
  for (const PathShare& share : baseline.limits.path) {
    if (share.kind == PathShare::Kind::Message) waits += share.seconds;
  }
  if (baseline.limits.path.empty()) {
    const DeviceMetrics& device = metrics.devices[baseline.limits.rank];
    waits = device.time[static_cast<std::size_t>(TimeUse::Exposed)] * step;
  }
  return waits >= 0.01 * step;
}

/// Proposes messages between stages in 8 and 4 bits where steps wait for them, and casts undone.
void message_formats(const Baseline& baseline, std::vector<Change>& changes) {
  const Strategy& strategy = baseline.result.plan.question.training().strategy;
  const bool slow = waits_for_messages(baseline);
  Settings kind;  // a strategy that is written as a name becomes an object
  if (const std::string* name = text_at(baseline.document, "training.strategy")) {
    kind = {"training.strategy.kind=" + *name};
  }
  struct Message {
    std::string key, words;
    SentFormat own;
  };
  const Message messages[] = {{"activation_format", "activations", strategy.activation_format},
                              {"gradient_format", "gradients", strategy.gradient_format}};
  const auto setting = [](const Message& message, const std::string& format) {
    return "training.strategy." + message.key + "=" + format;
  };
  const auto add = [&](const std::string& words, const Settings& settings) {
    Change change{ChangeKind::Training, words + ", which changes the numbers", kind};
    change.settings.insert(change.settings.end(), settings.begin(), settings.end());
    changes.push_back(change);
  };
  for (const Message& message : messages) {
    const std::string what = message.words + " between stages ";
    if (message.own != SentFormat::Computed) {
      add(what + "as they are computed", {setting(message, "training")});
    }
    for (const char* const format : {"fp8", "int4"}) {
      const SentFormat other = format == std::string("fp8") ? SentFormat::Fp8 : SentFormat::Int4;
      if (slow && message.own != other) add(what + "in " + format, {setting(message, format)});
    }
  }
  const bool either = casts_messages(strategy);
  if (slow && !either) {
    add("activations and gradients between stages in fp8",
        {setting(messages[0], "fp8"), setting(messages[1], "fp8")});
  }
}

/// Modules of each stage, with one moved.
std::string moved_module(Partition partition, int from, int to) {
  for (int cut = std::min(from, to) + 1; cut <= std::max(from, to); ++cut) {
    partition.boundaries[cut] += from < to ? -1 : 1;
  }
  return set_cut(partition);
}

/// One module from a stage to the one before and the one behind.
void move_modules(const Partition& partition, int from, std::vector<Change>& changes) {
  if (from >= partition.stages()) return;  // of a second copy of the model
  if (partition.boundaries[from + 1] - partition.boundaries[from] < 2) return;
  for (const int to : {from - 1, from + 1}) {
    if (to < 0 || to >= partition.stages()) continue;
    changes.push_back(
        {ChangeKind::Plan,
         "one module moved from stage " + std::to_string(from) + " to stage " + std::to_string(to),
         {moved_module(partition, from, to)}});
  }
}

/// Returns the busiest rank, and the two whose ops take most of the critical path.
std::vector<int> pacing_ranks(const Baseline& baseline) {
  std::map<int, double> times;
  for (const PathShare& share : baseline.limits.path) {
    if (share.kind == PathShare::Kind::Op) times[share.rank] += share.seconds;
  }
  std::vector<int> ranks = {baseline.limits.rank};
  for (int more = 0; more < 2 && !times.empty(); ++more) {
    const auto longest =
        std::max_element(times.begin(), times.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    if (longest->first != ranks.front()) ranks.push_back(longest->first);
    times.erase(longest);
  }
  return ranks;
}

void partitions(const Baseline& baseline, std::vector<Change>& changes) {
  constexpr int kMostStages = 1024;     // that are listed
  constexpr double kOpsOfSearch = 2e4;  // of a step: the search takes a second
  const Partition& partition = baseline.result.plan.partition;
  const std::string* written = text_at(baseline.document, "partition");
  const bool balanced = value_at(baseline.document, "partition") == nullptr ||
                        (written != nullptr && *written == "balanced");
  if (!balanced)
    changes.push_back({ChangeKind::Plan, "a balanced partition", {"partition=balanced"}});
  const double ops = double(partition.stages()) * baseline.result.plan.micro_batches;
  const bool searched = written != nullptr && *written == "auto";
  const bool open = partition.stages() > 1 && partition.boundaries.back() > partition.stages();
  if (!searched && open && ops <= kOpsOfSearch) {
    changes.push_back(
        {ChangeKind::Plan, "a partition searched by simulated steps", {"partition=auto"}});
  }
  const Metrics& metrics = baseline.result.measurement.metrics;
  if (metrics.devices.empty() || partition.stages() > kMostStages) return;
  for (const int rank : pacing_ranks(baseline)) {
    for (const int stage : metrics.devices[rank].stages) move_modules(partition, stage, changes);
  }
}

/// Adds a layer more, and a layer less, that each rank recomputes.
void recomputed_layers(const Baseline& baseline, double layers, std::vector<Change>& changes) {
  const int ranks = baseline.result.plan.question.layout.ranks();
  const std::string path = "training.recompute.full_layers";
  changes.push_back(
      {ChangeKind::Plan, "one layer more a rank recomputed", {set(path, layers + ranks)}});
  if (layers <= ranks) return;
  changes.push_back(
      {ChangeKind::Plan, "one layer less a rank recomputed", {set(path, layers - ranks)}});
}

void recomputation(const Baseline& baseline, std::vector<Change>& changes) {
  const JsonValue* layers = value_at(baseline.document, "training.recompute.full_layers");
  if (layers != nullptr) return recomputed_layers(baseline, layers->number, changes);
  constexpr const char* kLevels[] = {"none", "selective", "full"};
  constexpr const char* kWords[] = {"no recomputation", "selective recomputation",
                                    "full recomputation"};
  const bool written = value_at(baseline.document, "training.recompute") != nullptr;
  const std::string* name = text_at(baseline.document, "training.recompute");
  for (int level = 0; level < 3; ++level) {
    const bool own = written ? name != nullptr && *name == kLevels[level] : level == 0;
    if (own) continue;
    changes.push_back(
        {ChangeKind::Plan, kWords[level], {std::string("training.recompute=") + kLevels[level]}});
  }
}

void kept_elsewhere(const Baseline& baseline, std::vector<Change>& changes) {
  const Question& scenario = baseline.result.plan.question;
  if (!has_host(scenario.cluster)) return;
  if (scenario.training().offload.optimizer < 1) {
    changes.push_back({ChangeKind::Plan,
                       "the optimiser's states in the hosts' memory",
                       {"training.offload.optimizer=1"}});
  }
  if (scenario.training().offload.activations < 1) {
    changes.push_back({ChangeKind::Plan,
                       "half of the activations in the hosts' memory",
                       {"training.offload.activations=0.5"}});
  }
}

void kernels(const Baseline& baseline, std::vector<Change>& changes) {
  const Question& scenario = baseline.result.plan.question;
  if (!have_rates(scenario.cluster)) return;
  changes.push_back(
      {ChangeKind::Plan, "attention that never stores its scores", {"model.attention=fused"}});
  const std::string& precision =
      precision_names()[static_cast<std::size_t>(scenario.training().precision)];
  const char* next = precision == "fp32"                          ? "tf32"
                     : precision == "tf32"                        ? "bf16"
                     : precision == "bf16" || precision == "fp16" ? "fp8"
                     : precision == "fp8"                         ? "fp4"
                                                                  : nullptr;
  if (next == nullptr) return;
  Change change{ChangeKind::Training,
                std::string("training in ") + next,
                {std::string("training.precision=") + next}};
  const bool stored = scenario.training().optimizer.weights.has_value();
  if (precision == "fp8" && stored) change.settings.push_back("training.weights=nvfp4");
  changes.push_back(change);
}

}  // namespace

std::vector<Change> plan_changes(const Baseline& baseline) {
  std::vector<Change> changes;
  if (baseline.result.plan.question.trace()) return changes;
  for (const auto propose : {micro_batches, shares, n_wise, schedules, queues, message_formats,
                             partitions, recomputation, kept_elsewhere, kernels}) {
    propose(baseline, changes);
  }
  return changes;
}

}  // namespace interlock
