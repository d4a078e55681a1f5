// The studio in a browser: every control, quick changes, mistakes, the keyboard, a lost server.
// SPDX-License-Identifier: Apache-2.0
#include <csignal>

#include "tests/browser/page_test.h"
#include "tests/support/studio_program.h"

namespace interlock::studio_page_test {
namespace {

const std::string kScenario = PROJECT_FOLDER "/scenarios/quickstart/pairwise.json";

TEST_CASE("controls, editor, pins, advice, plans and links of the studio do what they say") {
  for (const int width : {400, 1280}) {
    INFO(width << " pixels");
    const StudioProgram studio(INTERLOCK_PROGRAM, {kScenario});
    browser().visit(studio.address(), {.width = width, .dark = width == 400});
    check_all("studio_checks.js");
    keep_picture("studio-used-" + std::to_string(width));
  }
}

TEST_CASE("fifty quick changes leave the answer to the last one") {
  const StudioProgram studio(INTERLOCK_PROGRAM, {kScenario});
  browser().visit(studio.address());
  check_all("studio_quick_checks.js");
}

TEST_CASE("the studio fits narrow windows, and light and dark ones") {
  const StudioProgram studio(INTERLOCK_PROGRAM, {kScenario});
  for (const bool dark : {false, true}) {
    for (const int width : {400, 800, 1280, 1800}) {
      INFO(width << " pixels, " << std::string(dark ? "dark" : "light"));
      browser().visit(studio.address(), {.width = width, .dark = dark});
      check_all("studio_look_checks.js");
      keep_picture(std::string("studio-") + (dark ? "dark-" : "light-") + std::to_string(width));
    }
  }
}

TEST_CASE("the studio is used by the keyboard alone, and the focus is seen") {
  const StudioProgram studio(INTERLOCK_PROGRAM, {kScenario});
  browser().visit(studio.address());
  check_all("studio_focus_checks.js");
  constexpr int kStops = 60;  // more than the page has
  for (int i = 0; i < kStops; ++i) browser().press("Tab");
  check_all("studio_keyboard_checks.js");
}

TEST_CASE("a mistake of interlock's own is told as one") {
  const StudioProgram studio(INTERLOCK_PROGRAM, {kScenario});
  browser().visit(studio.address());
  check_all("studio_bug_checks.js");
}

TEST_CASE("a page whose server is gone says so and keeps its text") {
  StudioProgram studio(INTERLOCK_PROGRAM, {kScenario});
  browser().visit(studio.address());
  check_all("studio_ready_checks.js");
  studio.end(SIGKILL);
  check_all("studio_lost_checks.js");
  keep_picture("studio-lost");
}

TEST_CASE("the picture docs/studio.png is as wide and about as high as the page that it shows") {
  const std::string path = PROJECT_FOLDER "/docs/studio.png";
  const StudioProgram studio(INTERLOCK_PROGRAM, {kScenario});
  browser().visit(studio.address(), {.width = 1240, .height = 900});
  check_all("studio_ready_checks.js");
  check_picture(path, browser().screenshot("#panel-step .selection"));
}

}  // namespace
}  // namespace interlock::studio_page_test
