// EventText: JSON written piece by piece, fast, for files of millions of events.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/file.h"

namespace interlock {

/// Appends to a buffer that is handed on whenever it is full, and at flush().
/// Example: text.element() << "{\"ts\": "; text.micros(1234) << "}"; appends a line feed and {"ts":
/// 1.234}; the next element() puts a comma before its line feed.
class EventText {
 public:
  explicit EventText(const TextSink& out) : out_(out) { buffer_.reserve(kFull + kLongest); }

  /// Begins the next element of an array, and looks whether the buffer is full.
  EventText& element() {
    if (buffer_.size() >= kFull) flush();
    buffer_ += first_ ? "\n" : ",\n";
    first_ = false;
    return *this;
  }
  EventText& operator<<(std::string_view json) {
    buffer_ += json;
    return *this;
  }
  EventText& operator<<(std::int64_t number) {
    char digits[24];
    buffer_.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
    return *this;
  }
  EventText& operator<<(int number) { return *this << static_cast<std::int64_t>(number); }
  /// Adds `number` in the fewest digits that give the same number back.
  EventText& operator<<(double number) {
    char digits[32];
    buffer_.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
    return *this;
  }
  /// Adds `nanoseconds` as microseconds with three decimals.
  EventText& micros(std::int64_t nanoseconds) {
    if (nanoseconds < 0) buffer_ += '-';
    const std::int64_t size = nanoseconds < 0 ? -nanoseconds : nanoseconds;
    *this << size / 1000;
    const auto rest = static_cast<int>(size % 1000);
    const char decimals[] = {'.', static_cast<char>('0' + rest / 100),
                             static_cast<char>('0' + rest / 10 % 10),
                             static_cast<char>('0' + rest % 10)};
    buffer_.append(decimals, sizeof decimals);
    return *this;
  }
  void flush() {
    out_(buffer_);
    buffer_.clear();
  }

 private:
  static constexpr std::size_t kFull = std::size_t{1} << 18, kLongest = std::size_t{1} << 14;
  const TextSink& out_;
  std::string buffer_;
  bool first_ = true;
};

/// Returns `text` as a JSON string, quotes included; cleaned first.
std::string json_string(std::string_view text);

}  // namespace interlock
