// Finds catalogue files and reads the quantities that machines and devices have in common.
// SPDX-License-Identifier: Apache-2.0
#include "hardware/devices/catalogue_file.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/file.h"
#include "base/text.h"

namespace interlock {
namespace {

constexpr std::string_view kSuffix = ".json";

bool is_path(std::string_view text) {
  return text.find('/') != std::string_view::npos || text.ends_with(kSuffix);
}

/// `written` as seen from the folder of the file that holds it.
std::string resolve(const std::string& written, const JsonValue& where) {
  const std::filesystem::path path(written);
  if (path.is_absolute() || where.line == 0 || !where.file) return written;
  return (std::filesystem::path(*where.file).parent_path() / path).string();
}

std::optional<CatalogueEntry> read_entry(const std::string& path, const JsonNode& node,
                                         Diagnostics& diagnostics) {
  try {
    refuse_pipe(path);
    return CatalogueEntry{std::filesystem::path(path).stem().string(), read_json_file(path), ""};
  } catch (const Error& error) {
    report(diagnostics, node, error.what());
    return std::nullopt;
  }
}

/// The values that a quantity may have, in numbers and in words.
template <class Q>
struct Range {
  Q least, most;
  std::string_view words;
};

/// `value` if it lies in `range`; else a diagnostic (unless there is one already) and zero.
template <class Q>
Q bounded(const JsonNode& node, std::optional<Q> value, const Range<Q>& range,
          Diagnostics& diagnostics) {
  if (!value) return Q();
  if (*value >= range.least && *value <= range.most) return *value;
  report(diagnostics, node,
         "out of range; expected " + std::string(range.words) + ", got " + described(*node.value));
  return Q();
}

constexpr Range<BytesPerSecond> kBandwidths = {BytesPerSecond(1), BytesPerSecond(1e18),
                                               "1 B/s to 1000 PB/s"};
constexpr Range<Bytes> kSizes = {Bytes(1), Bytes(1e18), "1 B to 1000 PB"};
constexpr Range<Seconds> kDelays = {Seconds(), Seconds(1000), "0 s to 1000 s"};

}  // namespace

bool is_entry(const std::string& folder, const std::string& name) {
  constexpr std::string_view kNeverInNames("/\0", 2);
  std::error_code failure;
  return name.find_first_of(kNeverInNames) == std::string::npos &&
         std::filesystem::exists(data_folder(folder) + "/" + name + std::string(kSuffix), failure);
}

std::vector<std::string> catalogue_entries(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code failure;
  for (const auto& file : std::filesystem::directory_iterator(data_folder(folder), failure)) {
    if (file.path().extension() == kSuffix) names.push_back(file.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<CatalogueEntry> find_entry(const JsonNode& node, const std::string& folder,
                                         Diagnostics& diagnostics) {
  if (node.value->kind == JsonValue::Kind::Object) {
    return CatalogueEntry{"inline", *node.value, node.path};
  }
  if (node.value->kind != JsonValue::Kind::String) {
    report(diagnostics, node,
           "wrong type; expected a name, the path of a file, or an object, got " +
               described(*node.value),
           true);
    return std::nullopt;
  }
  if (is_path(node.value->text)) {
    return read_entry(resolve(node.value->text, *node.value), node, diagnostics);
  }
  const std::string& name = node.value->text;
  if (!is_entry(folder, name)) {
    read_choice(node, catalogue_entries(folder), diagnostics);  // which tells the names
    return std::nullopt;
  }
  return read_entry(data_folder(folder) + "/" + name + std::string(kSuffix), node, diagnostics);
}

namespace {

constexpr int kMostBases = 8;  // below each other

std::optional<CatalogueEntry> find_above(int bases, const JsonNode& node, const std::string& thing,
                                         const FindEntry& find, Diagnostics& diagnostics) {
  std::optional<CatalogueEntry> entry = find(node, diagnostics);
  if (!entry || entry->document.find("base") == nullptr) return entry;
  const JsonNode base = entry->root().child("base");
  if (bases == kMostBases) {
    report(diagnostics, base, "bases of bases without end; expected " + thing + " that has none");
    return std::nullopt;
  }
  std::optional<CatalogueEntry> below = find_above(bases + 1, base, thing, find, diagnostics);
  if (!below) return std::nullopt;
  JsonValue own = std::move(entry->document);
  std::erase_if(own.members, [](const JsonMember& member) { return member.first == "base"; });
  entry->document = std::move(below->document);
  entry->document.file = own.file;
  entry->document.line = own.line;
  merge_json(entry->document, std::move(own));
  return entry;
}

}  // namespace

std::optional<CatalogueEntry> find_on_base(const JsonNode& node, const std::string& thing,
                                           const FindEntry& find, Diagnostics& diagnostics) {
  return find_above(0, node, thing, find, diagnostics);
}

const ContractObject& link_object() {
  using namespace contract;
  static const ContractObject rows = {
      .name = "cluster.link",
      .meaning = "A link, each direction for itself.",
      .keys = {{"latency", time(), "0 s", "Added to every message."},
               {"bandwidth", bandwidth(), "required", "One direction, by the data sheet."},
               link_efficiency_key()}};
  return rows;
}

ContractKey link_efficiency_key() {
  return {"efficiency", contract::number(0.001, 1), "1",
          "Share of the bandwidth that messages and collectives reach."};
}

void check_origin(const JsonNode& node, Diagnostics& diagnostics) {
  ObjectReader origin(node, diagnostics);
  for (const auto& [key, sentence] : node.value->members) origin.text(key, "");
  origin.finish();
}

void read_origin(Section& reader) {
  if (const auto node = reader.get("origin")) check_origin(*node, reader.diagnostics());
}

BytesPerSecond bandwidth_at(const JsonNode& node, Diagnostics& diagnostics) {
  return bounded(node, read_bytes_per_second(node, diagnostics), kBandwidths, diagnostics);
}

Seconds delay_at(const JsonNode& node, Diagnostics& diagnostics) {
  return bounded(node, read_seconds(node, diagnostics), kDelays, diagnostics);
}

BytesPerSecond read_bandwidth(Section& reader, std::string_view key) {
  const auto node = reader.require(key, "a bandwidth such as \"300 GB/s\"");
  return node ? bandwidth_at(*node, reader.diagnostics()) : BytesPerSecond();
}

Bytes read_memory(Section& reader, std::string_view key) {
  const auto node = reader.require(key, "a size such as \"80 GiB\"");
  if (!node) return Bytes();
  return bounded(*node, read_bytes(*node, reader.diagnostics()), kSizes, reader.diagnostics());
}

Seconds read_delay(Section& reader, std::string_view key) {
  const auto node = reader.get(key);
  return node ? delay_at(*node, reader.diagnostics()) : Seconds();
}

LinkSpeed read_speed(Section& reader, std::string_view key) {
  const auto node = reader.require(key, "an object with \"latency\" and \"bandwidth\"");
  if (!node) return {};
  Section members(link_object(), *node, reader.diagnostics());
  const LinkSpeed speed = read_link(members);
  members.finish();
  return speed;
}

LinkSpeed read_link(Section& members) {
  const Seconds latency = read_delay(members, "latency");
  const BytesPerSecond stated = read_bandwidth(members, "bandwidth");
  return {latency, stated * members.number("efficiency"), stated};
}

}  // namespace interlock
