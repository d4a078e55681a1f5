// SHA-256 as FIPS 180-4 defines it; names of words and functions are the standard's.
// SPDX-License-Identifier: Apache-2.0
#include "base/checksum.h"

#include <array>
#include <bit>
#include <cstdint>

namespace interlock {
namespace {

using Word = std::uint32_t;

constexpr std::size_t kBlock = 64, kWords = 16, kRounds = 64;

// Section 4.2.2: of the cube roots of the first 64 primes.
constexpr std::array<Word, kRounds> kConstants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

using State = std::array<Word, 8>;

// Section 5.3.3: of the square roots of the first 8 primes.
constexpr State kFirst = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                          0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

Word turned(Word x, int a, int b, int c) {
  return std::rotr(x, a) ^ std::rotr(x, b) ^ std::rotr(x, c);
}
Word turned_and_shifted(Word x, int a, int b, int c) {
  return std::rotr(x, a) ^ std::rotr(x, b) ^ (x >> static_cast<unsigned>(c));
}

/// Section 6.2.2.
void add_block(State& state, std::string_view block) {
  std::array<Word, kRounds> w{};
  for (std::size_t i = 0; i < kBlock; ++i) {
    w[i / 4] = w[i / 4] << 8U | static_cast<unsigned char>(block[i]);
  }
  for (std::size_t t = kWords; t < kRounds; ++t) {
    w[t] = turned_and_shifted(w[t - 2], 17, 19, 10) + w[t - 7] +
           turned_and_shifted(w[t - 15], 7, 18, 3) + w[t - 16];
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t t = 0; t < kRounds; ++t) {
    const Word first = h + turned(e, 6, 11, 25) + ((e & f) ^ (~e & g)) + kConstants[t] + w[t];
    const Word second = turned(a, 2, 13, 22) + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + first;
    d = c;
    c = b;
    b = a;
    a = first + second;
  }
  const State added = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < added.size(); ++i) state[i] += added[i];
}

/// Section 5.1.1: returns what follows the whole blocks of `text`: a one, zeros, its size in bits.
std::string padded_end(std::string_view text) {
  constexpr std::size_t kSize = 8;
  std::string end(text.substr(text.size() / kBlock * kBlock));
  end += '\x80';
  while (end.size() % kBlock != kBlock - kSize) end += '\0';
  const std::uint64_t bits = std::uint64_t{text.size()} * 8;
  for (int shift = 56; shift >= 0; shift -= 8) end += static_cast<char>(bits >> shift);
  return end;
}

}  // namespace

std::string sha256(std::string_view text) {
  State state = kFirst;
  const auto add_blocks = [&](std::string_view blocks) {
    for (; blocks.size() >= kBlock; blocks.remove_prefix(kBlock)) {
      add_block(state, blocks.substr(0, kBlock));
    }
  };
  add_blocks(text);
  add_blocks(padded_end(text));
  std::string hexadecimal;
  for (const Word word : state) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    for (int shift = 28; shift >= 0; shift -= 4) hexadecimal += kDigits[word >> shift & 15U];
  }
  return hexadecimal;
}

}  // namespace interlock
