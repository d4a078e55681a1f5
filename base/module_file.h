// ModuleFile: where the program finds what it opens at run time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace interlock {

/// The path of the module `name` ("libinterlock_simgrid.so"): beside the running program, else in
/// lib/interlock/ of the place where it was installed. The first of both if there is neither.
std::string module_file(const std::string& name);

}  // namespace interlock
