// Rounding: the tick of a program, and its durations in whole ones.
// SPDX-License-Identifier: Apache-2.0
#include "sim/program/ticks.h"

#include <algorithm>

#include "sim/program/cursor.h"

namespace interlock {
namespace {

constexpr double kFinestTicks = 1e18;  // a second

/// Returns the longest that an instruction can make anybody wait.
Seconds duration_of(const Program& program, const Instruction& instruction) {
  switch (instruction.code) {
    case Opcode::Compute:
      return program.ops[instruction.index].duration;
    case Opcode::Record: {
      Seconds sum(0);
      for (int e = instruction.index; e >= 0; e = program.events[e].next) {
        const int index = program.events[e].collective;
        if (index < 0) break;
        sum += program.collectives[index].occupancy + program.collectives[index].latency;
      }
      return sum;
    }
    case Opcode::Send: {
      const Channel& channel = program.channels[instruction.index];
      return channel.occupancy + channel.latency;
    }
    case Opcode::Receive: {
      // Its message may come during a replay.
      const int replay = program.channels[instruction.index].replay;
      return replay >= 0 ? program.ops[replay].duration : Seconds(0);
    }
    default:
      return Seconds(0);
  }
}

/// Returns the sum of all durations: no run of the program can last longer.
Seconds horizon(const Program& program) {
  Seconds sum(0);
  for (const Stream& stream : program.streams) {
    visit_instructions(program, stream, [&](const Instruction& one, std::int64_t turns) {
      sum += duration_of(program, one) * static_cast<double>(turns);
    });
  }
  return sum;
}

}  // namespace

/// Ticks are decimal, because people write durations in decimals: what takes 7 ms and then 6 ms
/// ends exactly with what takes 13 ms, and who is first at a tie is no matter of rounding.
double finest_ticks(const Program& program, double most) {
  // On shared links the ends of flows are rounded to ticks too. A tick that is well above the
  // rounding of the solver makes equal situations end equally, so that a steady state can repeat.
  const double most_ticks = shares_links(program) ? 0x1p50 : 0x1p53;
  // Rounding may add, and what slows kernels down more so.
  const double sum = horizon(program).value() * (!program.interference.empty() ? 20 : 2);
  double rate = std::min(kFinestTicks, most);
  while (rate > 1 && sum * rate >= most_ticks) rate /= 10;
  return rate;
}

void round_durations(Program& program, double most_ticks_per_second) {
  const double rate = finest_ticks(program, most_ticks_per_second);
  program.ticks_per_second = rate;
  auto round = [&](Seconds& duration) {
    duration = Seconds(std::nearbyint(duration.value() * rate) / rate);
  };
  for (OpInfo& op : program.ops) round(op.duration);
  for (Channel& channel : program.channels) {
    round(channel.occupancy);
    round(channel.latency);
  }
  for (Collective& collective : program.collectives) {
    round(collective.occupancy);
    round(collective.own_occupancy);
    round(collective.latency);
  }
}

}  // namespace interlock
