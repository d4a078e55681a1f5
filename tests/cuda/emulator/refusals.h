// Refusals: what an emulated machine says no to, by a seed.
// SPDX-License-Identifier: Apache-2.0
//
// A library has no algorithm for every epilogue and alignment, a driver splits no GPU as it likes,
// and memory may be taken by others. EMULATED_REFUSALS is the seed at the start; 0 refuses nothing.
//
// Example: by seed 3 products of 16 x 8 with a bias have no algorithm, however often they are asked
// for, and the 40th allocation finds no room.
#pragma once

#include <cstdint>

namespace emulated {

enum class Refusal { Epilogue, Alignment, Split, Allocation };
inline constexpr int kRefusals = 4;

/// Refuses from now on by `seed`, counting from 0 again; 0: nothing.
void refuse_by(std::uint64_t seed);

/// Returns whether the machine refuses `what`: of products for each `which` (a shape, an alignment)
/// always the same; of splits and allocations by how many there were.
bool refuses(Refusal what, std::uint64_t which = 0);

/// Returns how often it did.
int refused(Refusal what);

}  // namespace emulated
