// The program's side of HarnessCommands: opens the module when a command of it is first asked for.
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "base/error.h"
#include "base/module_file.h"
#include "cli/parser/commands.h"
#include "cli/parser/harness_commands.h"

namespace interlock {
namespace {

const HarnessCommands& harness() {
  static const HarnessCommands& commands = []() -> const HarnessCommands& {
    const ModuleEntry entry = open_module("libinterlock_harness.so", "interlock_harness_commands");
    if (entry.address == nullptr && !std::filesystem::exists(entry.path)) {
      throw Error("train, calibrate and validate need a module that was not built, " + entry.path +
                  "; in the source tree, ./run train installs and builds what it takes");
    }
    if (entry.address == nullptr) {
      throw Error("cannot open what trains and measures, " + entry.path + ": " + entry.problem);
    }
    return *reinterpret_cast<OfferHarness>(entry.address)();
  }();
  return commands;
}

}  // namespace

void train(const TrainOptions& options) { harness().train(options); }
void validate_run(const ValidateOptions& options) { harness().validate_run(options); }
void validate_fit(const FitOptions& options) { harness().validate_fit(options); }
int validate_published(const PublishedOptions& options) {
  return harness().validate_published(options);
}
void calibrate(const CalibrateOptions& options) { harness().calibrate(options); }

}  // namespace interlock
