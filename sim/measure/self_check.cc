// Sums of metrics, and counts of a trace against those of its program.
// SPDX-License-Identifier: Apache-2.0
#include "sim/measure/self_check.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "sim/program/cursor.h"

namespace interlock {
namespace {

constexpr double kTolerance = 1e-7;  // of a share: sums of millions of spans

std::string exact_words(double value) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.12g", value);
  return text.data();
}

std::string disagreement(const std::string& what, double is, double expected) {
  return what + " is " + exact_words(is) + "; expected " + exact_words(expected);
}

bool differ(double a, double b, double scale) {
  return !(std::abs(a - b) <= kTolerance * std::max(scale, 1e-300));
}

double exposed_of(const DeviceMetrics& device) {
  return device.time[static_cast<std::size_t>(TimeUse::Exposed)];
}

std::string time_fault(const DeviceMetrics& device, const std::string& name) {
  double sum = 0, busy = 0;
  for (int use = 0; use < kTimeUses; ++use) {
    const double share = device.time[use];
    if (!(-kTolerance <= share && share <= 1 + kTolerance)) {
      return disagreement("the share " + std::string(name_of(static_cast<TimeUse>(use))) + name,
                          share, std::clamp(share, 0.0, 1.0));
    }
    sum += share;
    if (use < static_cast<int>(TimeUse::Exposed)) busy += share;
  }
  if (differ(sum, 1, 1)) return disagreement("the sum of time shares" + name, sum, 1);
  if (differ(device.busy, busy, 1)) return disagreement("the busy share" + name, device.busy, busy);
  return "";
}

std::string idle_fault(const DeviceMetrics& device, const Bubbles& bubbles, double step,
                       const std::string& name) {
  const double least = *std::min_element(bubbles.begin(), bubbles.end());
  if (least < -kTolerance * step) return disagreement("the least cause of idling" + name, least, 0);
  const double sum = std::accumulate(bubbles.begin(), bubbles.end(), 0.0);
  const double idle = (1 - device.busy) * step;
  if (differ(sum, idle, step)) {
    return disagreement("the sum of causes of idling" + name + " in seconds", sum, idle);
  }
  const double waits = bubbles[static_cast<std::size_t>(BubbleCause::Message)] +
                       bubbles[static_cast<std::size_t>(BubbleCause::Exchange)];
  if (!differ(waits, exposed_of(device) * step, step)) return "";
  return disagreement("waiting for messages and exchanges" + name + " in seconds", waits,
                      exposed_of(device) * step);
}

std::string memory_fault(const DeviceMetrics& device, const std::string& name) {
  double sum = 0;
  for (const Bytes bytes : device.memory) sum += bytes.value();
  const double peak = device.peak_memory.value();
  if (!differ(sum, peak, peak)) return "";
  return disagreement("the sum of memory by class" + name + " in bytes", sum, peak);
}

/// How often streams execute each op, send over each channel, and receive.
struct ProgramCount {
  std::vector<std::int64_t> ops, sends, receives;
};

ProgramCount count_instructions(const Program& program) {
  ProgramCount count{std::vector<std::int64_t>(program.ops.size(), 0),
                     std::vector<std::int64_t>(program.channels.size(), 0),
                     std::vector<std::int64_t>(program.channels.size(), 0)};
  for (const Stream& stream : program.streams) {
    visit_instructions(program, stream, [&](const Instruction& one, std::int64_t turns) {
      if (one.code == Opcode::Compute) count.ops[one.index] += turns;
      if (one.code == Opcode::Send) count.sends[one.index] += turns;
      if (one.code == Opcode::Receive) count.receives[one.index] += turns;
    });
  }
  return count;
}

std::string count_fault(const std::string& what, std::size_t index, std::int64_t is,
                        std::int64_t expected) {
  return disagreement(what + " " + std::to_string(index), static_cast<double>(is),
                      static_cast<double>(expected));
}

}  // namespace

std::string sum_fault(const Metrics& metrics) {
  const double step = metrics.step_time.value();
  for (std::size_t r = 0; r < metrics.devices.size(); ++r) {
    const DeviceMetrics& device = metrics.devices[r];
    const std::string name = " of rank " + std::to_string(device.rank);
    std::string fault = memory_fault(device, name);
    if (fault.empty() && step > 0) fault = time_fault(device, name);
    if (fault.empty() && step > 0 && metrics.explanation) {
      fault = idle_fault(device, metrics.explanation->devices.at(r), step, name);
    }
    if (!fault.empty()) return fault;
  }
  return "";
}

TraceAudit::TraceAudit(const Program& program)
    : program_(program),
      ops_(program.ops.size(), 0),
      messages_(program.channels.size(), 0),
      memory_(program.ranks.size()) {}

void TraceAudit::add(const MemoryChange& change) {
  Held& held = memory_[change.rank][static_cast<std::size_t>(change.memory_class)];
  held.bytes += change.bytes;
  if (change.bytes > 0) held.taken += change.bytes;
}

std::string TraceAudit::fault() const {
  const ProgramCount count = count_instructions(program_);
  // A run that ends within a pattern of work may leave on its way what is sent once in a pattern.
  const bool whole_patterns =
      std::int64_t{program_.micro_batches} * program_.steps % program_.pattern == 0;
  for (std::size_t op = 0; op < ops_.size(); ++op) {
    if (program_.ops[op].replay) continue;  // as often as there is time
    if (ops_[op] != count.ops[op]) return count_fault("runs of op", op, ops_[op], count.ops[op]);
  }
  for (std::size_t c = 0; c < messages_.size(); ++c) {
    const bool lost = count.sends[c] != count.receives[c];
    if (lost && (whole_patterns || count.sends[c] < count.receives[c])) {
      return count_fault("messages received on channel", c, count.receives[c], count.sends[c]);
    }
    if (program_.channels[c].wire >= 0 && messages_[c] != count.sends[c]) {
      return count_fault("messages carried on channel", c, messages_[c], count.sends[c]);
    }
  }
  return memory_fault(whole_patterns);
}

std::string TraceAudit::memory_fault(bool whole_patterns) const {
  for (std::size_t r = 0; r < memory_.size(); ++r) {
    for (std::size_t i = 0; i < memory_[r].size(); ++i) {
      const Held& held = memory_[r][i];
      const bool on_its_way =
          !whole_patterns && i == static_cast<std::size_t>(MemoryClass::Boundary);
      if (on_its_way && held.bytes >= 0) continue;
      if (std::abs(held.bytes) <= 1 + kTolerance * held.taken) continue;
      return disagreement("what rank " + std::to_string(r) + " holds of " +
                              name_of(static_cast<MemoryClass>(i)) + " at the end, in bytes",
                          held.bytes, 0);
    }
  }
  return "";
}

}  // namespace interlock
