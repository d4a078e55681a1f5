// Finds the description of a model (zoo, file or inline) and hands it to its builder.
// SPDX-License-Identifier: Apache-2.0
#include "models/model_graph.h"

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "models/mlp.h"
#include "models/profile.h"
#include "models/resnet.h"
#include "models/sharding_check.h"
#include "models/sparse_mlp.h"
#include "models/transformer.h"
#include "models/vgg.h"

namespace interlock {
namespace {

template <class Shape>
void override_head(Shape& shape, SiteKind site, const BuildOptions& options,
                   Diagnostics& diagnostics) {
  if (options.head) shape.head = read_head(*options.head, site, diagnostics);
}

void refuse_any_sharding(ObjectReader& reader, const Sharding& sharding, const std::string& model) {
  refuse_tensor(reader, sharding, model);
  refuse_context(reader, sharding, model);
  refuse_experts(reader, sharding, model);
}

ModelGraph transformer_from(ObjectReader& reader, const BuildOptions& options) {
  Transformer shape = read_transformer(reader);
  override_head(shape, SiteKind::Sequence, options, reader.diagnostics());
  if (reader.diagnostics().empty()) check_sharding(reader, shape, options);
  reader.finish();
  if (reader.diagnostics().empty()) pad_vocabulary(shape, options.sharding);
  return reader.diagnostics().empty() ? build_transformer(shape, options) : ModelGraph();
}

ModelGraph resnet_from(ObjectReader& reader, const BuildOptions& options) {
  ResNet shape = read_resnet(reader);
  override_head(shape, SiteKind::Image, options, reader.diagnostics());
  refuse_any_sharding(reader, options.sharding, "a ResNet");
  refuse_split_brain(reader, options.sharding, "a ResNet");
  check_images(reader, shape.image_size, windows_of(shape), options.sharding);
  reader.finish();
  return reader.diagnostics().empty() ? build_resnet(shape, options) : ModelGraph();
}

ModelGraph vgg_from(ObjectReader& reader, const BuildOptions& options) {
  Vgg shape = read_vgg(reader);
  override_head(shape, SiteKind::Image, options, reader.diagnostics());
  refuse_any_sharding(reader, options.sharding, "a VGG");
  const int group = options.sharding.split_brain;
  check_parts(reader, "hidden_size", shape.hidden_size, group,
              std::to_string(group) + " devices (split_brain)");
  check_images(reader, shape.image_size, windows_of(shape), options.sharding);
  reader.finish();
  return reader.diagnostics().empty() ? build_vgg(shape, options) : ModelGraph();
}

ModelGraph mlp_from(ObjectReader& reader, const BuildOptions& options) {
  Mlp shape = read_mlp(reader);
  override_head(shape, SiteKind::Vector, options, reader.diagnostics());
  check_sharding(reader, shape, options);
  reader.finish();
  return reader.diagnostics().empty() ? build_mlp(shape, options) : ModelGraph();
}

ModelGraph sparse_mlp_from(ObjectReader& reader, const BuildOptions& options) {
  const Sharding& sharding = options.sharding;
  const SparseMlp shape = read_sparse_mlp(reader, sharding.tensor);
  if (options.head) {
    report(reader.diagnostics(), *options.head,
           "a sparse MLP has no heads; expected strategy \"inference\" or \"global\"");
  }
  refuse_context(reader, sharding, "a sparse MLP");
  refuse_experts(reader, sharding, "a sparse MLP");
  refuse_split_brain(reader, sharding, "a sparse MLP");
  refuse_images(reader, sharding, "a sparse MLP");
  if (sharding.tensor_layout != TensorLayout::OneD || sharding.sequence_parallel) {
    report(reader.diagnostics(), reader.node(),
           "the neurons of a sparse MLP are divided in one dimension; expected tensor_layout "
           "\"1d\" without sequence parallelism");
  }
  reader.finish();
  return reader.diagnostics().empty() ? build_sparse_mlp(shape, options) : ModelGraph();
}

ModelGraph profile_from(ObjectReader& reader, const BuildOptions& options) {
  const std::vector<ProfileModule> modules = read_profile(reader);
  if (options.head) check_measured_head(*options.head, reader.diagnostics());
  refuse_any_sharding(reader, options.sharding, "a profile");
  refuse_split_brain(reader, options.sharding, "a profile");
  refuse_images(reader, options.sharding, "a profile");
  reader.finish();
  return reader.diagnostics().empty() ? build_profile(modules, options) : ModelGraph();
}

/// One kind of model: its name in files, and the function that reads and builds it.
struct Kind {
  std::string name;
  ModelGraph (*build)(ObjectReader&, const BuildOptions&);
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {{"transformer", transformer_from},
                                        {"resnet", resnet_from},
                                        {"vgg", vgg_from},
                                        {"mlp", mlp_from},
                                        {"sparse-mlp", sparse_mlp_from},
                                        {"profile", profile_from}};
  return all;
}

ModelGraph build_object(const JsonNode& node, const BuildOptions& options,
                        Diagnostics& diagnostics) {
  ObjectReader reader(node, diagnostics);
  std::vector<std::string> names;
  for (const Kind& kind : kinds()) names.push_back(kind.name);
  const auto kind = reader.require("kind", join_choices(names));
  const auto index = kind ? read_choice(*kind, names, diagnostics) : std::nullopt;
  if (!index) return {};  // which keys are known depends on the kind
  const std::string name = reader.text("name", names[static_cast<std::size_t>(*index)]);
  reader.text("source", "");
  ModelGraph graph = kinds()[static_cast<std::size_t>(*index)].build(reader, options);
  graph.name = name;
  return graph;
}

void place_at(const JsonValue& where, JsonValue& value) {
  value.file = where.file;
  value.line = where.line;
  for (JsonValue& item : value.items) place_at(where, item);
  for (JsonMember& member : value.members) place_at(where, member.second);
}

/// Who names the model, and whether it is one of the zoo, whose sizes are right: what is wrong with
/// them is wrong where it is named.
struct NamedModel {
  JsonNode node;
  bool of_zoo = false;
};

ModelGraph build_file(const std::string& path, const NamedModel& model, const BuildOptions& options,
                      Diagnostics& diagnostics) {
  const JsonNode& node = model.node;
  JsonValue document;
  try {
    document = read_json_file(path);
  } catch (const Error& error) {
    report(diagnostics, node, std::string("cannot use this model file: ") + error.what());
    return {};
  }
  if (document.kind != JsonValue::Kind::Object) {
    report(diagnostics, {&document, ""}, "no model; expected an object with a \"kind\"");
    return {};
  }
  if (model.of_zoo) place_at(*node.value, document);
  ModelGraph graph = build_object({&document, model.of_zoo ? node.path : ""}, options, diagnostics);
  if (!document.find("name")) graph.name = std::filesystem::path(path).stem().string();
  return graph;
}

bool looks_like_path(const std::string& text) {
  return text.find('/') != std::string::npos || text.ends_with(".json");
}

/// A path in a scenario file starts at that file; one given as an override, where the user stands.
std::string path_from(const JsonValue& value) {
  if (value.line == 0 || !value.file) return value.text;
  return (std::filesystem::path(*value.file).parent_path() / value.text).string();
}

ModelGraph build_named(const JsonNode& node, const BuildOptions& options,
                       Diagnostics& diagnostics) {
  const std::string& text = node.value->text;
  if (looks_like_path(text)) {
    return build_file(path_from(*node.value), {node}, options, diagnostics);
  }
  const std::vector<std::string> names = zoo_names();
  if (std::find(names.begin(), names.end(), text) != names.end()) {
    const std::string path = data_folder("models/zoo") + "/" + text + ".json";
    return build_file(path, {node, true}, options, diagnostics);
  }
  const auto near = nearest(text, names);
  report(diagnostics, node,
         "unknown model " + in_quotes(text) +
             (near ? "; did you mean " + in_quotes(*near) + "?"
                   : "; expected " + join_choices(names) + ", or the path of a .json file"));
  return {};
}

ModelGraph build_any(const JsonNode& node, const BuildOptions& options, Diagnostics& diagnostics) {
  switch (node.value->kind) {
    case JsonValue::Kind::String:
      return build_named(node, options, diagnostics);
    case JsonValue::Kind::Object:
      return build_object(node, options, diagnostics);
    default:
      report(diagnostics, node,
             "wrong kind of value for a model; expected the name of a model in the zoo, the path "
             "of a model file, or an object");
      return {};
  }
}

}  // namespace

ModelGraph build_model(const JsonNode& model, const BuildOptions& options,
                       Diagnostics& diagnostics) {
  Diagnostics own;  // of this model only: it is built if there are none
  ModelGraph graph = build_any(model, options, own);
  for (const std::string& message : own.messages()) diagnostics.add("", 0, "", message);
  return own.empty() ? graph : ModelGraph();
}

Flops model_flops(const ModelGraph& graph) {
  Flops total;
  for (const Module& module : graph.modules) {
    for (const auto* part : {&module.forward, &module.backward_input, &module.backward_weight}) {
      for (const Work& work : *part) total += work.flops;
    }
  }
  return total;
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
