// The main function of every test program.
// SPDX-License-Identifier: Apache-2.0
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "tests/support/sanitized.h"
#include "tests/support/skipped.h"

namespace {

/// Leaves out the cases that a list beside this file names, as they are found in every folder of
/// tests and their sources say nothing of it.
[[maybe_unused]] void leave_out(doctest::Context& context, const std::string& list) {
  std::ifstream names(INTERLOCK_TEST_LISTS + ("/" + list));
  for (std::string name; std::getline(names, name);) {
    if (name.empty() || name[0] == '#') continue;
    std::replace(name.begin(), name.end(), ',', '?');  // a comma begins the next pattern
    context.addFilter("test-case-exclude", name.c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
#ifdef INTERLOCK_LACKS_SIMGRID
  leave_out(context, "needs_simgrid.txt");
  interlock::tell_skipped("tests of what shares links", "libsimgrid-dev");
#endif
  if (interlock::kSanitized) leave_out(context, "slow_with_sanitizers.txt");
  return context.run();
}
