// Cuts every rank's stream into ops, finds their phases, and puts barriers between them.
// SPDX-License-Identifier: Apache-2.0
#include "sim/lower/bulk_synchronous.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>

#include "base/error.h"
#include "sim/program/cursor.h"

namespace interlock {

namespace {

/// Ops times ranks that are written out at most.
constexpr std::int64_t kMostPhases = 20'000'000;

/// The instructions around one op.
struct Unit {
  std::vector<Instruction> instructions;
  int phase = -1;
};
using Units = std::vector<std::vector<Unit>>;  // (ranks, ops)

/// Returns true if both belong to one op: pieces of it, or the recompute before a backward.
bool same_op(const OpInfo& a, const OpInfo& b, int micro_batch_a, int micro_batch_b) {
  const auto recomputes = [](const OpInfo& op) { return op.kind == OpKind::R; };
  return a.stage == b.stage && micro_batch_a == micro_batch_b && a.loss == b.loss &&
         (a.kind == b.kind || recomputes(a));
}

/// An op ends with the last of what it gives back and sends; what the next one waits for or takes
/// is the next one's.
bool begins_op(Opcode code) {
  return code == Opcode::Receive || code == Opcode::Wait || code == Opcode::Allocate;
}

std::vector<Unit> units_of(const Program& program, const Stream& stream) {
  std::vector<Unit> units(1);
  std::vector<Instruction> since;  // the end of the op, as far as it is known
  const OpInfo* op = nullptr;
  int micro_batch = 0;
  for (Cursor cursor(program, stream); !cursor.done(); cursor.next()) {
    Instruction instruction = cursor.instruction();
    instruction.micro_batch = cursor.micro_batch();
    const bool computes = instruction.code == Opcode::Compute;
    if (computes) {
      const OpInfo& next = program.ops[instruction.index];
      const bool goes_on = !op || same_op(*op, next, micro_batch, instruction.micro_batch);
      if (!goes_on) units.emplace_back();
      op = &next;
      micro_batch = instruction.micro_batch;
    }
    if (computes || !since.empty() || (op && begins_op(instruction.code))) {
      since.push_back(instruction);
    } else {
      units.back().instructions.push_back(instruction);
    }
    if (!computes) continue;
    auto& whole = units.back().instructions;
    whole.insert(whole.end(), since.begin(), since.end());
    since.clear();
  }
  auto& last = units.back().instructions;
  last.insert(last.end(), since.begin(), since.end());
  return units;
}

/// Finds the phases of units, rank by rank, as far as the messages that they read are known.
class PhaseFinder {
 public:
  PhaseFinder(const Program& program, Units& units)
      : units_(units),
        sent_(program.channels.size()),
        taken_(program.channels.size(), 0),
        next_(units.size(), 0) {}

  /// Sets the phase of every unit and returns how many there are.
  int find() {
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t rank = 0; rank < units_.size(); ++rank) {
        while (next_[rank] < units_[rank].size() && settle(rank)) progress = true;
      }
    }
    for (std::size_t rank = 0; rank < units_.size(); ++rank) {
      CHECK(next_[rank] == units_[rank].size(), "an order that can be finished");
    }
    return phases_;
  }

 private:
  /// Sets the phase of the next unit of a rank, if it can be known.
  bool settle(std::size_t rank) {
    Unit& unit = units_[rank][next_[rank]];
    int phase = next_[rank] > 0 ? units_[rank][next_[rank] - 1].phase + 1 : 0;
    std::map<int, std::size_t> taken;  // by channel, with those of this unit
    for (const Instruction& i : unit.instructions) {
      if (i.code != Opcode::Receive) continue;
      const std::vector<int>& sent = sent_[i.index];
      const std::size_t message = taken.try_emplace(i.index, taken_[i.index]).first->second++;
      if (message >= sent.size()) return false;
      phase = std::max(phase, sent[message] + 1);
    }
    for (const Instruction& i : unit.instructions) {
      if (i.code == Opcode::Receive) ++taken_[i.index];
      if (i.code == Opcode::Send) sent_[i.index].push_back(phase);
    }
    unit.phase = phase;
    phases_ = std::max(phases_, phase + 1);
    ++next_[rank];
    return true;
  }

  Units& units_;
  std::vector<std::vector<int>> sent_;     // by channel: phases of the senders, in order
  std::vector<std::size_t> taken_, next_;  // by channel; by rank
  int phases_ = 0;
};

/// Writes the streams of a program anew.
class PhaseWriter {
 public:
  PhaseWriter(const Program& program, const Units& units, int phases)
      : program_(program), units_(units), phases_(phases), sent_(units.size()) {
    for (auto& rank : sent_) rank.resize(static_cast<std::size_t>(phases));
    note_messages();
  }

  Program write() {
    Program written = program_;
    written.instructions.clear();
    written.segments.clear();
    first_event_ = static_cast<int>(written.events.size());
    const Event barrier = {.recorders = static_cast<int>(units_.size()),
                           .micro_batches = std::numeric_limits<int>::max()};
    written.events.insert(written.events.end(), static_cast<std::size_t>(phases_), barrier);
    for (std::size_t rank = 0; rank < units_.size(); ++rank) {
      const int first = static_cast<int>(written.instructions.size());
      write_rank(rank, written.instructions);
      const int count = static_cast<int>(written.instructions.size()) - first;
      written.streams[program_.ranks[rank].first_stream] = {
          .first = static_cast<int>(written.segments.size()), .count = 1};
      written.segments.push_back({.first = first, .count = count});
    }
    return written;
  }

 private:
  /// The Receive of each message, in the phase in which it is sent.
  void note_messages() {
    std::vector<std::vector<int>> phases(program_.channels.size());
    for (const auto& rank : units_) {
      for (const Unit& unit : rank) {
        for (const Instruction& i : unit.instructions) {
          if (i.code == Opcode::Send) phases[i.index].push_back(unit.phase);
        }
      }
    }
    std::vector<std::size_t> taken(program_.channels.size(), 0);
    for (std::size_t rank = 0; rank < units_.size(); ++rank) {
      for (const Unit& unit : units_[rank]) {
        for (const Instruction& i : unit.instructions) {
          if (i.code != Opcode::Receive) continue;
          sent_[rank][phases[i.index][taken[i.index]++]].push_back(i);
        }
      }
    }
  }

  void write_rank(std::size_t rank, std::vector<Instruction>& instructions) const {
    auto unit = units_[rank].begin();
    for (int phase = 0; phase < phases_; ++phase) {
      if (unit != units_[rank].end() && unit->phase == phase) {
        std::copy_if(unit->instructions.begin(), unit->instructions.end(),
                     std::back_inserter(instructions),
                     [](const Instruction& i) { return i.code != Opcode::Receive; });
        ++unit;
      }
      const auto& messages = sent_[rank][static_cast<std::size_t>(phase)];
      instructions.insert(instructions.end(), messages.begin(), messages.end());
      instructions.push_back({Opcode::Record, first_event_ + phase, 0});
      instructions.push_back({Opcode::Wait, first_event_ + phase, 0});
    }
  }

  const Program& program_;
  const Units& units_;
  int phases_;
  int first_event_ = 0;
  std::vector<std::vector<std::vector<Instruction>>> sent_;  // (ranks, phases): Receives
};

}  // namespace

std::string bulk_synchronous_problem(const Program& program) {
  std::int64_t computes = 0;
  for (const Rank& rank : program.ranks) {
    if (rank.streams != 1)
      return "a rank that chooses its order has no phases; expected one stage on each";
    const auto count = [&](const Instruction& one, std::int64_t turns) {
      if (one.code == Opcode::Compute) computes += turns;
    };
    visit_instructions(program, program.streams[rank.first_stream], count);
  }
  const std::int64_t most = kMostPhases / static_cast<std::int64_t>(program.ranks.size());
  if (computes > most) {
    return std::to_string(computes) + " ops are too many to put barriers between; expected " +
           std::to_string(most) + " at most";
  }
  return "";
}

Program bulk_synchronous(const Program& program) {
  CHECK(bulk_synchronous_problem(program).empty(), "a program with phases");
  Units units;
  for (const Rank& rank : program.ranks) {
    units.push_back(units_of(program, program.streams[rank.first_stream]));
  }
  const int phases = PhaseFinder(program, units).find();
  return PhaseWriter(program, units, phases).write();
}

}  // namespace interlock
