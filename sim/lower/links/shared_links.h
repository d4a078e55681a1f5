// Shared links: which wires and collectives of a program meet others on their links.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/program/program.h"

namespace interlock {

/// Marks the wires, and the collectives, that share a link with another user: a wire of messages,
/// or the collectives of a communicator, which come one after the other and are one user. All flows
/// of a message or collective are marked if one of them is, or else they would not end together.
void mark_shared_links(Program& program);

}  // namespace interlock
