// ModuleFile: finds and opens what the program loads at run time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace interlock {

/// Returns the file that this code was loaded from: the program, a module of it, or libinterlock.
const std::filesystem::path& own_file();

/// Returns the path of the module `name` ("libinterlock_simgrid.so"): beside own_file(), else in
/// lib/interlock/ of the place where it was installed. The first of both if there is neither.
std::string module_file(const std::string& name);

/// Holds the entry point of a module that was opened, or why there is none.
struct ModuleEntry {
  void* address = nullptr;    // of its entry point; null: there is a problem
  std::string path, problem;  // as the loader says it
};

/// Opens the module `name`, for as long as the program runs, and finds its function `entry`.
/// `shares_symbols`: what else is loaded may use what the module brings.
ModuleEntry open_module(const std::string& name, const std::string& entry,
                        bool shares_symbols = false);

}  // namespace interlock
