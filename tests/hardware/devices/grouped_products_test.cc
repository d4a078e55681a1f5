// Products of several experts, which the host issues one by one: against measured ones, by hand.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>

#include "base/file.h"
#include "tests/hardware/devices/named_device.h"

namespace interlock::grouped_products_test {
namespace {

/// Example: "b200,160,154,3072,5120,forward,4,1725".
struct Measured {
  std::string device;
  double experts, tokens, outputs, inputs;
  std::string pass;
  double gradient_bytes, microseconds;
};

std::vector<Measured> read_products(const std::string& device) {
  std::ifstream file(data_folder("tests/hardware/devices") + "/grouped_products.csv");
  std::vector<Measured> products;
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with('#') || line.starts_with("device")) continue;
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream words(line);
    Measured m;
    words >> m.device >> m.experts >> m.tokens >> m.outputs >> m.inputs >> m.pass >>
        m.gradient_bytes >> m.microseconds;
    REQUIRE(words);
    if (m.device == device) products.push_back(m);
  }
  return products;
}

/// Returns the kernels of all experts: operands of 2 bytes; gradients of weights read and written.
Work work_of(const Measured& m) {
  const double weights = m.inputs * m.outputs, rows = m.tokens * (m.inputs + m.outputs);
  const double moved = m.pass == "weight" ? 2 * m.gradient_bytes * weights : 2 * weights;
  Work work = {.op_class = OpClass::Gemm,
               .flops = Flops(2 * m.tokens * weights * m.experts),
               .bytes = Bytes((2 * rows + moved) * m.experts),
               .shape = {m.tokens, m.outputs, m.inputs, m.experts},
               .more_issues = static_cast<int>(m.experts) - 1};
  if (m.pass == "input") work.shape = {m.tokens, m.inputs, m.outputs, m.experts};
  if (m.pass == "weight") work.shape = {m.inputs, m.outputs, m.tokens, m.experts};
  return work;
}

/// Returns how far off `device` is on average over what was measured on it.
double typical_error(const Device& device, const std::string& name) {
  double sum = 0;
  const std::vector<Measured> products = read_products(name);
  for (const Measured& m : products) {
    const KernelTime time = kernel_time(work_of(m), device, Precision::Bf16);
    const double longer = std::max(time.compute, time.memory).value() * 1e6;
    sum += std::abs(std::log(longer / m.microseconds));
  }
  return sum / static_cast<double>(products.size());
}

}  // namespace

TEST_CASE("what an overlap does not hide of arithmetic and traffic comes on top") {
  Device device = device_named("b200");
  device.tiles = {};
  // 2 Tflop at 0.7 of 2250 TFLOP/s take 1.27 ms; 3.4 GB at 0.85 of 8 TB/s half a millisecond.
  Work work = {.op_class = OpClass::Gemm, .flops = Flops(2e12), .bytes = Bytes(3.4e9)};
  const double compute = 2e12 / (0.7 * 2250e12), memory = 3.4e9 / (0.85 * 8e12);
  for (const double overlap : {0.0, 0.25, 1.0}) {
    device.grouped_overlap = overlap;
    work.more_issues = 15;
    const KernelTime several = kernel_time(work, device, Precision::Bf16);
    CHECK(several.whole().value() - several.launch.value() ==
          doctest::Approx(compute + (1 - overlap) * memory));
    INFO("one product alone hides all of it");
    work.more_issues = 0;
    CHECK(kernel_time(work, device, Precision::Bf16).whole().value() - several.launch.value() ==
          doctest::Approx(compute));
  }
}

TEST_CASE("on a B200 nothing is hidden, on an A100 all") {
  Device b200 = device_named("b200");
  // 514 products of dense layers of the same table fit 0.5 of the peak and a ramp of 60.
  b200.efficiency[static_cast<std::size_t>(OpClass::Gemm)].compute = 0.5;
  b200.tiles.ramp = 60;
  CHECK(b200.grouped_overlap == 0);
  const double none = typical_error(b200, "b200");
  b200.grouped_overlap = 1;
  const double all = typical_error(b200, "b200");
  MESSAGE("108 products on B200: " << none << " off with nothing hidden, " << all << " with all");
  CHECK(none < 0.13);
  CHECK(all > 2 * none);

  Device a100 = device_named("a100-pcie-80g");
  CHECK(a100.grouped_overlap == 1);
  const double hidden = typical_error(a100, "a100-pcie-80g");
  a100.grouped_overlap = 0;
  const double apart = typical_error(a100, "a100-pcie-80g");
  MESSAGE("12 products on A100: " << hidden << " off with all hidden, " << apart
                                  << " with nothing");
  CHECK(hidden < 0.07);
  CHECK(apart > 2 * hidden);
}

}  // namespace interlock::grouped_products_test
