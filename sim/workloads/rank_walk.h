// RankWalk: the nodes that one rank of a run executes, found by walking its streams.
// SPDX-License-Identifier: Apache-2.0
//
// Streams go as far as they can without a clock, in the order of ops that the run realised. What a
// stream has waited for since its last op, its next node comes after. Messages within the rank, and
// events that it alone records, become plain dependencies; events of several ranks become barriers.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/program/cursor.h"
#include "sim/workloads/execution_trace.h"

namespace interlock {

/// What the walks of all ranks look things up in.
struct RealisedRun {
  Program program;                                              // its order is fixed
  std::vector<int> devices;                                     // by rank
  std::vector<std::vector<const Span*>> spans;                  // by rank
  std::vector<std::vector<const CollectiveSpan*>> collectives;  // by collective, in order of time
  std::vector<bool> crosses;  // by event: whether several ranks record it
  std::vector<int> untaken;   // by channel: messages that the run ends without
};

class RankWalk {
 public:
  RankWalk(const RealisedRun& run, int rank);
  /// To be called once.
  std::vector<ExecutionNode> nodes();

 private:
  /// A generation of an event.
  using Turn = std::pair<std::int32_t, std::int32_t>;
  using Nodes = std::vector<int>;  // as they are made, from 0
  struct Standing {
    Cursor cursor;
    Nodes needs;               // what its next node comes after
    bool handed_over = false;  // its Send; it stands until somebody asks
    int places = 0;
  };
  struct LocalChannel {
    std::vector<Nodes> sent, asked, taken;  // by message
  };
  struct Generation {
    int expected = 0, records = 0;  // of this rank
    Nodes done;                     // when it is complete
    bool complete = false;
  };

  bool step(Standing& stream);
  bool compute(Standing& stream);
  bool send(Standing& stream);
  bool send_within(Standing& stream, const Channel& channel, LocalChannel& queue);
  bool receive(Standing& stream);
  bool record(Standing& stream);
  bool wait(Standing& stream);
  void make_message(NodeKind kind, const Nodes& after, const Instruction& message);
  void take_the_rest();
  void note_record(int event, int micro_batch, const Nodes& needs);
  void join(const Event& event, int micro_batch, const Nodes& needs);
  const CollectiveSpan* span_of(const Event& event, int micro_batch);
  Turn turn_of(int event, int micro_batch) const;
  ExecutionNode& make(NodeKind kind, const Nodes& after);
  std::vector<ExecutionNode> in_order_of_time();
  int newest() const { return static_cast<int>(nodes_.size()) - 1; }

  const RealisedRun& run_;
  const Program& program_;
  int rank_, lane_ = 0, last_op_ = -1;
  std::size_t op_turn_ = 0;
  std::vector<Standing> streams_;
  std::vector<LocalChannel> local_;
  std::map<Turn, Generation> events_;
  std::map<int, int> lane_last_;          // the last node of a lane
  std::vector<std::vector<bool>> taken_;  // by collective of the log: joined by this rank
  std::vector<std::size_t> first_free_;   // likewise: the first that may not be taken
  std::vector<ExecutionNode> nodes_;
  std::vector<Seconds> ends_;  // of the nodes, at the earliest
};

/// Calls `visit` with the cursor at every instruction of `rank`.
template <class Visit>
void visit_rank(const Program& program, const Rank& rank, const Visit& visit) {
  for (int s = rank.first_stream; s < rank.first_stream + rank.streams; ++s) {
    for (Cursor cursor(program, program.streams[s]); !cursor.done(); cursor.next()) visit(cursor);
  }
}

}  // namespace interlock
