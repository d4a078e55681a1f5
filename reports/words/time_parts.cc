// Parts of a step: ops by use, idle time by cause.
// SPDX-License-Identifier: Apache-2.0
#include "reports/words/time_parts.h"

#include <algorithm>
#include <numeric>

namespace interlock {
namespace {

constexpr int kOpUses = static_cast<int>(TimeUse::Exposed);  // those before it are ops
constexpr double kShareRounding = 1e-9;                      // of a share

// After the ops, in this order.
constexpr int kExposed = kOpUses, kFirstCause = kExposed + 1, kBubble = kFirstCause + kBubbleCauses,
              kParts = kBubble + 1;

constexpr std::array kCausesInOrder{
    BubbleCause::Exchange, BubbleCause::Message,    BubbleCause::Fill,
    BubbleCause::Drain,    BubbleCause::Activation, BubbleCause::Gradient,
    BubbleCause::Peers,    BubbleCause::Room,       BubbleCause::Unknown};
static_assert(kCausesInOrder.size() == kBubbleCauses, "each once");
static_assert(kCausesInOrder.front() == BubbleCause::Exchange, "what older results do not tell");

constexpr const char* kLight = "#e5e5e5";
constexpr const char* kDark = "#666666";

TimePart part_of(TimeUse use) {
  const auto op = [](const char* name, OpKind kind) { return TimePart{name, swatch(kind).colour}; };
  switch (use) {
    case TimeUse::Forward:
      return op("forward", OpKind::F);
    case TimeUse::BackwardInput:
      return op("backward, input half", OpKind::I);
    case TimeUse::Backward:
      return op("backward, full", OpKind::B);
    case TimeUse::BackwardWeight:
      return op("backward, weight half", OpKind::W);
    case TimeUse::Head:
      return op("auxiliary head", OpKind::H);
    case TimeUse::Recompute:
      return op("recompute", OpKind::R);
    case TimeUse::Extra:
      return {"extra traversals", "#b3a2d8"};
    case TimeUse::Update:
      return op("optimiser update", OpKind::U);
    case TimeUse::Exposed:
      return {"exposed communication", kDark};
    case TimeUse::Bubble:
      return {"bubble", kLight};
  }
  return {"", kLight};
}

Hatch hatch_of(BubbleCause cause) {
  switch (cause) {
    case BubbleCause::Fill:
      return Hatch::Rising;
    case BubbleCause::Drain:
      return Hatch::Falling;
    case BubbleCause::Activation:
      return Hatch::Upright;
    case BubbleCause::Gradient:
      return Hatch::Level;
    case BubbleCause::Peers:
      return Hatch::Dots;
    case BubbleCause::Room:
      return Hatch::Crossed;
    case BubbleCause::Exchange:
      return Hatch::Rising;
    case BubbleCause::Message:
    case BubbleCause::Unknown:
      break;
  }
  return Hatch::None;
}

TimePart part_of(BubbleCause cause) {
  if (cause == BubbleCause::Message) return {words_of(cause), kDark};
  if (cause == BubbleCause::Exchange) return {words_of(cause), "#999999", hatch_of(cause)};
  return {words_of(cause), kLight, hatch_of(cause)};
}

std::vector<TimePart> all_parts() {
  std::vector<TimePart> parts;
  parts.reserve(kParts);
  for (int use = 0; use < kOpUses; ++use) parts.push_back(part_of(static_cast<TimeUse>(use)));
  parts.push_back(part_of(TimeUse::Exposed));
  for (const BubbleCause cause : kCausesInOrder) parts.push_back(part_of(cause));
  parts.push_back(part_of(TimeUse::Bubble));
  return parts;
}

}  // namespace

const std::vector<TimePart>& time_parts() {
  static const std::vector<TimePart> parts = all_parts();
  return parts;
}

const char* words_of(BubbleCause cause) {
  switch (cause) {
    case BubbleCause::Fill:
      return "fill";
    case BubbleCause::Drain:
      return "drain";
    case BubbleCause::Activation:
      return "waiting for activations";
    case BubbleCause::Gradient:
      return "waiting for gradients";
    case BubbleCause::Peers:
      return "waiting for other devices";
    case BubbleCause::Room:
      return "waiting for room in a queue";
    case BubbleCause::Message:
      return "messages on their way";
    case BubbleCause::Exchange:
      return "exchanges inside ops";
    case BubbleCause::Unknown:
      break;
  }
  return "between ops";
}

std::vector<double> part_shares(const std::array<double, kTimeUses>& time, const Bubbles* bubbles,
                                double step_time) {
  std::vector<double> shares(kParts, 0);
  std::copy_n(time.begin(), kOpUses, shares.begin());
  const double idle = std::max(0.0, 1 - std::accumulate(time.begin(), time.begin() + kOpUses, 0.0));
  const double exposed = time[static_cast<std::size_t>(TimeUse::Exposed)];
  if (bubbles == nullptr || !(step_time > 0)) {
    // If a window cuts an op, its waits may add up to a little more than its idle time.
    shares[kExposed] = exposed <= idle + kShareRounding ? exposed : idle;
    shares[kBubble] = time[static_cast<std::size_t>(TimeUse::Bubble)];
    return shares;
  }
  double known = 0;
  for (std::size_t i = 0; i < kBubbleCauses; ++i) {
    const double seconds = (*bubbles)[static_cast<std::size_t>(kCausesInOrder[i])];
    known += shares[kFirstCause + i] = seconds / step_time;
  }
  // Results of older programs name no exchanges inside ops: what is idle without a cause.
  if (idle - known > kShareRounding) shares[kFirstCause] += idle - known;
  return shares;
}

}  // namespace interlock
