// Reads parts of documents once.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/load/known_parts.h"

#include <algorithm>

#include "hardware/networks/cluster_reader.h"
#include "models/build_model.h"
#include "scenarios/contract/read_framework.h"

namespace interlock {
namespace {

/// Texts of one kind that are kept: a search has one, or one for each number of devices.
constexpr std::size_t kTexts = 8;
/// Models of one description that are kept. Plans that need the same one come near each other.
constexpr std::size_t kModels = 64;

/// Adds an item in front, and forgets the last one beyond `most`.
template <class Item>
Item& remember(std::list<Item>& items, Item item, std::size_t most) {
  items.push_front(std::move(item));
  if (items.size() > most) items.pop_back();
  return items.front();
}

}  // namespace

template <class Part>
Part* KnownParts::find(std::list<Known<Part>>& known, const JsonNode& node) {
  const auto same = std::find_if(known.begin(), known.end(), [&](const Known<Part>& one) {
    return one.path == node.path && *one.text == *node.value;
  });
  return same == known.end() ? nullptr : &same->part;
}

/// Reads a wrong part each time, as its messages depend on those before them.
template <class Part, class Read>
Part KnownParts::read_once(std::list<Known<Part>>& known, const JsonNode& node,
                           Diagnostics& diagnostics, Read read) {
  if (const Part* part = find(known, node)) return *part;
  Diagnostics own;
  Part part = read(node, own);
  if (!own.empty()) return read(node, diagnostics);
  return remember(known, {std::make_shared<const JsonValue>(*node.value), node.path, part}, kTexts)
      .part;
}

Cluster KnownParts::cluster(const JsonNode& node, Diagnostics& diagnostics) {
  return read_once(clusters_, node, diagnostics, read_cluster);
}

Framework KnownParts::framework(const JsonNode& node, Diagnostics& diagnostics) {
  return read_once(frameworks_, node, diagnostics, read_framework);
}

ModelGraph KnownParts::model(const JsonNode& node, const BuildOptions& options,
                             Diagnostics& diagnostics) {
  Description* found = find(descriptions_, node);
  if (found == nullptr) {
    const auto text = std::make_shared<const JsonValue>(*node.value);
    Description fresh;
    fresh.object = find_model({text.get(), node.path}, fresh.mistakes);
    found = &remember(descriptions_, {text, node.path, std::move(fresh)}, kTexts).part;
  }
  std::list<BuiltModel>& built = found->built;
  const auto same = std::find_if(built.begin(), built.end(),
                                 [&](const BuiltModel& one) { return one.options == options; });
  if (same != built.end()) {
    built.splice(built.begin(), built, same);
  } else {
    BuiltModel fresh{.options = options, .head = nullptr, .graph = {}, .mistakes = found->mistakes};
    if (found->object) fresh.graph = build_described(*found->object, options, fresh.mistakes);
    if (options.head) {
      fresh.head = std::make_shared<const JsonValue>(*options.head->value);
      fresh.options.head->value = fresh.head.get();
    }
    remember(built, std::move(fresh), kModels);
  }
  refused_model_ = !built.front().mistakes.empty();
  diagnostics.add_new(built.front().mistakes);
  return built.front().graph;
}

}  // namespace interlock
