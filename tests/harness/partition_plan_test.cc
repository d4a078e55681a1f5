// Partitions of a GPU: everything that a plan promises, on every small size; refusals by example.
// SPDX-License-Identifier: Apache-2.0
#include "validate/executors/partition_plan.h"

#include <doctest/doctest.h>

#include "validate/executors/cuda_executor.h"

namespace interlock::partition_plan_test {

TEST_CASE("a plan is granted if and only if equal parts of that size exist") {
  for (int sms = 1; sms <= 40; ++sms) {
    for (const int granularity : {1, 2, 4, 8}) {
      for (int partitions = 1; partitions <= 9; ++partitions) {
        for (int wanted = 1; wanted <= 24; ++wanted) {
          const PartitionLimits limits = {.sms = sms, .least = 4, .granularity = granularity};
          // Count parts off the device, one multiprocessor after the other.
          int parts = 0;
          for (int taken = wanted; taken <= sms; taken += wanted) ++parts;
          const bool exists = parts >= partitions && wanted >= 4 && wanted % granularity == 0;
          const PartitionPlan plan = plan_partitions(limits, partitions, wanted);
          INFO(partitions, " of ", wanted, " on ", sms, ": ", plan.refusal);
          REQUIRE(plan.refusal.empty() == exists);
          REQUIRE(plan.sms == wanted);
          if (exists) REQUIRE(plan.remainder == sms - partitions * wanted);
        }
      }
    }
  }
}

TEST_CASE("without a size, parts are as large as fit") {
  // An H100 has 132 multiprocessors in partitions of multiples of 8: 64, 32 and 16 of them leave 4.
  for (const auto& [partitions, sms] : {std::pair{2, 64}, {4, 32}, {8, 16}, {16, 8}}) {
    const PartitionPlan plan =
        plan_partitions({.sms = 132, .least = 8, .granularity = 8}, partitions, 0);
    CHECK(plan.refusal.empty());
    CHECK(plan.sms == sms);
    CHECK(plan.remainder == 4);
  }
}

TEST_CASE("a refusal names the request, the GPU's size and a plan that would do") {
  const PartitionLimits h100 = {.sms = 132, .least = 8, .granularity = 8};
  CHECK(plan_partitions(h100, 8, 32).refusal ==
        "asked for 8 partitions of 32 multiprocessors, this device has 132; try 4 partitions, or 8 "
        "of 16");
  CHECK(plan_partitions(h100, 17, 0).refusal ==
        "asked for 17 partitions of 8 multiprocessors, this device has 132; try 16 partitions");
  CHECK(plan_partitions(h100, 4, 30).refusal ==
        "asked for 4 partitions of 30 multiprocessors, but its partitions have a multiple of 8, at "
        "least 8; try 32");
  CHECK(plan_partitions(h100, 1, 200).refusal ==
        "asked for 1 partition of 200 multiprocessors, this device has 132; try partitions of 128");
  CHECK(plan_partitions({.sms = 4, .least = 8, .granularity = 8}, 1, 0).refusal ==
        "asked for 1 partition of 8 multiprocessors, this device has 4, fewer than one partition "
        "needs (8); use whole GPUs");
}

TEST_CASE("looking for GPUs says in a sentence what was found, whatever the machine") {
  const CudaReport report = look_at_cuda();
  INFO(report.sentence);
  CHECK(!report.sentence.empty());
  CHECK(report.devices.empty() == (report.state != CudaState::Ready));
  if (report.state != CudaState::Ready) CHECK(report.sentence.find("no ") == 0);
  if (report.state == CudaState::NoDriver || report.state == CudaState::NoDevice) {
    CHECK(report.runtime >= 12050);  // the module was opened and asked
  }
  for (const CudaDevice& device : report.devices) CHECK(device.sms > 0);
}

}  // namespace interlock::partition_plan_test
