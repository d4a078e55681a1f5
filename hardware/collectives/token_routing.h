// Token routing: on which devices and nodes the experts of a token lie, and the way of its copies.
// SPDX-License-Identifier: Apache-2.0
//
// Experts lie on the members of a group in order, as many on each. A router that has no favourites
// sends a token to any of the sets of experts that it may choose, all alike likely. What DeepEP
// does with it: a token goes once over the card to each other node that holds any of its experts,
// to the member there with its sender's number, and over the fast links inside that node once to
// each other member that holds any of them. What experts made is added up on the same way back.
// Sources: DeepSeek-V3, arXiv 2412.19437, section 3.2.2; the README of deepseek-ai/DeepEP.
//
// Example: 8 of 256 experts a token, 32 on each of 8 nodes: 1 - C(224,8)/C(256,8) = 0.662 of the
// tokens go to a given node, 5.3 nodes a token.
#pragma once

#include "hardware/collectives/grouping.h"

namespace interlock {

/// Returns the share of tokens that have an expert among numbers [first, last), from 0 on.
double share_of_tokens(const TokenRouting& routing, int first, int last);

/// Returns the traffic of tokens of `bytes` a member, one copy of each. REQUIRES: routing.experts
/// is a multiple of the members.
Traffic token_traffic(const Cluster& cluster, const Grouping& grouping, const TokenRouting& routing,
                      Bytes bytes);

}  // namespace interlock
