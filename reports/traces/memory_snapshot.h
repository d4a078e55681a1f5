// MemorySnapshot: memory over time as PyTorch's viewer of memory snapshots reads it.
// SPDX-License-Identifier: Apache-2.0
//
// The file is a pickle of what torch.cuda.memory._snapshot() returns: "segments", what each device
// holds at the end, and "device_traces", its allocations and frees in order. For example a stash of
// 512 bytes that lives from 3 to 9 us is
//   {"action": "alloc", "addr": 139...., "size": 512, "stream": 0, "time_us": 3, "category":
//    "activation stash", "frames": [{"filename": "activation stash", "line": 0, "name": "F3"}]}
// and the same with "free_completed" at 9. Addresses are those of the first place that has room.
#pragma once

#include "base/file.h"
#include "scenarios/simulate/run_scenario.h"

namespace interlock {

/// Returns the snapshot of all simulated devices over the whole run. REQUIRES: the log was kept.
TextSource memory_snapshot(const ScenarioResult& result);

}  // namespace interlock
