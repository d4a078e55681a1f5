// Finds the description of a model (zoo, file or inline) and hands it to its builder.
// SPDX-License-Identifier: Apache-2.0
#include "models/build_model.h"

#include <algorithm>

#include "base/text.h"
#include "models/layers/adapters.h"
#include "models/layers/profile.h"
#include "models/model_file.h"
#include "models/networks/mlp.h"
#include "models/networks/residual_mlp.h"
#include "models/networks/resnet.h"
#include "models/networks/sharding_check.h"
#include "models/networks/sparse_mlp.h"
#include "models/networks/vgg.h"
#include "models/transformer/transformer.h"

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
  override_head(shape, site_kind(shape), options, reader.diagnostics());
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

ModelGraph residual_mlp_from(ObjectReader& reader, const BuildOptions& options) {
  ResidualMlp shape = read_residual_mlp(reader);
  override_head(shape, SiteKind::Vector, options, reader.diagnostics());
  refuse_any_sharding(reader, options.sharding, "a residual MLP");
  refuse_split_brain(reader, options.sharding, "a residual MLP");
  refuse_images(reader, options.sharding, "a residual MLP");
  reader.finish();
  return reader.diagnostics().empty() ? build_residual_mlp(shape, options) : ModelGraph();
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
struct ModelKind {
  std::string name;
  ModelGraph (*build)(ObjectReader&, const BuildOptions&);
};

const std::vector<ModelKind>& model_kinds() {
  static const std::vector<ModelKind> all = {{"transformer", transformer_from},
                                             {"resnet", resnet_from},
                                             {"vgg", vgg_from},
                                             {"mlp", mlp_from},
                                             {"residual-mlp", residual_mlp_from},
                                             {"sparse-mlp", sparse_mlp_from},
                                             {"profile", profile_from}};
  return all;
}

/// Freezes the first modules of `graph`, and of its slices.
void freeze_first(ModelGraph& graph, int modules) {
  if (modules == 0) return;
  const int count = std::min(modules, static_cast<int>(graph.modules.size()));
  for (int i = 0; i < count; ++i) freeze(graph.modules[static_cast<std::size_t>(i)]);
  if (!graph.slice) return;
  graph.slice = [whole = std::move(graph.slice), modules](const TokenSlice& slice) {
    ModelGraph part = whole(slice);
    freeze_first(part, modules);
    return part;
  };
}

ModelGraph build_found(const ModelObject& model, const BuildOptions& options,
                       Diagnostics& diagnostics) {
  ObjectReader reader(model.node, diagnostics);
  std::vector<std::string> names;
  for (const ModelKind& kind : model_kinds()) names.push_back(kind.name);
  const auto kind = reader.require("kind", join_choices(names));
  const auto index = kind ? read_choice(*kind, names, diagnostics) : std::nullopt;
  if (!index) return {};  // which keys are known depends on the kind
  const std::string& otherwise = names[static_cast<std::size_t>(*index)];
  const std::string name = reader.text("name", model.name.empty() ? otherwise : model.name);
  reader.text("source", "");
  ModelGraph graph = model_kinds()[static_cast<std::size_t>(*index)].build(reader, options);
  graph.name = name;
  freeze_first(graph, options.frozen_modules);
  return graph;
}

}  // namespace

ModelGraph build_model(const JsonNode& model, const BuildOptions& options,
                       Diagnostics& diagnostics) {
  Diagnostics own;  // of this model only: it is built if there are none
  const std::optional<ModelObject> found = find_model(model, own);
  ModelGraph graph = found ? build_found(*found, options, own) : ModelGraph();
  for (const std::string& message : own.messages()) diagnostics.add("", 0, "", message);
  return own.empty() ? graph : ModelGraph();
}

}  // namespace interlock
