// EngineState: what both native engines begin with, and what both say of a wait.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "sim/program/cursor.h"
#include "sim/program/ticks.h"

namespace interlock {

/// Returns the state of every stream, at its first instruction: {cursor}, rank and number. Streams
/// walk `code`, or, if memory is watched, all instructions of `program`.
template <class StreamState>
std::vector<StreamState> make_streams(const Program& program, const Code& code, bool watched) {
  std::vector<StreamState> streams;
  streams.reserve(program.streams.size());
  for (std::size_t r = 0; r < program.ranks.size(); ++r) {
    const Rank& rank = program.ranks[r];
    CHECK(rank.first_stream == static_cast<int>(streams.size()), "streams in order of ranks");
    for (int number = 0; number < rank.streams; ++number) {
      const Stream& stream = program.streams[rank.first_stream + number];
      streams.push_back({watched ? Cursor(program, stream) : Cursor(code, stream)});
      streams.back().rank = static_cast<int>(r);
      streams.back().number = number;
    }
  }
  return streams;
}

/// Returns the state of every channel, with what a message needs to know of it in one place. Ticks.
template <class ChannelState>
std::vector<ChannelState> make_channels(const Program& program) {
  std::vector<ChannelState> channels(program.channels.size());
  for (std::size_t c = 0; c < channels.size(); ++c) {
    const Channel& channel = program.channels[c];
    channels[c].occupancy = in_ticks(program, channel.occupancy);
    channels[c].latency = in_ticks(program, channel.latency);
    channels[c].way = in_ticks(program, occupancy_alone(program, channel) + channel.latency);
    channels[c].wire = channel.wire;
    channels[c].depth = channel.depth;
    channels[c].replay = channel.replay;
    channels[c].synchronous = channel.synchronous;
    channels[c].sender_waits = channel.sender_waits;
  }
  return channels;
}

/// Returns how long a device that was free since `free` idled before `start` because of a message
/// that was on its way from `sent` to `arrival`.
inline double exposed_time(double start, double free, double sent, double arrival) {
  return std::max(0.0, std::min(start, arrival) - std::max(free, sent));
}

/// Notes that a stream stood since `since` for the message with which `generation` was complete.
template <class Stream, class Generation>
void note_stood(Stream& stream, const Generation& generation, double since) {
  if (generation.time <= since) return;
  stream.message_sent = generation.sent;
  stream.message_arrival = generation.time;
}

/// Notes when the message was sent that a stream stood for which records `generation` now: of the
/// last to do so; of several at one instant, the first that was sent.
template <class Generation>
void note_sent(Generation& generation, double now, double sent) {
  const bool first = generation.records == 0;
  if (!first && now < generation.recorded) return;
  const bool alone = first || now > generation.recorded;
  generation.sent = alone ? sent : std::min(generation.sent, sent);
  generation.recorded = now;
}

}  // namespace interlock
