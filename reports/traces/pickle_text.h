// PickleText: dictionaries, lists, texts and numbers as Python's pickle, protocol 4.
// SPDX-License-Identifier: Apache-2.0
//
// The opcodes are those of Python's module pickletools; no text is memoised, and no list longer
// than 1000 is appended at once, as readers may hold no more on their stack.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/file.h"

namespace interlock {

/// Example: begin_dictionary(), key("a").number(1), end_dictionary() append }( then X 1 0 0 0 a,
/// then K 1, then u: {"a": 1} in Python.
class PickleText {
 public:
  explicit PickleText(const TextSink& out) : out_(out) { buffer_ = "\x80\x04"; }

  void number(std::int64_t value) {
    if (value >= 0 && value < 256) {
      buffer_ += 'K';
      bytes(value, 1);
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
      buffer_ += 'J';
      bytes(value, 4);
    } else {
      buffer_ += "\x8a\x08";
      bytes(value, 8);
    }
  }
  void text(std::string_view words) {
    buffer_ += 'X';
    bytes(static_cast<std::int64_t>(words.size()), 4);
    buffer_ += words;
  }
  void truth(bool value) { buffer_ += value ? '\x88' : '\x89'; }
  void begin_dictionary() { buffer_ += "}("; }
  /// Returns this, for the value of `key` to follow.
  PickleText& key(std::string_view name) {
    text(name);
    return *this;
  }
  void end_dictionary() { buffer_ += 'u'; }
  void begin_list() { buffer_ += "]("; }
  /// Says that the list has `done` items now, and another follows.
  void next_item(std::int64_t done) {
    constexpr std::int64_t kBatch = 1000;
    if (done > 0 && done % kBatch == 0) buffer_ += "e(";
    if (buffer_.size() > kFull) flush();
  }
  void end_list() { buffer_ += 'e'; }
  void finish() {
    buffer_ += '.';
    flush();
  }

 private:
  static constexpr std::size_t kFull = std::size_t{1} << 18;

  void bytes(std::int64_t value, int count) {
    for (int i = 0; i < count; ++i) buffer_ += static_cast<char>(value >> (8 * i) & 0xff);
  }
  void flush() {
    out_(buffer_);
    buffer_.clear();
  }

  const TextSink& out_;
  std::string buffer_;
};

}  // namespace interlock
