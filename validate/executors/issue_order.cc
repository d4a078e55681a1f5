// What real executors can run, and the order in which one thread may issue it.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/error.h"
#include "sim/program/deadlock.h"
#include "validate/executors/executor.h"
#include "validate/executors/unroll.h"

namespace interlock {
namespace {

class Issuer {
 public:
  explicit Issuer(const Program& program)
      : program_(program),
        streams_(unroll(program)),
        at_(streams_.size(), 0),
        handed_over_(streams_.size(), false),
        queues_(program.channels.size()),
        turns_(program.ranks.size(), 0),
        wire_turns_(program.wires.size(), 0),
        records_(program.events.size()) {}

  std::vector<Issue> run() {
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t s = 0; s < streams_.size(); ++s) progress = take_turn(s) || progress;
    }
    std::vector<std::optional<Instruction>> standing(streams_.size());
    for (std::size_t s = 0; s < streams_.size(); ++s) {
      if (at_[s] < streams_[s].code.size()) standing[s] = streams_[s].code[at_[s]];
    }
    require_done(program_, standing);
    return std::move(order_);
  }

 private:
  struct Queue {
    int sent = 0, taken = 0;
  };

  /// Issues what a stream does up to its second op from here, as far as it can: ops of ranks
  /// alternate, and messages follow the ops that make them at once.
  bool take_turn(std::size_t stream) {
    const std::vector<Instruction>& code = streams_[stream].code;
    const std::size_t before = order_.size();
    for (int ops = 0; at_[stream] < code.size(); ++at_[stream]) {
      const Instruction& instruction = code[at_[stream]];
      if (instruction.code == Opcode::Compute && ++ops > 1) break;
      if (!issue(stream, instruction)) break;
    }
    return order_.size() > before;
  }

  bool issue(std::size_t stream, const Instruction& instruction) {
    if (handed_over_[stream]) {
      const Queue& queue = queues_[instruction.index];
      handed_over_[stream] = queue.taken < queue.sent;
      return !handed_over_[stream];
    }
    if (!can_issue(stream, instruction)) return false;
    order_.push_back({static_cast<int>(stream), instruction});
    switch (instruction.code) {
      case Opcode::Compute:
        ++turns_[streams_[stream].rank];
        break;
      case Opcode::Send:
        return send(stream, instruction.index);
      case Opcode::Receive:
        ++queues_[instruction.index].taken;
        break;
      case Opcode::Record:
        ++records_[instruction.index][generation(instruction)];
        break;
      default:
        break;
    }
    return true;
  }

  bool send(std::size_t stream, int index) {
    const Channel& channel = program_.channels[index];
    ++queues_[index].sent;
    if (channel.wire >= 0) ++wire_turns_[channel.wire];
    handed_over_[stream] = channel.synchronous || channel.depth == 0;
    return !handed_over_[stream];
  }

  bool can_issue(std::size_t stream, const Instruction& instruction) const {
    switch (instruction.code) {
      case Opcode::Compute:
        return has_turn(stream);
      case Opcode::Allocate:
        return !leads_to_op(streams_[stream].code, at_[stream]) || has_turn(stream);
      case Opcode::Send:
        return has_room(instruction.index);
      case Opcode::Receive:
        return queues_[instruction.index].taken < queues_[instruction.index].sent;
      case Opcode::Wait: {
        if (instruction.micro_batch < 0) return true;
        const auto& records = records_[instruction.index];
        const auto found = records.find(generation(instruction));
        return found != records.end() &&
               found->second >= program_.events[instruction.index].recorders;
      }
      default:
        return true;
    }
  }

  /// Frozen programs: whether the next op of the rank is this stream's.
  bool has_turn(std::size_t stream) const {
    const int rank = streams_[stream].rank;
    const std::vector<std::int32_t>& order = program_.ranks[rank].order;
    if (program_.ranks[rank].streams == 1) return true;
    CHECK(turns_[rank] < order.size(), "a frozen order of all ops");
    return order[turns_[rank]] == streams_[stream].lane;
  }

  bool has_room(int index) const {
    const Channel& channel = program_.channels[index];
    const Queue& queue = queues_[index];
    if (!channel.synchronous && channel.depth > 0 && queue.sent - queue.taken >= channel.depth) {
      return false;
    }
    if (channel.wire < 0 || program_.wire_order.empty()) return true;
    const std::vector<std::int32_t>& order = program_.wire_order[channel.wire];
    CHECK(wire_turns_[channel.wire] < order.size(), "a frozen order of all messages");
    return order[wire_turns_[channel.wire]] == index;
  }

  int generation(const Instruction& instruction) const {
    return instruction.micro_batch / program_.events[instruction.index].micro_batches;
  }

  const Program& program_;
  const std::vector<UnrolledStream> streams_;
  std::vector<std::size_t> at_;    // by stream
  std::vector<bool> handed_over_;  // by stream: stands behind its Send
  std::vector<Queue> queues_;
  std::vector<std::size_t> turns_, wire_turns_;  // by rank; by wire
  std::vector<std::map<int, int>> records_;      // by event and generation
  std::vector<Issue> order_;
};

}  // namespace

std::string why_not_executable(const Program& program) {
  const bool inside = std::any_of(program.ops.begin(), program.ops.end(),
                                  [](const OpInfo& op) { return !op.inside.empty(); });
  if (inside || !program.collectives.empty()) {
    return "it has collectives, which only engines run; expected one device for each stage, "
           "without data, tensor, context or expert parallelism and without offloading";
  }
  const bool replays = std::any_of(program.channels.begin(), program.channels.end(),
                                   [](const Channel& channel) { return channel.replay >= 0; });
  if (replays) {
    return "its turns on old inputs are not written out; expected a settled program";
  }
  return "";
}

std::vector<Issue> issue_order(const Program& program) {
  CHECK(!chooses_order(program), "an order that is written or frozen");
  CHECK(why_not_executable(program).empty(), "a program that can be run for real");
  return Issuer(program).run();
}

}  // namespace interlock
