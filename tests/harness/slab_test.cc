// The memory of a device: best fit, no overlap, gaps that close, and marks that stay.
// SPDX-License-Identifier: Apache-2.0
#include "validate/executors/slab.h"

#include <doctest/doctest.h>

#include <vector>

#include "base/random.h"

namespace interlock::slab_test {

TEST_CASE("a block goes where it leaves the smallest gap, and gaps that touch become one") {
  Slab slab(10 * Slab::kBlock);
  const auto a = slab.allocate(4 * Slab::kBlock, MemoryClass::Stash);
  const auto b = slab.allocate(1, MemoryClass::Boundary);
  const auto c = slab.allocate(2 * Slab::kBlock, MemoryClass::Head);
  CHECK(std::vector<std::int64_t>{a, b, c} ==
        std::vector<std::int64_t>{0, 4 * Slab::kBlock, 5 * Slab::kBlock});
  slab.release(a);  // gaps of 4 and of 3
  CHECK(slab.allocate(3 * Slab::kBlock, MemoryClass::Stash) == 7 * Slab::kBlock);
  CHECK(slab.allocate(5 * Slab::kBlock, MemoryClass::Stash) == -1);
  slab.release(b);
  CHECK(slab.allocate(5 * Slab::kBlock, MemoryClass::Stash) == 0);
  CHECK(slab.peak() == 10 * Slab::kBlock);
  CHECK(slab.allocated_peak() == 10 * Slab::kBlock);
}

TEST_CASE("bytes are counted as asked for, by class, and once a peak is passed it stays") {
  Slab slab(1 << 20);
  const auto input = slab.allocate(100, MemoryClass::Boundary);
  slab.retag(input, MemoryClass::Stash);
  const auto head = slab.allocate(300, MemoryClass::Head);
  slab.release(head);
  CHECK(slab.live() == 100);
  CHECK(slab.peak() == 400);
  CHECK(slab.allocated_peak() == 3 * Slab::kBlock);
  CHECK(slab.at_peak()[static_cast<int>(MemoryClass::Stash)] == 100);
  CHECK(slab.at_peak()[static_cast<int>(MemoryClass::Boundary)] == 0);
  const auto nothing = slab.allocate(0, MemoryClass::Stash);
  CHECK(nothing >= 0);
  CHECK(nothing != slab.allocate(0, MemoryClass::Stash));
  CHECK(slab.allocated_peak() == 3 * Slab::kBlock);
}

TEST_CASE("whatever comes and goes, blocks do not overlap and everything comes back") {
  constexpr std::int64_t kCapacity = 64 * Slab::kBlock;
  Slab slab(kCapacity);
  struct Held {
    std::int64_t offset, bytes;
  };
  std::vector<Held> held;
  Random random(7, 1);
  for (int i = 0; i < 20'000; ++i) {
    if (!held.empty() && random.integer(0, 1) == 0) {
      const auto one = held.begin() + random.integer(0, static_cast<int>(held.size()) - 1);
      slab.release(one->offset);
      held.erase(one);
      continue;
    }
    const int bytes = random.integer(1, 3000);
    const Held fresh{slab.allocate(bytes, MemoryClass::Stash), bytes};
    if (fresh.offset < 0) continue;
    REQUIRE(fresh.offset + fresh.bytes <= kCapacity);
    for (const Held& other : held) {
      const bool apart =
          fresh.offset + fresh.bytes <= other.offset || other.offset + other.bytes <= fresh.offset;
      REQUIRE(apart);
    }
    held.push_back(fresh);
  }
  for (const Held& one : held) slab.release(one.offset);
  CHECK(slab.live() == 0);
  CHECK(slab.allocate(kCapacity, MemoryClass::Stash) == 0);
}

}  // namespace interlock::slab_test
