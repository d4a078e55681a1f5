// Draws what is refused.
// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda/emulator/refusals.h"

#include <array>
#include <cstdlib>

namespace emulated {
namespace {

struct Refusals {
  std::uint64_t seed = 0;
  std::array<std::uint64_t, kRefusals> asked{};
  std::array<int, kRefusals> refused{};
};

Refusals& refusals() {
  static Refusals all = [] {
    const char* const seed = std::getenv("EMULATED_REFUSALS");
    return Refusals{.seed = seed == nullptr ? 0 : std::strtoull(seed, nullptr, 10)};
  }();
  return all;
}

/// Returns bits that tell nothing of `x`. Source: the finaliser of splitmix64, Steele, Lea and
/// Flood, OOPSLA 2014 (recalled).
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// Returns of how many one is refused. A run asks for two splits, for products of some ten shapes
/// and for dozens of blocks: it shall often come to its end.
std::uint64_t one_of(Refusal what) {
  constexpr std::array<std::uint64_t, kRefusals> kOneOf = {2, 32, 8, 64};
  return kOneOf[static_cast<std::size_t>(what)];
}

}  // namespace

void refuse_by(std::uint64_t seed) { refusals() = {.seed = seed}; }

bool refuses(Refusal what, std::uint64_t which) {
  Refusals& all = refusals();
  const auto kind = static_cast<std::size_t>(what);
  const std::uint64_t asked = all.asked[kind]++;
  if (all.seed == 0) return false;
  const bool of_product = what == Refusal::Epilogue || what == Refusal::Alignment;
  const std::uint64_t drawn = mixed(mixed(all.seed * 8 + kind) ^ (of_product ? which : asked));
  if (drawn % one_of(what) != 0) return false;
  ++all.refused[kind];
  return true;
}

int refused(Refusal what) { return refusals().refused[static_cast<std::size_t>(what)]; }

}  // namespace emulated
