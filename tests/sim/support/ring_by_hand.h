// A run of WeiPipe played by hand, with what passes by.
// SPDX-License-Identifier: Apache-2.0
//
// The authors' program is told again action by action (forward_backward_step, weight_flow and
// grad_flow of weipipe.py), with chunks that know what they are: each op checks that the weights at
// hand are those of its chunk, and each update that all micro-batches are in its sum. A transfer
// begins when its sender has posted it and its receiver has posted a buffer for it, and both wait
// for it before they post the next one of its flow. Two things are as they must be for more than
// two ranks: a rank keeps the weights that its backwards begin with when they first pass, and a sum
// ends with the owner of its chunk.
#pragma once

#include <map>
#include <tuple>
#include <utility>

#include "tests/sim/support/test_chain.h"

namespace interlock {

struct RingRun {
  struct Times {
    double start = 0, end = 0;
  };
  std::map<std::tuple<OpKind, int, int>, Times> times;  // kind, stage, micro-batch
  std::map<std::pair<int, int>, double> bytes;          // by ranks
  double last = 0;
};

RingRun run_by_hand(const TestChain& chain);

}  // namespace interlock
