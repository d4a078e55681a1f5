// The bench of a GPU: every kind of probe is timed, alone and beside others. Needs a GPU.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "base/error_summary.h"
#include "validate/calibration/probe_grid.h"
#include "validate/cuda/bench/gpu_bench.h"
#include "validate/cuda/kernels/cuda_call.h"

using namespace interlock;
using namespace interlock::cuda;

namespace {

std::vector<Probe> probes_of(Precision precision) {
  std::vector<Probe> probes = probe_grid({.linears = 2,
                                          .attentions = 2,
                                          .convolutions = 2,
                                          .sizes = 2,
                                          .most_flops = Flops(1e7),
                                          .most_bytes = Bytes(1e5)},
                                         precision);
  for (const Probe& probe : stream_probes(2, Bytes(1e5), precision)) probes.push_back(probe);
  return probes;
}

}  // namespace

TEST_CASE("a bench times every kind of probe in fp32 and bf16, and names what ran") {
  GpuBench bench(0, 1);
  std::set<ProbeKind> kinds;
  for (const Precision precision : {Precision::Fp32, Precision::Bf16}) {
    for (const Probe& probe : probes_of(precision)) {
      const Readings readings = bench.time(probe, 5, Beside::Nothing);
      INFO(readings.kernel, ": ", median_of(readings.busy) * 1e6, " us");
      REQUIRE(readings.busy.size() == 5);
      CHECK(!readings.kernel.empty());
      CHECK(median_of(readings.busy) > 1e-7);
      CHECK(median_of(readings.busy) < 1);
      kinds.insert(probe.kind);
    }
  }
  CHECK(kinds.size() == kProbeKinds);
}

TEST_CASE("a GPU that is not the first is measured, too") {
  int devices = 0;
  require(cudaGetDeviceCount(&devices), "count devices");
  if (devices < 2) {
    MESSAGE("there is one GPU: left out");
    return;
  }
  GpuBench bench(1, 1);
  const Probe product = linear_probes(64, 64, 64, Precision::Fp32).front();
  CHECK(median_of(bench.time(product, 3, Beside::Nothing).busy) > 1e-7);
  CHECK(median_of(bench.copy(Bytes(4096), 3).busy) > 0);
  CHECK(median_of(bench.launch(3).busy) > 1e-7);
}

TEST_CASE("launches and messages take time, and neighbours make no kernel faster") {
  GpuBench bench(0, 2);
  CHECK(median_of(bench.launch(5).busy) > 1e-7);
  const double small = median_of(bench.copy(Bytes(4096), 5).busy);
  const double large = median_of(bench.copy(Bytes(64e6), 5).busy);
  CHECK(small > 0);
  CHECK(large > 4 * small);
  const Probe product = linear_probes(1024, 1024, 1024, Precision::Bf16).front();
  const double alone = median_of(bench.time(product, 9, Beside::Nothing).busy);
  for (const Beside beside : {Beside::Products, Beside::Copies}) {
    const double together = median_of(bench.time(product, 9, beside).busy);
    INFO("alone ", alone * 1e6, " us, beside others ", together * 1e6, " us");
    CHECK(together > 0.9 * alone);
  }
}
