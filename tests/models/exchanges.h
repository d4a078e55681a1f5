// Exchanges in tests: short names for them, and what they move.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sstream>

#include "tests/models/built.h"

namespace interlock {

inline bool operator==(const Exchange& a, const Exchange& b) {
  return alike(a, b) && a.count == b.count;
}

/// One line of text: kind, axis, count and bytes by number.
inline std::string text_of(const std::vector<Exchange>& list) {
  std::ostringstream out;
  for (const Exchange& one : list) {
    out << "kind " << static_cast<int>(one.kind) << " axis " << static_cast<int>(one.axis) << " x"
        << one.count << " of " << one.bytes.value() << " + " << one.back.value() << " B"
        << (one.overlapped ? " beside" : "") << "; ";
  }
  return out.str();
}

/// The bytes that one member of a collective of n receives on average, when every byte and message
/// goes straight from where it is to where it must be, or around a ring.
struct Received {
  double bytes = 0;
  double messages = 0;
};

inline Received received_by_one(const Exchange& one, int n) {
  const double others = n - 1.0;
  double messages = others;  // a ring: one from the neighbour in each step
  double shares = 1;
  switch (one.kind) {
    case CollectiveKind::AllReduce:
      shares = 2;
      messages = 2 * others;
      break;
    case CollectiveKind::Broadcast:
    case CollectiveKind::Reduce:
      messages = others / n;  // n - 1 messages in all
      break;
    default:
      break;
  }
  return {.bytes = one.count * shares * one.bytes.value() * others / n,
          .messages = one.count * messages};
}

}  // namespace interlock
