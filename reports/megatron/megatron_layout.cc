// Megatron layout: reads and writes it.
// SPDX-License-Identifier: Apache-2.0
#include "reports/megatron/megatron_layout.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

namespace interlock {
namespace {

constexpr std::size_t kMostLetters = 100'000;

/// Reads "*N" at `at` and goes past it; 1 if there is none. Nothing: "*" without a number.
std::optional<int> times_at(const std::string& text, std::size_t& at) {
  if (at >= text.size() || text[at] != '*') return 1;
  int times = 0;
  const char* end = text.data() + text.size();
  const auto [rest, failed] = std::from_chars(text.data() + at + 1, end, times);
  if (failed != std::errc() || times < 0) return std::nullopt;
  at = static_cast<std::size_t>(rest - text.data());
  return times;
}

bool repeat(std::string& whole, const std::string& part, int times) {
  if (part.size() * static_cast<std::size_t>(times) + whole.size() > kMostLetters) return false;
  for (int i = 0; i < times; ++i) whole += part;
  return true;
}

/// Carries out repetitions, from `at` to the end or a closing parenthesis.
std::optional<std::string> unrolled(const std::string& text, std::size_t& at, bool inside) {
  std::string whole;
  while (at < text.size() && text[at] != ')') {
    std::string part(1, text[at++]);
    if (part == "(") {
      if (inside) return std::nullopt;
      const auto inner = unrolled(text, at, true);
      if (!inner || at++ >= text.size()) return std::nullopt;
      part = *inner;
    }
    const auto times = times_at(text, at);
    if (!times || !repeat(whole, part, *times)) return std::nullopt;
  }
  if (!inside && at < text.size()) return std::nullopt;
  return whole;
}

/// Puts `letter` into a stage; false if it may not stand behind what is there.
bool add_letter(StageContent& stage, char letter) {
  if (letter == 'E') {
    const bool first = !stage.embedding && stage.layers + stage.predictors == 0 && !stage.readout;
    stage.embedding = true;
    return first;
  }
  if (letter == 't') ++stage.layers;
  if (letter == 'm') ++stage.predictors;
  const bool known = letter == 't' || letter == 'm' || letter == 'L';
  const bool fits = !stage.readout && !(letter == 't' && stage.predictors > 0);
  if (letter == 'L') stage.readout = true;
  return known && fits;
}

}  // namespace

std::optional<std::vector<StageContent>> read_layout(const std::string& text) {
  std::string letters = text;
  letters.erase(std::remove(letters.begin(), letters.end(), ','), letters.end());
  std::size_t at = 0;
  const auto plain = unrolled(letters, at, false);
  if (!plain) return std::nullopt;
  std::vector<StageContent> stages(1);
  for (const char letter : *plain) {
    if (letter == '|') {
      stages.emplace_back();
    } else if (!add_letter(stages.back(), letter)) {
      return std::nullopt;
    }
  }
  return stages;
}

std::string layout_text(const std::vector<StageContent>& stages) {
  std::string text;
  const auto add = [&](char letter, int count) {
    if (count > 0) text += letter;
    if (count > 1) text += '*' + std::to_string(count);
  };
  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (s > 0) text += '|';
    add('E', stages[s].embedding ? 1 : 0);
    add('t', stages[s].layers);
    add('m', stages[s].predictors);
    add('L', stages[s].readout ? 1 : 0);
  }
  return text;
}

bool is_v(Settings& a) { return a.flag("zero-bubble-v-schedule"); }

std::string v_schedule(Settings& a) {
  const std::string memory = a.text("zero-bubble-v-schedule-mem-setup").value_or("zb");
  if (memory == "half" || memory == "min") return "v-" + memory;
  if (memory == "zb") return "zb-v";
  a.refuse("zero-bubble-v-schedule-mem-setup", "expected min, half or zb, got " + memory);
  return "";
}

namespace {

/// Returns `words` as whole numbers from 1; none if any is something else.
std::vector<int> sizes_of(const std::vector<std::string>& words) {
  std::vector<int> sizes;
  for (const std::string& word : words) {
    int size = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), size);
    if (error != std::errc() || end != word.data() + word.size() || size < 1) return {};
    sizes.push_back(size);
  }
  return sizes;
}

}  // namespace

void add_context_layout(Settings& a, int context, nlohmann::ordered_json& parallel) {
  const std::vector<std::string> kinds = a.words("cp-comm-type");
  const std::vector<std::string> levels = a.words("hierarchical-context-parallel-sizes");
  if (context == 1 || kinds.empty()) return;
  const bool alike = std::all_of(kinds.begin(), kinds.end(),
                                 [&](const std::string& kind) { return kind == kinds.front(); });
  const bool both = alike && kinds.front() == "a2a+p2p";
  const std::vector<int> sizes = both ? sizes_of(levels) : std::vector<int>();
  if (both && (sizes.size() != 2 || sizes[0] * sizes[1] != context)) {
    std::string got = levels.empty() ? " none" : "";
    for (const std::string& level : levels) got += " " + level;
    a.refuse("hierarchical-context-parallel-sizes",
             "expected two sizes, whose product is context-parallel-size, " +
                 std::to_string(context) + ", got" + got);
  } else if (kinds.front() == "a2a" ? alike : both && sizes[1] == 1) {
    parallel["context_layout"] = "all_to_all";
  } else if (both && sizes[0] > 1) {
    parallel["context_layout"] = "hybrid";
    parallel["context_all_to_all"] = sizes[0];
  } else if (!both && (!alike || kinds.front() != "p2p")) {
    a.remark("cp-comm-type", kinds.front() + ": keys and values go round one ring");
  }
}

}  // namespace interlock
