// Time of runs whose messages share links.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace interlock {

/// Prints, for 64 stages x 64 micro-batches x 8 replicas whose devices share a card, time a task on
/// shared cards and on cards of their own, and flows of the solver a task; median of `rounds`.
void run_contention(int rounds);

}  // namespace interlock
