// Streams of messages, written beside those of ops.
// SPDX-License-Identifier: Apache-2.0
//
// Outline: sends and receives are found among the ops of each rank; each becomes a post, with what
// it waits for. Then all streams are written anew: those of ops with events in place of messages,
// and behind them those of lines.
#include "sim/program/message_streams.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "sim/plan/orders/message_order.h"

namespace interlock {

namespace {

/// A point of a step: a generation of an event.
struct Point {
  int event = -1, micro_batch = 0;
  bool operator==(const Point&) const = default;
};

/// One end of a message in a line.
struct Post {
  int channel = 0, micro_batch = 0;
  bool sends = false;
  Point begins;  // not before it
};
using Batch = std::vector<Post>;  // begin together
using Line = std::vector<Batch>;  // one after the other

class StreamWriter {
 public:
  StreamWriter(Program& program, const StepOrder& order, const MessageOrder& messages)
      : program_(program),
        order_(order),
        messages_(messages),
        made_(program.channels.size(), -1),
        taken_(program.channels.size(), -1),
        stands_(program.channels.size(), false) {
    for (std::size_t c = 0; c < program.channels.size(); ++c) {
      const Channel& channel = program.channels[c];
      const bool passes = channel.cargo == Cargo::Activation || channel.cargo == Cargo::Gradient;
      if (!passes || channel.wire < 0) continue;
      const auto key = std::tuple(channel.cargo, channel.from_stage, channel.to_stage);
      CHECK(channels_.emplace(key, static_cast<int>(c)).second, "one channel between two stages");
    }
  }

  void write() {
    const auto turns =
        turns_with_messages(order_, messages_.late ? ReceivePlace::Late : ReceivePlace::Early);
    std::vector<std::map<int, Line>> lines;
    for (std::size_t r = 0; r < turns.size(); ++r) lines.push_back(lines_of(r, turns[r]));
    for (const auto& [key, c] : channels_) {
      Channel& channel = program_.channels[c];
      stands_[c] = std::exchange(channel.sender_waits, false);
      channel.synchronous = channel.in_line = true;
    }
    const std::vector<Stream> streams = std::exchange(program_.streams, {});
    for (std::size_t r = 0; r < lines.size(); ++r) {
      Rank& rank = program_.ranks[r];
      CHECK(rank.streams == 1, "ranks of one stream");
      const Stream& own = streams[rank.first_stream];
      rank.first_stream = static_cast<int>(program_.streams.size());
      write_ops(own, static_cast<int>(r));
      for (const auto& [key, line] : lines[r]) write_line(line);
      rank.streams = static_cast<int>(program_.streams.size()) - rank.first_stream;
    }
    program_.instructions = std::move(instructions_);
    program_.segments = std::move(segments_);
  }

 private:
  int new_event(Event event) {
    program_.events.push_back(event);
    return static_cast<int>(program_.events.size()) - 1;
  }
  /// Returns the event that an op has made a message of `channel`, or that one has been taken.
  int event_of(std::vector<int>& events, int channel) {
    if (events[channel] < 0) {
      events[channel] = new_event({.message = &events == &taken_ ? channel : -1});
    }
    return events[channel];
  }
  /// Returns the end of `op`, or of the step before if there is none.
  Point end_of(const std::optional<Op>& op, std::size_t rank) {
    const auto key = op ? std::tuple(static_cast<int>(op->kind), op->stage)
                        : std::tuple(-1, static_cast<int>(rank));
    const auto [entry, fresh] = ends_.try_emplace(key, -1);
    if (fresh) entry->second = new_event({.micro_batches = op ? 1 : program_.micro_batches});
    return {entry->second, op ? op->micro_batch : -1};
  }

  std::map<int, Line> lines_of(std::size_t rank, const std::vector<RankTurn>& turns) {
    std::map<int, Line> lines;
    std::map<int, std::size_t> last;  // turn of a line's last post
    std::optional<Op> before;
    std::size_t place = 0, computed = 0;  // turns since which only messages came
    for (std::size_t i = 0; i < turns.size(); ++i) {
      const RankTurn& turn = turns[i];
      if (turn.ops > 0) {
        place += turn.ops;
        before = order_.ranks[rank][place - 1];
        computed = i;
        continue;
      }
      const int key = messages_.lines == MessageOrder::Lines::Pair ? turn.other_rank : -1;
      const auto known = last.find(key);
      const bool joins = messages_.batched && known != last.end() && known->second >= computed;
      if (!joins) lines[key].emplace_back();
      last[key] = i;
      lines[key].back().push_back(post_of(turn, rank, before));
    }
    return lines;
  }
  Post post_of(const RankTurn& turn, std::size_t rank, const std::optional<Op>& before) {
    const Op& op = turn.made_by;
    const bool forward = op.kind == OpKind::F;
    const auto key = std::tuple(forward ? Cargo::Activation : Cargo::Gradient, op.stage,
                                op.stage + (forward ? 1 : -1));
    Post post = {.channel = channels_.at(key), .micro_batch = op.micro_batch, .sends = turn.sends};
    post.begins =
        turn.sends ? Point{event_of(made_, post.channel), op.micro_batch} : end_of(before, rank);
    return post;
  }

  void emit(Opcode code, Point point) {
    instructions_.push_back({code, point.event, point.micro_batch});
  }
  bool is_in_line(const Instruction& instruction) const {
    const bool passes = instruction.code == Opcode::Send || instruction.code == Opcode::Receive;
    return passes && program_.channels[instruction.index].in_line;
  }

  /// Writes the stream of ops of `rank`.
  void write_ops(const Stream& own, int rank) {
    CHECK(own.lead == 0 && own.tail == 0, "a loop over steps");
    Stream stream = own;
    stream.first = static_cast<int>(segments_.size());
    for (int s = own.first; s < own.first + own.count; ++s) write_segment(program_.segments[s]);
    if (const auto end = ends_.find({-1, rank}); end != ends_.end()) {
      const int first = static_cast<int>(instructions_.size());
      emit(Opcode::Record, {end->second, program_.micro_batches - 1});
      segments_.push_back({.first = first, .count = 1});
      ++stream.count;
    }
    program_.streams.push_back(stream);
  }
  void write_segment(Segment segment) {
    const auto first = static_cast<int>(instructions_.size());
    const int end = segment.first + segment.count;
    const std::map<OpKey, int> last = last_pieces(segment);
    std::vector<Point> leaving;  // what the rank stands for once all that it sends is made
    for (int i = segment.first; i < end; ++i) {
      const Instruction& one = program_.instructions[i];
      if (!is_in_line(one)) {
        instructions_.push_back(one);
        if (one.code == Opcode::Compute && last.at(key_of(one)) == i) note_end(one);
      } else if (one.code == Opcode::Receive) {
        emit(Opcode::Wait, {event_of(taken_, one.index), one.micro_batch});
      } else {
        emit(Opcode::Record, {event_of(made_, one.index), one.micro_batch});
        if (stands_[one.index]) leaving.push_back({left_of(one.index), one.micro_batch});
        if (sends_more(i + 1, end)) continue;
        for (const Point& left : leaving) emit(Opcode::Wait, left);
        leaving.clear();
      }
    }
    segment.first = first;
    segment.count = static_cast<int>(instructions_.size()) - first;
    segments_.push_back(segment);
  }
  /// Returns true if another message follows from `at` on, before the next op.
  bool sends_more(int at, int end) const {
    for (int i = at; i < end && program_.instructions[i].code != Opcode::Compute; ++i) {
      if (!is_in_line(program_.instructions[i])) continue;
      return program_.instructions[i].code == Opcode::Send;
    }
    return false;
  }
  using OpKey = std::tuple<int, int, int>;  // kind, stage, micro-batch
  OpKey key_of(const Instruction& compute) const {
    const OpInfo& op = program_.ops[compute.index];
    return {static_cast<int>(op.kind), op.stage, compute.micro_batch};
  }
  /// Returns the instruction of each op's last piece: pieces of a pair take turns.
  std::map<OpKey, int> last_pieces(const Segment& segment) const {
    std::map<OpKey, int> last;
    for (int i = segment.first; i < segment.first + segment.count; ++i) {
      const Instruction& one = program_.instructions[i];
      if (one.code == Opcode::Compute) last[key_of(one)] = i;
    }
    return last;
  }
  /// Records the end of the op of its last piece `one`, if a post needs it.
  void note_end(const Instruction& one) {
    const OpInfo& op = program_.ops[one.index];
    const auto known = ends_.find({static_cast<int>(op.kind), op.stage});
    if (known != ends_.end()) emit(Opcode::Record, {known->second, one.micro_batch});
  }
  /// Returns the event that a message of `channel` has left its rank.
  int left_of(int channel) {
    const auto [entry, fresh] = left_.try_emplace(channel, -1);
    if (fresh) entry->second = new_event({.message = channel});
    return entry->second;
  }

  /// Returns the posts of `batch` by direction and other rank: those of each come one after the
  /// other.
  std::vector<Batch> tracks_of(const Batch& batch) const {
    std::vector<Batch> tracks;
    std::map<std::pair<bool, int>, std::size_t> known;
    for (const Post& post : batch) {
      const Channel& channel = program_.channels[post.channel];
      const int other = post.sends ? channel.to_rank : channel.from_rank;
      const auto [entry, fresh] = known.try_emplace({post.sends, other}, tracks.size());
      if (fresh) tracks.emplace_back();
      tracks[entry->second].push_back(post);
    }
    return tracks;
  }

  /// Writes as many streams as the batch with the most tracks has.
  void write_line(const Line& line) {
    std::vector<std::vector<Batch>> tracks;  // by batch
    std::size_t most = 1;
    for (const Batch& batch : line) {
      tracks.push_back(tracks_of(batch));
      most = std::max(most, tracks.back().size());
    }
    std::vector<int> done;  // by batch
    for (std::size_t b = 0; most > 1 && b < line.size(); ++b) {
      done.push_back(new_event({.recorders = static_cast<int>(tracks[b].size()),
                                .micro_batches = program_.micro_batches,
                                .message = line[b].front().channel}));
    }
    for (std::size_t i = 0; i < most; ++i) {
      const auto first = static_cast<int>(instructions_.size());
      for (std::size_t b = 0; b < line.size(); ++b) {
        if (i >= tracks[b].size()) continue;
        if (b > 0 && most > 1) emit(Opcode::Wait, {done[b - 1], 0});
        if (b == 0 && most > 1) emit(Opcode::Wait, {done.back(), -1});  // of the step before
        wait_for_begins(line[b]);
        for (const Post& post : tracks[b][i]) {
          emit(post.sends ? Opcode::Send : Opcode::Receive, {post.channel, post.micro_batch});
        }
        if (most > 1) emit(Opcode::Record, {done[b], 0});
        if (tracks[b].size() > 1) emit(Opcode::Wait, {done[b], 0});
        for (const Post& post : tracks[b][i]) record_end(post);
      }
      program_.streams.push_back({.first = static_cast<int>(segments_.size()),
                                  .count = 1,
                                  .repeats = program_.steps,
                                  .stride = program_.micro_batches});
      segments_.push_back(
          {.first = first, .count = static_cast<int>(instructions_.size()) - first});
    }
  }
  void wait_for_begins(const Batch& batch) {
    std::vector<Point> begins;
    for (const Post& post : batch) {
      if (std::find(begins.begin(), begins.end(), post.begins) != begins.end()) continue;
      begins.push_back(post.begins);
      emit(Opcode::Wait, post.begins);
    }
  }
  void record_end(const Post& post) {
    if (!post.sends) {
      emit(Opcode::Record, {event_of(taken_, post.channel), post.micro_batch});
    } else if (stands_[post.channel]) {
      emit(Opcode::Record, {left_of(post.channel), post.micro_batch});
    }
  }

  Program& program_;
  const StepOrder& order_;
  const MessageOrder& messages_;
  std::map<std::tuple<Cargo, int, int>, int> channels_;
  std::vector<int> made_, taken_;  // events by channel
  std::map<int, int> left_;        // likewise
  std::vector<bool> stands_;       // (channels) senders wait until their messages have left
  std::map<std::tuple<int, int>, int> ends_;  // events by kind and stage of an op; -1, rank: a step
  std::vector<Instruction> instructions_;
  std::vector<Segment> segments_;
};

}  // namespace

void add_message_streams(Program& program, const StepOrder& order, const MessageOrder& messages) {
  CHECK(messages.lines != MessageOrder::Lines::Free, "messages in lines");
  StreamWriter(program, order, messages).write();
}

}  // namespace interlock
