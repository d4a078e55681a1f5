// The program's side of HarnessCommands: opens the module when a command of it is first asked for.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <filesystem>

#include "base/error.h"
#include "base/module_file.h"
#include "cli/commands.h"
#include "cli/harness_commands.h"

namespace interlock {
namespace {

const HarnessCommands& harness() {
  static const HarnessCommands& commands = []() -> const HarnessCommands& {
    const std::string path = module_file("libinterlock_harness.so");
    void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* symbol = module != nullptr ? dlsym(module, "interlock_harness_commands") : nullptr;
    if (symbol == nullptr) {
      if (!std::filesystem::exists(path)) {
        throw Error("train, calibrate and validate need a module that was not built, " + path +
                    "; in the source tree, ./run train installs and builds what it takes");
      }
      const char* reason = dlerror();
      throw Error("cannot open what trains and measures, " + path + ": " +
                  (reason != nullptr ? reason : "it has no entry point"));
    }
    return reinterpret_cast<OfferHarness>(symbol)();
  }();
  return commands;
}

}  // namespace

void train(const TrainOptions& options) { harness().train(options); }
void validate_run(const ValidateOptions& options) { harness().validate_run(options); }
bool validate_published(const PublishedOptions& options) {
  return harness().validate_published(options);
}
void calibrate(const CalibrateOptions& options) { harness().calibrate(options); }

}  // namespace interlock
