// Finds a device in the files of all machines.
// SPDX-License-Identifier: Apache-2.0
#include "hardware/networks/machine_names.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <vector>

#include "base/file.h"
#include "base/json/json.h"
#include "base/text.h"
#include "hardware/devices/catalogue_file.h"
#include "hardware/networks/cluster_reader.h"

namespace interlock {
namespace {

/// A device, and how many of it; 0: not told.
struct TypedDevice {
  std::string device;
  int count = 0;
};

std::optional<int> number_in(std::string_view text) {
  const bool digits =
      !text.empty() && text.size() <= 4 &&
      std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  return digits ? std::optional(std::stoi(std::string(text))) : std::nullopt;
}

/// Reads "8xh100", "8-h100", "h100x8" and "h100"; letters become small.
TypedDevice typed_device(std::string_view typed) {
  std::string name(typed);
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (std::size_t at = 1; at + 1 < name.size(); ++at) {
    if (name[at] != 'x' && name[at] != '-') continue;
    if (const auto count = number_in(name.substr(0, at))) return {name.substr(at + 1), *count};
    if (name[at] != 'x') continue;
    if (const auto count = number_in(name.substr(at + 1))) return {name.substr(0, at), *count};
  }
  return {name, 0};
}

/// Returns the letters and digits, small ones.
std::string plain(std::string_view name) {
  std::string all;
  for (const unsigned char c : name) {
    if (std::isalnum(c) != 0) all += static_cast<char>(std::tolower(c));
  }
  return all;
}

/// Returns true for the beginning of a machine's name ("p5"), a part of it that has a digit
/// ("4090"), and the name of a device with more behind it ("H100-SXM").
bool is_like(const std::string& typed, const std::string& machine, const std::string& device) {
  if (typed.size() < 2) return false;
  const bool digit = std::ranges::any_of(typed, [](unsigned char c) { return std::isdigit(c); });
  if (digit && typed.size() >= 3 && plain(machine).find(typed) != std::string::npos) return true;
  const std::string start = plain(device.substr(0, device.find_last_of('-')));
  return plain(machine).starts_with(typed) || typed.starts_with(plain(device)) ||
         (digit && start.size() >= 4 && typed.starts_with(start));
}

/// Returns the names of machines like `typed`, in quotes.
std::vector<std::string> like(std::string_view typed) {
  const std::string letters = plain(typed);
  std::vector<std::string> found;
  for (const std::string& name : catalogue_names()) {
    const JsonValue file = read_json_file(data_folder("hardware/catalogue") + "/" + name + ".json");
    const JsonValue* device = file.find("device");
    if (is_like(letters, name, holds_text(device) ? device->text : name)) {
      found.push_back(in_quotes(name));
    }
  }
  return found;
}

std::string in_commas(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  return all;
}

}  // namespace

std::string unknown_machine(const JsonValue& machine) {
  const std::string& name = machine.text;
  const bool path = name.find('/') != name.npos || name.ends_with(".json");
  if (machine.kind != JsonValue::Kind::String || path) return "";
  if (is_entry("hardware/catalogue", name)) return "";
  const std::string unknown = "unknown name " + described(machine);
  if (const std::string meant = machines_meant(name); !name.empty() && !meant.empty()) {
    return unknown + ", which is a device, no machine; " + meant;
  }
  const std::vector<std::string> all = catalogue_names();
  std::vector<std::string> near = like(name);
  const std::optional<std::string> slip = nearest(name, all);
  if (slip && std::ranges::find(near, in_quotes(*slip)) == near.end()) {
    near.insert(near.begin(), in_quotes(*slip));
  }
  if (near.empty()) return unknown + "; known: " + in_commas(all);
  return unknown + "; did you mean " + join_choices(near) + "?";
}

std::string machines_meant(std::string_view typed) {
  const TypedDevice asked = typed_device(typed);
  std::vector<std::string> all, as_many;
  for (const std::string& name : catalogue_names()) {
    const JsonValue file = read_json_file(data_folder("hardware/catalogue") + "/" + name + ".json");
    const JsonValue* device = file.find("device");
    if (!holds_text(device)) continue;
    if (device->text != asked.device && !device->text.starts_with(asked.device + "-")) continue;
    all.push_back(in_quotes(name));
    const JsonValue* count = file.find("devices_per_node");
    if (count != nullptr && count->number == asked.count) as_many.push_back(in_quotes(name));
  }
  if (all.empty()) return "";
  return "did you mean " + join_choices(as_many.empty() ? all : as_many) + "?";
}

std::string machines_like(std::string_view typed) {
  const std::vector<std::string> found = like(typed);
  return found.empty() ? "" : "did you mean " + join_choices(found) + "?";
}

}  // namespace interlock
