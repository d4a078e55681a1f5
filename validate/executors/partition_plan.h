// Partition plan: how many multiprocessors each of several devices on one GPU gets.
// SPDX-License-Identifier: Apache-2.0
//
// Pure arithmetic, so that it can be tested without a GPU. What the driver really grants may be
// less, because multiprocessors come in clusters of unequal size: that is read back, not planned.
//
// Example: of 132 multiprocessors, at least 8 each in multiples of 8, four partitions get 32; 4
// remain.
#pragma once

#include <string>

namespace interlock {

/// The limits of a GPU on partitions of its multiprocessors.
struct PartitionLimits {
  int sms = 0;          // of the whole GPU
  int least = 1;        // of a partition
  int granularity = 1;  // a partition has a multiple of this number
};

struct PartitionPlan {
  int partitions = 0, sms = 0;  // of each partition
  int remainder = 0;            // that no partition gets
  std::string refusal;          // why it cannot be done, and what could; empty if it can
};

/// Plans `partitions` equal parts of `wanted` multiprocessors each; 0: the most that fit. No part
/// is made smaller: a plan that does not fit is refused. REQUIRES: partitions >= 1, wanted >= 0.
PartitionPlan plan_partitions(const PartitionLimits& limits, int partitions, int wanted);

}  // namespace interlock
