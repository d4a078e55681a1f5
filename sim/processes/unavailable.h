// Unavailable: what the machine could not give, e.g. memory for an engine's libraries.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

namespace interlock {

/// An engine's module or a process that an answer needs cannot be had now. Not an Error, so that no
/// search counts it as a refusal of the plan it tried. what() is the whole message, for the user.
class Unavailable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace interlock
