// Sets a key of a scenario, inside a name too.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/set_key.h"

#include <utility>

namespace interlock {
namespace {

/// Where a name may stand, and the key that holds it in the object that says the same.
struct NamedPlace {
  std::string_view section, member, key;
};
constexpr NamedPlace kNamedPlaces[] = {{"training", "strategy", "kind"},
                                       {"training", "schedule", "kind"},
                                       {"", "cluster", "machine"},
                                       {"", "model", "base"}};

}  // namespace

void set_key(JsonValue& document, std::string_view dotted_path, const JsonValue& value,
             const std::string& origin) {
  for (const NamedPlace& place : kNamedPlaces) {
    std::string path = std::string(place.section) + (place.section.empty() ? "" : ".");
    path += place.member;
    if (!dotted_path.starts_with(path + ".")) continue;
    JsonValue* section = place.section.empty() ? &document : document.find(place.section);
    JsonValue* name = section == nullptr ? nullptr : section->find(place.member);
    if (name == nullptr || name->kind != JsonValue::Kind::String) continue;
    JsonValue object = {.kind = JsonValue::Kind::Object, .file = name->file, .line = name->line};
    object.members.push_back({std::string(place.key), std::move(*name)});
    *name = std::move(object);
  }
  set_json(document, dotted_path, value, origin);
}

}  // namespace interlock
