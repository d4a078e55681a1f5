// Rules of programs, checked one instruction after the other.
// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/support/happens_before.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "sim/program/cursor.h"

namespace interlock {
namespace {

bool is_work(Opcode code) {
  return code == Opcode::Compute || code == Opcode::Send || code == Opcode::Receive;
}

class Checker {
 public:
  Checker(const Program& program, Listed listed)
      : program_(program),
        everything_(listed == Listed::Everything),
        queues_(program.channels.size()),
        records_(program.events.size()),
        turns_(program.ranks.size(), 0) {
    for (const Stream& stream : program.streams) cursors_.emplace_back(program, stream);
    stands_at_.assign(cursors_.size(), -1);
    run_all_on();
  }

  std::string check(const std::vector<Issue>& order) {
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::string broken = step(order[i]);
      if (!broken.empty()) return "entry " + std::to_string(i) + ": " + broken;
    }
    for (std::size_t s = 0; s < cursors_.size(); ++s) {
      if (!cursors_[s].done()) return "stream " + std::to_string(s) + " is not done";
    }
    return "";
  }

 private:
  struct Queue {
    std::deque<int> untaken;  // micro-batches
    int sender = -1;          // that stands behind its Send
  };

  std::string step(const Issue& issue) {
    Cursor& cursor = cursors_[issue.stream];
    if (stands_at_[issue.stream] >= 0) return "a sender goes on before its message is taken";
    if (!everything_ && !cursor.done() && !is_work(cursor.instruction().code)) {
      return "goes on before an event is complete";
    }
    if (cursor.done() || *cursor.standing() != issue.instruction) return "out of order";
    std::string broken = perform(issue);
    if (!broken.empty()) return broken;
    cursor.next();
    run_all_on();
    return "";
  }

  std::string perform(const Issue& issue) {
    const auto [code, index, micro_batch] = issue.instruction;
    switch (code) {
      case Opcode::Compute:
        return take_turn(issue.stream) ? "" : "not its turn";
      case Opcode::Send:
        return send(issue.stream, index, micro_batch);
      case Opcode::Receive:
        return receive(index, micro_batch);
      case Opcode::Wait:
        return is_complete(cursors_[issue.stream]) ? "" : "an event that is not complete";
      default:
        note(cursors_[issue.stream]);
        return "";
    }
  }

  std::string send(int stream, int index, int micro_batch) {
    const Channel& channel = program_.channels[index];
    Queue& queue = queues_[index];
    queue.untaken.push_back(micro_batch);
    if (channel.synchronous || channel.depth == 0) {
      queue.sender = stream;
      stands_at_[stream] = index;
    } else if (channel.depth > 0 && static_cast<int>(queue.untaken.size()) > channel.depth) {
      return "more untaken messages than there is room for";
    }
    return "";
  }

  std::string receive(int index, int micro_batch) {
    Queue& queue = queues_[index];
    if (queue.untaken.empty()) return "received before it was sent";
    // Both sides count readouts by micro-batches of their own.
    const bool numbered = program_.channels[index].cargo != Cargo::Readout;
    if (numbered && queue.untaken.front() != micro_batch) return "received out of order";
    queue.untaken.pop_front();
    if (queue.sender < 0) return "";
    stands_at_[std::exchange(queue.sender, -1)] = -1;
    return "";
  }

  bool take_turn(int stream) {
    for (std::size_t r = 0; r < program_.ranks.size(); ++r) {
      const Rank& rank = program_.ranks[r];
      const int number = stream - rank.first_stream;
      if (number < 0 || number >= rank.streams) continue;
      const std::size_t turn = turns_[r]++;
      return rank.order.empty() || rank.order[turn] == number;
    }
    return false;
  }

  bool is_complete(const Cursor& cursor) {
    if (cursor.instruction().code != Opcode::Wait || cursor.micro_batch() < 0) return true;
    const Event& event = program_.events[cursor.instruction().index];
    return records_[cursor.instruction().index][cursor.micro_batch() / event.micro_batches] >=
           event.recorders;
  }

  void note(const Cursor& cursor) {
    if (cursor.instruction().code != Opcode::Record) return;
    const Event& event = program_.events[cursor.instruction().index];
    ++records_[cursor.instruction().index][cursor.micro_batch() / event.micro_batches];
  }

  /// Runs all events that are not listed and not held up. An event may complete others.
  void run_all_on() {
    bool progress = !everything_;
    while (progress) {
      progress = false;
      for (std::size_t s = 0; s < cursors_.size(); ++s) progress = run_on(s) || progress;
    }
  }

  bool run_on(std::size_t stream) {
    Cursor& cursor = cursors_[stream];
    bool progress = false;
    while (stands_at_[stream] < 0 && !cursor.done() && !is_work(cursor.instruction().code) &&
           is_complete(cursor)) {
      note(cursor);
      cursor.next();
      progress = true;
    }
    return progress;
  }

  const Program& program_;
  bool everything_;
  std::vector<Cursor> cursors_;
  std::vector<int> stands_at_;  // channel, by stream
  std::vector<Queue> queues_;
  std::vector<std::map<int, int>> records_;
  std::vector<std::size_t> turns_;
};

}  // namespace

std::string broken_rule(const Program& program, const std::vector<Issue>& order, Listed listed) {
  return Checker(program, listed).check(order);
}

StreamFinder::StreamFinder(const Program& program) : program_(program) {
  for (const Stream& stream : program.streams) {
    std::vector<Instruction>& work = left_.emplace_back();
    for (Cursor cursor(program, stream); !cursor.done(); cursor.next()) {
      if (is_work(cursor.instruction().code)) work.push_back(*cursor.standing());
    }
    std::reverse(work.begin(), work.end());
  }
}

int StreamFinder::stream_of(int rank, Opcode code, int index, int micro_batch) {
  const Rank& of = program_.ranks[rank];
  for (int s = of.first_stream; s < of.first_stream + of.streams; ++s) {
    if (left_[s].empty() || left_[s].back() != Instruction{code, index, micro_batch}) continue;
    left_[s].pop_back();
    return s;
  }
  return -1;
}

}  // namespace interlock
