// Finds the ops at both ends of messages, by walking the issues of a program.
// SPDX-License-Identifier: Apache-2.0

#include "reports/traces/trace_tracks.h"
#include "sim/program/issue_order.h"
#include "sim/program/log_index.h"

namespace interlock {

/// Returns the two ops of each message: the one before its Send makes it, the one after its Receive
/// uses it.
std::vector<MessageEnds> message_ends(const Program& program, const TraceLog& log) {
  struct Standing {
    std::int32_t last = -1;              // op
    std::vector<std::int32_t> received;  // transfers that are not yet used
  };
  std::vector<MessageEnds> ends(log.transfers.size());
  if (ends.empty()) return ends;
  LogIndex index = index_log(program, log);
  std::vector<Standing> streams(program.streams.size());
  std::vector<std::int32_t> transfers;  // by message
  visit_issues(program, code_without_memory(program), [&](const Issue& issue, const Cursor&) {
    const auto [code, what, micro_batch] = issue.instruction;
    Standing& stream = streams[issue.stream];
    if (code == Opcode::Compute) {
      stream.last = index.spans.take(what, micro_batch);
      for (const std::int32_t one : stream.received) ends[one].used = stream.last;
      stream.received.clear();
    } else if (code == Opcode::Send) {
      transfers.push_back(index.transfers.take(what, micro_batch));
      if (transfers.back() >= 0) ends[transfers.back()].made = stream.last;
    } else if (code == Opcode::Receive && transfers[issue.slot] >= 0) {
      stream.received.push_back(transfers[issue.slot]);
    }
    return true;
  });
  return ends;
}

}  // namespace interlock
