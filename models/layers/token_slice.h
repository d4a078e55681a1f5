// TokenSlice: a part of every sequence; what its attention to the tokens before it reads and makes.
// SPDX-License-Identifier: Apache-2.0
//
// Example: 16,384 tokens of one layer of Llama 3 70B on 8 tensor devices in bf16, 8 query heads and
// one key head of 128 each: 8 MiB of keys and values, 32 MiB of queries, as many of outputs, and
// 512 KiB of statistics.
#pragma once

#include "base/units.h"

namespace interlock {

/// A part of every sequence of a micro-batch: `length` tokens that follow `context` others, of `of`
/// in all. A profile does not know its tokens: there they count equal parts.
struct TokenSlice {
  int length = 1, context = 0, of = 1;
  bool operator==(const TokenSlice&) const = default;
};

/// Bytes of one slice on one device, of `layers` whose tokens attend to all tokens before them.
struct SliceContext {
  int layers = 0;
  Bytes keys;        // and values, of the slice's own tokens
  Bytes queries;     // their gradients take as much
  Bytes outputs;     // likewise
  Bytes statistics;  // of rows of scores, in fp32, which merge the outputs of two parts
  bool operator==(const SliceContext&) const = default;
};

inline SliceContext& operator+=(SliceContext& context, const SliceContext& more) {
  context.layers += more.layers;
  context.keys += more.keys;
  context.queries += more.queries;
  context.outputs += more.outputs;
  context.statistics += more.statistics;
  return context;
}

}  // namespace interlock
