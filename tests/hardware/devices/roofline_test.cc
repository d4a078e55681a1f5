// The roofline against numbers worked by hand.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "hardware/devices/device.h"

namespace interlock::roofline_test {
namespace {

/// 100 TFLOP/s in bf16, 1 TB/s, and round efficiencies, so that the arithmetic stays in the head.
Device round_device() {
  Device device{.name = "round"};
  device.peak[static_cast<std::size_t>(Precision::Bf16)] = FlopsPerSecond(100e12);
  device.memory_bandwidth = BytesPerSecond(1e12);
  device.efficiency[static_cast<std::size_t>(OpClass::Gemm)] = {.compute = 0.8, .memory = 0.5};
  device.launch_overhead = Seconds(5e-6);
  return device;
}

void check_time(const Work& work, double expected, const char* derivation) {
  const double actual = time_of(work, round_device(), Precision::Bf16).value();
  MESSAGE(derivation << "; expected " << expected << " s, got " << actual << " s");
  CHECK_EQ(actual, doctest::Approx(expected).epsilon(1e-12));
}

}  // namespace

TEST_CASE("a kernel takes its launches plus the longer of arithmetic and traffic") {
  check_time({.op_class = OpClass::Gemm, .flops = Flops(8e9), .bytes = Bytes(1e6)}, 105e-6,
             "compute bound: 5 us + max(8e9 / (0.8 * 100e12) = 100 us, 1e6 / (0.5 * 1e12) = 2 us)");
  check_time({.op_class = OpClass::Gemm, .flops = Flops(8e7), .bytes = Bytes(1e6)}, 7e-6,
             "memory bound: 5 us + max(8e7 / (0.8 * 100e12) = 1 us, 1e6 / (0.5 * 1e12) = 2 us)");
  check_time({.op_class = OpClass::Elementwise, .flops = Flops(1e6), .bytes = Bytes(1e6)}, 6e-6,
             "full rates: 5 us + max(1e6 / 100e12 = 0.01 us, 1e6 / 1e12 = 1 us)");
  check_time({.op_class = OpClass::Loss, .flops = Flops(), .bytes = Bytes(), .launches = 3}, 15e-6,
             "three launches of nothing: 3 * 5 us");
  check_time({.op_class = OpClass::Gemm, .flops = Flops(8e9), .bytes = Bytes(), .launches = 0},
             100e-6, "no launch of its own: 8e9 / (0.8 * 100e12)");
}

TEST_CASE("in training of 8 or 4 bits only products of linear layers are in these") {
  using Share = std::optional<double> Efficiency::*;
  const std::tuple<Precision, double, Share> cases[] = {
      {Precision::Fp8, 200e12, &Efficiency::compute_fp8},
      {Precision::Fp4, 400e12, &Efficiency::compute_fp4}};
  for (const auto& [precision, rate, share] : cases) {
    Device device = round_device();
    device.peak[static_cast<std::size_t>(precision)] = FlopsPerSecond(rate);
    device.launch_overhead = Seconds(0);
    const auto time = [&](OpClass op_class) {
      return time_of({.op_class = op_class, .flops = Flops(8e9)}, device, precision).value();
    };
    CHECK(time(OpClass::Gemm) == doctest::Approx(8e9 / (0.8 * rate)));
    INFO("products between tokens: at the rate of 16 bits");
    CHECK(time(OpClass::Attention) == doctest::Approx(8e9 / (0.8 * 100e12)));
    device.efficiency[static_cast<std::size_t>(OpClass::Gemm)].*share = 0.5;
    CHECK(time(OpClass::Gemm) == doctest::Approx(8e9 / (0.5 * rate)));
    INFO("of the other precision the share is the usual one");
    const auto other = precision == Precision::Fp8 ? Precision::Fp4 : Precision::Fp8;
    device.peak[static_cast<std::size_t>(other)] = FlopsPerSecond(300e12);
    CHECK(time_of({.op_class = OpClass::Gemm, .flops = Flops(8e9)}, device, other).value() ==
          doctest::Approx(8e9 / (0.8 * 300e12)));
  }
}

TEST_CASE("products in fp32 reach a share of their own") {
  Device device = round_device();
  device.peak[static_cast<std::size_t>(Precision::Fp32)] = FlopsPerSecond(10e12);
  device.launch_overhead = Seconds(0);
  const Work product = {.op_class = OpClass::Gemm, .flops = Flops(8e9)};
  const auto time = [&](Precision precision) {
    return time_of(product, device, precision).value();
  };
  const double half = time(Precision::Bf16);
  CHECK(time(Precision::Fp32) == doctest::Approx(8e9 / (0.8 * 10e12)));
  device.efficiency[static_cast<std::size_t>(OpClass::Gemm)].compute_fp32 = 0.5;
  CHECK(time(Precision::Fp32) == doctest::Approx(8e9 / (0.5 * 10e12)));
  CHECK(time(Precision::Bf16) == half);
}

TEST_CASE("QR factorisations take as long as those of SOAP that were measured on an H100") {
  // NVIDIA-NeMo/Emerging-Optimizers, pull request 118: 12 layers, both sides of four matrices each.
  Device h100 = round_device();
  h100.peak[static_cast<std::size_t>(Precision::Fp32)] = FlopsPerSecond(66.9e12);
  const auto predicted = [&](double hidden) {
    const double mlp = 4096, qkv = 3 * hidden;
    double cubes = 0;
    for (const double side : {hidden, qkv, hidden, hidden, hidden, mlp, mlp, hidden}) {
      cubes += side * side * side;
    }
    const Work work = {.op_class = OpClass::Optimizer,
                       .flops = Flops(12 * 8.0 / 3 * cubes),
                       .variant = OpVariant::Factored};
    return time_of(work, h100, Precision::Bf16).value();
  };
  CHECK(predicted(1024) == doctest::Approx(1.225).epsilon(0.2));
  CHECK(predicted(2048) == doctest::Approx(2.210).epsilon(0.2));
}

TEST_CASE("a measured duration is returned as it stands") {
  check_time(measured_work(Seconds(0.125)), 0.125, "measured: 125 ms, whatever the device");
  const Device bare{.name = "bare"};
  CHECK_EQ(time_of(measured_work(Seconds(2)), bare, Precision::Fp8).value(), 2);
}

TEST_CASE("several kernels take the sum of their times") {
  const Work gemm{.op_class = OpClass::Gemm, .flops = Flops(8e9), .bytes = Bytes(1e6)};
  const Work copy{.op_class = OpClass::Elementwise, .bytes = Bytes(1e6)};
  const std::vector<Work> work = {gemm, copy, measured_work(Seconds(1e-6))};
  MESSAGE("105 us + 6 us + 1 us = 112 us");
  CHECK_EQ(time_of(work, round_device(), Precision::Bf16).value(),
           doctest::Approx(112e-6).epsilon(1e-12));
  CHECK_EQ(time_of(std::vector<Work>{}, round_device(), Precision::Bf16).value(), 0);
}

TEST_CASE("a device tells what it can price") {
  const Device device = round_device();
  CHECK(has_rates(device));
  CHECK(supports(device, Precision::Bf16));
  CHECK_FALSE(supports(device, Precision::Fp8));
  CHECK_EQ(supported_precisions(device), std::vector<std::string>{"bf16"});
  const Device bare{.name = "bare", .memory = Bytes(80e9)};
  CHECK_FALSE(has_rates(bare));
  CHECK_FALSE(supports(bare, Precision::Fp32));
  CHECK(supported_precisions(bare).empty());
}

TEST_CASE("a device that is k times as fast takes 1/k of the time") {
  for (const double k : {0.5, 2.0, 16.0}) {
    Device fast = round_device();
    fast.memory_bandwidth *= k;
    fast.launch_overhead *= 1 / k;
    for (auto& peak : fast.peak) {
      if (peak) *peak *= k;
    }
    for (const double flops : {0.0, 1e6, 1e9, 1e12}) {
      const Work work{.op_class = OpClass::Gemm, .flops = Flops(flops), .bytes = Bytes(3e6)};
      const double before = time_of(work, round_device(), Precision::Bf16).value();
      CHECK_EQ(time_of(work, fast, Precision::Bf16).value(),
               doctest::Approx(before / k).epsilon(1e-12));
    }
  }
}

}  // namespace interlock::roofline_test
