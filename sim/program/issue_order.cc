// Walks all streams of a program without a clock.
// SPDX-License-Identifier: Apache-2.0
#include "sim/program/issue_order.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "sim/program/deadlock.h"

namespace interlock {
namespace {

class Issuer {
 public:
  using Visit = std::function<bool(const Issue&, const Cursor&)>;

  Issuer(const Program& program, const Code& code, const Visit& visit)
      : program_(program),
        visit_(visit),
        queues_(program.channels.size()),
        turns_(program.ranks.size(), 0),
        wire_turns_(program.wires.size(), 0),
        events_(program.events.size()) {
    const std::vector<int> ranks = ranks_of_streams(program);
    for (std::size_t s = 0; s < program.streams.size(); ++s) {
      const int number = static_cast<int>(s);
      streams_.push_back({number, ranks[s], Cursor(code, program.streams[s])});
    }
  }

  void run() {
    for (bool progress = true; progress;) {
      progress = false;
      for (Standing& stream : streams_) progress = take_turn(stream) || progress;
      if (stopped_) return;
    }
    std::vector<std::optional<Instruction>> standing;
    for (const Standing& stream : streams_) standing.push_back(stream.cursor.standing());
    require_done(program_, standing);
  }

 private:
  struct Standing {
    int number = 0, rank = 0;
    Cursor cursor;
    bool handed_over = false;  // stands behind its Send until the message is taken
  };
  struct Queue {
    std::vector<std::int32_t> messages;  // slots of all that were sent
    std::size_t taken = 0;               // of these
  };
  struct Generation {
    std::int32_t slot = -1;
    int records = 0;
  };

  /// Issues what a stream does up to its second op from here, as far as it can: ops of ranks
  /// alternate, and messages follow the ops that make them at once.
  bool take_turn(Standing& stream) {
    bool progress = false;
    for (int ops = 0; !stream.cursor.done() && !stopped_; stream.cursor.next()) {
      const Instruction instruction = *stream.cursor.standing();
      if (instruction.code == Opcode::Compute && ++ops > 1) break;
      if (stream.handed_over) {
        const Queue& queue = queues_[instruction.index];
        if (queue.taken < queue.messages.size()) break;
        stream.handed_over = false;
        continue;
      }
      if (!can_issue(stream, instruction)) break;
      progress = true;
      issue(stream, instruction);
      if (stream.handed_over) break;
    }
    return progress;
  }

  bool can_issue(const Standing& stream, const Instruction& instruction) {
    const auto [code, index, micro_batch] = instruction;
    switch (code) {
      case Opcode::Compute:
        return has_turn(stream);
      case Opcode::Allocate:
        return !only_memory_before_op(stream.cursor) || has_turn(stream);
      case Opcode::Send:
        return has_room(index);
      case Opcode::Receive:
        return queues_[index].taken < queues_[index].messages.size();
      case Opcode::Wait:
        return micro_batch < 0 ||
               generation(index, micro_batch).records >= program_.events[index].recorders;
      default:
        return true;
    }
  }

  void issue(Standing& stream, const Instruction& instruction) {
    const auto [code, index, micro_batch] = instruction;
    Issue issue{stream.number, instruction};
    switch (code) {
      case Opcode::Compute:
        ++turns_[stream.rank];
        break;
      case Opcode::Send:
        send(stream, issue);
        break;
      case Opcode::Receive:
        issue.slot = queues_[index].messages[queues_[index].taken++];
        break;
      case Opcode::Record:
        return record(stream, issue);
      case Opcode::Wait:
        if (micro_batch >= 0) issue.slot = generation(index, micro_batch).slot;
        break;
      default:
        break;
    }
    tell(issue, stream);
  }

  void send(Standing& stream, Issue& issue) {
    const Channel& channel = program_.channels[issue.instruction.index];
    Queue& queue = queues_[issue.instruction.index];
    const std::size_t sent = queue.messages.size();
    if (is_bounded(channel) && sent >= static_cast<std::size_t>(channel.depth)) {
      issue.after = queue.messages[sent - static_cast<std::size_t>(channel.depth)];
    }
    issue.slot = messages_++;
    queue.messages.push_back(issue.slot);
    if (channel.wire >= 0) ++wire_turns_[channel.wire];
    stream.handed_over = channel.synchronous || channel.depth == 0;
  }

  void record(const Standing& stream, Issue issue) {
    const Instruction at = issue.instruction;
    const Event& event = program_.events[at.index];
    Generation& own = generation(at.index, at.micro_batch);
    issue.slot = own.slot;
    issue.completes = ++own.records >= event.recorders;
    tell(issue, stream);
    if (!issue.completes || event.next < 0) return;
    record(stream, {.stream = stream.number,
                    .instruction = {Opcode::Record, event.next, at.micro_batch},
                    .after = issue.slot});
  }

  void tell(const Issue& issue, const Standing& stream) {
    stopped_ = stopped_ || !visit_(issue, stream.cursor);
  }

  /// Returns whether the next op of the rank is this stream's, where its order is fixed.
  bool has_turn(const Standing& stream) const {
    const Rank& rank = program_.ranks[stream.rank];
    if (rank.streams == 1 || rank.order.empty()) return true;
    const std::size_t turn = turns_[stream.rank];
    CHECK(turn < rank.order.size(), "a frozen order of all ops");
    return rank.order[turn] == stream.number - rank.first_stream;
  }

  static bool is_bounded(const Channel& channel) {
    return !channel.synchronous && channel.depth > 0;
  }

  bool has_room(int index) const {
    const Channel& channel = program_.channels[index];
    const Queue& queue = queues_[index];
    const std::size_t untaken = queue.messages.size() - queue.taken;
    if (is_bounded(channel) && untaken >= static_cast<std::size_t>(channel.depth)) return false;
    if (channel.wire < 0 || program_.wire_order.empty()) return true;
    const std::vector<std::int32_t>& order = program_.wire_order[channel.wire];
    CHECK(wire_turns_[channel.wire] < order.size(), "a frozen order of all messages");
    return order[wire_turns_[channel.wire]] == index;
  }

  Generation& generation(int event, int micro_batch) {
    Generation& found = events_[event][micro_batch / program_.events[event].micro_batches];
    if (found.slot < 0) found.slot = generations_++;
    return found;
  }

  const Program& program_;
  const Visit& visit_;
  std::vector<Standing> streams_;
  std::vector<Queue> queues_;
  std::vector<std::size_t> turns_, wire_turns_;    // by rank; by wire
  std::vector<std::map<int, Generation>> events_;  // by number of the generation
  std::int32_t messages_ = 0, generations_ = 0;
  bool stopped_ = false;
};

}  // namespace

void visit_issues(const Program& program, const Code& code,
                  const std::function<bool(const Issue&, const Cursor&)>& visit) {
  Issuer(program, code, visit).run();
}

std::vector<Issue> issue_order(const Program& program) {
  CHECK(!chooses_order(program), "an order that is written or frozen");
  std::vector<Issue> order;
  visit_issues(program, {program.instructions, program.segments},
               [&](const Issue& issue, const Cursor&) {
                 order.push_back(issue);
                 return true;
               });
  return order;
}

std::vector<int> ranks_of_streams(const Program& program) {
  std::vector<int> ranks(program.streams.size());
  for (std::size_t r = 0; r < program.ranks.size(); ++r) {
    const auto first = ranks.begin() + program.ranks[r].first_stream;
    std::fill(first, first + program.ranks[r].streams, static_cast<int>(r));
  }
  return ranks;
}

}  // namespace interlock
