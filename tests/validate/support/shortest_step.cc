// Every order of a very small pipeline.
// SPDX-License-Identifier: Apache-2.0
#include "tests/validate/support/shortest_step.h"

#include <algorithm>
#include <map>

namespace interlock {

namespace {

using Counts = std::vector<int>;    // F, I and W done, stage by stage
using Times = std::vector<double>;  // ends: of each stage's last op, then of messages to be read

struct Pipeline {
  const std::vector<SmallStage>& stages;
  int micro_batches;
  double transfer;

  int size() const { return static_cast<int>(stages.size()); }
  // Times: free of a stage; arrival of forward b at stage s + 1; of gradient b at stage s - 1.
  int forward_at(int s, int b) const { return size() + s * micro_batches + b; }
  int gradient_at(int s, int b) const {
    return size() * (1 + micro_batches) + s * micro_batches + b;
  }
};

/// Does op `kind` (0 F, 1 I, 2 W) of stage `s` next; whether that is possible.
bool advance(const Pipeline& p, int s, int kind, Counts& done, Times& times) {
  const SmallStage& stage = p.stages[s];
  const int b = done[3 * s + kind];
  if (b == p.micro_batches) return false;
  if (kind > 0 && done[3 * s + kind - 1] <= b) return false;
  double start = times[s];
  if (kind == 0 && stage.held > 0 && b - done[3 * s + 2] >= stage.held) return false;
  if (kind == 0 && s > 0) {
    if (done[std::size_t{3} * (s - 1)] <= b) return false;
    start = std::max(start, times[p.forward_at(s - 1, b)]);
    times[p.forward_at(s - 1, b)] = 0;
  }
  if (kind == 1 && s + 1 < p.size()) {
    if (done[3 * (s + 1) + 1] <= b) return false;
    start = std::max(start, times[p.gradient_at(s + 1, b)]);
    times[p.gradient_at(s + 1, b)] = 0;
  }
  const double end = start + (kind == 0 ? stage.forward : kind == 1 ? stage.input : stage.weight);
  times[s] = end;
  if (kind == 0 && s + 1 < p.size()) times[p.forward_at(s, b)] = end + p.transfer;
  if (kind == 1 && s > 0) times[p.gradient_at(s, b)] = end + p.transfer;
  ++done[3 * s + kind];
  return true;
}

bool beats(const Times& a, const Times& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] > b[i]) return false;
  }
  return true;
}

void keep(std::vector<Times>& ways, const Times& fresh) {
  for (const Times& way : ways) {
    if (beats(way, fresh)) return;
  }
  ways.erase(
      std::remove_if(ways.begin(), ways.end(), [&](const Times& way) { return beats(fresh, way); }),
      ways.end());
  ways.push_back(fresh);
}

}  // namespace

double shortest_step(const std::vector<SmallStage>& stages, int micro_batches, double transfer) {
  const Pipeline p{stages, micro_batches, transfer};
  const int ops = 3 * p.size() * micro_batches;
  std::map<Counts, std::vector<Times>> states;
  states[Counts(std::size_t{3} * p.size(), 0)] = {
      Times(std::size_t{1} * p.size() * (1 + 2 * micro_batches), 0)};
  for (int op = 0; op < ops; ++op) {
    std::map<Counts, std::vector<Times>> next;
    for (const auto& [done, ways] : states) {
      for (const Times& way : ways) {
        for (int s = 0; s < p.size(); ++s) {
          for (int kind = 0; kind < 3; ++kind) {
            Counts counts = done;
            Times times = way;
            if (advance(p, s, kind, counts, times)) keep(next[counts], times);
          }
        }
      }
    }
    states = std::move(next);
  }
  double best = 1e300;
  for (const auto& [done, ways] : states) {
    for (const Times& way : ways) {
      best = std::min(best, *std::max_element(way.begin(), way.begin() + p.size()));
    }
  }
  return best;
}

}  // namespace interlock
