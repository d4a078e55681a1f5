// Opens names in place: {"kind": name} where that says the same, else the file of the catalogue.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/contract/open_names.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "hardware/devices/device_reader.h"
#include "hardware/networks/node_share.h"

namespace interlock {
namespace {

using Kind = JsonValue::Kind;

/// A place where a name may stand for an object, and the key of the object that holds the name.
struct NamedPlace {
  std::string_view section, member, key;
};
constexpr NamedPlace kNamedPlaces[] = {{"training", "strategy", "kind"},
                                       {"training", "schedule", "kind"},
                                       {"", "cluster", "machine"},
                                       {"", "model", "base"}};

/// Keys of a machine's file that a scenario which names the machine has no place for.
constexpr std::string_view kMachineKeys[] = {"device", "port", "cards",
                                             "pcie",   "host", "node_topology"};

JsonValue object_like(const JsonValue& value) {
  return {.kind = Kind::Object, .file = value.file, .line = value.line};
}

void open_named_places(JsonValue& document, std::string_view dotted_path) {
  for (const NamedPlace& place : kNamedPlaces) {
    std::string path = std::string(place.section) + (place.section.empty() ? "" : ".");
    path += place.member;
    if (!dotted_path.starts_with(path + ".")) continue;
    JsonValue* section = place.section.empty() ? &document : document.find(place.section);
    JsonValue* name = section == nullptr ? nullptr : section->find(place.member);
    if (name == nullptr || name->kind != Kind::String) continue;
    JsonValue object = object_like(*name);
    object.members.push_back({std::string(place.key), std::move(*name)});
    *name = std::move(object);
  }
}

/// Returns the file's object under its own name; without origins, as the user's changes would make
/// them untrue.
JsonValue opened(CatalogueEntry entry, bool keeps_name) {
  JsonValue object = std::move(entry.document);
  std::erase_if(object.members, [](const JsonMember& member) { return member.first == "origin"; });
  if (keeps_name && object.find("name") == nullptr) {
    JsonValue name = {.kind = Kind::String, .text = entry.name, .file = object.file};
    object.members.insert(object.members.begin(), {"name", std::move(name)});
  }
  return object;
}

/// Returns the object that `name` stands for. Throws: Error.
JsonValue open_file(const JsonValue& name, const std::string& folder, const std::string& origin) {
  Diagnostics diagnostics;
  const bool device = folder.empty();
  const JsonNode node = {&name, ""};
  std::optional<CatalogueEntry> entry =
      device ? find_device(node, diagnostics) : find_entry(node, folder, diagnostics);
  if (!diagnostics.empty()) throw Error(origin + ": " + diagnostics.messages().front());
  CHECK(entry.has_value(), "an entry, or what is wrong");
  return opened(std::move(*entry), folder != "scenarios/frameworks");
}

/// Returns whether the key belongs in the file of a machine, not in the scenario that names it.
bool of_machine(const JsonValue& cluster, std::string_view key) {
  const std::string_view first = key.substr(0, key.find('.'));
  if (first == "network") return first.size() < key.size() && cluster.find("network") == nullptr;
  return std::find(std::begin(kMachineKeys), std::end(kMachineKeys), first) !=
         std::end(kMachineKeys);
}

/// Returns whether `value` can be a number of devices.
bool holds_count(const JsonValue* value) {
  constexpr double kMost = 1e6;
  return value != nullptr && value->kind == Kind::Number && value->number >= 1 &&
         value->number <= kMost;
}

/// Takes the cards along where `cluster` uses another number of devices of each node of `machine`.
void share_cards(const JsonValue& cluster, JsonValue& machine) {
  const JsonValue* used = cluster.find("devices_per_node");
  const JsonValue* stated = machine.find("devices_per_node");
  JsonValue* cards = machine.find("cards");
  if (!holds_count(used) || !holds_count(stated) || cards == nullptr) return;
  JsonValue* each = cards->find("per_node");
  if (!holds_count(each)) return;
  const auto whole = [](double number) { return static_cast<int>(number); };
  each->number = cards_of_share(whole(each->number), whole(stated->number), whole(used->number));
}

/// Opens the machine of `cluster`: the keys of its file come first, then those of `cluster`.
void open_machine(JsonValue& cluster, const std::string& origin) {
  JsonValue machine = open_file(*cluster.find("machine"), "hardware/catalogue", origin);
  share_cards(cluster, machine);
  for (JsonMember& own : cluster.members) {
    if (own.first == "machine") continue;
    if (own.first == "power") {  // says it key by key
      set_json(machine, own.first, own.second, origin);
    } else if (JsonValue* there = machine.find(own.first)) {
      *there = std::move(own.second);
    } else {
      machine.members.push_back(std::move(own));
    }
  }
  if (machine.find("kind") == nullptr) {
    JsonValue kind = {.kind = Kind::String, .text = "machine", .file = machine.file};
    machine.members.insert(machine.members.begin(), {"kind", std::move(kind)});
  }
  cluster = std::move(machine);
}

}  // namespace

void open_names(JsonValue& document, std::string_view dotted_path, const std::string& origin) {
  open_named_places(document, dotted_path);
  constexpr std::string_view kCluster = "cluster.", kDevice = "cluster.device.",
                             kFramework = "training.framework.";
  if (JsonValue* cluster = document.find("cluster"); dotted_path.starts_with(kCluster) && cluster) {
    if (holds_text(cluster->find("machine")) &&
        of_machine(*cluster, dotted_path.substr(kCluster.size()))) {
      open_machine(*cluster, origin);
    }
    JsonValue* device = cluster->find("device");
    if (dotted_path.starts_with(kDevice) && holds_text(device)) {
      *device = open_file(*device, "", origin);
    }
  }
  if (!dotted_path.starts_with(kFramework)) return;
  JsonValue* training = document.find("training");
  JsonValue* framework = training == nullptr ? nullptr : training->find("framework");
  if (holds_text(framework)) *framework = open_file(*framework, "scenarios/frameworks", origin);
}

JsonValue with_files_open(JsonValue document) {
  for (const char* path : {"cluster.device.memory", "training.framework.kernel_issue"}) {
    open_names(document, path, "");
  }
  return document;
}

}  // namespace interlock
