// Says in plain words why a text is no JSON.
// SPDX-License-Identifier: Apache-2.0
//
// The parser only tells that it stopped and after which event; what follows in the text tells the
// rest. Looking again, at the one place that matters, gives better words than a token's name.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace interlock {

/// Names what the parser accepted last before it stopped.
enum class LastParsed { Nothing, ObjectStart, ArrayStart, Key, Member, Item, Document };

/// A mistake in a text: its place, and the sentence about it. Example: of `{"a": 1,` {8, "malformed
/// JSON: the text ends too early; expected a key in double quotes"}.
struct Malformed {
  std::size_t offset = 0;
  std::string message;
};

/// Says what is wrong with `text` after its first `end` bytes, which end with `last`.
Malformed describe_malformed(std::string_view text, std::size_t end, LastParsed last);

/// Returns the first byte that no JSON may hold, invalid UTF-8 or NUL, if there is one.
std::optional<Malformed> find_bad_byte(std::string_view text);

/// Returns the 1-based line of the byte at `offset`; of the last byte if that is the end.
int line_at(std::string_view text, std::size_t offset);

}  // namespace interlock
