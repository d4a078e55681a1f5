// A strict JSON reader that knows the file, line and path of every value.
// SPDX-License-Identifier: Apache-2.0
//
// parse_json gives a plain tree. ObjectReader reads one object of it key by key: each read names
// the key, what is acceptable and a default; anything else becomes a Diagnostic and the default is
// returned, so that all mistakes are reported together. finish() reports keys that none asked for.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/units.h"

namespace interlock {

struct JsonMember;

/// One JSON value and where it was written. Members keep the order of the file.
struct JsonValue {
  enum class Kind { Null, Boolean, Number, String, Array, Object };
  Kind kind = Kind::Null;
  bool boolean = false;
  double number = 0;
  std::string text;                         // String only
  std::vector<JsonValue> items;             // Array only
  std::vector<JsonMember> members;          // Object only
  std::shared_ptr<const std::string> file;  // as the user named it
  int line = 0;  // 1-based, of a member's key or an element's start; 0: not from a file
  /// The JSON pointer at which it was written, if it is read elsewhere under another name.
  std::shared_ptr<const std::string> written;

  const JsonValue* find(std::string_view key) const;
  JsonValue* find(std::string_view key);
  bool operator==(const JsonValue& other) const;  // and they were written at the same place
};

/// A key and its value. It is no std::pair because a pair may not hold a type that holds it.
struct JsonMember {
  std::string first;
  JsonValue second;
  bool operator==(const JsonMember&) const = default;
};

/// Tells whether there is a value and it is a string.
bool holds_text(const JsonValue* value);
/// Returns the value as a message shows it: `"a"`, `2.5`, `true`, `null`, `an array`, `an object`.
std::string described(const JsonValue& value);
/// Returns the JSON pointer to member `key` of the value at `parent`.
std::string json_pointer(std::string_view parent, std::string_view key);

/// Parses one document; `//` and `/* */` comments are allowed.
/// Throws: Error on malformed text, a duplicate key, a number that overflows, nesting over 64, text
/// over 64 MiB, or more than two million values.
JsonValue parse_json(std::string_view text, const std::string& file);
/// Reads and parses `path`. Throws: Error also if the file cannot be read.
JsonValue read_json_file(const std::string& path);

// Values that no file holds.
JsonValue json_text(const std::string& text);
JsonValue json_number(double number);
JsonValue json_boolean(bool boolean);
JsonValue json_list(std::vector<JsonValue> items);
JsonValue json_texts(const std::vector<std::string>& texts);
JsonValue json_object(std::vector<JsonMember> members);

/// Sets the value at a dotted path (`a.b.0`, numeric index into arrays), making objects on the way.
/// An object is merged (deeply) over an object that is there, unless both have a "kind" and these
/// differ; null removes a member of an object; anything else replaces.
/// Throws: Error naming `origin` if the path leads through a scalar or past the end of an array.
void set_json(JsonValue& root, std::string_view dotted_path, const JsonValue& value,
              const std::string& origin);
/// Merges `value` into `target` as set_json() does with what is at its path.
void merge_json(JsonValue& target, JsonValue value);
/// Parses `VALUE` of `--set path=VALUE`: JSON if it parses, else a string. Its values have
/// `origin`, the whole option, for a file and no line. Throws: Error if `text` is not UTF-8.
JsonValue parse_override(std::string_view text, const std::string& origin);
/// Lets `value`, and all that is in it, be where `where` was written.
void place_at(const JsonValue& where, JsonValue& value);

/// A value with its JSON pointer, the unit in which readers hand values around.
/// Example: in {"training": {"steps": 8}} the node of the 8 has the path "/training/steps".
struct JsonNode {
  const JsonValue* value = nullptr;
  std::string path;  // JSON pointer, "" for the document

  JsonNode child(std::string_view key) const;    // REQUIRES: the member exists
  JsonNode item(std::size_t index) const;        // REQUIRES: the element exists
  bool operator==(const JsonNode& other) const;  // equal values at the same path
};

/// Adds one diagnostic at `node`. REQUIRES: it has a value.
void report(Diagnostics& diagnostics, const JsonNode& node, std::string_view message,
            bool wrong_type = false);

// Reads of one node. Each adds a diagnostic and returns nothing if the value does not fit.
std::optional<bool> read_boolean(const JsonNode& node, Diagnostics& diagnostics);
std::optional<double> read_number(const JsonNode& node, double least, double most,
                                  Diagnostics& diagnostics);
std::optional<int> read_count(const JsonNode& node, int least, int most, Diagnostics& diagnostics);
std::optional<std::string> read_text(const JsonNode& node, Diagnostics& diagnostics);
std::optional<Seconds> read_seconds(const JsonNode& node, Diagnostics& diagnostics);
std::optional<Seconds> read_duration(const JsonNode& node, Diagnostics& diagnostics);  // above 0
std::optional<Bytes> read_bytes(const JsonNode& node, Diagnostics& diagnostics);
std::optional<BytesPerSecond> read_bytes_per_second(const JsonNode& node, Diagnostics& diagnostics);
std::optional<FlopsPerSecond> read_flops_per_second(const JsonNode& node, Diagnostics& diagnostics);
std::optional<Watts> read_watts(const JsonNode& node, Diagnostics& diagnostics);
std::optional<Joules> read_joules(const JsonNode& node, Diagnostics& diagnostics);
/// Returns the index in `names` of the text at `node`; else a diagnostic lists or suggests names.
std::optional<int> read_choice(const JsonNode& node, const std::vector<std::string>& names,
                               Diagnostics& diagnostics);

/// Reads the members of one object; see the head of this file.
class ObjectReader {
 public:
  /// If `node` is no object, that is reported and every read returns its default.
  ObjectReader(JsonNode node, Diagnostics& diagnostics);

  /// Returns the member as a node, or nothing if it is absent; either way the key counts as known.
  std::optional<JsonNode> get(std::string_view key);
  /// Returns what get() does; reports an absent member, with what was `expected`: "a model name".
  std::optional<JsonNode> require(std::string_view key, std::string_view expected);

  bool boolean(std::string_view key, bool otherwise);
  double number(std::string_view key, double otherwise, double least, double most);
  int count(std::string_view key, int otherwise, int least = 1, int most = 1'000'000'000);
  std::string text(std::string_view key, std::string_view otherwise);
  Seconds seconds(std::string_view key, Seconds otherwise);
  Bytes bytes(std::string_view key, Bytes otherwise);
  BytesPerSecond bytes_per_second(std::string_view key, BytesPerSecond otherwise);
  FlopsPerSecond flops_per_second(std::string_view key, FlopsPerSecond otherwise);
  /// Returns the index in `names` of the member's text, or `otherwise` if absent.
  int choice(std::string_view key, const std::vector<std::string>& names, int otherwise);

  /// Reports every member that was never asked for, with the nearest known key.
  void finish();

  const JsonNode& node() const { return node_; }
  Diagnostics& diagnostics() { return *diagnostics_; }

 private:
  JsonNode node_;
  Diagnostics* diagnostics_;
  std::vector<std::string> known_;
};

}  // namespace interlock
