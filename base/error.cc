// Collects the user's mistakes into one Error; stops the program at one of ours.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <cstdio>
#include <cstdlib>

#include "base/text.h"

namespace interlock {

void Diagnostics::add(std::string_view file, int line, std::string_view path,
                      std::string_view message) {
  if (full()) {
    ++dropped_;
    return;
  }
  constexpr std::size_t kLongestPlace = 300;
  std::string whole;
  if (!file.empty()) {
    whole += printable(file, kLongestPlace);
    if (line > 0) whole.append(":").append(std::to_string(line));
    whole += ": ";
  }
  if (!path.empty()) whole += printable(path, kLongestPlace) + ": ";
  whole += message;
  messages_.push_back(std::move(whole));
}

void Diagnostics::throw_if_any() const {
  if (messages_.empty()) return;
  std::string whole;
  for (const std::string& message : messages_) {
    if (!whole.empty()) whole += '\n';
    whole += message;
  }
  if (dropped_ > 0) whole += "\nand " + std::to_string(dropped_) + " more mistakes";
  throw Error(whole);
}

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  std::fprintf(stderr, "%s:%d: this is a bug in interlock: %s (should have held: %s)\n", file, line,
               message.c_str(), condition);
  std::abort();
}

}  // namespace interlock
