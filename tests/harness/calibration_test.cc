// Calibration from end to end on a bench whose times are known, and the protocol on counted calls.
// SPDX-License-Identifier: Apache-2.0
#include "validate/calibration/calibration.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <thread>

#include "base/draws.h"
#include "base/error.h"
#include "hardware/devices/device_reader.h"
#include "validate/calibration/calibration_file.h"
#include "validate/calibration/cpu_kernels.h"
#include "validate/calibration/probe_grid.h"
#include "validate/calibration/protocol.h"
#include "validate/cpu/cpu_collectives.h"

namespace interlock::calibration_test {

namespace {

/// 5 us a kernel, 20 GFLOP/s, 10 GB/s; one after the other, so that a person can add them up.
double true_time(const Work& work) {
  const double filling = work.shape.k > 0 ? 1 + 16 / work.shape.k : 1;
  return 5e-6 * work.launches + work.flops.value() * filling / 20e9 + work.bytes.value() / 10e9;
}

/// A device with these times and `noise`; notes the works in the order in which they are asked for.
Bench known_bench(double noise, std::vector<Work>& asked) {
  Bench bench = {.facts = {.kind = "test",
                           .name = "known \"device\"",
                           .processor = "arithmetic",
                           .driver = "none",
                           .clocks = "none",
                           .memory = Bytes(1e9)},
                 .precisions = {Precision::Fp32},
                 .most_flops = {Flops(1e9)},
                 .most_bytes = Bytes(1e8)};
  bench.time = [noise, &asked](const Probe& probe, int count, Beside beside) {
    Random random(asked.size(), 5);
    asked.push_back(probe.work);
    Readings readings;
    for (int i = 0; i < count; ++i) {
      const double factor = beside == Beside::Nothing ? 1 : beside == Beside::Products ? 1.5 : 2;
      readings.busy.push_back(true_time(probe.work) * factor *
                              std::exp(noise * draw_normal(random)));
    }
    readings.wall = readings.busy;
    if (probe.kind == ProbeKind::Linear) readings.kernel = "product";
    return readings;
  };
  bench.launch = [](int count) {
    const std::vector<double> times(static_cast<std::size_t>(count), 5e-6);
    return Readings{times, times, ""};
  };
  bench.copy = [](Bytes bytes, int count) {
    const std::vector<double> times(static_cast<std::size_t>(count), 3e-6 + bytes.value() / 4e9);
    return Readings{times, times, ""};
  };
  return bench;
}

Device read_back(const Calibration& calibration) {
  const std::string text =
      device_file(calibration,
                  {.date = "2026-01-01", .command = "interlock calibrate", .program_version = "1"});
  const JsonValue value = parse_json(text, "known.json");
  Diagnostics diagnostics;
  Device device = read_device({&value, ""}, diagnostics);
  diagnostics.throw_if_any();
  return device;
}

}  // namespace

TEST_CASE("of 31 readings the median lies between the 10th and the 22nd with 95 %") {
  Readings readings;
  for (int i = 31; i >= 1; --i) readings.busy.push_back(i);
  readings.wall = {7, 9, 8};
  const Sample sample = sample_of({}, readings);
  CHECK(sample.time.value() == 16);
  CHECK(sample.low.value() == 10);
  CHECK(sample.high.value() == 22);
  CHECK(sample.wall.value() == 8);
  INFO("the middle half: from the 8th to the 24th of 31, over 16");
  CHECK(sample.spread == 1);
}

TEST_CASE("shapes come in an order of the seed, and the first comes again at the end") {
  std::vector<Work> asked, again;
  const std::vector<Probe> probes = stream_probes(20, Bytes(1e6), Precision::Fp32);
  const MeasuredSamples first = measure(known_bench(0, asked), probes, {.readings = 3, .seed = 1});
  measure(known_bench(0, again), probes, {.readings = 3, .seed = 1});
  REQUIRE(asked.size() == 21);
  CHECK(asked.front().bytes == asked.back().bytes);
  bool sorted = true, equal = true;
  for (std::size_t i = 0; i < 20; ++i) {
    sorted = sorted && asked[i].bytes == probes[i].work.bytes;
    equal = equal && asked[i].bytes == again[i].bytes;
    CHECK(first.samples[i].work.bytes == probes[i].work.bytes);
  }
  CHECK_FALSE(sorted);
  CHECK(equal);
  CHECK(first.drift == doctest::Approx(0));
}

TEST_CASE("what scatters is measured once more, then rejected") {
  std::vector<Work> asked;
  const std::vector<Probe> probes = stream_probes(10, Bytes(1e6), Precision::Fp32);
  const MeasuredSamples wild =
      measure(known_bench(0.5, asked), probes, {.readings = 31, .seed = 1});
  CHECK(wild.samples.empty());
  CHECK(wild.rejected == 10);
  CHECK(asked.size() == 10 + 10 + 1);
  std::vector<Work> ignored;
  CHECK_THROWS_AS(calibrate(known_bench(0.5, ignored), {.quick = true}), Error);
}

TEST_CASE("a calibration that is written and read again prices what was measured as measured") {
  std::vector<Work> asked;
  const Calibration calibration = calibrate(known_bench(0.02, asked), {.quick = true, .seed = 4});
  const Device device = read_back(calibration);
  REQUIRE(device.calibrated);
  CHECK(device.name == "known \"device\"");
  CHECK(device.memory.value() == 1e9);
  int in_table = 0;
  for (const Sample& sample : calibration.samples) {
    const KernelTime time = kernel_time(sample.work, device, Precision::Fp32);
    CHECK(time.whole() / Seconds(true_time(sample.work)) == doctest::Approx(1).epsilon(0.15));
    if (time.priced_by != PricedBy::Table) continue;
    ++in_table;
    CHECK(time.whole() / sample.time == doctest::Approx(1).epsilon(1e-5));
  }
  INFO(in_table << " of " << calibration.samples.size() << "; the rest have a namesake");
  CHECK(in_table > static_cast<int>(calibration.samples.size()) / 3);
  // Sums, not the longer of two: the smooth corner with g = 1 is the truth.
  const auto& gemm = device.calibrated->rooflines[0][static_cast<std::size_t>(OpClass::Gemm)];
  REQUIRE(gemm.has_value());
  INFO("rate " << gemm->rate << ", sharpness " << gemm->sharpness);
  CHECK(gemm->rate == doctest::Approx(20e9).epsilon(0.03));
  for (const HeldOutErrors& row : calibration.errors) {
    INFO(static_cast<int>(row.op_class) << " " << name_of(row.part) << " " << row.roofline.mape);
    CHECK(row.roofline.mape < 0.03);
  }
}

TEST_CASE("latency and bandwidth of copies, slow-downs beside others, and a row for each sample") {
  std::vector<Work> asked;
  const Calibration calibration = calibrate(known_bench(0, asked), {.quick = true});
  REQUIRE(calibration.copies.has_value());
  CHECK(calibration.copies->latency.value() == doctest::Approx(3e-6).epsilon(1e-4));
  CHECK(calibration.copies->bandwidth.value() == doctest::Approx(4e9).epsilon(1e-4));
  for (const Slowdown& one : calibration.interference) {
    CHECK(one.factor == doctest::Approx(one.beside == Beside::Products ? 1.5 : 2));
  }
  const std::string csv = samples_csv(calibration);
  const auto rows = static_cast<std::size_t>(std::count(csv.begin(), csv.end(), '\n'));
  CHECK(rows == 1 + calibration.samples.size() + calibration.streams.size());
}

TEST_CASE(
    "kernels that a scenario wants are measured once, and a precision without a bench is refused") {
  std::vector<Work> asked;
  const std::vector<Probe> wanted = linear_probes(96, 40, 24, Precision::Fp32);
  const Calibration calibration =
      calibrate(known_bench(0, asked), {.quick = true, .wanted = wanted, .wanted_for = {"mine"}});
  const Device device = read_back(calibration);
  for (const Probe& probe : wanted) {
    const KernelTime time = kernel_time(probe.work, device, Precision::Fp32);
    CHECK(time.priced_by == PricedBy::Table);
    CHECK(time.whole().value() == doctest::Approx(true_time(probe.work)).epsilon(1e-5));
  }
  CHECK_THROWS_WITH_AS(
      calibrate(known_bench(0, asked), {.wanted = linear_probes(8, 8, 8, Precision::Bf16)}),
      doctest::Contains("a scenario trains in bf16"), Error);
}

TEST_CASE("beside products all kernels are measured beside products, and the file says so") {
  std::vector<Work> asked;
  const CalibrationOptions busy = {.quick = true, .beside = Beside::Products};
  const Calibration calibration = calibrate(known_bench(0, asked), busy);
  for (const Sample& sample : calibration.samples) {
    CHECK(sample.time.value() == doctest::Approx(1.5 * true_time(sample.work)));
  }
  CHECK(device_file(calibration, {}).find("\"beside\": \"products\"") != std::string::npos);
  CHECK(read_back(calibration).calibrated);
  CHECK_THROWS_WITH_AS(calibrate(known_bench(0, asked), {.warm = true}),
                       doctest::Contains("warm caches"), Error);
}

TEST_CASE("collectives are fitted by what each member sends, for each number of members") {
  std::vector<Work> asked;
  Bench bench = known_bench(0, asked);
  bench.most_members = 8;
  bench.collective = [](CollectiveKind kind, int members, Bytes bytes, int count) {
    // By a ring of 100 GB/s, 1 us a step: an all-reduce passes 2 (n - 1) times, others n - 1.
    const double passes = (kind == CollectiveKind::AllReduce ? 2 : 1) * (members - 1.0);
    const double time = passes * (1e-6 + bytes.value() / members / 100e9);
    const std::vector<double> times(static_cast<std::size_t>(count), time);
    return Readings{times, times, ""};
  };
  const Calibration calibration = calibrate(bench, {.quick = true});
  CHECK(calibration.network.size() == 4 * 3);  // kinds, of 8, 4 and 2
  for (const CollectiveSpeed& one : calibration.network) {
    const double passes = (one.kind == CollectiveKind::AllReduce ? 2 : 1) * (one.members - 1.0);
    CHECK(one.speed.latency.value() == doctest::Approx(passes * 1e-6).epsilon(1e-3));
    CHECK(one.speed.bandwidth.value() == doctest::Approx(100e9).epsilon(1e-3));
  }
  const std::string text = device_file(calibration, {});
  CHECK(text.find(R"("collective": "reduce-scatter", "members": 4, "latency_s")") !=
        std::string::npos);
  CHECK(read_back(calibration).calibrated);
}

TEST_CASE("what replicas on threads exchange is calibrated by bytes and number of threads") {
  std::vector<Work> asked;
  Bench bench = known_bench(0, asked);
  add_collectives(bench);
  if (!bench.collective) {
    MESSAGE("one processor: a thread has no other to exchange with");
    return;
  }
  const auto threads = static_cast<int>(std::thread::hardware_concurrency());
  CHECK(bench.most_members == threads);
  bench.most_members = std::min(threads, 4);
  bench.most_exchanged = Bytes(1 << 18);
  const Calibration calibration = calibrate(bench, {.quick = true});
  const std::string text = device_file(calibration, {});
  const JsonValue file = parse_json(text, "threads.json");
  std::map<std::pair<std::string, int>, double> last;  // bytes, by collective and members
  int rows = 0;
  for (const JsonValue& row : file.find("calibration")->find("collectives")->items) {
    const auto members = static_cast<int>(row.find("members")->number);
    CHECK(members >= 2);
    CHECK(members <= threads);
    double& before = last[{row.find("collective")->text, members}];
    CHECK(row.find("bytes")->number > before);
    before = row.find("bytes")->number;
    CHECK(row.find("seconds")->number > 0);
    ++rows;
  }
  CHECK(rows == 6 * static_cast<int>(last.size()));
  std::set<std::string> kinds;
  for (const auto& [what, bytes] : last) kinds.insert(what.first);
  CHECK(kinds == std::set<std::string>{"all-gather", "all-reduce", "reduce-scatter"});
  CHECK(last.count({"all-reduce", bench.most_members}) == 1);
  CHECK(last.count({"all-reduce", 2}) == (bench.most_members == 3 ? 0 : 1));
  const Device device = read_back(calibration);
  REQUIRE(device.calibrated);
  for (const MeasuredCollective& one : calibration.collectives) {
    CHECK(calibrated_time(*device.calibrated, one.kind, one.members, one.bytes) > Seconds(0));
  }
}

TEST_CASE("threads take part in as many collectives as are timed") {
  for (const int members : {2, 3, 5}) {
    for (const CollectiveKind kind :
         {CollectiveKind::AllReduce, CollectiveKind::AllGather, CollectiveKind::ReduceScatter}) {
      const Readings readings = time_cpu_collective(kind, members, Bytes(4000), 7);
      CHECK(readings.busy.size() == 7);
      CHECK(readings.wall.size() == 7);
    }
  }
}

TEST_CASE("probes are the works that models ask for") {
  const std::vector<Probe> probes = linear_probes(6, 10, 14, Precision::Fp32);
  REQUIRE(probes.size() == 3);
  CHECK(probes[0].work.shape == ProductShape{6, 14, 10});
  CHECK(probes[0].work.bytes.value() == 4 * (60 + 140 + 84));
  CHECK(probes[2].work.launches == 2);  // the gradient of the bias is a kernel of its own
  GridSize small = {.linears = 4, .attentions = 2, .convolutions = 2, .sizes = 2};
  small.most_flops = Flops(1e6);
  small.most_bytes = Bytes(1e5);
  std::vector<int> of_class(kOpClasses);
  for (const Probe& probe : probe_grid(small, Precision::Fp32)) {
    ++of_class[static_cast<std::size_t>(probe.work.op_class)];
  }
  for (int i = 0; i < kOpClasses - 1; ++i) CHECK(of_class[static_cast<std::size_t>(i)] > 0);
}

TEST_CASE("every kernel of the grid runs on a processor, and says which it is") {
  GridSize small = {.linears = 3, .attentions = 2, .convolutions = 2, .sizes = 2};
  small.most_flops = Flops(1e5);
  small.most_bytes = Bytes(2e4);
  for (const Probe& probe : probe_grid(small, Precision::Fp32)) {
    const CpuKernel kernel = cpu_kernel(probe);
    CHECK(kernel.name.starts_with("eigen "));
    kernel.run();
    kernel.run();
  }
  std::string why;
  const std::optional<Bench> gpu = cuda_bench(0, 1, why);
  if (!gpu) CHECK(why != "");
}

}  // namespace interlock::calibration_test
