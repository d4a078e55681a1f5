// Reports a test that is left out as a program or a machine is missing, in the form for ./test.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string>

namespace interlock {

/// Says that `what` was not checked, as on this machine there is no `package` of Debian's.
inline void tell_skipped(const std::string& what, const std::string& package) {
  std::printf("skipped: %s; install %s to run it\n", what.c_str(), package.c_str());
}

}  // namespace interlock
