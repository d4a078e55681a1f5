// Programs to bytes and back, by one list of members for both ways.
// SPDX-License-Identifier: Apache-2.0
#include "sim/program/program_bytes.h"

#include <algorithm>
#include <concepts>
#include <cstring>
#include <stdexcept>
#include <type_traits>

#include "sim/program/trace.h"

namespace interlock {
namespace {

template <class T, class Named>
concept Is = std::same_as<std::remove_const_t<T>, Named>;

// A structured binding names every member: with one more of them, these do not compile.

template <class Bytes>
void pass(Bytes& bytes, Is<OpInfo> auto& op) {
  auto& [kind, stage, loss, useful, duration, flops, communication, inside, replay, compute_bound,
         memory_bound, messages, counted] = op;
  bytes(kind, stage, loss, useful, duration, flops, communication, inside, replay, compute_bound,
        memory_bound, messages, counted);
}

template <class Bytes>
void pass(Bytes& bytes, Is<Rank> auto& rank) {
  auto& [first_stream, streams, stages, weight_versions, resident, libraries, host, update_copies,
         order] = rank;
  bytes(first_stream, streams, stages, weight_versions, resident, libraries, host, update_copies,
        order);
}

template <class Bytes>
void pass(Bytes& bytes, Is<Channel> auto& channel) {
  auto& [cargo, from_rank, to_rank, from_stage, to_stage, wire, depth, replay, synchronous,
         sender_waits, in_line, from_resident, read_by_head, size, received, held, occupancy,
         latency, flows] = channel;
  bytes(cargo, from_rank, to_rank, from_stage, to_stage, wire, depth, replay, synchronous,
        sender_waits, in_line, from_resident, read_by_head, size, received, held, occupancy,
        latency, flows);
}

template <class Bytes>
void pass(Bytes& bytes, Is<Wire> auto& wire) {
  auto& [from_rank, to_rank, communicator, part_of, links, bandwidth, shared] = wire;
  bytes(from_rank, to_rank, communicator, part_of, links, bandwidth, shared);
}

template <class Bytes>
void pass(Bytes& bytes, Is<ProgramLink> auto& link) {
  auto& [name, bandwidth, share, stands_for, likes] = link;
  bytes(name, bandwidth, share, stands_for, likes);
}

template <class Bytes>
void pass(Bytes& bytes, Is<Collective> auto& collective) {
  auto& [kind, axis, stage, communicator, size, back, occupancy, own_occupancy, known_late, latency,
         memory, shared, flows, loads] = collective;
  bytes(kind, axis, stage, communicator, size, back, occupancy, own_occupancy, known_late, latency,
        memory, shared, flows, loads);
}

template <class Bytes>
void pass(Bytes& bytes, Is<Communicator> auto& communicator) {
  auto& [ranks] = communicator;
  bytes(ranks);
}

template <class Bytes>
void pass(Bytes& bytes, Is<MeasuredTimes> auto& times) {
  auto& [ops] = times;
  bytes(ops);
}

template <class Bytes>
void pass(Bytes& bytes, Is<Variation> auto& variation) {
  auto& [seed, compute, transfers, slow, measured] = variation;
  bytes(seed, compute, transfers, slow, measured);
}

/// Passes all but PackedTimes::work_of, which is a function.
template <class Bytes>
void pass(Bytes& bytes, Is<PackedTimes> auto& packed) {
  auto& [work, durations, group_of_replica, work_of] = packed;
  bytes(work, durations, group_of_replica);
}

template <class Bytes>
void pass(Bytes& bytes, Is<Program> auto& program) {
  auto& [stages, copies, replicas, slices, slice_counts, micro_batches, steps, update_every,
         pattern, version_lag, ahead, ticks_per_second, memory_held, variation, packed,
         interference, instructions, segments, streams, ranks, ops, channels, wires, links, buffers,
         events, collectives, communicators, ignores_contention, folding_problem, wire_order] =
      program;
  bytes(stages, copies, replicas, slices, slice_counts, micro_batches, steps, update_every, pattern,
        version_lag, ahead, ticks_per_second, memory_held, variation, packed, interference,
        instructions, segments, streams, ranks, ops, channels, wires, links, buffers, events,
        collectives, communicators, ignores_contention, folding_problem, wire_order);
}

/// Appends what it is called with to a text.
class BytesOut {
 public:
  explicit BytesOut(std::string& text) : text_(text) {}
  template <class... Values>
  void operator()(const Values&... values) {
    (put(values), ...);
  }

 private:
  void append(const void* data, std::size_t size) {
    if (size > 0) text_.append(static_cast<const char*>(data), size);
  }
  template <class Value>
  void put(const Value& value) {
    if constexpr (std::is_trivially_copyable_v<Value>) {
      static_assert(!std::is_pointer_v<Value>);
      append(&value, sizeof value);
    } else {
      pass(*this, value);
    }
  }
  template <class Value>
  void put(const std::vector<Value>& values) {
    put(values.size());
    if constexpr (std::is_trivially_copyable_v<Value>) {
      append(values.data(), values.size() * sizeof(Value));
    } else {
      for (const Value& value : values) put(value);
    }
  }
  void put(const std::string& text) {
    put(text.size());
    append(text.data(), text.size());
  }
  template <class First, class Second>
  void put(const std::pair<First, Second>& both) {
    (*this)(both.first, both.second);
  }
  template <class Value>
  void put(const std::shared_ptr<const Value>& value) {
    put(value != nullptr);
    if (value) put(*value);
  }
  std::string& text_;
};

/// Fills what it is called with from a text.
class BytesIn {
 public:
  explicit BytesIn(std::string_view text) : text_(text) {}
  template <class... Values>
  void operator()(Values&... values) {
    (get(values), ...);
  }
  bool at_end() const { return text_.empty(); }

 private:
  void take(void* to, std::size_t size) {
    if (size > text_.size()) throw std::runtime_error("a part of the program is missing");
    if (size > 0) std::memcpy(to, text_.data(), size);
    text_.remove_prefix(size);
  }
  template <class Value>
  void get(Value& value) {
    if constexpr (std::is_trivially_copyable_v<Value>) {
      take(&value, sizeof value);
    } else {
      pass(*this, value);
    }
  }
  /// Returns a number of values of `size` bytes or more each.
  std::size_t get_length(std::size_t size) {
    std::size_t length = 0;
    get(length);
    if (length > text_.size() / size) throw std::runtime_error("a part of the program is missing");
    return length;
  }
  template <class Value>
  void get(std::vector<Value>& values) {
    if constexpr (std::is_trivially_copyable_v<Value>) {
      values.resize(get_length(sizeof(Value)));
      take(values.data(), values.size() * sizeof(Value));
    } else {
      values.resize(get_length(1));
      for (Value& value : values) get(value);
    }
  }
  void get(std::string& text) {
    text.resize(get_length(1));
    take(text.data(), text.size());
  }
  template <class First, class Second>
  void get(std::pair<First, Second>& both) {
    (*this)(both.first, both.second);
  }
  template <class Value>
  void get(std::shared_ptr<const Value>& value) {
    bool there = false;
    get(there);
    if (!there) return;
    const auto made = std::make_shared<Value>();
    get(*made);
    value = made;
  }
  std::string_view text_;
};

/// Identifies a build by its version and by the sizes of what programs and traces are made of.
std::string build_mark() {
  std::string mark = "interlock-program/1 " INTERLOCK_VERSION;
  for (const std::size_t size :
       {sizeof(Program),     sizeof(OpInfo),      sizeof(Rank),         sizeof(Channel),
        sizeof(Wire),        sizeof(ProgramLink), sizeof(Collective),   sizeof(Buffer),
        sizeof(Event),       sizeof(Instruction), sizeof(Interference), sizeof(Variation),
        sizeof(PackedTimes), sizeof(Segment),     sizeof(Stream),       sizeof(WireFlow),
        sizeof(Span),        sizeof(Transfer),    sizeof(MemoryChange), sizeof(CollectiveSpan)}) {
    mark += " " + std::to_string(size);
  }
  return mark;
}

/// Pairs of tokens (groups, micro-batches of the run), as PackedTimes::work_of tells them.
using WorkTable = std::vector<std::vector<double>>;

WorkTable work_table(const Program& program) {
  WorkTable table;
  if (!program.packed) return table;
  for (const int group : program.packed->group_of_replica) {
    table.resize(std::max(table.size(), static_cast<std::size_t>(group) + 1));
  }
  for (std::size_t group = 0; group < table.size(); ++group) {
    for (int number = 0; number < program.micro_batches * program.steps; ++number) {
      table[group].push_back(
          program.packed->work_of(program.variation.seed, static_cast<int>(group), number));
    }
  }
  return table;
}

}  // namespace

std::string program_bytes(const Program& program) {
  std::string text;
  BytesOut bytes(text);
  bytes(build_mark(), program, work_table(program));
  return text;
}

Program read_program(std::string_view text) {
  BytesIn bytes(text);
  const std::string expected = build_mark();
  std::string mark;
  WorkTable table;
  Program program;
  bytes(mark);
  if (mark != expected) throw std::runtime_error("another build has written the program");
  bytes(program, table);
  if (!bytes.at_end()) throw std::runtime_error("more than a program was written");
  if (!program.packed) return program;
  PackedTimes packed = *program.packed;
  packed.work_of = [table = std::move(table)](std::uint64_t, int group, int number) {
    return table.at(static_cast<std::size_t>(group)).at(static_cast<std::size_t>(number));
  };
  program.packed = std::make_shared<const PackedTimes>(std::move(packed));
  return program;
}

}  // namespace interlock
