// Chains that are laid on ranks as their schedules ask for.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/sim/support/test_chain.h"

namespace interlock {
namespace {

/// Lays 2 L + 1 stages as HelixPipe does, L = `each` a rank, in a copy for each place of a round.
TestChain make_helix(int ranks, std::string_view kind, const ChainStage& stage, int each) {
  const int stages = 2 * each * ranks + 1;
  TestChain chain =
      make_chain(std::vector<ChainStage>(std::size_t{1} * ranks * stages, stage), kind);
  chain.copies = ranks;
  chain.cluster = make_chain(ranks, kind).cluster;
  for (int i = 0; i < ranks * stages; ++i) {
    const int own = i % stages, place = i / stages;
    chain.rank_of_stage[i] = own % 2 == 0 ? own / 2 % ranks : (own / 2 + place + 1) % ranks;
  }
  return chain;
}

}  // namespace

TestChain make_laid_chain(int ranks, std::string_view kind, const ChainStage& stage, int chunks) {
  const ScheduleEntry& entry = schedule_named(kind);
  if (entry.layout == StageLayout::Helix) {
    return make_helix(ranks, kind, stage, std::max(1, chunks));
  }
  const bool ring = entry.layout == StageLayout::Ring;
  const int copies = ring ? ranks : has_copies(entry.layout) ? 2 : 1;
  const int rows = chunks > 0 && !ring ? chunks : entry.chunks * copies, of = rows / copies;
  TestChain chain = make_chain(std::vector<ChainStage>(std::size_t{1} * rows * ranks, stage), kind);
  chain.copies = copies;
  chain.policy.chunks = of;
  chain.cluster = make_chain(ranks, kind).cluster;
  for (int i = 0; i < rows * ranks; ++i) {
    const int turns = entry.layout == StageLayout::Loop ? 0 : i / ranks % of + i / ranks / of;
    chain.rank_of_stage[i] = ring ? i / ranks : turns % 2 == 1 ? ranks - 1 - i % ranks : i % ranks;
  }
  return chain;
}

}  // namespace interlock
