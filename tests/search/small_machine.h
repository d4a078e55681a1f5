// The device of machines on which small spaces are searched.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace interlock {

/// Returns one node of `devices` devices that reach their peaks, on ports of `bandwidth`.
inline nlohmann::ordered_json small_machine(int devices, const std::string& bandwidth) {
  const nlohmann::ordered_json device = {{"name", "small"},
                                         {"memory", "8 GB"},
                                         {"memory_bandwidth", "400 GB/s"},
                                         {"launch_overhead", "2 us"},
                                         {"peak", {{"fp32", "10 TFLOP/s"}, {"bf16", "80 TFLOP/s"}}},
                                         {"efficiency", "peak"}};
  return {{"kind", "machine"},
          {"device", device},
          {"devices_per_node", devices},
          {"nodes", 1},
          {"port", {{"latency", "2 us"}, {"bandwidth", bandwidth}}},
          {"cards", {{"per_node", 1}, {"latency", "4 us"}, {"bandwidth", "40 GB/s"}}}};
}

}  // namespace interlock
