// Finds misspelt architectures: a speed or memory under such a name would be without effect.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/load/training/check_architectures.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/text.h"
#include "hardware/devices/device_reader.h"

namespace interlock {
namespace {

constexpr const char* kAllOthers = "other";  // stands for every architecture that is not named

/// Returns the architectures of the catalogue's devices and of those of `cluster`, sorted.
std::vector<std::string> known_architectures(const std::optional<Cluster>& cluster) {
  std::vector<std::string> known = device_architectures();
  if (!cluster) return known;
  for (const Machine& machine : cluster->machines) {
    const std::string& own = machine.device.architecture;
    const auto place = std::lower_bound(known.begin(), known.end(), own);
    if (!own.empty() && (place == known.end() || *place != own)) known.insert(place, own);
  }
  return known;
}

/// Returns the member of `node` at `key`, or `node` itself where a name or a file stands for it.
JsonNode written(const JsonNode& node, const std::string& key) {
  const bool is_object = node.value->kind == JsonValue::Kind::Object;
  return is_object && node.value->find(key) != nullptr ? node.child(key) : node;
}

/// Reports `architecture` if it is like a known one. Others may be of a cluster that a variant has.
void report_unknown(const std::string& key, const std::string& architecture,
                    const std::vector<std::string>& known, const JsonNode& document,
                    Diagnostics& diagnostics) {
  const auto meant = nearest(architecture, known);
  if (!meant && architecture != kAllOthers) return;
  const JsonNode place =
      written(written(document.child("training").child("framework"), key), architecture);
  std::string message =
      key + " of an unknown architecture " + in_quotes(architecture) + "; known: ";
  for (const std::string& name : known) message += (&name == &known.front() ? "" : ", ") + name;
  if (meant) message += " (did you mean " + in_quotes(*meant) + "?)";
  report(diagnostics, place, message);
}

}  // namespace

void check_architectures(const Framework& framework, const std::optional<Cluster>& cluster,
                         const JsonNode& document, Diagnostics& diagnostics) {
  const auto check = [&](const std::string& key, const auto& by_architecture) {
    for (const auto& [architecture, what] : by_architecture) {
      if (architecture == kAllOthers && key != "attention_speeds") continue;
      const std::vector<std::string> known = known_architectures(cluster);
      if (std::binary_search(known.begin(), known.end(), architecture)) continue;
      report_unknown(key, architecture, known, document, diagnostics);
    }
  };
  check("attention_speeds", framework.attention_speeds);
  check("library_memory", framework.library_memory);
  check("expert_library_memory", framework.expert_library_memory);
}

}  // namespace interlock
