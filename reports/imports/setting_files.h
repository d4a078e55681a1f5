// Setting files: YAML, TOML and JSON of other programs as JSON values and as settings.
// SPDX-License-Identifier: Apache-2.0
//
// Example: the TOML "[training]\nseq_len = 8192" and the YAML "training: {seq_len: 8192}" are both
// {"training": {"seq_len": 8192}}, whose one setting is "training.seq_len". Lists of plain values
// are one setting, whose words they are; other lists have their numbers as names.
#pragma once

#include <string>

#include "base/json/json.h"
#include "reports/imports/settings.h"

namespace interlock {

/// Reads a file by the ending of its name: .yaml, .yml, .toml or .json. Texts of YAML that are
/// numbers, true, false or null are such. Throws: Error with file and line if the text is none of
/// its kind, is nested over 64 deep, or has more than a hundred thousand values.
JsonValue read_settings_file(const std::string& path);

/// Says every leaf of `value`: `prefix` and its dotted path is its name, and what messages show.
void say_all(Settings& settings, const JsonValue& value, const std::string& prefix);

/// Returns a leaf as text, the way say_all() does: "true", "8192", "bf16"; null is "null".
std::string setting_text(const JsonValue& value);

}  // namespace interlock
