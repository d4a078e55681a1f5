// Fused attention by its shape: against kernels that were measured, and by hand.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "base/file.h"
#include "hardware/kernels/attention_share.h"
#include "tests/hardware/devices/named_device.h"

namespace interlock::attention_kernels_test {
namespace {

/// One measured pair of kernels. Example: "h200,1,64,4096,128,128,1,0,0.465,1.450".
struct Measured {
  std::string device;
  double samples, heads, tokens, head, value_head, causal, window, forward_ms, backward_ms;
};

std::vector<Measured> read_kernels(const std::string& name) {
  std::ifstream file(data_folder("tests/hardware/devices") + "/" + name);
  std::vector<Measured> kernels;
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with('#') || line.starts_with("device")) continue;
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream words(line);
    Measured k;
    words >> k.device >> k.samples >> k.heads >> k.tokens >> k.head >> k.value_head >> k.causal >>
        k.window >> k.forward_ms >> k.backward_ms;
    REQUIRE(words);
    kernels.push_back(k);
  }
  return kernels;
}

/// Returns the mean columns of a row that blocks of 128 x 128 scores cover, counted block by block.
double columns_of(const Measured& k) {
  if (k.causal == 0) return k.tokens;
  double scores = 0;
  for (double row = 0; row < k.tokens; row += 128) {
    const double rows = std::min(128.0, k.tokens - row);
    for (double column = 0; column < row + rows; column += 128) {
      const bool seen = k.window == 0 || column + 127 > row - k.window;
      if (seen) scores += rows * std::min(128.0, k.tokens - column);
    }
  }
  return scores / k.tokens;
}

/// Returns the time that `device` takes for both passes: two products forward, five backward.
double predicted_ms(const Measured& k, const Device& device) {
  const double columns = columns_of(k), rows = k.samples * k.heads * k.tokens;
  const double products = (k.head + k.value_head) + (3 * k.head + 2 * k.value_head);
  const Work work = {.op_class = OpClass::Attention,
                     .flops = Flops(2 * rows * columns * products),
                     .variant = OpVariant::Fused,
                     .shape = {k.tokens, columns, k.head, k.samples * k.heads}};
  return kernel_time(work, device, Precision::Bf16).compute.value() * 1e3;
}

}  // namespace

TEST_CASE("attention takes as long as cuDNN's kernels of all shapes on H200, GB200 and GB300") {
  std::map<std::string, std::pair<int, double>> errors;
  for (const Measured& k : read_kernels("attention_kernels.csv")) {
    const double measured = k.forward_ms + k.backward_ms;
    const double predicted = predicted_ms(k, device_named(k.device));
    const double error = predicted / measured - 1;
    MESSAGE(k.device << ", " << k.samples << " x " << k.heads << " heads of " << k.head << ", "
                     << k.tokens << " tokens, causal " << k.causal << ", window " << k.window
                     << ": measured " << measured << " ms, predicted " << predicted << " ms, "
                     << 100 * error << " %");
    CHECK(std::abs(error) < 0.15);
    ++errors[k.device].first;
    errors[k.device].second += std::abs(error);
  }
  REQUIRE(errors.size() == 3);
  for (const auto& entry : errors) {  // INFO takes no structured bindings under clang
    const std::string& device = entry.first;
    const int pairs = entry.second.first;
    const double mean = entry.second.second / pairs;
    INFO(device << ", " << pairs << " pairs: " << 100 * mean << " %");
    CHECK(pairs >= 15);
    CHECK(mean < (device == "h200" ? 0.025 : 0.065));
  }
}

TEST_CASE("kernels of a year before are slower by one factor, from 4 to 128 heads") {
  const Device b200 = device_named("b200");
  Device endless = b200;  // in multiprocessors: how far apart these shapes are without them
  endless.tiles.multiprocessors = 0;
  double logarithms = 0, least = 1, most = 0, least_endless = 1, most_endless = 0;
  const std::vector<Measured> kernels = read_kernels("attention_kernels_2025.csv");
  for (const Measured& k : kernels) {
    const double measured = k.forward_ms + k.backward_ms;
    const double speed = predicted_ms(k, b200) / measured;
    const double all_busy = predicted_ms(k, endless) / measured;
    MESSAGE(k.heads << " heads of " << k.head << ", " << k.tokens << " tokens: " << speed
                    << " of the device's speed, " << all_busy << " if all were busy");
    logarithms += std::log(speed);
    if (k.head != 128 || k.tokens != 4096) continue;
    least = std::min(least, speed), most = std::max(most, speed);
    least_endless = std::min(least_endless, all_busy);
    most_endless = std::max(most_endless, all_busy);
  }
  const double mean = std::exp(logarithms / static_cast<double>(kernels.size()));
  MESSAGE(kernels.size() << " shapes, geometric mean " << mean << ", 4096 tokens from " << least
                         << " to " << most << ", from " << least_endless << " to " << most_endless);
  CHECK(kernels.size() == 19);
  CHECK(mean == doctest::Approx(0.83).epsilon(0.01));  // attention_speed of megatron-core-b200
  CHECK(most / least < 1.2);
  CHECK(most_endless / least_endless > 3);
}

TEST_CASE("short rows, narrow heads and few blocks leave a part of the rate") {
  const AttentionKernel kernel = {.ramp = 500, .narrowest = 96};
  const auto share = [&](const ProductShape& shape, int multiprocessors) {
    return attention_share(shape, kernel, multiprocessors);
  };
  MESSAGE("2000 of 2000 + 500 columns");
  CHECK(share({4000, 2000, 128, 64}, 0) == doctest::Approx(0.8));
  MESSAGE("heads of 64 take as long as those of 96; 250 of 750 columns");
  CHECK(share({4000, 250, 64, 64}, 0) == doctest::Approx(64.0 / 96 * 250 / 750));
  MESSAGE("96 rows of 192 blocks' rows: half a block on 10 multiprocessors, 0.05 of a wave");
  CHECK(share({96, 2000, 128, 1}, 10) == doctest::Approx(0.8 * 0.05));
  MESSAGE("1920 rows, no mask: ten blocks on ten are 1 wave, and the last end 0.2 later");
  CHECK(share({1920, 1920, 128, 1}, 10) == doctest::Approx(1920.0 / 2420 / 1.2));
  MESSAGE("under a mask the longest row has twice the columns: ten are (960 + 500) / (1920 + 500)");
  CHECK(share({1920, 960, 128, 1}, 10) == doctest::Approx(960.0 / 1460 * 1460 / 2420));
  MESSAGE("scans tell no shape: as 2048 columns");
  CHECK(share({}, 132) == doctest::Approx(2048.0 / 2548));
  MESSAGE("nothing is known of a device: all of its rate");
  CHECK(attention_share({4000, 250, 64, 1}, {}, 132) == 1);
}

TEST_CASE("more rows, columns or elements of a head never lower the share") {
  const AttentionKernel kernel = {.ramp = 400, .narrowest = 100};
  for (double n = 128; n < 9000; n *= 1.3) {
    for (const double batch : {1.0, 3.0, 20.0, 300.0}) {
      const double share = attention_share({n, n, 64, batch}, kernel, 100);
      CHECK(share > 0);
      CHECK(share <= 1);
      CHECK(attention_share({n, n, 80, batch}, kernel, 100) >= share);
      CHECK(attention_share({n, n, 64, 2 * batch}, kernel, 100) >= share);
      CHECK(attention_share({2 * n, 2 * n, 64, batch}, kernel, 100) >= share);
    }
  }
}

TEST_CASE("chunks of a state space take as long as Triton's kernels on an H100") {
  // Tokens, and tokens a second: vllm-project/vllm, pull request 27299, column "Original".
  const std::pair<double, double> runs[] = {{8192, 1.262327e7},   {16384, 1.292440e7},
                                            {32768, 1.180002e7},  {65536, 1.106830e7},
                                            {131072, 1.070444e7}, {262144, 1.081547e7}};
  const double heads = 128, channels = 64, states = 128, chunk = 256, seen = (chunk + 1) / 2;
  const double flops = 2 * seen * states + 2 * seen * heads * channels +  // scores, and with them
                       2 * 2 * heads * channels * states;                 // states, made and read
  const Device device = device_named("h100");
  for (const auto& [tokens, rate] : runs) {
    const Work work = {.op_class = OpClass::Attention,
                       .flops = Flops(tokens * flops),
                       .role = OpRole::Forward,
                       .variant = OpVariant::StateSpace};
    const double predicted = kernel_time(work, device, Precision::Bf16).compute.value();
    CHECK(predicted == doctest::Approx(tokens / rate).epsilon(0.12));
  }
}

TEST_CASE("vector units limit a state space's chunks, and its backward more than its forward") {
  const Device few = device_named("h100");
  Device many = few;
  many.tiles.multiprocessors *= 2;
  const auto time = [](const Device& device, OpRole role) {
    return kernel_time({.op_class = OpClass::Attention,
                        .flops = Flops(1e12),
                        .role = role,
                        .variant = OpVariant::StateSpace},
                       device, Precision::Bf16)
        .compute.value();
  };
  for (const OpRole role : {OpRole::Forward, OpRole::InputGradient}) {
    CHECK(time(few, role) == doctest::Approx(2 * time(many, role)));
  }
  CHECK(time(few, OpRole::InputGradient) > 2 * time(few, OpRole::Forward));
  Device unknown = few;
  unknown.tiles.multiprocessors = 0;
  INFO("of a device without multiprocessors nothing is known");
  CHECK(time(unknown, OpRole::Forward) < time(few, OpRole::Forward));
}

}  // namespace interlock::attention_kernels_test
