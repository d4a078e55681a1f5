// Chromium: a headless browser, and what scripts find on a page that it shows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace interlock {

/// The program, or nothing if none is installed.
std::optional<std::string> find_chromium();

struct BrowserWindow {
  int width = 1280, height = 900;
  bool dark = false;
};

/// The result of a check of a page: its name, and what was wrong; "" if nothing was.
struct PageCheck {
  std::string name, wrong;
};

/// A browser without a network but this machine. Speaks the DevTools protocol over pipes: JSON,
/// each message ended by a zero byte. All members throw std::runtime_error if it fails or does not
/// answer in time.
class Chromium {
 public:
  explicit Chromium(const std::string& program);
  ~Chromium();
  Chromium(const Chromium&) = delete;
  Chromium& operator=(const Chromium&) = delete;

  /// Shows `page` in a window of its own.
  void open(const std::string& page, const BrowserWindow& window = {});
  /// Shows what is served at `address`, likewise.
  void visit(const std::string& address, const BrowserWindow& window = {});
  /// Presses and lets go of a key, as the user's hand does: "Tab", "Enter".
  void press(const std::string& key);
  /// Runs the checks of `script`, a file of this folder, on the open page; see checks.js.
  std::vector<PageCheck> check(const std::string& script);
  /// Returns the page as PNG, as far as it reaches down, or down to the first element that
  /// `selector` finds.
  std::string screenshot(const std::string& selector = "html");

 private:
  using Json = nlohmann::json;
  Json call(const std::string& method, const Json& parameters);
  Json next_message();
  void wait_for(const std::string& event);

  std::string folder_, session_, pending_;
  pid_t child_ = -1;
  int to_ = -1, from_ = -1;
  int calls_ = 0;
  std::vector<std::string> events_;  // that came while an answer was waited for
};

/// The one browser of a test program.
Chromium& browser();

}  // namespace interlock
