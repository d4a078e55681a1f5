// Strings of JSON.
// SPDX-License-Identifier: Apache-2.0
#include "reports/result/event_text.h"

#include <nlohmann/json.hpp>

#include "reports/words/encode.h"

namespace interlock {

std::string json_string(std::string_view text) { return nlohmann::json(clean_utf8(text)).dump(); }

}  // namespace interlock
