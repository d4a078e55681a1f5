// Closed forms of asynchronous pipelines, worked out by hand.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/formulas/closed_form.h"

namespace interlock {

/// F + B + max over k = 0..K-1 of (2kc + o) / (k + 1), with an update after each micro-batch; B
/// includes a forward where that is run again. Stage s does F(b + K-1-s), B(b), U(b) in turn. From
/// the end of F(b) on stage s a chain leads up through F(b) of the k stages above, B on the highest
/// of them, and down again to B on stage s, which is the one after its F(b + k), k turns later; U
/// and the next F close the loop. It holds k + 1 forwards and backwards, one update and 2k
/// transfers, in k + 1 turns. With k = 0 it is the work of a stage: transfers of up to o / 2 are
/// hidden.
Seconds asynchronous_period(const EqualChain& chain, bool forward_again);

}  // namespace interlock
