// Reads how a schedule cuts sequences into token slices, and what even slices allow.
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <numeric>
#include <string>

#include "base/text.h"
#include "scenarios/contract/contract.h"
#include "scenarios/load/loader.h"

namespace interlock {

namespace {

constexpr int kMostSlices = 65'536;

std::string in_tokens(std::int64_t tokens) { return std::to_string(tokens) + " tokens"; }

void check_lengths(const SliceKeys& keys, int tokens, Diagnostics& diagnostics) {
  const std::int64_t sum =
      std::accumulate(keys.rule.lengths.begin(), keys.rule.lengths.end(), std::int64_t{0});
  if (keys.rule.kind == SliceRule::Kind::Explicit && sum != tokens) {
    report(diagnostics, *keys.node,
           "adds up to " + in_tokens(sum) + "; expected the " + std::to_string(tokens) +
               " of a sequence");
  } else if (keys.rule.kind != SliceRule::Kind::Balanced && keys.rule.count > tokens) {
    report(diagnostics, *keys.node,
           "more slices than a sequence has tokens; expected at most " + std::to_string(tokens) +
               ", got " + std::to_string(keys.rule.count));
  }
}

/// Reports slices that trade attention and are not all equally long. `place`: where to report it.
void check_traded_lengths(int slices, int tokens, const JsonNode& place, Diagnostics& diagnostics) {
  if (slices > tokens || tokens % slices == 0) return;
  const int more = least_divisor(tokens, slices);
  const std::string example = more < tokens ? ", as " + std::to_string(more) + " do," : "";
  report(diagnostics, place,
         std::to_string(slices) + " slices of " + in_tokens(tokens) +
             " differ in length, so that ranks cannot trade their attention; expected \"slices\" "
             "that divide the tokens" +
             example + " or \"context_exchange\" false beside them");
}

}  // namespace

int least_divisor(int tokens, int count) {
  while (tokens % count != 0) ++count;
  return count;
}

SliceKeys read_slices(const std::optional<JsonNode>& schedule, Diagnostics& diagnostics) {
  SliceKeys keys;
  if (!schedule || schedule->value->kind != JsonValue::Kind::Object) return keys;
  if (!schedule->value->find("slices")) return keys;
  keys.node = schedule->child("slices");
  const JsonValue& value = *keys.node->value;
  if (value.kind == JsonValue::Kind::Array && !value.items.empty()) {
    keys.rule.kind = SliceRule::Kind::Explicit;
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      const auto length = read_count(keys.node->item(i), 1, 1'000'000'000, diagnostics);
      keys.rule.lengths.push_back(length.value_or(1));
    }
    keys.rule.count = static_cast<int>(keys.rule.lengths.size());
  } else if (value.kind == JsonValue::Kind::Number) {
    keys.rule.kind = SliceRule::Kind::Equal;
    keys.rule.count = read_count(*keys.node, 1, kMostSlices, diagnostics).value_or(1);
    if (schedule->value->find("equal_in")) {
      const std::vector<std::string> names = contract_names("training.schedule", "equal_in");
      const auto choice = read_choice(schedule->child("equal_in"), names, diagnostics);
      if (choice && names[*choice] == "time") keys.rule.kind = SliceRule::Kind::EqualTime;
    }
  } else if (value.kind == JsonValue::Kind::String) {
    read_choice(*keys.node, contract_names("training.schedule", "slices"), diagnostics);
    keys.rule.count = SliceRule().count;
  } else {
    report(diagnostics, *keys.node,
           "expected \"balanced\", a number of equal slices, or a list with the tokens of each");
  }
  return keys;
}

void check_slices(const TrainingKeys& keys, const Training& training, const ModelGraph& graph,
                  Diagnostics& diagnostics) {
  const JsonNode place = keys.slices.node.value_or(keys.schedule.value_or(keys.node));
  if (!graph.slice && graph.tokens_per_sample) {
    report(diagnostics, place,
           "tokens of " + graph.name +
               " attend to some that a slice cannot read; expected a model that is not "
               "\"bidirectional\", has no encoder and no \"selection\" of tokens");
  } else if (!graph.slice) {
    report(diagnostics, place,
           "the samples of " + graph.name +
               " are no sequences of tokens; expected a transformer "
               "or a profile with this schedule");
  } else if (!graph.tokens_per_sample) {
    if (training.slices->kind != SliceRule::Kind::Equal) {
      report(diagnostics, place,
             "a profile does not say what a slice costs, so it is cut into equal parts; expected "
             "their number, {\"kind\": \"terapipe\", \"slices\": 8}");
    }
    if (keys.asked.balances_batch) {
      report(diagnostics, keys.node.child("micro_batch_size"),
             "a profile was measured with one size of micro-batch; expected that size");
    }
  } else {
    const int tokens = static_cast<int>(*graph.tokens_per_sample);
    check_lengths(keys.slices, tokens, diagnostics);
    if (training.schedule.trades_context) {
      check_traded_lengths(training.slices->count, tokens, place, diagnostics);
    }
  }
}

/// Reports settings that even slices do not allow, or ranks that trade attention: they begin ops
/// together, so that none may stand for a message of another.
void check_even_slices(Section& section, const SchedulePolicy& policy) {
  const std::string name = in_quotes(policy.kind->name);
  const auto node_of = [&](const char* key) { return section.get(key); };
  const auto report_at = [&](const char* key, const std::string& problem) {
    report(section.diagnostics(), *node_of(key), problem);
  };
  if (!policy.kind->even_slices) {
    if (node_of("context_exchange")) {
      report_at("context_exchange", name + " trades no attention; expected it with \"slimpipe\"");
    }
    return;
  }
  if (const auto node = node_of("slices"); node && node->value->kind != JsonValue::Kind::Number) {
    report_at("slices", name + " cuts sequences evenly; expected a number of slices");
  }
  if (node_of("equal_in") && section.choice("equal_in") == 1) {
    report_at("equal_in", name + " has slices of as many tokens; expected \"tokens\"");
  }
  if (!policy.trades_context) return;
  const char* const without = ", or \"context_exchange\" false beside it";
  if (node_of("queue") && policy.queue.kind != QueuePolicy::Kind::Unlimited) {
    report_at("queue",
              "ranks that trade attention cannot stand for each other's messages; expected "
              "\"unlimited\"");
  }
  if (policy.copies_on_compute_stream) {
    report_at("copies", "attention is traded beside compute; expected \"overlapped\"");
  }
  if (policy.recomputes_early) {
    report_at("early_recompute", std::string("ranks make attention again together, when gradients "
                                             "are there; expected false") +
                                     without);
  }
  if (policy.bulk_synchronous) {
    report_at("execution",
              std::string("a phase has one op of each rank; expected \"futures\"") + without);
  }
}

}  // namespace interlock
