// Reads what a scenario says of its execution.
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "hardware/devices/real_devices_reader.h"

namespace interlock {

namespace {

using Links = RealDevices::Links;

const std::vector<std::string>& kind_names() {
  static const std::vector<std::string> names = {"virtual", "cpu", "cuda"};
  return names;
}

void read_cuda(ObjectReader& reader, RealDevices& devices) {
  devices.partitions = reader.choice("devices", {"gpus", "partitions"}, 0) == 1;
  devices.multiprocessors = reader.count("multiprocessors", 0, 1, 10'000);
  constexpr Links kLinks[] = {Links::CopyEngine, Links::Paced, Links::Zero};
  devices.links = kLinks[reader.choice("links", {"copy-engine", "paced", "zero"}, 0)];
  devices.nccl = reader.choice("transport", {"peer", "nccl"}, 0) == 1;
  if (devices.nccl && devices.partitions) {
    report(reader.diagnostics(), *reader.get("transport"),
           "NCCL joins GPUs, not parts of one; expected \"peer\", or \"devices\": \"gpus\"");
  }
  if (devices.multiprocessors > 0 && !devices.partitions) {
    report(reader.diagnostics(), *reader.get("multiprocessors"),
           "whole GPUs have all of theirs; expected \"devices\": \"partitions\" beside it");
  }
}

}  // namespace

std::string name_of(RealDevices::Kind kind) { return kind_names()[static_cast<int>(kind)]; }

RealDevices read_real_devices(const JsonNode& node, Diagnostics& diagnostics) {
  RealDevices devices;
  const bool object = node.value->kind == JsonValue::Kind::Object;
  if (!object) {
    const auto kind = read_choice(node, kind_names(), diagnostics);
    if (kind) devices.kind = static_cast<RealDevices::Kind>(*kind);
    if (devices.kind == RealDevices::Kind::Cuda) devices.links = Links::CopyEngine;
    return devices;
  }
  ObjectReader reader(node, diagnostics);
  devices.kind = static_cast<RealDevices::Kind>(reader.choice("kind", kind_names(), 1));
  if (devices.kind == RealDevices::Kind::Cuda) read_cuda(reader, devices);
  if (devices.kind == RealDevices::Kind::Cpu &&
      reader.choice("links", {"immediate", "emulated"}, 0) == 1) {
    devices.links = Links::Emulated;
  }
  reader.finish();
  return devices;
}

}  // namespace interlock
