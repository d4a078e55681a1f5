// Collects the user's mistakes into one Error; tells ours apart from them.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <algorithm>

#include "base/text.h"

namespace interlock {
namespace {

constexpr std::size_t kLongestPlace = 300;

}  // namespace

std::string Diagnostic::text() const {
  std::string whole;
  if (!file.empty()) {
    whole += file;
    if (line > 0) whole.append(":").append(std::to_string(line));
    whole += ": ";
  }
  if (!path.empty()) whole += path + ": ";
  return whole + message;
}

void Diagnostics::add(std::string_view file, int line, std::string_view path,
                      std::string_view message, bool wrong_type) {
  if (full()) {
    ++dropped_;
    return;
  }
  mistakes_.push_back({printable(file, kLongestPlace), line, printable(path, kLongestPlace),
                       std::string(message), wrong_type});
  messages_.push_back(mistakes_.back().text());
}

void Diagnostics::add_new(const Diagnostics& others) {
  dropped_ += others.dropped_;
  for (std::size_t i = 0; i < others.messages_.size(); ++i) {
    if (std::find(messages_.begin(), messages_.end(), others.messages_[i]) != messages_.end()) {
      continue;
    }
    const Diagnostic& other = others.mistakes_[i];
    add(other.file, other.line, other.path, other.message, other.wrong_type);
  }
}

void Diagnostics::throw_if_any() const {
  if (messages_.empty()) return;
  std::string whole;
  for (const std::string& message : messages_) {
    if (!whole.empty()) whole += '\n';
    whole += message;
  }
  if (dropped_ > 0) whole += "\nand " + std::to_string(dropped_) + " more mistakes";
  throw Error(whole, mistakes_);
}

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  throw std::logic_error(std::string(file) + ":" + std::to_string(line) + ": " + message +
                         " (should have held: " + condition + ")");
}

}  // namespace interlock
