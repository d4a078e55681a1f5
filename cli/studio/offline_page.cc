// Gathers what the engine of an offline page reads: data of the program, files of the scenario.
// SPDX-License-Identifier: Apache-2.0
#include "cli/studio/offline_page.h"

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/module_file.h"
#include "cli/studio/source_sum.h"
#include "reports/page/studio_page.h"

namespace interlock {
namespace {

namespace fs = std::filesystem;

// The folder that cli/studio/wasm looks for data in.
constexpr const char* kDataFolder = "/interlock/";

/// Reads a file of cli/studio/wasm, which lies beside the modules of the program.
std::string engine_file(const std::string& name) {
  const std::string path = module_file(name);
  std::error_code failed;
  if (fs::exists(path, failed)) return read_file(path);
  throw Error("--out: the engine of such a page was not built, so there is no " + path +
              "; expected Emscripten when interlock is built (Debian: emscripten), and then ninja "
              "-C build studio_engine");
}

/// Throws: Error if `program` was compiled from other sources than this program.
void check_sources(const std::string& program) {
  if (program.find(interlock_source_sum()) != std::string::npos) return;
  throw Error("--out: " + module_file("interlock_studio.wasm") +
              " was compiled from other sources than this program, so that its numbers may be "
              "others; expected it to be built again: ninja -C build studio_engine");
}

void add_folder(const std::string& name, OfflineEngine& engine) {
  const fs::path folder = data_folder(name);
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const fs::path& path = entry.path();
    if (path.extension() != ".json") continue;
    engine.files[kDataFolder + name + "/" + path.lexically_relative(folder).string()] =
        read_file(path.string());
  }
}

/// Adds the files that the scenario names, as they are seen from its folder; those that it names
/// from the root also there.
void add_named(const OpenedScenario& opened, OfflineEngine& engine) {
  const fs::path folder = fs::weakly_canonical(fs::absolute(opened.file)).parent_path();
  for (const std::string& path : opened.files) {
    const std::string text = read_file(path);
    engine.files[fs::path(path).lexically_relative(folder).string()] = text;
    if (opened.text.find(path) != std::string::npos) engine.files[path] = text;
  }
}

}  // namespace

std::string offline_page(const OpenedScenario& opened) {
  OfflineEngine engine{.script = engine_file("interlock_studio.js"),
                       .program = engine_file("interlock_studio.wasm")};
  check_sources(engine.program);
  for (const char* folder : {"models/zoo", "hardware/catalogue", "hardware/calibrated",
                             "scenarios/frameworks", "scenarios/ranges"}) {
    add_folder(folder, engine);
  }
  add_named(opened, engine);
  const std::string name = fs::path(opened.file).filename().string();
  return studio_page({name, opened.text, std::move(engine)});
}

}  // namespace interlock
