// Progressive filling of the flows that meet.
// SPDX-License-Identifier: Apache-2.0
#include "sim/sharing/fair_share.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/units.h"

namespace interlock {

FairShare::FairShare(const std::vector<double>& bandwidths,
                     const std::vector<std::vector<int>>& ways)
    : flows_(ways.size()), links_(bandwidths.size()) {
  for (std::size_t l = 0; l < links_.size(); ++l) links_[l].bandwidth = bandwidths[l];
  for (std::size_t f = 0; f < flows_.size(); ++f) {
    std::vector<Crossing>& way = flows_[f].way;
    for (const int link : ways[f]) {
      const auto same = [&](const Crossing& known) { return known.link == link; };
      const auto known = std::find_if(way.begin(), way.end(), same);
      if (known == way.end()) {
        way.push_back({link});
      } else {
        ++known->times;
      }
    }
  }
}

void FairShare::add(int index, double amount) {
  Flow& flow = flows_[index];
  CHECK(!flow.under_way && !flow.way.empty() && amount > 0, "a flow of something, over a link");
  flow.under_way = true;
  flow.left = amount;
  flow.rate = 0;
  touch(flow);
  if (std::exchange(flow.listed, true)) return;
  for (const Crossing& crossed : flow.way) links_[crossed.link].flows.push_back(index);
}

void FairShare::remove(int index) {
  Flow& flow = flows_[index];
  CHECK(flow.under_way, "a flow that ends has begun");
  flow.under_way = false;
  flow.rate = 0;
  ++flow.generation;
  touch(flow);
}

void FairShare::touch(const Flow& flow) {
  for (const auto& [link, times] : flow.way) {
    if (!std::exchange(links_[link].changed, true)) changed_.push_back(link);
  }
}

double FairShare::next_end(double now) {
  for (const int link : changed_) {
    if (links_[link].changed) solve(link, now);
  }
  changed_.clear();
  while (!ends_.empty() && flows_[ends_.top().id].generation != ends_.top().generation) ends_.pop();
  if (ends_.empty()) return kInfinity;
  return ends_.top().time;
}

std::vector<int> FairShare::take_ended(double now) {
  std::vector<int> ended;
  for (; !ends_.empty() && ends_.top().time - now < kTogether; ends_.pop()) {
    if (flows_[ends_.top().id].generation == ends_.top().generation)
      ended.push_back(ends_.top().id);
  }
  for (const int flow : ended) remove(flow);
  std::sort(ended.begin(), ended.end());
  return ended;
}

void FairShare::solve(int link, double now) {
  collect(link);
  share(now);
  note_first_ends();
  for (const int met : met_links_) links_[met].met = links_[met].changed = false;
  for (const int met : met_flows_) flows_[met].met = flows_[met].fixed = false;
}

/// Finds all that meets on `link`, or meets what meets there.
void FairShare::collect(int link) {
  met_flows_.clear();
  met_links_.assign(1, link);
  links_[link].met = true;
  for (std::size_t i = 0; i < met_links_.size(); ++i) {
    std::vector<int>& flows = links_[met_links_[i]].flows;
    for (std::size_t at = 0; at < flows.size();) {
      Flow& flow = flows_[flows[at]];
      if (!flow.under_way) {
        flow.listed = false;
        flows[at] = flows.back();
        flows.pop_back();
        continue;
      }
      if (!std::exchange(flow.met, true)) {
        met_flows_.push_back(flows[at]);
        for (const auto& [other, times] : flow.way) {
          links_[other].growing += times;
          if (!std::exchange(links_[other].met, true)) met_links_.push_back(other);
        }
      }
      ++at;
    }
  }
}

/// Gives every flow that was met its share from `now` on.
void FairShare::share(double now) {
  open_.clear();
  for (const int index : met_links_) {
    Link& link = links_[index];
    if (link.growing == 0) continue;
    link.left = link.bandwidth;
    link.level = link.left / link.growing;
    open_.push_back(index);
  }
  while (!open_.empty()) {
    double level = kInfinity;
    for (const int link : open_) level = std::min(level, links_[link].level);
    full_.clear();
    for (const int link : open_) {
      if (links_[link].level == level) full_.push_back(link);
    }
    for (const int link : full_) {
      for (const int flow : links_[link].flows) fix(flow, level, now);
    }
    const auto closed = [&](int link) { return links_[link].growing == 0; };
    open_.erase(std::remove_if(open_.begin(), open_.end(), closed), open_.end());
  }
}

void FairShare::fix(int index, double rate, double now) {
  Flow& flow = flows_[index];
  if (std::exchange(flow.fixed, true)) return;
  flow.left = std::max(0.0, flow.left - flow.rate * (now - flow.since));
  flow.since = now;
  flow.rate = rate;
  flow.end = now + flow.left / rate;
  ++flow.generation;
  for (const Crossing& crossed : flow.way) {
    Link& link = links_[crossed.link];
    link.left -= crossed.times * rate;
    link.growing -= crossed.times;
    if (link.growing > 0) link.level = link.left / link.growing;
  }
}

/// Only the first of flows that meet are due: at their end the others are solved again.
void FairShare::note_first_ends() {
  double first = kInfinity;
  for (const int flow : met_flows_) first = std::min(first, flows_[flow].end);
  for (const int flow : met_flows_) {
    const Flow& known = flows_[flow];
    if (known.end - first < kTogether) ends_.push({known.end, flow, known.generation});
  }
}

}  // namespace interlock
