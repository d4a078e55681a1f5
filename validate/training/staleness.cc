// Counts the updates between forwards and their own updates, in the order that a run realised.
// SPDX-License-Identifier: Apache-2.0
#include "validate/training/staleness.h"

#include <algorithm>
#include <vector>

namespace interlock {

std::map<int, std::int64_t> staleness_of(const Program& program, const TraceLog& log) {
  const int every = program.update_every;
  std::vector<int> updates(static_cast<std::size_t>(program.stages));
  std::vector<std::map<int, int>> forwards(updates.size());  // micro-batch: updates before it
  std::map<int, int> most;                                   // by micro-batch
  for (const Span& span : log.spans) {
    const OpInfo& op = program.ops[static_cast<std::size_t>(span.op)];
    const auto s = static_cast<std::size_t>(op.stage);
    if (op.replay) continue;
    if (op.kind == OpKind::F) forwards[s][span.micro_batch] = updates[s];
    if (op.kind != OpKind::U) continue;
    const int window = span.micro_batch / every;
    const auto begin = forwards[s].lower_bound(window * every);
    const auto end = forwards[s].lower_bound((window + 1) * every);
    for (auto it = begin; it != end; ++it) {
      const int missed = std::max(updates[s] - it->second, std::min(program.version_lag, window));
      int& worst = most[it->first];
      worst = std::max(worst, missed);
    }
    forwards[s].erase(begin, end);
    ++updates[s];
  }
  std::map<int, std::int64_t> staleness;
  for (const auto& [micro_batch, missed] : most) ++staleness[missed];
  return staleness;
}

}  // namespace interlock
