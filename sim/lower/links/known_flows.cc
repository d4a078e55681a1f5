// Numbers links, and finds layouts that were followed before.
// SPDX-License-Identifier: Apache-2.0
#include "sim/lower/links/known_flows.h"

#include <algorithm>

namespace interlock {

std::vector<int> LinkClasses::numbered(const Route& route) {
  std::vector<int> numbers;
  numbers.reserve(route.links.size());
  for (const LinkId id : route.links) numbers.push_back(number(id));
  return numbers;
}

int LinkClasses::number(LinkId link) {
  const auto [entry, fresh] = numbers_.try_emplace(link, static_cast<int>(ids_.size()));
  if (fresh) {
    ids_.push_back(link);
    parents_.push_back(entry->second);
    sizes_.push_back(1);
  }
  return entry->second;
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

int LinkClasses::known(LinkId link) const {
  const auto number = numbers_.find(link);
  return number == numbers_.end() ? -1 : number->second;
}

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
