// Numbers read and written by the C library, as <charconv> would.
// SPDX-License-Identifier: Apache-2.0
#include "cli/studio/wasm/old_library.h"

#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace interlock::old_library {
namespace {

constexpr int kSurelyExact = 15, kEnough = 17;  // digits of a double

std::to_chars_result put(char* first, char* last, const std::string& text) {
  if (static_cast<std::size_t>(last - first) < text.size()) {
    return {last, std::errc::value_too_large};
  }
  std::memcpy(first, text.data(), text.size());
  return {first + text.size(), std::errc{}};
}

std::string printed(const char* format, int digits, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, digits, value);
  return text;
}

/// Returns `text` of the form d.ddde+dd without zeros at the end of its digits.
std::string without_zeros(const std::string& text) {
  const std::size_t exponent = text.find('e');
  std::string digits = text.substr(0, exponent);
  if (digits.find('.') != std::string::npos) {
    digits.erase(digits.find_last_not_of('0') + 1);
    if (digits.back() == '.') digits.pop_back();
  }
  return digits + text.substr(exponent);
}

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// Returns the end of the number that `first` begins with; `first` if there is none.
const char* end_of_number(const char* first, const char* last) {
  const char* at = first != last && *first == '-' ? first + 1 : first;
  const char* const begin = at;
  while (at != last && is_digit(*at)) ++at;
  std::ptrdiff_t digits = at - begin;
  if (at != last && *at == '.') {
    const char* const point = at++;
    while (at != last && is_digit(*at)) ++at;
    digits += at - point - 1;
  }
  if (digits == 0) return first;
  if (at == last || (*at != 'e' && *at != 'E')) return at;
  const char* power = at + 1;
  if (power != last && (*power == '+' || *power == '-')) ++power;
  if (power == last || !is_digit(*power)) return at;
  while (power != last && is_digit(*power)) ++power;
  return power;
}

}  // namespace

std::from_chars_result read_number(const char* first, const char* last, double& value) {
  const char* const end = end_of_number(first, last);
  if (end == first) return {first, std::errc::invalid_argument};
  const double read = std::strtod(std::string(first, end).c_str(), nullptr);
  if (std::isinf(read)) return {end, std::errc::result_out_of_range};
  value = read;
  return {end, std::errc{}};
}

std::to_chars_result write_number(char* first, char* last, double value) {
  if (!std::isfinite(value)) {
    return put(first, last, std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
  }
  int digits = kSurelyExact;
  while (digits < kEnough &&
         std::strtod(printed("%.*e", digits - 1, value).c_str(), nullptr) != value) {
    ++digits;
  }
  const std::string scientific = without_zeros(printed("%.*e", digits - 1, value));
  const std::size_t letter = scientific.find('e');
  const int exponent = std::atoi(scientific.c_str() + letter + 1);
  const auto shown = static_cast<int>(letter) - (letter > 2 ? 1 : 0) - (value < 0 ? 1 : 0);
  const std::string fixed = printed("%.*f", std::max(0, shown - 1 - exponent), value);
  return put(first, last, fixed.size() <= scientific.size() ? fixed : scientific);
}

std::to_chars_result write_number(char* first, char* last, double value, int digits) {
  return put(first, last, printed("%.*g", digits, value));
}

}  // namespace interlock::old_library
