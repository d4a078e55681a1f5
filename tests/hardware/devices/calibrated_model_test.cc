// Calibrated devices: each level against numbers worked by hand, and mistakes in their files.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>

#include "hardware/devices/device_reader.h"

namespace interlock::calibrated_model_test {
namespace {

/// Streams at 1 GB/s up to a megabyte and at 0.5 GB/s from four; 1 TFLOP/s, 2 us a launch.
constexpr const char* kDevice = R"({
  "name": "bench", "memory": "1 GB", "memory_bandwidth": "1 GB/s", "peak": {"fp32": "1 TFLOP/s"},
  "calibration": {
    "format": "interlock-calibration/1", "date": "2026-01-01", "seed": 1,
    "stream": [{"bytes": 1e6, "seconds": 1e-3}, {"bytes": 4e6, "seconds": 8e-3}],
    "rooflines": [
      {"class": "gemm", "precision": "fp32", "launch_s": 2e-6, "flops_per_s": 1e12, "k0": 16,
       "sharpness": 2},
      {"class": "elementwise", "precision": "fp32", "bytes_per_s": 2e9, "share": 0.5,
       "sharpness": 1}],
    "kernels": [
      {"kernel": "wide", "class": "gemm", "precision": "fp32", "launch_s": 1e-6,
       "flops_per_s": 2e12, "sharpness": 100},
      {"kernel": "tall", "class": "gemm", "precision": "fp32", "flops_per_s": 4e12,
       "sharpness": 100}],
    "table": [
      {"class": "gemm", "role": "forward", "precision": "fp32", "m": 64, "n": 64, "k": 64,
       "flops": 524288, "bytes": 49152, "kernel": "wide", "seconds": 7e-5},
      {"class": "gemm", "role": "forward", "precision": "fp32", "m": 4096, "n": 64, "k": 64,
       "flops": 33554432, "bytes": 2113536, "kernel": "tall", "seconds": 9e-5}]}})";

Device read(const std::string& text) {
  const JsonValue value = parse_json(text, "bench.json");
  Diagnostics diagnostics;
  Device device = read_device({&value, ""}, diagnostics);
  diagnostics.throw_if_any();
  return device;
}

std::string mistakes_of(std::string text, const std::string& part, const std::string& by) {
  text.replace(text.find(part), part.size(), by);
  try {
    read(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

Work product(double m, double n, double k, OpRole role = OpRole::Forward) {
  return {.op_class = OpClass::Gemm,
          .flops = Flops(2 * m * n * k),
          .bytes = Bytes(4 * (m * k + k * n + m * n)),
          .role = role,
          .shape = {m, n, k}};
}

void check_time(const KernelTime& time, PricedBy level, double expected) {
  CHECK(time.priced_by == level);
  CHECK(time.whole().value() == doctest::Approx(expected).epsilon(1e-12));
}

TEST_CASE("work that was measured takes the time that was measured") {
  const Device device = read(kDevice);
  check_time(kernel_time(product(64, 64, 64), device, Precision::Fp32), PricedBy::Table, 7e-5);
  // Another role, or twice, is other work.
  const Work gradient = product(64, 64, 64, OpRole::WeightGradient);
  CHECK(kernel_time(gradient, device, Precision::Fp32).priced_by == PricedBy::Roofline);
  Work twice = product(64, 64, 64);
  twice.launches = 2;
  CHECK(kernel_time(twice, device, Precision::Fp32).priced_by == PricedBy::Kernel);
}

TEST_CASE("a product near a measured one runs its kernel, and one far from all the roofline") {
  const Device device = read(kDevice);
  // One octave from "wide".
  const double moved = 4 * (64 * 128 + 128 * 64 + 64 * 64) / 1e9;
  INFO("1 us + 81920 bytes at 1 GB/s, beside which 0.5 us of arithmetic is nothing");
  check_time(kernel_time(product(64, 64, 128), device, Precision::Fp32), PricedBy::Kernel,
             1e-6 + moved);
  const Work tall = product(2048, 64, 64);
  CHECK(kernel_of(*device.calibrated, tall, Precision::Fp32) == 1);
  // Sixteen times 64 in one direction, four times less than 4096 in two others.
  CHECK(kernel_of(*device.calibrated, product(64, 64, 1024), Precision::Fp32) == -1);
}

TEST_CASE("the smooth roofline: launches plus the root of the sum of squares, by hand") {
  const Device device = read(kDevice);
  const Work work = {.op_class = OpClass::Gemm,
                     .flops = Flops(1e9),
                     .bytes = Bytes(1e6),
                     .launches = 3,
                     .shape = {.k = 16}};
  // 3 * 2 us; arithmetic 1e9 (1 + 16 / 16) / 1e12 = 2 ms; traffic 1e6 / 1e9 = 1 ms.
  check_time(kernel_time(work, device, Precision::Fp32), PricedBy::Roofline,
             6e-6 + std::sqrt(2e-3 * 2e-3 + 1e-3 * 1e-3));
  // Without flops: 1e6 bytes at 2 GB/s of arithmetic, and at half of the stream's 1 GB/s.
  check_time(
      kernel_time({.op_class = OpClass::Elementwise, .bytes = Bytes(1e6)}, device, Precision::Fp32),
      PricedBy::Roofline, 0.5e-3 + 2e-3);
}

TEST_CASE("a stream is interpolated between logarithms and goes on as it ends") {
  const Device device = read(kDevice);
  const auto seconds = [&](double bytes) {
    return stream_time(device.calibrated->stream, Bytes(bytes)).value();
  };
  CHECK(seconds(0) == 0);
  CHECK(seconds(1e3) == doctest::Approx(1e-6));
  CHECK(seconds(1e6) == doctest::Approx(1e-3));
  CHECK(seconds(2e6) == doctest::Approx(std::sqrt(1e-3 * 8e-3)));  // half way in octaves
  CHECK(seconds(8e6) == doctest::Approx(16e-3));
}

TEST_CASE("more work never takes less time on a roofline") {
  const Device device = read(kDevice);
  for (const OpClass op_class : {OpClass::Gemm, OpClass::Elementwise}) {
    double before = 0;
    for (double size = 1; size < 1e10; size *= 1.7) {
      const Work work = {.op_class = op_class, .flops = Flops(size * 30), .bytes = Bytes(size)};
      const double now = time_of(work, device, Precision::Fp32).value();
      CHECK(now > before);
      before = now;
    }
  }
}

TEST_CASE("a class without calibration is priced by rates and efficiencies") {
  const Device device = read(kDevice);
  check_time(kernel_time({.op_class = OpClass::Loss, .bytes = Bytes(1e6)}, device, Precision::Fp32),
             PricedBy::Datasheet, 1e-3);
}

/// kDevice whose members were timed: two by sizes, four by nothing but a fit.
std::string with_network() {
  std::string text = kDevice;
  const std::string where = "\"stream\": ";
  return text.replace(text.find(where), where.size(), R"("network": [
      {"collective": "all-reduce", "members": 2, "latency_s": 1e-5, "bytes_per_s": 1e9},
      {"collective": "all-reduce", "members": 4, "latency_s": 2e-5, "bytes_per_s": 3e9}],
    "collectives": [
      {"collective": "all-reduce", "members": 2, "bytes": 1e6, "seconds": 1e-3, "low_s": 9e-4},
      {"collective": "all-reduce", "members": 2, "bytes": 4e6, "seconds": 8e-3, "high_s": 9e-3},
      {"collective": "all-reduce", "members": 2, "bytes": 5e6, "seconds": 7e-3}],
    "stream": )");
}

TEST_CASE("collectives take what was measured by size, and what was fitted where no size was") {
  const Device device = read(with_network());
  const auto seconds = [&](int members, double bytes) {
    const auto time =
        calibrated_time(*device.calibrated, CollectiveKind::AllReduce, members, Bytes(bytes));
    REQUIRE(time);
    return time->value();
  };
  CHECK(seconds(2, 1e6) == doctest::Approx(1e-3).epsilon(1e-12));
  CHECK(seconds(2, 2e6) == doctest::Approx(std::sqrt(1e-3 * 8e-3)));  // half way in octaves
  CHECK(seconds(2, 5e6) == doctest::Approx(8e-3).epsilon(1e-12));     // no less than fewer bytes
  CHECK(seconds(2, 1e7) == doctest::Approx(16e-3).epsilon(1e-12));
  INFO("below the least size: from the latency to its time");
  CHECK(seconds(2, 5e5) == doctest::Approx((1e-5 + 1e-3) / 2).epsilon(1e-12));
  CHECK(seconds(2, 1) == doctest::Approx(1e-5).epsilon(1e-3));
  INFO("each of four sends 2 x 3 / 4 of 6 MB");
  CHECK(seconds(4, 6e6) == doctest::Approx(2e-5 + 9e6 / 3e9).epsilon(1e-12));
  CHECK_FALSE(calibrated_time(*device.calibrated, CollectiveKind::AllReduce, 3, Bytes(1e6)));
  CHECK_FALSE(calibrated_time(*device.calibrated, CollectiveKind::AllGather, 2, Bytes(1e6)));
  CHECK(read(kDevice).calibrated->collectives.empty());
}

TEST_CASE("mistakes in measured collectives are told with the place that they are at") {
  const std::string text = with_network();
  CHECK(mistakes_of(text, "\"bytes\": 5e6", "\"bytes\": 4e6")
            .find("/calibration/collectives/2: expected more bytes than the row before it") !=
        std::string::npos);
  CHECK(mistakes_of(text, "\"members\": 4", "\"members\": 2")
            .find("/calibration/network/1: a second fit of one collective") != std::string::npos);
  CHECK(mistakes_of(text, "\"members\": 2, \"bytes\": 4e6", "\"members\": 3, \"bytes\": 4e6")
            .find("/calibration/collectives/1: a collective that \"network\" has no fit of") !=
        std::string::npos);
  CHECK(mistakes_of(text, "\"bytes_per_s\": 3e9", "\"bytes_per_s\": 0")
            .find("/calibration/network/1/bytes_per_s") != std::string::npos);
  CHECK(mistakes_of(text, "\"seconds\": 8e-3", "\"seconds\": 0")
            .find("/calibration/collectives/1/seconds") != std::string::npos);
}

TEST_CASE("mistakes in a calibration are told with the place that they are at") {
  const std::string text = kDevice;
  CHECK(mistakes_of(text, "1e-3}, {\"bytes\": 4e6", "1e-3}, {\"bytes\": 4e5")
            .find("/calibration/stream/1: expected more bytes than the point before it") !=
        std::string::npos);
  CHECK(mistakes_of(text, "\"k0\": 16", "\"k0\": -1").find("/calibration/rooflines/0/k0") !=
        std::string::npos);
  CHECK(mistakes_of(text, "\"seconds\": 9e-5", "\"second\": 9e-5").find("/table/1") !=
        std::string::npos);
  CHECK(mistakes_of(text, "interlock-calibration/1", "interlock-calibration/9") != "");
  CHECK(mistakes_of(text, "\"flops_per_s\": 1e12", "\"flops_per_s\": 0") != "");
  CHECK(mistakes_of(text, "\"class\": \"gemm\"", "\"class\": \"gem\"").find("gemm") !=
        std::string::npos);
}

}  // namespace
}  // namespace interlock::calibrated_model_test
