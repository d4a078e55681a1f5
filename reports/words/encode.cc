// Encode: text and numbers made safe to stand inside HTML, SVG, Markdown and script data.
// SPDX-License-Identifier: Apache-2.0
#include "reports/words/encode.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "base/text.h"

namespace interlock {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

/// Control characters of ASCII and of Latin-1, and the two non-characters that XML forbids.
bool is_unwanted(std::string_view sequence) {
  const auto lead = static_cast<unsigned char>(sequence[0]);
  if (sequence.size() == 1) return lead < 0x20 || lead == 0x7f;
  if (sequence.size() == 2) return lead == 0xc2 && static_cast<unsigned char>(sequence[1]) < 0xa0;
  return sequence == "\xef\xbf\xbe" || sequence == "\xef\xbf\xbf";
}

}  // namespace

std::string clean_utf8(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text.substr(at));
    if (length == 0) {
      clean += kReplacement;
      ++at;
      continue;
    }
    const std::string_view sequence = text.substr(at, length);
    clean += is_unwanted(sequence) ? kReplacement : sequence;
    at += length;
  }
  return clean;
}

std::string markdown_cell(std::string_view text) {
  std::string line(text), safe;
  std::ranges::replace(line, '\n', ' ');
  for (const char c : clean_utf8(line)) {
    if (c == '|') safe += '\\';
    safe += c == '<' ? "&lt;" : std::string(1, c);
  }
  return safe;
}

std::string latex_cell(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kSpelt{
      {{"\\", "\\textbackslash{}"},
       {"~", "\\textasciitilde{}"},
       {"^", "\\textasciicircum{}"},
       {"×", "$\\times$"},
       {"†", "$^\\dagger$"},
       {"µ", "$\\mu$"},
       {"–", "--"},
       {"\n", " "}}};
  const std::string clean = clean_utf8(text);
  std::string cell;
  for (std::string_view rest = clean; !rest.empty();) {
    const std::string_view letter = rest.substr(0, utf8_length(rest));
    rest.remove_prefix(letter.size());
    const auto spelt = std::find_if(kSpelt.begin(), kSpelt.end(),
                                    [&](const auto& one) { return one.first == letter; });
    if (spelt != kSpelt.end()) {
      cell += spelt->second;
      continue;
    }
    if (std::string_view("&%$#_{}").find(letter) != std::string_view::npos) cell += '\\';
    cell += letter;
  }
  return cell;
}

std::string escape_markup(std::string_view text) {
  std::string escaped;
  for (const char c : clean_utf8(text)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xc0) != 0x80) ++width;
  }
  return width;
}

std::string base64(const void* bytes, std::size_t size) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto* in = static_cast<const unsigned char*>(bytes);
  std::string out((size + 2) / 3 * 4, '=');
  std::size_t put = 0;
  for (std::size_t at = 0; at < size; at += 3) {
    const std::size_t have = size - at < 3 ? size - at : 3;
    std::uint32_t group = static_cast<std::uint32_t>(in[at]) << 16;
    if (have > 1) group |= static_cast<std::uint32_t>(in[at + 1]) << 8;
    if (have > 2) group |= in[at + 2];
    for (std::size_t digit = 0; digit <= have; ++digit) {
      out[put + digit] = kDigits[(group >> (18 - 6 * digit)) & 63];
    }
    put += 4;
  }
  return out;
}

}  // namespace interlock
