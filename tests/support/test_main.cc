// The main function of every test program.
// SPDX-License-Identifier: Apache-2.0
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#ifdef INTERLOCK_NEEDS_SIMGRID
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>

#include "tests/support/skipped.h"

namespace {

/// Leaves out the cases that share links, which this build cannot run: by name, from a list, as
/// they are found in every folder of tests and most of them say nothing of links.
void leave_out_contention(doctest::Context& context) {
  std::ifstream list(INTERLOCK_NEEDS_SIMGRID);
  for (std::string name; std::getline(list, name);) {
    if (name.empty() || name[0] == '#') continue;
    std::replace(name.begin(), name.end(), ',', '?');  // a comma begins the next pattern
    context.addFilter("test-case-exclude", name.c_str());
  }
  interlock::tell_skipped("tests of what shares links", "libsimgrid-dev");
}

}  // namespace
#endif

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
#ifdef INTERLOCK_NEEDS_SIMGRID
  leave_out_contention(context);
#endif
  return context.run();
}
