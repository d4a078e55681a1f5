// Closed forms of asynchronous pipelines, worked out by hand.
// SPDX-License-Identifier: Apache-2.0
#include "tests/formulas/asynchronous_form.h"

#include <algorithm>

namespace interlock {

Seconds asynchronous_period(const EqualChain& chain, bool forward_again) {
  const StageTimes& stage = chain.stage;
  const Seconds work = stage.forward * (forward_again ? 2 : 1) + stage.backward();
  Seconds rest(0);
  for (int k = 0; k < chain.stages; ++k) {
    rest = std::max(rest, (2 * k * chain.transfer + stage.update) / (k + 1));
  }
  return work + rest;
}

}  // namespace interlock
