// Hyper-connections: work, weights and saved bytes.
// SPDX-License-Identifier: Apache-2.0
#include "models/streams/hyper_connections.h"

#include "models/layers/head.h"

namespace interlock {
namespace {

constexpr double kNumberBytes = 4;  // bytes: numbers that weigh streams are in fp32

double stream_elements(const StreamRows& s) { return s.rows * static_cast<double>(s.width); }

/// Returns the product that makes `numbers` of the streams, and their norm, one more pass over them
/// each way. `scales`: what groups of the numbers are multiplied by. The streams have gradients by
/// other ways, to which its own are added.
Operator stream_numbers(const StreamRows& s, int numbers, int scales, double element) {
  const double all = stream_elements(s) * s.streams;
  Operator op = linear({s.rows, s.width * s.streams, numbers, false}, element);
  keep_wide(op);
  op.forward.bytes += Bytes(all * element);
  op.input_gradient.bytes += Bytes(2 * all * element);
  op.parameters += numbers + scales;
  return op;
}

/// Returns the sum of the streams, each times its number.
Operator sum_of_streams(const StreamRows& s, double element) {
  const double one = stream_elements(s), all = one * s.streams;
  return elementwise({.forward = all + one, .backward = one + 3 * all, .gradients = one + all},
                     element);
}

}  // namespace

void append_stream_read(const StreamRows& s, double element, std::vector<Operator>& block) {
  const int numbers = s.streams * (s.streams + 2);
  block.push_back(stream_numbers(s, numbers, 3, element));
  // Sigmoids, and the iterations, which run within a kernel and again before its gradient.
  const double made = s.rows * numbers;
  block.push_back(
      elementwise({.forward = 2 * made, .backward = 3 * made, .stash = made, .gradients = 2 * made},
                  kNumberBytes));
  block.push_back(sum_of_streams(s, element));
}

Operator stream_write(const StreamRows& s, double element) {
  const double one = stream_elements(s), all = one * s.streams;
  return elementwise({.forward = 2 * all + one,
                      .backward = 3 * all + 2 * one,
                      .stash = one,
                      .gradients = 2 * all + one},
                     element);
}

Operator stream_copies(const StreamRows& s, double element) {
  const double moved = stream_elements(s) * (1 + s.streams);
  return elementwise({.forward = moved, .backward = moved, .gradients = moved}, element);
}

void append_stream_end(const StreamRows& s, double element, std::vector<Operator>& operators) {
  operators.push_back(stream_numbers(s, s.streams, 1, element));
  const double made = s.rows * s.streams;
  operators.push_back(
      elementwise({.forward = 2 * made, .backward = 3 * made, .stash = made, .gradients = 2 * made},
                  kNumberBytes));
  operators.push_back(sum_of_streams(s, element));
}

}  // namespace interlock
