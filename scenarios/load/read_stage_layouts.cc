// Reads parallel.stage_layouts: ranks that are divided in ways of their own.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/load/read_stage_layouts.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "base/text.h"
#include "models/build_model.h"

namespace interlock {
namespace {

constexpr std::array kElsewhere = {"tensor",
                                   "data",
                                   "context",
                                   "expert",
                                   "expert_tensor",
                                   "split_brain",
                                   "shard",
                                   "tensor_layout",
                                   "tensor_depth",
                                   "context_layout",
                                   "context_all_to_all",
                                   "spatial",
                                   "order",
                                   "outer",
                                   "layer_layouts"};

/// Returns a layout in words: "tensor 4 x data 2".
std::string text_of(const RankLayout& layout) {
  return "tensor " + std::to_string(layout.tensor) + " x data " + std::to_string(layout.data);
}

RankLayout read_rank_layout(const JsonNode& node, Diagnostics& diagnostics) {
  RankLayout layout;
  Section section(contract_object("parallel.stage_layouts"), node, diagnostics);
  layout.tensor = section.count("tensor");
  layout.data = section.count("data");
  section.finish();
  return layout;
}

void read_list(const JsonNode& node, ParallelKeys& keys, Diagnostics& diagnostics) {
  const JsonValue& list = *node.value;
  if (list.kind != JsonValue::Kind::Array || list.items.empty()) {
    report(diagnostics, node,
           "expected a list with the layout of each pipeline rank, e.g. [{\"tensor\": 4, \"data\": "
           "1}, {\"tensor\": 2, \"data\": 2}]");
    return;
  }
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    const Mistakes mistakes(diagnostics);
    RankLayout layout = read_rank_layout(node.item(i), diagnostics);
    if (!mistakes.none()) continue;
    const RankLayout& first = keys.stage_layouts.empty() ? layout : keys.stage_layouts.front();
    if (layout.devices() != first.devices()) {
      report(diagnostics, node.item(i),
             text_of(layout) + " are " + std::to_string(layout.devices()) +
                 " devices; expected as many as the first rank has, " +
                 std::to_string(first.devices()) + " (" + text_of(first) + ")");
    } else {
      keys.stage_layouts.push_back(layout);
    }
  }
}

/// Returns whether each stage sends to its neighbours only, its output and gradients.
bool sends_to_neighbours(const Strategy& strategy) {
  const StrategyKind kind = strategy.kind;
  return strategy.readout_every == 0 &&
         (kind == StrategyKind::Global || kind == StrategyKind::Local ||
          kind == StrategyKind::Interlocking || kind == StrategyKind::Chunked ||
          kind == StrategyKind::Inference);
}

void check_schedule(const Question& question, const JsonNode& place, Diagnostics& diagnostics) {
  const SchedulePolicy& schedule = question.training().schedule;
  const ScheduleEntry& entry = *schedule.kind;
  const bool whole = !entry.slices && !entry.replays && !has_copies(entry.layout) &&
                     schedule.copies == 1 && entry.stash == StashMode::Kept;
  if (whole) return;
  report(diagnostics, place,
         "stages of different layouts cannot run under " + in_quotes(entry.name) +
             "; expected a schedule of whole micro-batches and one copy of the model, "
             "e.g. \"eager-1f1b\"");
}

}  // namespace

void read_stage_layouts(Section& section, ParallelKeys& keys) {
  Diagnostics& diagnostics = section.diagnostics();
  const auto strategy = section.choice("resharding");
  keys.asked.resharding.strategy = static_cast<ReshardingStrategy>(strategy);
  keys.asked.resharding.senders =
      section.boolean("sender_balancing") ? SenderChoice::Balanced : SenderChoice::First;
  keys.stage_layouts_node = section.get("stage_layouts");
  if (!keys.stage_layouts_node) {
    for (const char* key : {"resharding", "sender_balancing"}) {
      const auto node = section.get(key);
      if (!node) continue;
      report(diagnostics, *node,
             "says how tensors go from one layout to another; expected \"stage_layouts\" beside "
             "it");
    }
    return;
  }
  const JsonNode& node = *keys.stage_layouts_node;
  for (const char* key : kElsewhere) {
    if (const auto other = section.get(key)) {
      report(diagnostics, *other,
             "has no place beside \"stage_layouts\", which gives each rank a tensor and a data "
             "degree; expected one of the two");
    }
  }
  const Mistakes mistakes(diagnostics);
  read_list(node, keys, diagnostics);
  if (!mistakes.none()) return;
  const int ranks = static_cast<int>(keys.stage_layouts.size());
  if (keys.pipeline.value_or(ranks) != ranks) {
    report(diagnostics, node,
           "gives the layout of " + std::to_string(ranks) +
               " ranks; expected one for each of the " + std::to_string(*keys.pipeline) +
               " (parallel.pipeline)");
  }
  keys.pipeline = ranks;
  if (!keys.pipeline_node) keys.pipeline_node = node;
  keys.asked.mesh.degree(Dimension::Tensor) = keys.stage_layouts.front().devices();
}

void check_stage_layouts(const ParallelKeys& keys, const Question& question,
                         const JsonNode& document, Diagnostics& diagnostics) {
  if (!keys.stage_layouts_node) return;
  const JsonNode& node = *keys.stage_layouts_node;
  const Training& training = question.training();
  if (!sends_to_neighbours(training.strategy)) {
    report(diagnostics, node,
           "stages of different layouts cannot be trained " + name_of(training.strategy) +
               (training.strategy.readout_every > 0 ? " with stale heads" : "") +
               "; expected \"global\", \"local\", \"interlocking\" or \"chunked\"");
  }
  check_schedule(question, node, diagnostics);
  if (question.simulation.unfolded && *question.simulation.unfolded != kFolded) {
    report(diagnostics, document.child("simulate").child("fold"),
           "with parallel.stage_layouts one rank is simulated for all devices of a pipeline rank; "
           "expected \"auto\"");
  }
}

void build_stage_layouts(const ParallelKeys& keys, const JsonNode& model, BuildOptions options,
                         Question& question, Diagnostics& diagnostics) {
  if (!keys.stage_layouts_node) return;
  const int samples = options.micro_batch_size;
  for (std::size_t rank = 0; rank < keys.stage_layouts.size(); ++rank) {
    RankLayout layout = keys.stage_layouts[rank];
    const auto same =
        std::find_if(question.layout.rank_layouts.begin(), question.layout.rank_layouts.end(),
                     [&](const RankLayout& known) {
                       return known.tensor == layout.tensor && known.data == layout.data;
                     });
    if (same != question.layout.rank_layouts.end()) {
      layout.graph = same->graph;
    } else if (samples % layout.data != 0) {
      report(diagnostics, keys.stage_layouts_node->item(rank),
             "micro-batches of " + std::to_string(samples) + " cannot be divided among " +
                 std::to_string(layout.data) + " data devices; expected a divisor of " +
                 std::to_string(samples));
      return;
    } else {
      options.micro_batch_size = samples / layout.data;
      options.sharding.tensor = layout.tensor;
      const Mistakes mistakes(diagnostics);
      layout.graph = std::make_shared<const ModelGraph>(build_model(model, options, diagnostics));
      if (!mistakes.none()) return;
      if (layout.data > 1 && !layout.graph->samples_per_micro_batch) {
        report(diagnostics, keys.stage_layouts_node->item(rank),
               "a profile does not say what a part of its micro-batch takes; expected data 1");
        return;
      }
    }
    question.layout.rank_layouts.push_back(std::move(layout));
  }
}

}  // namespace interlock
