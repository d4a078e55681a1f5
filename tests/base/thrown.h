// The message of the Error that a call throws, for tests that check it in full.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/error.h"

namespace interlock {

/// Returns the message of the Error that `call` throws; a sentence that matches nothing if it
/// throws none.
template <class Call>
std::string thrown(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "(no Error was thrown)";
}

}  // namespace interlock
