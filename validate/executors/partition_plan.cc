// Partition plan: whole multiples of the granularity, or a refusal with the numbers.
// SPDX-License-Identifier: Apache-2.0
#include "validate/executors/partition_plan.h"

#include <algorithm>

#include "base/error.h"

namespace interlock {

namespace {

int round_up(int value, int multiple) { return (value + multiple - 1) / multiple * multiple; }

std::string ask(int partitions, int sms) {
  return "asked for " + std::to_string(partitions) +
         (partitions == 1 ? " partition of " : " partitions of ") + std::to_string(sms) +
         " multiprocessors";
}

}  // namespace

PartitionPlan plan_partitions(const PartitionLimits& limits, int partitions, int wanted) {
  CHECK(partitions >= 1 && wanted >= 0, "a number of partitions and of multiprocessors");
  CHECK(limits.granularity >= 1 && limits.least >= 1, "a granularity");
  const int least = round_up(limits.least, limits.granularity);
  const int most = limits.sms / partitions / limits.granularity * limits.granularity;
  const int sms = wanted == 0 ? std::max(most, least) : wanted;
  PartitionPlan plan = {.partitions = partitions, .sms = sms};
  const std::string has = "this device has " + std::to_string(limits.sms);
  if (limits.sms < least) {
    plan.refusal = ask(partitions, sms) + ", " + has + ", fewer than one partition needs (" +
                   std::to_string(least) + "); use whole GPUs";
  } else if (sms < least || sms % limits.granularity != 0) {
    const int fits = std::min(std::max(round_up(sms, limits.granularity), least),
                              limits.sms / limits.granularity * limits.granularity);
    plan.refusal = ask(partitions, sms) + ", but its partitions have a multiple of " +
                   std::to_string(limits.granularity) + ", at least " + std::to_string(least) +
                   "; try " + std::to_string(fits);
  } else if (sms > limits.sms / partitions) {
    const int fit = limits.sms / sms;
    plan.refusal = ask(partitions, sms) + ", " + has + "; try ";
    plan.refusal += fit >= 1 ? std::to_string(fit) + (fit == 1 ? " partition" : " partitions")
                             : "partitions of " + std::to_string(std::max(most, least));
    if (fit >= 1 && most >= least) {
      plan.refusal += ", or " + std::to_string(partitions) + " of " + std::to_string(most);
    }
  }
  if (plan.refusal.empty()) plan.remainder = limits.sms - partitions * sms;
  return plan;
}

}  // namespace interlock
