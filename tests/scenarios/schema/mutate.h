// Seeded damage to the bytes and to the words of good scenarios.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "tests/scenarios/schema/good_scenarios.h"

namespace interlock {

inline int pick(Random& random, std::size_t size) {
  return random.integer(0, static_cast<int>(size) - 1);
}

inline void damage_byte(std::string& text, Random& random) {
  constexpr std::string_view kTelling = "{}[]\",:\\/0-.e\n\xff";
  const int at = pick(random, text.size());
  switch (random.integer(0, 3)) {
    case 0:
      text[at] = static_cast<char>(random.integer(0, 255));
      break;
    case 1:
      text[at] = kTelling[pick(random, kTelling.size())];
      break;
    case 2:
      text.erase(at, random.integer(1, 8));
      break;
    default:
      text.insert(at, text.substr(pick(random, text.size()), random.integer(1, 8)));
  }
}

/// Words, numbers and texts, where they stand.
inline std::vector<std::string_view> tokens_of(std::string_view text) {
  std::vector<std::string_view> tokens;
  const auto wordy = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!wordy(text[i])) continue;
    const std::size_t begin = i;
    while (i < text.size() && wordy(text[i])) ++i;
    tokens.push_back(text.substr(begin, i - begin));
  }
  return tokens;
}

inline bool is_number(std::string_view token) {
  return std::isdigit(static_cast<unsigned char>(token.front())) && token != "1f1b";
}

/// Replaces one word by another of the text, or by a value that loaders may stumble over; a number
/// often by a small one, so that many results are right.
inline void damage_token(std::string& text, Random& random) {
  static const std::vector<std::string> telling = {
      "0",          "-1",          "1e9",     "1e308", "2147483647", "2147483648", "0.5",   "null",
      "true",       "[]",          "{}",      "\"\"",  "\"1 PB\"",   "100000",     "65536", "7",
      "global",     "overlapping", "list",    "naive", "1f1b",       "greedy",     "gpipe", "local",
      "recomputed", "pairwise",    "uniform", "sweep", "full",       "fused",      "split", "loop",
      "2d",         "3d",          "ring",    "none",  "data",       "tensor",     "16",    "32"};
  const std::vector<std::string_view> tokens = tokens_of(text);
  if (tokens.empty()) return;
  const std::string_view token = tokens[pick(random, tokens.size())];
  std::string other = random.integer(0, 1) ? std::string(tokens[pick(random, tokens.size())])
                                           : telling[pick(random, telling.size())];
  if (is_number(token) && random.integer(0, 3) > 0) other = std::to_string(random.integer(1, 9));
  text.replace(token.data() - text.data(), token.size(), other);
}

/// One of the good scenarios with one or two mutations; the same for the same seed.
inline std::string mutated_scenario(std::uint64_t seed) {
  Random random(seed, 2);
  std::string text = good_scenarios()[pick(random, good_scenarios().size())];
  const int changes = random.integer(1, 2);
  for (int i = 0; i < changes && !text.empty(); ++i) {
    if (random.integer(0, 3) == 0) {
      damage_byte(text, random);
    } else {
      damage_token(text, random);
    }
  }
  return text;
}

}  // namespace interlock
