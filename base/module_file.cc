// Finds modules beside the program, or where an installation puts them, and opens them.
// SPDX-License-Identifier: Apache-2.0
#include "base/module_file.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>

namespace interlock {

std::string module_file(const std::string& name) {
  namespace fs = std::filesystem;
  std::error_code failed;
  const fs::path folder = fs::read_symlink("/proc/self/exe", failed).parent_path();
  const fs::path beside = folder / name;
  const fs::path installed = folder.parent_path() / "lib" / "interlock" / name;
  const bool there = !fs::exists(beside, failed) && fs::exists(installed, failed);
  return (there ? installed : beside).string();
}

ModuleEntry open_module(const std::string& name, const std::string& entry, bool shares_symbols) {
  ModuleEntry opened{.path = module_file(name)};
  void* module =
      dlopen(opened.path.c_str(), RTLD_NOW | (shares_symbols ? RTLD_GLOBAL : RTLD_LOCAL));
  if (module != nullptr) opened.address = dlsym(module, entry.c_str());
  if (opened.address != nullptr) return opened;
  const char* reason = dlerror();
  opened.problem = reason != nullptr ? reason : "it has no entry point";
  return opened;
}

}  // namespace interlock
