// Catalogue files: what a name, a path or an inline object in a scenario stands for.
// SPDX-License-Identifier: Apache-2.0
//
// Machines live in hardware/catalogue/, devices in hardware/catalogue/devices/, one JSON file each,
// named as scenarios name them. Each file tells the origin of every number in it under "origin",
// by the dotted path of the number or of an object around it.
//
// Example: "cluster": "dgx-h100" means the entry {name "dgx-h100", path ""} of hardware/catalogue,
// whose document is dgx-h100.json.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/contract/section.h"
#include "hardware/topologies/link.h"

namespace interlock {

/// Returns whether the catalogue has a file of that name in `folder`, without listing them.
bool is_entry(const std::string& folder, const std::string& name);
/// Returns the names of the catalogue's files in `folder`, e.g. "hardware/catalogue", sorted.
std::vector<std::string> catalogue_entries(const std::string& folder);

/// A document that something in a scenario refers to.
struct CatalogueEntry {
  std::string name;    // the file's name without folder and ".json", or "inline"
  JsonValue document;  // a copy of the inline object, or the file
  std::string path;    // JSON pointer of the document: the object's own, or "" for a file
  JsonNode root() const { return {&document, path}; }
};

/// Returns the entry of `folder` that `node` names, the file whose path it is (it holds a slash or
/// ends in
/// ".json"; relative to the file that says so), or the object it is.
/// A diagnostic is added, and nothing returned, if there is no such thing.
std::optional<CatalogueEntry> find_entry(const JsonNode& node, const std::string& folder,
                                         Diagnostics& diagnostics);

using FindEntry = std::function<std::optional<CatalogueEntry>(const JsonNode&, Diagnostics&)>;

/// Finds an entry by `find`, and puts its members over those of the entry that its "base" names;
/// null takes a member of the base away. `thing`: what is looked for, "a device".
///
/// Example: {"base": "h100", "memory": "96 GiB"} is h100.json with another memory.
std::optional<CatalogueEntry> find_on_base(const JsonNode& node, const std::string& thing,
                                           const FindEntry& find, Diagnostics& diagnostics);

/// Returns the rows of a link.
const ContractObject& link_object();
/// Returns the row of a link's share of its bandwidth, which read_link() reads.
ContractKey link_efficiency_key();

/// Checks that the "origin" of a catalogue file is an object of sentences.
void check_origin(const JsonNode& node, Diagnostics& diagnostics);
/// Reads it, if there is one.
void read_origin(Section& reader);

// Members that must be there and lie in a sane range; a diagnostic and 0 if not.
BytesPerSecond read_bandwidth(Section& reader, std::string_view key);
Bytes read_memory(Section& reader, std::string_view key);
/// Reads a delay as above, but absent means 0.
Seconds read_delay(Section& reader, std::string_view key);
/// Reads the object at `key` as read_link() does; its rows are link_object().
LinkSpeed read_speed(Section& reader, std::string_view key);
/// Reads "latency" (absent means 0), "bandwidth" as the data sheet has it, and "efficiency", the
/// share of it that messages and collectives reach (absent means all).
LinkSpeed read_link(Section& members);
/// Reads a value that is not a member of an object; adds a diagnostic and returns 0 if it does not
/// fit.
BytesPerSecond bandwidth_at(const JsonNode& node, Diagnostics& diagnostics);
Seconds delay_at(const JsonNode& node, Diagnostics& diagnostics);

}  // namespace interlock
