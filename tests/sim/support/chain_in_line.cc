// Chains whose messages stand in line.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/sim/support/test_chain.h"

namespace interlock {

namespace {

bool may_stand_in_line(const TestChain& chain) {
  const int ranks = *std::ranges::max_element(chain.rank_of_stage) + 1;
  const bool chooses = is_plain(chain) && ranks < static_cast<int>(chain.rank_of_stage.size());
  return chain.strategy.kind == StrategyKind::Global && !chooses &&
         message_problem(chain.policy).empty();
}

}  // namespace

TestChain random_chain_in_line(Random& random) {
  TestChain chain;
  do {
    chain = random_chain(random);
  } while (!may_stand_in_line(chain));
  SchedulePolicy late_policy = chain.policy;
  late_policy.messages.late = true;
  const bool may_be_late = late_problem(late_policy).empty();
  const bool late = may_be_late && random.integer(0, 1) == 0;
  chain.policy.messages = {.lines = static_cast<MessageOrder::Lines>(random.integer(1, 2)),
                           .batched = late || random.integer(0, 1) == 0,
                           .late = late};
  chain.policy.waits_for_sends = random.integer(0, 3) == 0;
  return chain;
}

}  // namespace interlock
