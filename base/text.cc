// Text shown to people: what they wrote, escaped and cut, and the names they may have meant.
// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <utility>

namespace interlock {
namespace {

unsigned byte_at(std::string_view text, std::size_t i) {
  return static_cast<unsigned char>(text[i]);
}

/// Returns one character of `text`, escaped if a terminal should not see it.
std::string printable_character(std::string_view character) {
  const unsigned first = byte_at(character, 0);
  if (first == '\n') return "\\n";
  if (first == '\t') return "\\t";
  if (first == '\r') return "\\r";
  char escape[16];
  if (first < 0x20 || first == 0x7f) {
    std::snprintf(escape, sizeof escape, "\\u%04x", first);
    return escape;
  }
  if (first == 0xc2 && character.size() == 2 && byte_at(character, 1) < 0xa0) {
    std::snprintf(escape, sizeof escape, "\\u%04x", byte_at(character, 1));
    return escape;
  }
  if (utf8_length(character) == 0) {
    std::snprintf(escape, sizeof escape, "\\x%02x", first);
    return escape;
  }
  return std::string(character);
}

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

/// Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours, where
/// no part of the text is edited twice.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                           lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) now[j] = std::min(now[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, now);
  }
  return last[b.size()];
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const unsigned first = byte_at(text, 0);
  if (first < 0x80) return 1;
  const std::size_t length = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (length == 0 || first > 0xf4 || text.size() < length) return 0;
  std::uint32_t code = first & (0xffu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte_at(text, i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte_at(text, i) & 0x3f);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  return overlong || surrogate || code > 0x10ffff ? 0 : length;
}

std::string printable(std::string_view text, std::size_t most) {
  std::string shown;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = std::max<std::size_t>(1, utf8_length(text.substr(i)));
    if (i + length > most) return shown + "...";
    shown += printable_character(text.substr(i, length));
    i += length;
  }
  return shown;
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kLongest = 80;
  return '"' + printable(text, kLongest) + '"';
}

std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& names) {
  constexpr std::size_t kLongest = 64;  // too long for a slip, and the distance is quadratic
  if (word.size() > kLongest) return std::nullopt;
  std::optional<std::string> best;
  std::pair<bool, std::size_t> best_distance;
  for (const std::string& name : names) {
    if (name.size() > kLongest) continue;
    // Who breaks off ("dgx-a100" of "dgx-a100-80g") is right as far as they got.
    const bool slip = edit_distance(word, name.substr(0, word.size())) > 0;
    const std::pair distance(slip, edit_distance(word, name));
    const bool likely = 3 * distance.second <= std::max(word.size(), name.size());
    if (likely && (!best || distance < best_distance)) {
      best = name;
      best_distance = distance;
    }
  }
  return best;
}

std::string join_choices(const std::vector<std::string>& names) {
  std::string joined;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) joined += i + 1 == names.size() ? " or " : ", ";
    joined += names[i];
  }
  return joined;
}

}  // namespace interlock
