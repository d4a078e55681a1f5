// Finds the ops at both ends of messages, by walking the streams of a program.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "reports/trace_tracks.h"
#include "sim/run/cursor.h"

namespace interlock {
namespace {

/// A number for each pair of a key and a micro-batch that was noted; -1 until it is set.
class MicroBatchTable {
 public:
  explicit MicroBatchTable(std::size_t keys) : rows_(keys) {}
  /// First all pairs are noted, then seal() is called; only then there are numbers.
  void note(int key, int micro_batch) {
    rows_[key].first = std::min(rows_[key].first, micro_batch);
    rows_[key].last = std::max(rows_[key].last, micro_batch);
  }
  void seal() {
    std::size_t size = 0;
    for (Row& row : rows_) {
      row.offset = size;
      if (row.last >= row.first) size += static_cast<std::size_t>(row.last - row.first) + 1;
    }
    numbers_.assign(size, -1);
  }
  /// Nothing if the pair is outside of what was noted.
  std::int32_t* find(int key, int micro_batch) {
    const Row& row = rows_[key];
    if (micro_batch < row.first || micro_batch > row.last) return nullptr;
    return &numbers_[row.offset + static_cast<std::size_t>(micro_batch - row.first)];
  }

 private:
  struct Row {
    int first = std::numeric_limits<int>::max(), last = std::numeric_limits<int>::min();
    std::size_t offset = 0;
  };
  std::vector<Row> rows_;
  std::vector<std::int32_t> numbers_;
};

/// The span of each op and micro-batch; of a replay the last.
MicroBatchTable spans_of(const Program& program, const TraceLog& log) {
  MicroBatchTable table(program.ops.size());
  for (const Span& span : log.spans) table.note(span.op, span.micro_batch);
  table.seal();
  for (std::size_t i = 0; i < log.spans.size(); ++i) {
    *table.find(log.spans[i].op, log.spans[i].micro_batch) = static_cast<std::int32_t>(i);
  }
  return table;
}

/// Walks one stream: a message is made by the op before its Send, used by the op after its Receive.
void walk(const Program& program, const Stream& stream, MicroBatchTable& spans,
          MicroBatchTable& transfers, std::vector<MessageEnds>& ends) {
  std::int32_t last = -1;
  std::vector<std::int32_t> received;  // not yet used
  for (Cursor cursor(program, stream); !cursor.done(); cursor.next()) {
    const Instruction& at = cursor.instruction();
    if (at.code == Opcode::Compute) {
      const std::int32_t* span = spans.find(at.index, cursor.micro_batch());
      last = span ? *span : -1;
      for (const std::int32_t transfer : received) ends[transfer].used = last;
      received.clear();
    }
    if (at.code != Opcode::Send && at.code != Opcode::Receive) continue;
    const std::int32_t* transfer = transfers.find(at.index, cursor.micro_batch());
    if (!transfer || *transfer < 0) continue;
    if (at.code == Opcode::Send) ends[*transfer].made = last;
    if (at.code == Opcode::Receive) received.push_back(*transfer);
  }
}

}  // namespace

std::vector<MessageEnds> message_ends(const Program& program, const TraceLog& log) {
  std::vector<MessageEnds> ends(log.transfers.size());
  if (ends.empty()) return ends;
  MicroBatchTable spans = spans_of(program, log);
  MicroBatchTable transfers(program.channels.size());
  for (const Transfer& transfer : log.transfers) {
    transfers.note(transfer.channel, transfer.micro_batch);
  }
  transfers.seal();
  for (std::size_t i = 0; i < log.transfers.size(); ++i) {
    const Transfer& transfer = log.transfers[i];
    *transfers.find(transfer.channel, transfer.micro_batch) = static_cast<std::int32_t>(i);
  }
  for (const Stream& stream : program.streams) walk(program, stream, spans, transfers, ends);
  return ends;
}

}  // namespace interlock
