// Splits names into words.
// SPDX-License-Identifier: Apache-2.0
#include "reports/kineto/phase_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

namespace interlock {
namespace {

constexpr std::array<const char*, kPhases> kNames = {
    "forward", "backward_input", "backward_weight", "backward", "head", "recompute", "update"};

using Words = std::vector<std::string>;

bool is_digit(char c) { return '0' <= c && c <= '9'; }

/// Returns the words of `text` in lower case.
Words words_of(std::string_view text) {
  Words words(1);
  for (const char c : text) {
    const bool between = c == ' ' || c == '_' || c == '-' || c == ':' || c == '/';
    if (!between) {
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

bool is_number(const std::string& word) {
  return !word.empty() && word.find_first_not_of("0123456789") == std::string::npos;
}

/// "PP:2F5": digits, a letter, digits.
std::optional<PhaseName> pipelining_action(std::string_view text) {
  std::size_t letter = 0, end = 0;
  while (letter < text.size() && is_digit(text[letter])) ++letter;
  end = letter + 1;
  while (end < text.size() && is_digit(text[end])) ++end;
  if (letter == 0 || letter >= text.size() || end < text.size()) return std::nullopt;
  const std::string stage = "stage " + std::string(text.substr(0, letter));
  switch (text[letter]) {
    case 'F':
      return PhaseName{Phase::Forward, stage};
    case 'B':
      return PhaseName{Phase::Backward, stage};
    case 'I':
      return PhaseName{Phase::BackwardInput, stage};
    case 'W':
      return PhaseName{Phase::BackwardWeight, stage};
    default:
      return std::nullopt;
  }
}

/// Takes the words of a phase from the front.
std::optional<Phase> take_phase(Words& words) {
  for (int i = 0; i < kPhases; ++i) {
    const Words name = words_of(kNames[i]);
    if (words.size() < name.size()) continue;
    if (!std::equal(name.begin(), name.end(), words.begin())) continue;
    words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(name.size()));
    return static_cast<Phase>(i);
  }
  return std::nullopt;
}

/// Drops "micro-batch 5" from the end.
void drop_micro_batch(Words& words) {
  if (words.size() < 2 || !is_number(words.back())) return;
  const std::string& before = words[words.size() - 2];
  const bool split = before == "batch" && words.size() > 2 && words[words.size() - 3] == "micro";
  if (!split && before != "microbatch" && before != "mb") return;
  words.resize(words.size() - (split ? 3 : 2));
}

}  // namespace

std::optional<PhaseName> read_phase_name(std::string_view name) {
  if (name.starts_with("PP:")) return pipelining_action(name.substr(3));
  if (name.starts_with("Optimizer.step#")) return PhaseName{Phase::Update, ""};
  Words words = words_of(name);
  const std::optional<Phase> phase = take_phase(words);
  if (!phase) return std::nullopt;
  drop_micro_batch(words);
  if (!words.empty() && (words.front() == "of" || words.front() == "pass")) {
    words.erase(words.begin());
  }
  Words rest = words;
  // "forward-backward" is both, and "forward and loss" we cannot know.
  if (!words.empty() && (words.front() == "and" || take_phase(rest))) return std::nullopt;
  std::string part;
  for (const std::string& word : words) part += (part.empty() ? "" : " ") + word;
  return PhaseName{*phase, part};
}

const char* name_of(Phase phase) { return kNames[static_cast<std::size_t>(phase)]; }

}  // namespace interlock
