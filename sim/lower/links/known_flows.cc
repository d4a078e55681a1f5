// Numbers links, and finds layouts that were followed before.
// SPDX-License-Identifier: Apache-2.0
#include "sim/lower/links/known_flows.h"

#include <algorithm>
#include <cstdint>

namespace interlock {

/// Returns the slot that has `link`, or the free one where it belongs. REQUIRES: there are slots.
std::size_t LinkClasses::slot_of(LinkId link) const {
  const std::size_t mask = slots_.size() - 1;
  const std::uint64_t hash = static_cast<std::uint64_t>(link) * 0x9e3779b97f4a7c15;
  std::size_t slot = (hash >> 32) & mask;
  while (slots_[slot] >= 0 && ids_[static_cast<std::size_t>(slots_[slot])] != link) {
    slot = (slot + 1) & mask;
  }
  return slot;
}

void LinkClasses::grow() {
  slots_.assign(std::max<std::size_t>(64, 2 * slots_.size()), -1);
  for (std::size_t i = 0; i < ids_.size(); ++i) slots_[slot_of(ids_[i])] = static_cast<int>(i);
}

void LinkClasses::number(const Route& route, std::vector<int>& numbers) {
  numbers.clear();
  for (const LinkId id : route.links) numbers.push_back(number(id));
}

int LinkClasses::number(LinkId link) {
  if (2 * ids_.size() >= slots_.size()) grow();
  const std::size_t slot = slot_of(link);
  if (slots_[slot] < 0) {
    slots_[slot] = static_cast<int>(ids_.size());
    ids_.push_back(link);
    parents_.push_back(slots_[slot]);
    sizes_.push_back(1);
  }
  return slots_[slot];
}

int LinkClasses::find(int link) {
  while (parents_[link] != link) link = parents_[link] = parents_[parents_[link]];
  return link;
}

bool LinkClasses::unite(int one, int other) {
  int a = find(one), b = find(other);
  if (a == b) return false;
  if (sizes_[a] < sizes_[b]) std::swap(a, b);
  parents_[b] = a;
  sizes_[a] += sizes_[b];
  return true;
}

int LinkClasses::known(LinkId link) const { return slots_.empty() ? -1 : slots_[slot_of(link)]; }

std::shared_ptr<KnownFlows::OfLayout> KnownFlows::of(const Layout& layout) {
  const auto same = std::find_if(known_.begin(), known_.end(),
                                 [&](const auto& one) { return one->layout == layout; });
  if (same != known_.end()) {
    known_.splice(known_.begin(), known_, same);
  } else {
    known_.push_front(std::make_shared<OfLayout>(OfLayout{.layout = layout}));
    if (known_.size() > kLayouts) known_.pop_back();
  }
  return known_.front();
}

}  // namespace interlock
