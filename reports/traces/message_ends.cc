// Finds the ops at both ends of messages, by walking the issues of a program.
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <map>
#include <utility>

#include "reports/traces/trace_tracks.h"
#include "sim/program/issue_order.h"
#include "sim/program/log_index.h"

namespace interlock {

/// Returns the two ops of each message: the one before its Send makes it, the one after its Receive
/// uses it. Of a message in line: the one before what its line waits for, and the one after the
/// wait for the message.
std::vector<MessageEnds> message_ends(const Program& program, const TraceLog& log) {
  struct Standing {
    std::int32_t last = -1;  // op, its own or, of a line, that it has waited for
    bool is_line = false;
    std::vector<std::int32_t> received;  // transfers that are not yet used
  };
  std::vector<MessageEnds> ends(log.transfers.size());
  if (ends.empty()) return ends;
  LogIndex index = index_log(program, log);
  const bool has_lines = std::ranges::any_of(program.channels, &Channel::in_line);
  std::vector<Standing> streams(program.streams.size());
  for (const Rank& rank : program.ranks) {
    for (int s = 1; s < rank.streams; ++s) streams[rank.first_stream + s].is_line = has_lines;
  }
  const std::vector<int> ranks = ranks_of_streams(program);
  std::vector<std::int32_t> transfers;                 // by message
  std::map<std::pair<int, int>, std::int32_t> before;  // op before a generation, by slot and rank
  std::map<std::pair<int, int>, std::int32_t> taken_in_line;  // by channel and micro-batch
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
      if (stream.is_line) {
        taken_in_line[{what, micro_batch}] = transfers[issue.slot];
      } else {
        stream.received.push_back(transfers[issue.slot]);
      }
    } else if (has_lines && code == Opcode::Record) {
      before[{issue.slot, ranks[issue.stream]}] = stream.last;
    } else if (has_lines && code == Opcode::Wait && issue.slot >= 0) {
      const int message = program.events[what].message;
      if (stream.is_line) {
        stream.last = before.at({issue.slot, ranks[issue.stream]});
      } else if (message >= 0 && program.channels[message].to_rank == ranks[issue.stream]) {
        stream.received.push_back(taken_in_line.at({message, micro_batch}));
      }
    }
    return true;
  });
  return ends;
}

}  // namespace interlock
