// Finds the token that stopped the parser, and what could have stood there.
// SPDX-License-Identifier: Apache-2.0
#include "base/json/malformed.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace interlock {
namespace {

/// Returns the offset of the first byte from `at` that is neither blank nor in a comment. A comment
/// that is not closed, or no comment at all, is where it stops.
std::size_t skip_blank(std::string_view text, std::size_t at) {
  constexpr std::string_view kBlank = " \t\r\n";
  while (true) {
    at = std::min(text.find_first_not_of(kBlank, at), text.size());
    const std::string_view rest = text.substr(at);
    if (rest.starts_with("//")) {
      at = std::min(text.find_first_of("\r\n", at), text.size());
    } else if (rest.starts_with("/*") && rest.find("*/", 2) != std::string_view::npos) {
      at += rest.find("*/", 2) + 2;
    } else {
      return at;
    }
  }
}

bool in_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("_.+-$").find(c) != std::string_view::npos;
}

/// Returns the word, number or single character that `text` starts with.
std::string_view first_token(std::string_view text) {
  const auto end = std::find_if_not(text.begin(), text.end(), in_word);
  const auto word = static_cast<std::size_t>(end - text.begin());
  return text.substr(0, word > 0 ? word : std::max<std::size_t>(1, utf8_length(text)));
}

/// Returns the offset of the first byte of the string that cannot be in one, or of its closing
/// quote.
std::size_t end_of_string(std::string_view text) {
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      if (i + 1 == text.size()) return text.size();
      if (std::string_view("\"\\/bfnrtu").find(text[i + 1]) == std::string_view::npos) return i;
      ++i;
    } else if (text[i] == '"' || static_cast<unsigned char>(text[i]) < 0x20) {
      return i;
    }
  }
  return text.size();
}

/// Returns why the string that `text` starts with is none.
std::string broken_string(std::string_view text) {
  const std::size_t end = end_of_string(text);
  if (end == text.size() || text[end] == '\n' || text[end] == '\r') {
    return "a string is not closed on its line; expected a double quote after " +
           in_quotes(text.substr(1, end - 1));
  }
  if (text[end] == '\\' || text[end] == '"') {
    return "a wrong escape in a string; expected one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t or "
           "\\u and four hexadecimal digits, in pairs for a surrogate";
  }
  return "a control character in a string; expected an escape such as \\t or \\u001f";
}

/// Returns in words what may follow `last`; `separated`: its colon or comma is there already.
std::string_view expected_after(LastParsed last, bool separated) {
  switch (last) {
    case LastParsed::Nothing:
      return "a value";
    case LastParsed::ObjectStart:
      return "a key in double quotes or \"}\"";
    case LastParsed::ArrayStart:
      return "a value or \"]\"";
    case LastParsed::Key:
      return separated ? "a value" : "\":\"";
    case LastParsed::Member:
      return separated ? "a key in double quotes" : "\",\" or \"}\"";
    case LastParsed::Item:
      return separated ? "a value" : "\",\" or \"]\"";
    case LastParsed::Document:
      return "nothing after the first value";
  }
  return "a value";
}

bool string_may_follow(LastParsed last, bool separated) {
  return separated || last == LastParsed::Nothing || last == LastParsed::ObjectStart ||
         last == LastParsed::ArrayStart;
}

}  // namespace

Malformed describe_malformed(std::string_view text, std::size_t end, LastParsed last) {
  std::size_t at = skip_blank(text, end);
  const char separator = last == LastParsed::Key ? ':' : ',';
  const bool may_be_separated =
      last == LastParsed::Key || last == LastParsed::Member || last == LastParsed::Item;
  const bool separated = may_be_separated && at < text.size() && text[at] == separator;
  if (separated) at = skip_blank(text, at + 1);

  const std::string_view rest = text.substr(at);
  std::string message = "malformed JSON: ";
  if (rest.starts_with("/*")) {
    message += "a comment is not closed; expected \"*/\"";
  } else if (rest.starts_with("\"") && string_may_follow(last, separated)) {
    message += broken_string(rest);
  } else {
    if (rest.empty()) {
      message += "the text ends too early";
    } else if (rest.starts_with("\"")) {
      message += "unexpected string " + in_quotes(rest.substr(1, end_of_string(rest) - 1));
    } else {
      message += "unexpected " + in_quotes(first_token(rest));
    }
    message += "; expected " + std::string(expected_after(last, separated));
  }
  return {at, message};
}

std::optional<Malformed> find_bad_byte(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text.substr(at));
    if (length == 0 || text[at] == '\0') {
      return Malformed{at, "malformed JSON: byte " + in_quotes(text.substr(at, 1)) +
                               " is no text; expected UTF-8"};
    }
    at += length;
  }
  return std::nullopt;
}

int line_at(std::string_view text, std::size_t offset) {
  const std::size_t last = text.empty() ? 0 : std::min(offset, text.size() - 1);
  return 1 + static_cast<int>(std::count(text.begin(), text.begin() + last, '\n'));
}

}  // namespace interlock
