// The scenario contract: devices of a cluster, which hardware/devices reads.
// SPDX-License-Identifier: Apache-2.0
#include "hardware/devices/device.h"
#include "scenarios/contract/contract_parts.h"

namespace interlock::contract {
namespace {

constexpr double kMostShare = 0.9;

std::vector<ContractKey> device_keys() {
  return {
      {"name", text(), "`inline`", "Name in results."},
      {"architecture", text("NVIDIA Hopper"), "not told",
       "Family of the device, by which one that states no efficiencies finds another to borrow "
       "from."},
      {"memory", size(), "required", "Memory that a program may use."},
      {"memory_bandwidth", bandwidth(), "required", "Peak bandwidth of the memory."},
      {"peak", object("cluster.device.peak"), "required",
       "Peak flop rates; a precision that is left out is not supported."},
      {"efficiency", either({one_of({"peak"}), object("cluster.device.efficiency")}),
       "those of the nearest device of the catalogue, which the output names",
       "Shares of the peaks that kernels reach, by class; `peak`: the peak itself, which no kernel "
       "reaches."},
      {"launch_overhead", time(), "0 s", "Time added to every kernel."},
      {"multiprocessors", whole(0, 1e6), "0",
       "Multiprocessors of the device, 0 for unknown. With them matrix products lose what their "
       "shape makes them lose: tiles over the edge, and a last wave that leaves some idle."},
      {"tile_ramp", number(0, 10'000), "0",
       "Steps of the inner dimension that the start and the end of a tile of a matrix product take "
       "in 16 bits; the same time in other precisions."},
      {"collective_sms", number(0, kMostShare), "0",
       "Share of the multiprocessors that each collective under way takes from the kernels beside "
       "it: 0.15 where a library uses 20 of 132."},
      {"message_sms", number(0, kMostShare), "0",
       "Share of the multiprocessors that each message under way takes from the kernels beside it; "
       "0 for copy engines."},
      {"power", object("cluster.device.power"), "unknown", "What it draws."},
      {"calibration", map(anything()), "",
       "What `interlock calibrate` measured; see [calibration](calibration.md). Kernels that it "
       "covers are priced by it, all others by rates and efficiencies."},
      {"origin", map(text()), "", "Where each number comes from; not used."}};
}

ContractObject peaks() {
  ContractObject peaks = {
      .name = "cluster.device.peak", .meaning = "Peak flop rates, by precision.", .keys = {}};
  for (const std::string& precision : precision_names()) {
    peaks.keys.push_back({precision, flop_rate(), "not supported", "Peak in " + precision + "."});
  }
  return peaks;
}

ContractObject efficiencies() {
  ContractObject all = {.name = "cluster.device.efficiency",
                        .meaning = "Shares of the peaks that kernels reach, by class of kernel.",
                        .keys = {}};
  for (const std::string& op_class : op_class_names()) {
    all.keys.push_back({op_class, object("cluster.device.efficiency.class"), "the peak",
                        "Of kernels of the class " + op_class + "."});
  }
  return all;
}

}  // namespace

std::vector<ContractObject> device_objects() {
  const ContractType share = number(0.001, 1);
  return {{.name = "cluster.device",
           .meaning = "One accelerator by its figures.",
           .keys = device_keys()},
          {.name = "cluster.device.base",
           .meaning = "Another device, with the keys of this object in the place of its own; "
                      "`null` takes a key away.",
           .keys = {{"base", anything(), "required",
                     "A name of the catalogue, the path of a device file, or an object."}},
           .others = map(anything())},
          peaks(),
          efficiencies(),
          {.name = "cluster.device.efficiency.class",
           .meaning = "Shares of the peaks that kernels of one class reach.",
           .keys = {{"compute", share, "1", "Of the peak flop rate."},
                    {"compute_fp8", share, "`compute`", "Of the peak flop rate in 8 bits."},
                    {"compute_fp32", share, "`compute`", "Of the peak flop rate in fp32."},
                    {"memory", share, "1", "Of the memory bandwidth."}}},
          {.name = "cluster.device.power",
           .meaning = "What a device draws.",
           .keys = {{"busy", power(), "required", "While it executes anything."},
                    {"idle", power(), "required", "While it waits."}}}};
}

}  // namespace interlock::contract
