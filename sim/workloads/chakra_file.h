// ChakraFile: execution traces as files of MLCommons' Chakra, which other simulators read.
// SPDX-License-Identifier: Apache-2.0
//
// Attributes that Chakra's own tools know: is_cpu_op, num_ops, tensor_size, comm_type, comm_size,
// comm_src, comm_dst, comm_tag, pg_name. What it has no word for is in ours, interlock_...: the
// exact duration, queues, and which op of which stage and micro-batch a node is. docs/figures.md
// has the whole list. Needs protobuf when it is built; without, both functions throw.
#pragma once

#include <string>

#include "sim/workloads/execution_trace.h"

namespace interlock {

/// Throws: Error that begins with `who` and says what to install, if this program was built without
/// protobuf.
void require_chakra(const std::string& who);

/// Returns the bytes of a file.
std::string chakra_bytes(const ExecutionTrace& trace);

/// Reads `path`, the file of `rank`. Throws: Error naming the file and the node, if it is none, of
/// another version, cut short, or if nodes say what cannot be.
ExecutionTrace read_chakra(const std::string& path, int rank);

}  // namespace interlock
