// Texts that two processes of one machine send each other through a socket, whole.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace interlock {

/// Sends all of `text`, or as much as is taken: where the other end is closed, the rest is dropped,
/// and no signal is raised.
void send_all(int to, std::string_view text);

/// Returns all that comes from a descriptor until its other end is closed.
std::string receive_all(int from);

}  // namespace interlock
