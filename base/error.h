// The two kinds of failure: the user's mistake (Error, Diagnostics) and ours (CHECK).
// SPDX-License-Identifier: Apache-2.0
//
// A user's mistake is thrown as Error and caught once, in main, which prints the sentence and
// exits with 2. A file with several mistakes collects them in Diagnostics and throws once, so that
// all are reported together. CHECK is for what can only be wrong if interlock is wrong: it throws
// std::logic_error. Nothing below main prints or ends the process, which may be a library's host.
#pragma once

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace interlock {

/// One mistake, and where it is. A `line` of 0 (e.g. of an override), an empty `file` and an empty
/// `path` (a JSON pointer) are unknown.
/// Example: {"toy.json", 12, "/training/steps", "is 0; expected 1 or more"} has the text()
/// "toy.json:12: /training/steps: is 0; expected 1 or more".
struct Diagnostic {
  std::string file;
  int line = 0;
  std::string path;
  std::string message;      // "unknown schedule "x"; expected ..."
  bool wrong_type = false;  // whatever else is written: e.g. 17 for a name

  /// Returns `file:line: path: message`, without what is unknown.
  std::string text() const;
};

/// A mistake of the user's: what() is the whole message, possibly several lines, ready to print.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& sentence)
      : Error(sentence, std::vector<Diagnostic>{{.file = {}, .path = {}, .message = sentence}}) {}
  Error(const std::string& text, std::vector<Diagnostic> mistakes)
      : std::runtime_error(text),
        mistakes_(std::make_shared<const std::vector<Diagnostic>>(std::move(mistakes))) {}

  /// Returns the mistakes that what() tells, in its order.
  const std::vector<Diagnostic>& mistakes() const { return *mistakes_; }

 private:
  std::shared_ptr<const std::vector<Diagnostic>> mistakes_;
};

/// The mistakes found so far in one or more files, in the order they were found. The first hundred
/// are kept, the rest only counted: a file may be wrong in a million places.
class Diagnostics {
 public:
  /// Adds `file:line: path: message`. A line of 0 (e.g. of an override) and an empty path are left
  /// out.
  void add(std::string_view file, int line, std::string_view path, std::string_view message,
           bool wrong_type = false);
  /// Adds those of `others` that are not among the mistakes yet.
  void add_new(const Diagnostics& others);
  bool empty() const { return messages_.empty(); }
  /// Returns true if further messages would only be counted, so that composing them is a waste.
  bool full() const { return messages_.size() >= 100; }
  const std::vector<std::string>& messages() const { return messages_; }
  /// Throws: Error with every kept message, one a line, if there is any.
  void throw_if_any() const;

 private:
  std::vector<std::string> messages_;
  std::vector<Diagnostic> mistakes_;  // those that messages_ tells
  std::size_t dropped_ = 0;
};

/// Throws: std::logic_error that says what should have held: a bug of interlock, never of the user.
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
