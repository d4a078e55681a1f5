// Reads how many ranks and stages there are, which rank runs each stage, and "partition".
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "base/text.h"
#include "scenarios/contract/contract.h"
#include "scenarios/load/loader.h"
#include "scenarios/load/schedules/check_copies.h"

namespace interlock {
namespace {

/// Returns the place to blame for the number of stages: the nearest thing that was written.
const JsonNode& stages_place(const ParallelKeys& parallel) {
  if (parallel.stages_node) return *parallel.stages_node;
  if (parallel.pipeline_node) return *parallel.pipeline_node;
  return parallel.node;
}

/// Returns the devices of one pipeline rank.
int devices_per_rank(const ParallelKeys& parallel) { return parallel.asked.mesh.devices(); }

/// Returns the number of replicas that would use all of `devices`, as an end of a message; or "".
std::string fitting_data(const ParallelKeys& parallel, std::int64_t devices) {
  const int data = parallel.asked.mesh.degree(Dimension::Data);
  const std::int64_t replica =
      std::int64_t{devices_per_rank(parallel)} / data * parallel.pipeline.value_or(1);
  if (!parallel.pipeline || devices % replica != 0) return "";
  return ", e.g. with data " + std::to_string(devices / replica);
}

/// Reports devices that are left over, where several devices make a pipeline rank.
void check_devices(const ParallelKeys& parallel, const LayoutBounds& bounds,
                   Diagnostics& diagnostics) {
  const Mesh& mesh = parallel.asked.mesh;
  if (devices_per_rank(parallel) == 1 || !bounds.devices) return;
  const std::int64_t pipeline = parallel.pipeline.value_or(1), devices = *bounds.devices;
  const std::int64_t product = pipeline * devices_per_rank(parallel);
  if (parallel.pipeline ? product == devices : devices % product == 0) return;
  const auto degree = [&](Dimension dimension) { return std::to_string(mesh.degree(dimension)); };
  report(diagnostics, parallel.node,
         "data " + degree(Dimension::Data) + " x " +
             name_of(Dimension::Context, parallel.asked.sharding) + " " +
             degree(Dimension::Context) + " x tensor " + degree(Dimension::Tensor) +
             (parallel.pipeline ? " x pipeline " + std::to_string(pipeline) : "") + " are " +
             std::to_string(product) + " devices; expected " +
             (parallel.pipeline ? "as many as" : "a divisor of") + " the cluster's " +
             std::to_string(devices) + fitting_data(parallel, devices));
}

/// Returns whether the order comes from a file, which says on which rank each stage lies.
bool is_laid_by_file(const LayoutBounds& bounds) {
  return bounds.schedule && !bounds.schedule->placement.empty();
}

/// Returns the number of ranks, and of stages of one copy, of the file.
LayoutSize layout_of_file(const SchedulePolicy& schedule) {
  const auto& placement = schedule.placement;
  return {*std::max_element(placement.begin(), placement.end()) + 1,
          static_cast<int>(placement.size()) / schedule.copies};
}

int default_stages(int ranks, const LayoutBounds& bounds) {
  if (is_laid_by_file(bounds)) return layout_of_file(*bounds.schedule).stages;
  if (!bounds.parts.empty()) return static_cast<int>(bounds.parts.size());
  switch (bounds.strategy->kind) {
    case StrategyKind::Greedy:
      return bounds.modules.value_or(ranks);
    case StrategyKind::Chunked:
      return std::max(ranks, bounds.strategy->chunks);
    default:
      return ranks * (bounds.schedule ? bounds.schedule->chunks : 1);
  }
}

/// Returns numbers of stages that are multiples of `divisor`, in words: as many on each rank, if
/// the model has modules for them, else the next; empty if it has not.
std::string whole_stages(const LayoutSize& layout, int divisor, const LayoutBounds& bounds) {
  const std::int64_t each = std::lcm(std::int64_t{layout.ranks}, divisor);
  const std::int64_t next = (layout.stages / divisor + 1) * std::int64_t{divisor};
  const std::int64_t most = bounds.modules.value_or(std::numeric_limits<int>::max());
  if (each >= layout.stages && each <= most) {
    return "parallel.stages such as " + std::to_string(each) + ", " +
           std::to_string(each / layout.ranks) + " on each of the " + std::to_string(layout.ranks) +
           " ranks";
  }
  return next <= most ? "parallel.stages such as " + std::to_string(next) : "";
}

/// Returns the divisor of `stages` above 1 that is nearest to `wanted`.
int nearest_divisor(int stages, int wanted) {
  int best = stages;
  for (int divisor = stages; divisor > 1; --divisor) {
    if (stages % divisor != 0) continue;
    if (std::abs(divisor - wanted) <= std::abs(best - wanted)) best = divisor;
  }
  return best;
}

/// Reports stages that are no multiple of `divisor`, the value of a `key` of the strategy, of which
/// each of `what` has the same number.
void check_multiple(const ParallelKeys& parallel, const LayoutSize& layout,
                    const LayoutBounds& bounds, const std::pair<const char*, int>& divisor,
                    const std::string& what, Diagnostics& diagnostics) {
  const auto& [key, parts] = divisor;
  if (layout.stages % parts == 0) return;
  std::string expected = whole_stages(layout, parts, bounds);
  if (layout.stages > 1) {
    expected += std::string(expected.empty() ? "" : "; or ") + "training.strategy." + key +
                " such as " + std::to_string(nearest_divisor(layout.stages, parts));
  }
  report(diagnostics, stages_place(parallel),
         std::to_string(layout.stages) + " stages make no whole number " + what + "; expected " +
             (expected.empty() ? "a multiple of " + std::to_string(parts) : expected));
}

/// Reports ranks with another number of stages than a schedule that lays stages itself gives them.
void check_schedule_layout(const ParallelKeys& parallel, const LayoutSize& layout,
                           const SchedulePolicy& schedule, Diagnostics& diagnostics) {
  if (schedule.kind->layout == StageLayout::Any || schedule.kind->layout == StageLayout::Helix)
    return;
  const int expected = layout.ranks * schedule.chunks;
  if (layout.stages == expected) return;
  report(diagnostics, stages_place(parallel),
         in_quotes(schedule.kind->name) + " gives each of the " + std::to_string(layout.ranks) +
             " ranks " +
             (schedule.chunks == 1 ? "one stage" : std::to_string(schedule.chunks) + " stages") +
             "; expected " + std::to_string(expected) + ", got " + std::to_string(layout.stages));
}

void check_layout_of_file(const ParallelKeys& parallel, const LayoutSize& layout,
                          const SchedulePolicy& schedule, Diagnostics& diagnostics) {
  const LayoutSize file = layout_of_file(schedule);
  if (layout.ranks == file.ranks && layout.stages == file.stages) return;
  const bool by_ranks = parallel.pipeline_node && layout.ranks != file.ranks;
  report(diagnostics, by_ranks ? *parallel.pipeline_node : stages_place(parallel),
         "the schedule's file has " + std::to_string(file.ranks) + " rows, a rank each, and " +
             std::to_string(file.stages) + " stages; expected as many, got " +
             std::to_string(layout.ranks) + " ranks and " + std::to_string(layout.stages) +
             " stages");
}

/// Returns the reason for the number of stages, if the scenario does not give that number.
std::string reason_of_stages(const ParallelKeys& parallel, const LayoutSize& layout,
                             const LayoutBounds& bounds) {
  const int chunks = bounds.schedule ? bounds.schedule->chunks : 1;
  if (parallel.stages_node || layout.stages != layout.ranks * chunks) return "";
  const std::string ranks = std::to_string(layout.ranks) + " ranks (parallel.pipeline)";
  if (chunks == 1) return ": there is one for each of the " + ranks;
  return ": " + in_quotes(bounds.schedule->kind->name) + " puts " + std::to_string(chunks) +
         " on each of the " + ranks;
}

void check_stages(const ParallelKeys& parallel, const LayoutSize& layout,
                  const LayoutBounds& bounds, Diagnostics& diagnostics) {
  if (is_laid_by_file(bounds)) {
    const Mistakes mistakes(diagnostics);
    check_layout_of_file(parallel, layout, *bounds.schedule, diagnostics);
    if (!mistakes.none()) return;
  }
  const std::string got = ", got " + std::to_string(layout.stages);
  const Strategy& strategy = *bounds.strategy;
  if (layout.stages < layout.ranks) {
    report(diagnostics, stages_place(parallel),
           "fewer stages than ranks, and every rank must hold one; expected at least " +
               std::to_string(layout.ranks) + got);
  }
  if (bounds.modules && strategy.kind == StrategyKind::Greedy && layout.stages != *bounds.modules) {
    report(diagnostics, stages_place(parallel),
           "greedy training has a loss on every module, so each is a stage; expected " +
               std::to_string(*bounds.modules) + got);
  } else if (bounds.modules && layout.stages > *bounds.modules) {
    report(diagnostics, stages_place(parallel),
           "more stages than modules" + reason_of_stages(parallel, layout, bounds) +
               "; expected 1 to the " + std::to_string(*bounds.modules) + " modules of the model" +
               got);
  }
  if (bounds.modules && strategy.kind == StrategyKind::Overlapping &&
      layout.stages == *bounds.modules && parts_of(strategy, layout.stages) > *bounds.modules) {
    report(diagnostics, stages_place(parallel),
           "blocks that both run the part they share cut a model into one part more than there are "
           "stages; expected fewer stages than its " +
               std::to_string(*bounds.modules) + " modules" + got);
  }
  if (strategy.kind == StrategyKind::Chunked) {
    check_multiple(parallel, layout, bounds, {"chunks", strategy.chunks},
                   "for each of the " + std::to_string(strategy.chunks) + " chunks", diagnostics);
  }
  if (strategy.kind == StrategyKind::Interlocking) {
    const int length = strategy.module_stages;
    check_multiple(parallel, layout, bounds, {"module_stages", length},
                   "of modules of " + std::to_string(length) + " stages", diagnostics);
  }
  if (!bounds.parts.empty() && layout.stages != static_cast<int>(bounds.parts.size())) {
    report(diagnostics, stages_place(parallel),
           in_quotes(bounds.schedule->kind->name) + " cuts the model itself; expected " +
               std::to_string(bounds.parts.size()) + " stages" + got);
  }
  if (bounds.schedule) check_schedule_layout(parallel, layout, *bounds.schedule, diagnostics);
}

std::vector<int> read_rank_list(const JsonNode& node, const LayoutSize& layout,
                                Diagnostics& diagnostics) {
  const std::size_t length = node.value->items.size();
  if (length != static_cast<std::size_t>(layout.stages)) {
    report(diagnostics, node,
           "names the rank of " + std::to_string(length) + " stages; expected " +
               std::to_string(layout.stages));
    return {};
  }
  std::vector<int> ranks;
  std::vector<bool> used(static_cast<std::size_t>(layout.ranks), false);
  for (std::size_t i = 0; i < length; ++i) {
    const auto rank = read_count(node.item(i), 0, layout.ranks - 1, diagnostics);
    if (!rank) continue;
    ranks.push_back(*rank);
    used[static_cast<std::size_t>(*rank)] = true;
  }
  if (ranks.size() < length) return {};
  const auto idle = std::find(used.begin(), used.end(), false);
  if (idle == used.end()) return ranks;
  report(diagnostics, node,
         "rank " + std::to_string(idle - used.begin()) +
             " holds no stage; expected one for each of the " + std::to_string(layout.ranks) +
             " ranks");
  return {};
}

/// Returns the ranks of stages. Loop: 0, 1, 2, 0, 1, 2, ...; v: 0, 1, 2, 2, 1, 0, 0, ...
std::vector<int> rank_pattern(const LayoutSize& layout, bool v) {
  std::vector<int> ranks;
  for (int stage = 0; stage < layout.stages; ++stage) {
    const int place = stage % layout.ranks;
    const bool back = v && stage / layout.ranks % 2 == 1;
    ranks.push_back(back ? layout.ranks - 1 - place : place);
  }
  return ranks;
}

std::vector<int> read_written_placement(const JsonNode& node, const LayoutSize& layout,
                                        Diagnostics& diagnostics) {
  if (node.value->kind == JsonValue::Kind::Array) {
    return read_rank_list(node, layout, diagnostics);
  }
  if (node.value->kind != JsonValue::Kind::String) {
    report(diagnostics, node,
           "expected \"loop\", \"v\", \"auto\" or a list with the rank of each stage");
    return {};
  }
  const auto choice = read_choice(node, contract_names("parallel", "placement"), diagnostics);
  return choice ? rank_pattern(layout, *choice == 1) : std::vector<int>();
}

bool is_auto(const JsonNode& node) {
  return node.value->kind == JsonValue::Kind::String && node.value->text == "auto";
}

}  // namespace

std::optional<LayoutSize> fit_layout(const ParallelKeys& parallel, const LayoutBounds& bounds,
                                     Diagnostics& diagnostics) {
  const Mistakes mistakes(diagnostics);
  check_devices(parallel, bounds, diagnostics);
  std::optional<int> ranks = parallel.pipeline;
  if (!ranks && bounds.devices) ranks = std::max(1, *bounds.devices / devices_per_rank(parallel));
  if (!ranks) return std::nullopt;
  if (!parallel.pipeline && is_laid_by_file(bounds)) {
    ranks = std::min(*ranks, layout_of_file(*bounds.schedule).ranks);
  }
  if (devices_per_rank(parallel) == 1 && bounds.devices && *ranks > *bounds.devices) {
    report(diagnostics, *parallel.pipeline_node,
           "more ranks than devices; expected 1 to the " + std::to_string(*bounds.devices) +
               " devices of the cluster, got " + std::to_string(*ranks));
  }
  const bool stages_follow = !parallel.stages;  // a wrong number of ranks is then told once
  if (!bounds.strategy || (stages_follow && !mistakes.none())) return std::nullopt;
  const LayoutSize layout = {*ranks, parallel.stages.value_or(default_stages(*ranks, bounds))};
  check_stages(parallel, layout, bounds, diagnostics);
  if (!mistakes.none()) return std::nullopt;
  return layout;
}

bool lays_freely(const ParallelKeys& parallel) {
  return parallel.placement && is_auto(*parallel.placement);
}

std::vector<int> read_placement(const ParallelKeys& parallel, const LayoutSize& layout,
                                const LayoutBounds& bounds, Diagnostics& diagnostics) {
  const StageLayout laid = bounds.schedule ? bounds.schedule->kind->layout : StageLayout::Any;
  std::vector<int> pattern = rank_pattern(layout, has_v(laid));
  if (laid == StageLayout::Helix) pattern = helix_ranks(layout.ranks, layout.stages);
  if (is_laid_by_file(bounds)) {
    const auto first = bounds.schedule->placement.begin();
    pattern = {first, first + layout.stages};
  }
  if (!parallel.placement || is_auto(*parallel.placement)) {
    if (bounds.strategy->kind == StrategyKind::Greedy) return {};
    return pattern;
  }
  const JsonNode& node = *parallel.placement;
  std::vector<int> written = read_written_placement(node, layout, diagnostics);
  if (written.empty() || written == pattern) return written;
  if (is_laid_by_file(bounds)) {
    report(diagnostics, node, "the schedule's file lays stages on ranks; expected no placement");
    return {};
  }
  if (laid == StageLayout::Any) return written;
  report(diagnostics, node,
         in_quotes(bounds.schedule->kind->name) +
             " lays stages on ranks itself; expected no placement" +
             (laid == StageLayout::Helix ? ""
              : has_v(laid)              ? ", or \"v\""
                                         : ", or \"loop\""));
  return {};
}

namespace {

constexpr int kMostModules = 1'000'000;
/// Evaluations of the search for a balanced partition that take some seconds.
constexpr double kMostCuts = 1e9;

}  // namespace

PartitionKeys read_partition(const std::optional<JsonNode>& node, Diagnostics& diagnostics) {
  PartitionKeys keys;
  if (!node) return keys;
  const Mistakes mistakes(diagnostics);
  if (node->value->kind == JsonValue::Kind::Array) {
    keys.rule.kind = PartitionRule::Kind::Explicit;
    for (std::size_t i = 0; i < node->value->items.size(); ++i) {
      const auto count = read_count(node->item(i), 1, kMostModules, diagnostics);
      keys.rule.modules.push_back(count.value_or(1));
    }
  } else if (node->value->kind == JsonValue::Kind::String) {
    constexpr std::array kKinds = {PartitionRule::Kind::Balanced, PartitionRule::Kind::Uniform,
                                   PartitionRule::Kind::Auto};
    const auto choice = read_choice(*node, contract_names("", "partition"), diagnostics);
    if (choice) keys.rule.kind = kKinds[*choice];
  } else {
    report(diagnostics, *node,
           "expected \"balanced\", \"uniform\", \"auto\" or a list with the modules of each stage");
  }
  keys.valid = mistakes.none();
  return keys;
}

void check_partition(const PartitionKeys& keys, const JsonNode& node, const PartitionSize& size,
                     Diagnostics& diagnostics) {
  if (!keys.valid) return;
  const bool cuts = keys.rule.kind == PartitionRule::Kind::Balanced ||
                    keys.rule.kind == PartitionRule::Kind::Auto;
  const bool search = cuts && size.parts < size.modules;
  const double blocks = search ? size.parts : size.lays_ranks ? size.ranks : 0;
  if (blocks * size.modules * size.modules > kMostCuts) {
    report(diagnostics, node,
           "balancing " + std::to_string(size.modules) + " modules over " +
               std::to_string(search ? size.parts : size.ranks) +
               (search ? " stages is too large a search; expected \"uniform\" or a list with the "
                         "modules of each stage"
                       : " ranks is too large a search; expected \"placement\" to be given"));
  }
  if (keys.rule.kind != PartitionRule::Kind::Explicit) return;
  if (keys.rule.modules.size() != static_cast<std::size_t>(size.parts)) {
    report(diagnostics, node,
           "gives the modules of " + std::to_string(keys.rule.modules.size()) +
               " stages; expected those of " + std::to_string(size.parts));
    return;
  }
  const auto sum =
      std::accumulate(keys.rule.modules.begin(), keys.rule.modules.end(), std::int64_t{0});
  if (sum != size.modules) {
    report(diagnostics, node,
           "places " + std::to_string(sum) + " modules; expected all " +
               std::to_string(size.modules) + " of the model");
  }
}

}  // namespace interlock
