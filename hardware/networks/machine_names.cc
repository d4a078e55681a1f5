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

}  // namespace

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

}  // namespace interlock
