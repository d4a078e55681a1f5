// Values that a search tries where nothing is asked: sizes of micro-batches, stages of a rank.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace interlock {

/// Returns sizes of micro-batches, ascending, of the divisors of a replica's `batch`: from each
/// power of two up to the next one that power, or else the largest. E.g. 1, 2, 4, 10, 25, 50, 125,
/// 250 and 500 of 500.
std::vector<int> usual_micro_batches(int batch);

/// Returns how many stages each of `ranks` ranks may have, as far as more make the longest of
/// `modules` in a row shorter: else they only send more messages.
std::vector<int> usual_chunks(int modules, int ranks);

}  // namespace interlock
