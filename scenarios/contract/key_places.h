// Key places: where a key that stands in the wrong object belongs.
// SPDX-License-Identifier: Apache-2.0
//
// Example: of "/training/strategy/in_flight: unknown key; known: kind, n_wise, ..." it makes
// "/training/strategy/in_flight: unknown key; did you mean \"training.schedule.in_flight\"?".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace interlock {

/// Returns the dotted paths at which the contract has `key`, those that share most of their way
/// with `near` ("/training/strategy"). Nothing if they are none or many.
std::vector<std::string> places_of_key(std::string_view key, std::string_view near);

/// Returns `error` with these places in the messages on keys that are known elsewhere.
Error with_places_of_keys(const Error& error);

}  // namespace interlock
