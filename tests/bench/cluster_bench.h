// Time and memory of large clusters, folded and not.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace interlock {

/// Prints seconds, peak memory and tasks of a trillion parameters on 512 devices, of 16,384
/// devices, and of replicas that share links, each in a process of its own; median of `rounds`.
void run_clusters(int rounds);

}  // namespace interlock
