// Parts of links, as wires that cross them several times.
// SPDX-License-Identifier: Apache-2.0
#include "sim/lower/links/turns.h"

#include <numeric>

namespace interlock {
namespace {

/// Returns `counts` as a fraction in lowest terms.
MessageCounts reduced(const MessageCounts& counts) {
  const int divisor = std::gcd(counts.simulated, counts.all);
  return {counts.simulated / divisor, counts.all / divisor};
}

/// Returns by link the least fraction that is a multiple of each collective's.
LinkMessages common_multiples(const std::vector<LinkMessages>& messages) {
  LinkMessages common;
  for (const LinkMessages& of_collective : messages) {
    for (const auto& [link, counts] : of_collective) {
      const MessageCounts part = reduced(counts);
      const auto [entry, fresh] = common.try_emplace(link, part);
      if (fresh) continue;
      MessageCounts& whole = entry->second;
      whole = {std::lcm(whole.simulated, part.simulated), std::gcd(whole.all, part.all)};
    }
  }
  return common;
}

/// Returns `links`, each as often as it is crossed where the messages on it are as `messages` says.
std::vector<int> weighed(const std::vector<int>& links, const LinkMessages& messages,
                         const LinkMessages& common) {
  std::vector<int> crossed;
  for (const int link : links) {
    const auto own = messages.find(link);
    int times = 1;
    if (own != messages.end()) {
      const MessageCounts part = reduced(own->second), whole = common.at(link);
      times = whole.simulated / part.simulated * (part.all / whole.all);
    }
    crossed.insert(crossed.end(), static_cast<std::size_t>(times), link);
  }
  return crossed;
}

/// A wire, and those that it becomes.
struct Split {
  Wire before;
  std::map<std::vector<int>, int> wires;  // by their links
};

}  // namespace

std::map<int, double> weigh_turns(Program& program, const std::vector<LinkMessages>& messages) {
  const LinkMessages common = common_multiples(messages);
  std::map<int, Split> splits;  // by wire
  for (std::size_t c = 0; c < messages.size(); ++c) {
    if (messages[c].empty()) continue;
    for (Collective::Flow& flow : program.collectives[c].flows) {
      Split& split =
          splits.try_emplace(flow.wire, Split{program.wires[flow.wire], {}}).first->second;
      const int added = split.wires.empty() ? flow.wire : static_cast<int>(program.wires.size());
      const auto [entry, fresh] =
          split.wires.try_emplace(weighed(split.before.links, messages[c], common), added);
      flow.wire = entry->second;
      if (!fresh) continue;
      if (added == static_cast<int>(program.wires.size())) program.wires.push_back(split.before);
      program.wires[added].links = entry->first;
    }
  }
  std::map<int, double> shares;
  for (const auto& [link, whole] : common) {
    shares[link] = static_cast<double>(whole.simulated) / whole.all;
  }
  return shares;
}

}  // namespace interlock
