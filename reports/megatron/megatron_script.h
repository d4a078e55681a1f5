// Megatron script: the arguments of Megatron-LM in a launch script, or in a list of settings.
// SPDX-License-Identifier: Apache-2.0
//
// Arguments are `--name value` or `--name=value` wherever they stand (in commands, in arrays and
// quoted variables of a shell), or lines `name: value`. Names may have underscores for dashes.
// Variables that the file sets are put in; nothing is executed.
#pragma once

#include <string>

#include "reports/imports/settings.h"

namespace interlock {

/// Says every argument of `text`, by its name without "--". The script that is started is the name
/// "script", e.g. pretrain_bert.py.
void read_megatron_script(Settings& settings, const std::string& text);

}  // namespace interlock
