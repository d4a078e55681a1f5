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

void read_cuda(Section& reader, RealDevices& devices) {
  devices.partitions = reader.choice("devices") == 1;
  devices.multiprocessors = reader.count("multiprocessors", 0);
  constexpr Links kLinks[] = {Links::CopyEngine, Links::Paced, Links::Zero};
  devices.links = kLinks[reader.choice("links")];
  devices.nccl = reader.choice("transport") == 1;
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

const std::vector<ContractObject>& executor_contract() {
  using namespace contract;
  const auto kind = [](const std::string& name, const std::string& otherwise) {
    return ContractKey{"kind", one_of({name}), otherwise, "The kind of this executor."};
  };
  static const std::vector<ContractObject> objects = {
      {.name = "cluster.executor.cpu",
       .meaning = "A thread for each device, Eigen's kernels, fp32.",
       .keys = {kind("cpu", "cpu"),
                {"links", one_of({"immediate", "emulated"}), "immediate",
                 "`emulated`: a message arrives no sooner than the scenario's links say."}}},
      {.name = "cluster.executor.virtual",
       .meaning = "Nothing but clocks: the times of the simulation, by other code.",
       .keys = {kind("virtual", "required")}},
      {.name = "cluster.executor.cuda",
       .meaning = "NVIDIA GPUs, or parts of one.",
       .keys = {
           kind("cuda", "required"),
           {"devices", one_of({"gpus", "partitions"}), "gpus",
            "A GPU for each device, or one GPU's multiprocessors divided among them."},
           {"multiprocessors", whole(1, 10'000), "as many as fit", "Of each partition."},
           {"links", one_of({"copy-engine", "paced", "zero"}), "copy-engine",
            "Between partitions: copies beside the kernels, copies at the scenario's speed, or "
            "nothing but the order."},
           {"transport", one_of({"peer", "nccl"}), "peer", "Between GPUs."}}}};
  return objects;
}

ContractKey executor_key() {
  std::vector<ContractType> forms = {contract::one_of(kind_names())};
  for (const ContractObject& kind : executor_contract()) {
    forms.push_back(contract::object(kind.name));
  }
  return {"executor", contract::either(forms), "cpu",
          "What trains the scenario for real (`interlock train`, `interlock validate run`); "
          "simulations do not ask."};
}

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
  if (node.value->find("kind")) {
    const auto kind = read_choice(node.child("kind"), kind_names(), diagnostics);
    devices.kind = static_cast<RealDevices::Kind>(kind.value_or(1));
  }
  Section reader(contract_object(executor_contract(), "cluster.executor." + name_of(devices.kind)),
                 node, diagnostics);
  reader.get("kind");
  if (devices.kind == RealDevices::Kind::Cuda) read_cuda(reader, devices);
  if (devices.kind == RealDevices::Kind::Cpu && reader.choice("links") == 1) {
    devices.links = Links::Emulated;
  }
  reader.finish();
  return devices;
}

}  // namespace interlock
