// The scenario files that a command is given.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "cli/parser/commands.h"
#include "scenarios/load/question.h"

namespace interlock {

/// Is told each file that is right, as soon as it is known.
using FileLoaded = std::function<void(const std::string& file, std::size_t scenarios)>;

/// Tells what was assumed of each model, each note once.
void tell_notes(const std::vector<Question>& scenarios);

/// Returns the scenarios of all files, in order. Files of several jobs are told to `loaded`, and
/// refused where there is none. Throws: Error with the mistakes of every file.
std::vector<Question> load_inputs(const CommandOptions& options, const FileLoaded& loaded = {});

}  // namespace interlock
