// Reads one device strictly: rates, memory, and the efficiency of each class of kernels.
// SPDX-License-Identifier: Apache-2.0
#include "hardware/devices/device_reader.h"

#include <set>

#include "base/text.h"
#include "hardware/devices/calibration_reader.h"
#include "hardware/devices/catalogue_file.h"
#include "hardware/devices/running_costs_reader.h"

namespace interlock {
namespace {

constexpr const char* kDeviceFolder = "hardware/catalogue/devices";
constexpr const char* kMeasuredFolder = "hardware/calibrated";

constexpr std::string_view kMeasured = "calibrated/";  // begins names of devices that were measured

std::vector<ContractKey> device_keys() {
  using namespace contract;
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
       "shape makes them lose: tiles over the edge, and a last wave that leaves some idle; so does "
       "fused attention, with one of the two keys below, of few rows."},
      {"tile_ramp", number(0, 10'000), "0",
       "Steps of the inner dimension that the start and the end of a tile of a matrix product take "
       "in 16 bits; the same time in other precisions."},
      {"grouped_overlap", number(0, 1), "1",
       "Products of several experts on a device, each of few tiles, that the host issues one by "
       "one: the share of the shorter of their two times, arithmetic and memory traffic, that "
       "passes during the longer. All other kernels overlap the two whole."},
      {"attention_ramp", number(0, 100'000), "0",
       "Columns of the scores that the start and the end of a row of fused attention take in 16 "
       "bits. `efficiency` of attention is that of endless rows then."},
      {"narrowest_head", number(0, 10'000), "0",
       "Elements: in fused attention a narrower head takes as long as one of these, as it has as "
       "many exponentials."},
      {"collective_sms", number(0, 0.9), "0",
       "Share of the multiprocessors that each collective under way takes from the kernels beside "
       "it: 0.15 where a library uses 20 of 132."},
      {"message_sms", number(0, 0.9), "0",
       "Share of the multiprocessors that each message under way takes from the kernels beside it; "
       "0 for copy engines."},
      {"power", object("cluster.device.power"), "unknown", "What it draws."},
      {"calibration", map(anything()), "",
       "What `interlock calibrate` measured; see [calibration](calibration.md). Kernels that it "
       "covers are priced by it, all others by rates and efficiencies."},
      {"origin", map(text()), "", "Where each number comes from; not used."}};
}

ContractObject peaks() {
  using namespace contract;
  ContractObject peaks = {
      .name = "cluster.device.peak", .meaning = "Peak flop rates, by precision.", .keys = {}};
  for (const std::string& precision : precision_names()) {
    peaks.keys.push_back({precision, flop_rate(), "not supported", "Peak in " + precision + "."});
  }
  return peaks;
}

ContractObject efficiencies() {
  using namespace contract;
  ContractObject all = {.name = "cluster.device.efficiency",
                        .meaning = "Shares of the peaks that kernels reach, by class of kernel.",
                        .keys = {}};
  for (const std::string& op_class : op_class_names()) {
    all.keys.push_back({op_class, object("cluster.device.efficiency.class"), "the peak",
                        "Of kernels of the class " + op_class + "."});
  }
  return all;
}

const ContractObject& device_rows(std::string_view name) {
  return contract_object(device_contract(), name);
}

void read_peaks(Section& parent, Device& device) {
  const auto node = parent.require("peak", "an object of flop rates by precision");
  if (!node) return;
  Section reader(device_rows("cluster.device.peak"), *node, parent.diagnostics());
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

void read_efficiencies(Section& parent, Device& device) {
  const auto node = parent.get("efficiency");
  if (!node) return;
  if (node->value->kind == JsonValue::Kind::String) {
    parent.choice("efficiency", 0);
    return;
  }
  Section reader(device_rows("cluster.device.efficiency"), *node, parent.diagnostics());
  for (std::size_t i = 0; i < op_class_names().size(); ++i) {
    const auto member = reader.get(op_class_names()[i]);
    if (!member) continue;
    Section shares(device_rows("cluster.device.efficiency.class"), *member, parent.diagnostics());
    device.efficiency[i].compute = shares.number("compute");
    device.efficiency[i].memory = shares.number("memory");
    device.efficiency[i].compute_fp8 = shares.written_number("compute_fp8");
    device.efficiency[i].compute_fp4 = shares.written_number("compute_fp4");
    device.efficiency[i].compute_fp32 = shares.written_number("compute_fp32");
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

/// Reads the members of a device; efficiencies that it does not state are 1.
Device read_stated(const CatalogueEntry& entry, Diagnostics& diagnostics) {
  Device device;
  Section reader(device_rows("cluster.device"), entry.root(), diagnostics);
  device.name = reader.text("name", entry.name);
  device.architecture = reader.text("architecture", "");
  device.memory = read_memory(reader, "memory");
  device.memory_bandwidth = read_bandwidth(reader, "memory_bandwidth");
  device.launch_overhead = read_delay(reader, "launch_overhead");
  device.tiles.multiprocessors = reader.count("multiprocessors");
  device.tiles.ramp = reader.number("tile_ramp");
  device.grouped_overlap = reader.number("grouped_overlap");
  device.attention = {.ramp = reader.number("attention_ramp"),
                      .narrowest = reader.number("narrowest_head")};
  read_peaks(reader, device);
  read_efficiencies(reader, device);
  device.collective_sms = reader.number("collective_sms");
  device.message_sms = reader.number("message_sms");
  device.power = read_device_power(reader);
  if (const auto measured = reader.get("calibration")) {
    device.calibrated = read_calibration(*measured, diagnostics);
  }
  read_origin(reader);
  reader.finish();
  return device;
}

}  // namespace

const std::vector<ContractObject>& device_contract() {
  using namespace contract;
  const ContractType share = number(0.001, 1);
  static const std::vector<ContractObject> objects = {
      {.name = "cluster.device",
       .meaning = "One accelerator by its figures.",
       .keys = device_keys()},
      {.name = "cluster.device.base",
       .meaning = "Another device, with the keys of this object in the place of its own; `null` "
                  "takes a key away.",
       .keys = {{"base", anything(), "required",
                 "A name of the catalogue, the path of a device file, or an object."}},
       .others = map(anything())},
      peaks(),
      efficiencies(),
      {.name = "cluster.device.efficiency.class",
       .meaning = "Shares of the peaks that kernels of one class reach.",
       .keys = {{"compute", share, "1", "Of the peak flop rate."},
                {"compute_fp8", share, "`compute`", "Of the peak flop rate in 8 bits."},
                {"compute_fp4", share, "`compute`", "Of the peak flop rate in 4 bits."},
                {"compute_fp32", share, "`compute`", "Of the peak flop rate in fp32."},
                {"memory", share, "1", "Of the memory bandwidth."}}}};
  return objects;
}

ContractType device_type() {
  using namespace contract;
  return either({named(device_names), object("cluster.device"), object("cluster.device.base")});
}

std::optional<CatalogueEntry> find_device(const JsonNode& node, Diagnostics& diagnostics) {
  return find_on_base(node, "a device", find_written, diagnostics);
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

const std::vector<std::string>& device_architectures() {
  static const std::vector<std::string> all = [] {
    std::set<std::string> found;
    for (const std::string& name : device_names()) {
      const JsonValue text = json_text(name);
      Diagnostics diagnostics;
      const auto entry = find_device({&text, ""}, diagnostics);
      diagnostics.throw_if_any();
      if (const JsonValue* own = entry->document.find("architecture")) found.insert(own->text);
    }
    return std::vector<std::string>(found.begin(), found.end());
  }();
  return all;
}

}  // namespace interlock
