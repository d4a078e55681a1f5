// Laskin et al.'s methods: work, time, memory and traffic of each.
// SPDX-License-Identifier: Apache-2.0
#include "tests/formulas/local_methods.h"

#include <algorithm>

#include "base/error.h"

namespace interlock {

LocalCost local_cost(LocalMethod method, int layers, int chunks, Seconds forward, Seconds head) {
  const Seconds whole = 3 * layers * forward;
  switch (method) {
    case LocalMethod::Backprop:
      return {whole, whole, 1, 2 * (layers - 1)};
    case LocalMethod::Greedy:
      return {whole + (layers - 1) * head, 3 * forward + head, 1, layers - 1};
    case LocalMethod::OverlappingRecomputed:
      return {6 * (layers - 1) * forward + (layers - 2) * head, 6 * forward + head, 2, layers - 2};
    case LocalMethod::Chunked:
      CHECK(layers % chunks == 0, "chunks of equal length");
      return {whole + (chunks - 1) * head, whole / chunks + head,
              static_cast<double>(layers) / chunks, chunks - 1};
  }
  CHECK(false, "every method has a row");
}

Seconds backlink_period(const EqualChain& chain, Seconds down) {
  const StageTimes& s = chain.stage;
  const Seconds wait = std::max(s.forward + 2 * chain.transfer, s.backward_weight);
  return s.forward + s.head + s.backward_input + wait + down + s.update;
}

}  // namespace interlock
