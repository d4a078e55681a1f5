// The two kinds of failure: the user's mistake (Error, Diagnostics) and ours (CHECK).
// SPDX-License-Identifier: Apache-2.0
//
// A user's mistake is thrown as Error and caught once, in main, which prints the sentence and
// exits with 2. A file with several mistakes collects them in Diagnostics and throws once, so that
// all are reported together. CHECK is for what can only be wrong if interlock is wrong.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace interlock {

/// A mistake of the user's: what() is the whole message, possibly several lines, ready to print.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The mistakes found so far in one or more files, in the order they were found. The first hundred
/// are kept, the rest only counted: a file may be wrong in a million places.
class Diagnostics {
 public:
  /// Adds `file:line: path: message`. A line of 0 (e.g. of an override) and an empty path are left
  /// out.
  void add(std::string_view file, int line, std::string_view path, std::string_view message);
  bool empty() const { return messages_.empty(); }
  /// True if further messages would only be counted, so that composing them is a waste.
  bool full() const { return messages_.size() >= 100; }
  const std::vector<std::string>& messages() const { return messages_; }
  /// Throws: Error with every kept message, one a line, if there is any.
  void throw_if_any() const;

 private:
  std::vector<std::string> messages_;
  std::size_t dropped_ = 0;
};

/// Prints what should have held and aborts: a bug of interlock, never of the user.
[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const std::string& message);

}  // namespace interlock

// A test program includes doctest first and means doctest's CHECK.
#ifndef DOCTEST_LIBRARY_INCLUDED
#define CHECK(condition, message)                                           \
  do {                                                                      \
    if (!(condition)) {                                                     \
      ::interlock::check_failed(__FILE__, __LINE__, #condition, (message)); \
    }                                                                       \
  } while (false)
#endif
