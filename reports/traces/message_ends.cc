// Finds the ops at both ends of messages, by walking the streams of a program.
// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "reports/traces/trace_tracks.h"
#include "sim/causes/log_index.h"
#include "sim/program/cursor.h"

namespace interlock {
namespace {

/// What has not yet been met. Messages are met twice, and one channel may carry several of a
/// micro-batch.
struct Places {
  LogPlaces spans, sent, received;
};

/// Walks one stream: a message is made by the op before its Send, used by the op after its Receive.
void walk(const Program& program, const Stream& stream, Places& places,
          std::vector<MessageEnds>& ends) {
  std::int32_t last = -1;
  std::vector<std::int32_t> received;  // not yet used
  for (Cursor cursor(program, stream); !cursor.done(); cursor.next()) {
    const int index = cursor.instruction().index, micro_batch = cursor.micro_batch();
    switch (cursor.instruction().code) {
      case Opcode::Compute:
        last = places.spans.take(index, micro_batch);
        for (const std::int32_t transfer : received) ends[transfer].used = last;
        received.clear();
        break;
      case Opcode::Send:
        if (const auto sent = places.sent.take(index, micro_batch); sent >= 0) {
          ends[sent].made = last;
        }
        break;
      case Opcode::Receive:
        if (const auto taken = places.received.take(index, micro_batch); taken >= 0) {
          received.push_back(taken);
        }
        break;
      default:
        break;
    }
  }
}

}  // namespace

std::vector<MessageEnds> message_ends(const Program& program, const TraceLog& log) {
  std::vector<MessageEnds> ends(log.transfers.size());
  if (ends.empty()) return ends;
  LogIndex index = index_log(program, log);
  Places places = {std::move(index.spans), index.transfers, index.transfers};
  for (const Stream& stream : program.streams) walk(program, stream, places, ends);
  return ends;
}

}  // namespace interlock
