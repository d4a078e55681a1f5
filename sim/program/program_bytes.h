// ProgramBytes: a program as bytes, for another process of the same build.
// SPDX-License-Identifier: Apache-2.0
//
// Members follow each other as they lie in memory; before a list comes its length. For example, a
// program of one rank that has the stages 0 and 2 holds, at the place of `ranks`,
//   1  { first_stream 0, streams 1, 2 { 0, 2 }, weight_versions 1, ... }
#pragma once

#include <string>
#include <string_view>

#include "sim/program/program.h"

namespace interlock {

/// Returns `program` as bytes. What its micro-batches are packed with is written as a table.
std::string program_bytes(const Program& program);

/// Returns the program that program_bytes() made `bytes` of. Throws: std::runtime_error if another
/// build has written them, or a part is missing.
Program read_program(std::string_view bytes);

}  // namespace interlock
