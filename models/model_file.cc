// Finds model descriptions by name and path.
// SPDX-License-Identifier: Apache-2.0
#include "models/model_file.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "models/config_file.h"
#include "models/config_images.h"
#include "models/layers/model_graph.h"

namespace interlock {
namespace {

/// A configuration is often called config.json: then its folder's name says more.
std::string name_of_file(const std::string& path) {
  const std::filesystem::path file(path);
  const bool says_nothing = file.stem() == "config" && file.has_parent_path();
  return says_nothing ? file.parent_path().filename().string() : file.stem().string();
}

constexpr std::size_t kLargestFile = std::size_t{64} << 20;

/// Puts null, and blanks as long as the rest, in the place of the numbers that Python writes and
/// JSON does not have: NaN, Infinity and -Infinity, which limits of a config.json may be.
std::string without_infinities(std::string text) {
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\') {
      ++i;
    } else if (text[i] == '\n') {  // no string goes on there, but a comment may hold one quote
      quoted = false;
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (!quoted) {
      for (const std::string_view number : {"-Infinity", "Infinity", "NaN"}) {
        if (!std::string_view(text).substr(i).starts_with(number)) continue;
        std::string none = "null";
        none.resize(std::max(none.size(), number.size()), ' ');
        text.replace(i, number.size(), none);
        i += none.size() - 1;
        break;
      }
    }
  }
  return text;
}

/// Returns the model of the zoo that the name of a file or of a repository is nearest to.
std::optional<std::string> nearest_in_zoo(const std::string& path) {
  const bool file = path.ends_with(".json");
  std::string name = file ? name_of_file(path) : std::filesystem::path(path).filename().string();
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  std::string longest;  // "llama-3-8b" of "meta-llama-3-8b-instruct"
  for (const std::string& known : zoo_names()) {
    if (name.find(known) != std::string::npos && known.size() > longest.size()) longest = known;
  }
  return longest.empty() ? nearest(name, zoo_names()) : longest;
}

/// Says what to write in the place of a path at which no file is.
std::string other_path(const std::string& path) {
  std::error_code failed;
  const std::string inner = (std::filesystem::path(path) / "config.json").string();
  if (std::filesystem::exists(inner, failed)) return "; expected " + inner;
  if (std::filesystem::exists(path, failed)) return "";
  const auto near = nearest_in_zoo(path);
  return "; expected the path of a model file or of a downloaded config.json, or a name of "
         "\"interlock list models\"" +
         (near ? ", of which " + in_quotes(*near) + " is nearest" : "");
}

std::optional<ModelObject> read_model_file(const std::string& path, const JsonNode& model,
                                           bool of_zoo, Diagnostics& diagnostics) {
  auto document = std::make_shared<JsonValue>();
  try {
    refuse_pipe(path);
    *document = parse_json(without_infinities(read_file(path, kLargestFile)), path);
  } catch (const Error& error) {
    report(diagnostics, model,
           std::string("cannot use this model file: ") + error.what() + other_path(path));
    return std::nullopt;
  }
  if (document->kind != JsonValue::Kind::Object) {
    report(diagnostics, {document.get(), ""}, "no model; expected an object with a \"kind\"");
    return std::nullopt;
  }
  if (document->find("kind") == nullptr && document->find("training") != nullptr) {
    report(diagnostics, model, path + " is a scenario; expected a model's name or file");
    return std::nullopt;
  }
  if (of_zoo) place_at(*model.value, *document);
  const JsonNode node = {document.get(), of_zoo ? model.path : ""};
  return ModelObject{node, name_of_file(path), std::move(document)};
}

bool looks_like_path(const std::string& text) {
  return text.find('/') != std::string::npos || text.ends_with(".json");
}

/// A path in a scenario file starts at that file; one given as an override, where the user stands.
std::string path_from(const JsonValue& value) {
  if (value.line == 0 || !value.file) return value.text;
  return (std::filesystem::path(*value.file).parent_path() / value.text).string();
}

std::optional<ModelObject> find_named(const JsonNode& node, Diagnostics& diagnostics) {
  const std::string& text = node.value->text;
  if (looks_like_path(text)) {
    return read_model_file(path_from(*node.value), node, false, diagnostics);
  }
  const std::string path = data_folder("models/zoo") + "/" + text + ".json";
  std::error_code failed;
  if (text.find('\0') == std::string::npos && std::filesystem::exists(path, failed)) {
    return read_model_file(path, node, true, diagnostics);
  }
  std::vector<std::string> names = zoo_names();
  const auto near = nearest(text, names);
  const auto other = [&](const std::string& name) { return name.find(text) == std::string::npos; };
  if (!std::ranges::all_of(names, other)) std::erase_if(names, other);  // "llama": all of these
  report(diagnostics, node,
         "unknown model " + in_quotes(text) +
             (near ? "; did you mean " + in_quotes(*near) + "?"
                   : "; expected " + join_choices(names) + ", or the path of a .json file"));
  return std::nullopt;
}

std::optional<ModelObject> find_as_written(const JsonNode& model, Diagnostics& diagnostics) {
  switch (model.value->kind) {
    case JsonValue::Kind::String:
      return find_named(model, diagnostics);
    case JsonValue::Kind::Object:
      return ModelObject{model, "", nullptr};
    default:
      report(diagnostics, model,
             "wrong kind of value for a model; expected the name of a model in the zoo, the path "
             "of a model file, or an object",
             true);
      return std::nullopt;
  }
}

/// `object` in the place of what was found, under the same name.
ModelObject replaced(const ModelObject& found, JsonValue object) {
  auto made = std::make_shared<const JsonValue>(std::move(object));
  return {{made.get(), found.node.path}, found.name, std::move(made)};
}

/// A member takes the place of the base's, null its key too; objects are put together likewise.
void put_over(JsonValue& base, const JsonValue& over) {
  using Kind = JsonValue::Kind;
  for (const JsonMember& member : over.members) {
    if (member.first == "base") continue;
    JsonValue* known = base.find(member.first);
    if (known && known->kind == Kind::Object && member.second.kind == Kind::Object) {
      put_over(*known, member.second);
      continue;
    }
    std::erase_if(base.members, [&](const JsonMember& one) { return one.first == member.first; });
    if (member.second.kind != Kind::Null) base.members.push_back(member);
  }
}

std::optional<ModelObject> find_plain(const JsonNode& model, int depth, Diagnostics& diagnostics) {
  constexpr int kDeepest = 8;
  std::optional<ModelObject> found = find_as_written(model, diagnostics);
  if (!found) return std::nullopt;
  const JsonValue& object = *found->node.value;
  if (is_config(object)) {
    std::optional<JsonValue> made = model_of_config(found->node, diagnostics);
    if (!made) return std::nullopt;
    if (found->name.empty())
      found->name = object.find("model_type") ? object.find("model_type")->text : "";
    return replaced(*found, std::move(*made));
  }
  if (object.find("base") == nullptr) return found;
  const JsonNode base = found->node.child("base");
  if (depth == kDeepest) {
    report(diagnostics, base, "bases of bases without end; expected a model that has none");
    return std::nullopt;
  }
  const std::optional<ModelObject> below = find_plain(base, depth + 1, diagnostics);
  if (!below) return std::nullopt;
  if (found->name.empty()) found->name = below->name;
  JsonValue whole = *below->node.value;
  whole.file = object.file;
  whole.line = object.line;
  put_over(whole, object);
  renew_note_on_images(*below->node.value, whole);
  if (object.find("sequence_length") != nullptr) drop_note_on_length(whole);
  return replaced(*found, std::move(whole));
}

}  // namespace

std::optional<ModelObject> find_model(const JsonNode& model, Diagnostics& diagnostics) {
  std::optional<ModelObject> found = find_plain(model, 0, diagnostics);
  if (!found) return std::nullopt;
  const JsonValue* length = found->node.value->find("sequence_length");
  if (length != nullptr && length->kind == JsonValue::Kind::Null) {
    report(
        diagnostics, {length, found->node.path},
        "a config.json has no length of samples: max_position_embeddings is what the model may be "
        "asked for; expected it said: --sequence-length 4096, or {\"base\": ..., "
        "\"sequence_length\": 4096}");
    return std::nullopt;
  }
  return found;
}

std::vector<std::string> zoo_names() {
  std::vector<std::string> names;
  std::error_code failed;
  const std::string folder = data_folder("models/zoo");
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  if (failed) throw Error("cannot list the models in " + folder + ": " + failed.message());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace interlock
