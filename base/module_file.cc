// Finds modules beside this code, or where an installation puts them, and opens them.
// SPDX-License-Identifier: Apache-2.0
#include "base/module_file.h"

#include <dlfcn.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <system_error>

namespace interlock {
namespace {

/// Returns the file that is mapped where this code is. It is whole and free of links, however the
/// loader was told of it.
std::filesystem::path mapped_file() {
  const auto here = reinterpret_cast<std::uintptr_t>(&mapped_file);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    int path = 0;
    const char* form = "%" SCNxPTR "-%" SCNxPTR " %*s %*s %*s %*s %n";
    if (std::sscanf(line.c_str(), form, &begin, &end, &path) != 2) continue;
    if (begin <= here && here < end) return line.substr(static_cast<std::size_t>(path));
  }
  return {};
}

}  // namespace

const std::filesystem::path& own_file() {
  static const std::filesystem::path file = mapped_file();
  return file;
}

std::string module_file(const std::string& name) {
  namespace fs = std::filesystem;
  std::error_code failed;
  const fs::path folder = own_file().parent_path();
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
