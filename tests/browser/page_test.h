// PageTest: checks of the page in the browser, and pictures of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/file.h"
#include "tests/browser/chromium.h"

namespace interlock {

/// Keeps a picture of the page where INTERLOCK_SCREENSHOTS says, to be looked at.
inline void keep_picture(const std::string& name) {
  const char* const folder = std::getenv("INTERLOCK_SCREENSHOTS");
  if (folder == nullptr) return;
  write_file(std::string(folder) + "/" + name + ".png", browser().screenshot());
}

inline void check_all(const std::string& script) {
  const std::vector<PageCheck> checks = browser().check(script);
  CHECK(checks.size() > 3);
  for (const PageCheck& check : checks) {
    INFO(script << ": " << check.name);
    CHECK(check.wrong == "");
  }
}

/// Holds a picture that the documentation keeps at `path` to `picture`, or renews it.
inline void check_picture(const std::string& path, const std::string& picture) {
  if (std::getenv("UPDATE_PAGES") != nullptr) write_file(path, picture);
  // The size stands behind the signature and the head of the first chunk, the most first.
  const auto size = [](const std::string& png, std::size_t at) {
    int pixels = 0;
    for (std::size_t i = at; i < at + 4; ++i)
      pixels = pixels << 8 | static_cast<unsigned char>(png[i]);
    return pixels;
  };
  const std::string kept = read_file(path);
  INFO("to renew it: UPDATE_PAGES=1 build/bin/browser_test -tc='the picture*'");
  CHECK(size(kept, 16) == size(picture, 16));
  CHECK(size(kept, 20) == doctest::Approx(size(picture, 20)).epsilon(0.1));  // other fonts
}

}  // namespace interlock
