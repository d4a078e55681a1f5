// Finds modules beside the program, or where an installation puts them.
// SPDX-License-Identifier: Apache-2.0
#include "base/module_file.h"

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

}  // namespace interlock
