// Counter-based random numbers: the same (seed, stream, counter) gives the same number everywhere.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace interlock {

/// Mixes 64 bits so that every input bit moves every output bit (splitmix64's finaliser).
constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// A stream of numbers without hidden state: number `counter` of `stream` under `seed`.
/// Example: the third bits() of Random(7, 1) are mix64((mix64(7) ^ 1) + mix64(2)) everywhere.
class Random {
 public:
  constexpr Random(std::uint64_t seed, std::uint64_t stream) : key_(mix64(seed) ^ stream) {}
  constexpr std::uint64_t bits() { return mix64(key_ + mix64(counter_++)); }
  /// Returns a number uniform in [0, 1).
  constexpr double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  /// Returns a number uniform in [least, most], both included. REQUIRES: least <= most.
  constexpr int integer(int least, int most) {
    const auto choices = static_cast<std::uint64_t>(std::int64_t{most} - least + 1);
    return static_cast<int>(least + static_cast<std::int64_t>(bits() % choices));
  }

 private:
  std::uint64_t key_;
  std::uint64_t counter_ = 0;
};

}  // namespace interlock
