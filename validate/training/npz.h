// Npz: named arrays in a file that numpy.load opens.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "validate/network/job.h"

namespace interlock {

/// Returns the bytes of a .npy file, format 1.0: little-endian doubles, row-major.
/// Source: NumPy enhancement proposal 1.
std::string npy(const NamedArray& array);

/// Returns the bytes of a .npz file: an uncompressed zip archive of NAME.npy. Equal arrays give
/// equal bytes. REQUIRES: names differ.
std::string npz(const std::vector<NamedArray>& arrays);

}  // namespace interlock
