// Reads one device strictly: rates, memory, and the efficiency of each class of kernels.
// SPDX-License-Identifier: Apache-2.0
#include "hardware/devices/device_reader.h"

#include "base/text.h"
#include "hardware/devices/calibration_reader.h"
#include "hardware/devices/catalogue_file.h"
#include "hardware/devices/running_costs_reader.h"

namespace interlock {
namespace {

constexpr const char* kDeviceFolder = "hardware/catalogue/devices";
constexpr const char* kMeasuredFolder = "hardware/calibrated";
constexpr int kMostMultiprocessors = 1'000'000;
constexpr double kLongestRamp = 10'000;  // steps of the inner dimension
constexpr double kMostShare = 0.9;       // of the multiprocessors, away from kernels

constexpr const char* kPeak = "peak";  // as an efficiency: all kernels reach the peak rates

constexpr std::string_view kMeasured = "calibrated/";  // begins names of devices that were measured

void read_peaks(ObjectReader& parent, Device& device) {
  const auto node = parent.require("peak", "an object of flop rates by precision");
  if (!node) return;
  ObjectReader reader(*node, parent.diagnostics());
  if (node->value->kind == JsonValue::Kind::Object && node->value->members.empty()) {
    report(reader.diagnostics(), *node,
           "no rate; expected at least one of " + join_choices(precision_names()));
  }
  for (std::size_t i = 0; i < device.peak.size(); ++i) {
    const auto member = reader.get(precision_names()[i]);
    if (!member) continue;
    const auto rate = read_flops_per_second(*member, reader.diagnostics());
    if (!rate) continue;
    if (*rate >= FlopsPerSecond(1) && *rate <= FlopsPerSecond(1e21)) {
      device.peak[i] = rate;
    } else {
      report(reader.diagnostics(), *member,
             "out of range; expected 1 FLOP/s to 1000 EFLOP/s, got " + described(*member->value));
    }
  }
  reader.finish();
}

void read_efficiencies(ObjectReader& parent, Device& device) {
  constexpr double kLeast = 0.001;
  const auto node = parent.get("efficiency");
  if (!node) return;
  if (node->value->kind == JsonValue::Kind::String) {
    read_choice(*node, {kPeak}, parent.diagnostics());
    return;
  }
  ObjectReader reader(*node, parent.diagnostics());
  for (std::size_t i = 0; i < op_class_names().size(); ++i) {
    const auto member = reader.get(op_class_names()[i]);
    if (!member) continue;
    ObjectReader shares(*member, parent.diagnostics());
    device.efficiency[i].compute = shares.number("compute", 1, kLeast, 1);
    device.efficiency[i].memory = shares.number("memory", 1, kLeast, 1);
    const auto own = [&](std::string_view key) -> std::optional<double> {
      if (!shares.get(key)) return std::nullopt;
      return shares.number(key, 1, kLeast, 1);
    };
    device.efficiency[i].compute_fp8 = own("compute_fp8");
    device.efficiency[i].compute_fp32 = own("compute_fp32");
    shares.finish();
  }
  reader.finish();
}

/// Finds the device as it is written: a file, or the object itself.
std::optional<CatalogueEntry> find_written(const JsonNode& node, Diagnostics& diagnostics) {
  const std::string& name = node.value->text;
  if (!name.starts_with(kMeasured) || name.ends_with(".json")) {
    return find_entry(node, kDeviceFolder, diagnostics);
  }
  if (catalogue_entries(kMeasuredFolder).empty()) {
    report(diagnostics, node,
           "no device was measured; expected the path of a file that \"interlock calibrate --out\" "
           "wrote, or such a file in " +
               std::string(kMeasuredFolder));
    return std::nullopt;
  }
  JsonValue own = *node.value;
  own.text.erase(0, kMeasured.size());
  return find_entry({&own, node.path}, kMeasuredFolder, diagnostics);
}

/// Finds the device, with the members of its "base", if it has one, below its own.
std::optional<CatalogueEntry> find_whole(const JsonNode& node, int depth,
                                         Diagnostics& diagnostics) {
  constexpr int kDeepest = 8;
  std::optional<CatalogueEntry> entry = find_written(node, diagnostics);
  if (!entry || entry->document.find("base") == nullptr) return entry;
  const JsonNode base = entry->root().child("base");
  if (depth == kDeepest) {
    report(diagnostics, base, "bases of bases without end; expected a device that has none");
    return std::nullopt;
  }
  std::optional<CatalogueEntry> below = find_whole(base, depth + 1, diagnostics);
  if (!below) return std::nullopt;
  JsonValue own = std::move(entry->document);
  std::erase_if(own.members, [](const JsonMember& member) { return member.first == "base"; });
  entry->document = std::move(below->document);
  entry->document.file = own.file;
  entry->document.line = own.line;
  merge_json(entry->document, std::move(own));
  return entry;
}

/// Reads the members of a device; efficiencies that it does not state are 1.
Device read_stated(const CatalogueEntry& entry, Diagnostics& diagnostics) {
  Device device;
  ObjectReader reader(entry.root(), diagnostics);
  device.name = reader.text("name", entry.name);
  device.architecture = reader.text("architecture", "");
  device.memory = read_memory(reader, "memory");
  device.memory_bandwidth = read_bandwidth(reader, "memory_bandwidth");
  device.launch_overhead = read_delay(reader, "launch_overhead");
  device.tiles.multiprocessors = reader.count("multiprocessors", 0, 0, kMostMultiprocessors);
  device.tiles.ramp = reader.number("tile_ramp", 0, 0, kLongestRamp);
  read_peaks(reader, device);
  read_efficiencies(reader, device);
  device.collective_sms = reader.number("collective_sms", 0, 0, kMostShare);
  device.message_sms = reader.number("message_sms", 0, 0, kMostShare);
  device.power = read_device_power(reader);
  if (const auto measured = reader.get("calibration")) {
    device.calibrated = read_calibration(*measured, diagnostics);
  }
  read_origin(reader);
  reader.finish();
  return device;
}

}  // namespace

std::optional<CatalogueEntry> find_device(const JsonNode& node, Diagnostics& diagnostics) {
  return find_whole(node, 0, diagnostics);
}

Device read_device(const JsonNode& node, Diagnostics& diagnostics) {
  const std::size_t before = diagnostics.messages().size();
  const auto entry = find_device(node, diagnostics);
  if (!entry) return {};
  Device device = read_stated(*entry, diagnostics);
  const bool borrows = entry->document.find("efficiency") == nullptr && !device.calibrated;
  if (borrows && diagnostics.messages().size() == before) borrow_efficiency(device, lenders());
  return device;
}

const std::vector<Lender>& lenders() {
  static const std::vector<Lender> all = [] {
    std::vector<Lender> found;
    for (const std::string& name : device_names()) {
      const JsonValue text = json_text(name);
      Diagnostics diagnostics;
      const auto entry = find_device({&text, ""}, diagnostics);
      if (entry && entry->document.find("efficiency") != nullptr) {
        found.push_back({name, read_stated(*entry, diagnostics)});
      }
      diagnostics.throw_if_any();
    }
    return found;
  }();
  return all;
}

std::vector<std::string> device_names() { return catalogue_entries(kDeviceFolder); }

}  // namespace interlock
