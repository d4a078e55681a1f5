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

void refuse_any_sharding(Section& reader, const Sharding& sharding, const std::string& model) {
  refuse_tensor(reader, sharding, model);
  refuse_context(reader, sharding, model);
  refuse_experts(reader, sharding, model);
}

ModelGraph transformer_from(Section& reader, const BuildOptions& options) {
  Transformer shape = read_transformer(reader);
  override_head(shape, site_kind(shape), options, reader.diagnostics());
  if (reader.diagnostics().empty()) {
    replace_left_out(shape, options);
    check_sharding(reader, shape, options);
  }
  reader.finish();
  if (reader.diagnostics().empty()) pad_vocabulary(shape, options.sharding);
  return reader.diagnostics().empty() ? build_transformer(shape, options) : ModelGraph();
}

ModelGraph resnet_from(Section& reader, const BuildOptions& options) {
  ResNet shape = read_resnet(reader);
  override_head(shape, SiteKind::Image, options, reader.diagnostics());
  refuse_any_sharding(reader, options.sharding, "a ResNet");
  refuse_split_brain(reader, options.sharding, "a ResNet");
  check_images(reader, shape.image_size, windows_of(shape), options.sharding);
  reader.finish();
  return reader.diagnostics().empty() ? build_resnet(shape, options) : ModelGraph();
}

ModelGraph vgg_from(Section& reader, const BuildOptions& options) {
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

ModelGraph mlp_from(Section& reader, const BuildOptions& options) {
  Mlp shape = read_mlp(reader);
  override_head(shape, SiteKind::Vector, options, reader.diagnostics());
  check_sharding(reader, shape, options);
  reader.finish();
  return reader.diagnostics().empty() ? build_mlp(shape, options) : ModelGraph();
}

ModelGraph residual_mlp_from(Section& reader, const BuildOptions& options) {
  ResidualMlp shape = read_residual_mlp(reader);
  override_head(shape, SiteKind::Vector, options, reader.diagnostics());
  refuse_any_sharding(reader, options.sharding, "a residual MLP");
  refuse_split_brain(reader, options.sharding, "a residual MLP");
  refuse_images(reader, options.sharding, "a residual MLP");
  reader.finish();
  return reader.diagnostics().empty() ? build_residual_mlp(shape, options) : ModelGraph();
}

ModelGraph sparse_mlp_from(Section& reader, const BuildOptions& options) {
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

ModelGraph profile_from(Section& reader, const BuildOptions& options) {
  const std::vector<ProfileModule> modules = read_profile(reader);
  if (options.head) check_measured_head(*options.head, reader.diagnostics());
  refuse_any_sharding(reader, options.sharding, "a profile");
  refuse_split_brain(reader, options.sharding, "a profile");
  refuse_images(reader, options.sharding, "a profile");
  reader.finish();
  return reader.diagnostics().empty() ? build_profile(modules, options) : ModelGraph();
}

/// One kind of model: the rows of its keys, its own object first, and the function that reads and
/// builds it.
struct ModelKind {
  const std::vector<ContractObject>& (*contract)();
  ModelGraph (*build)(Section&, const BuildOptions&);

  const ContractObject& object() const { return contract().front(); }
  const std::string& name() const { return contract_names(object(), "kind").front(); }
};

constexpr ModelKind kModelKinds[] = {{transformer_contract, transformer_from},
                                     {resnet_contract, resnet_from},
                                     {vgg_contract, vgg_from},
                                     {mlp_contract, mlp_from},
                                     {residual_mlp_contract, residual_mlp_from},
                                     {sparse_mlp_contract, sparse_mlp_from},
                                     {profile_contract, profile_from}};

/// Returns the rows of descriptions that other models are made of.
std::vector<ContractObject> other_descriptions() {
  using namespace contract;
  return {{.name = "model.config",
           .meaning = "A `config.json` of Hugging Face; see [models](models.md).",
           .keys = {{"model_type", anything(), "required",
                     "Its class: one that [models](models.md) lists, or another that is read by "
                     "its fields."}},
           .others = map(anything())},
          {.name = "model.base",
           .meaning = "Another model, with the keys of this object in the place of its own; `null` "
                      "takes a key away.",
           .keys = {{"base", anything(), "required",
                     "A name, the path of a model file or `config.json`, or an object."}},
           .others = map(anything())}};
}

std::vector<std::string> read_notes(Section& reader) {
  std::vector<std::string> notes;
  const auto list = reader.get("notes");
  if (!list) return notes;
  if (list->value->kind != JsonValue::Kind::Array) {
    report(reader.diagnostics(), *list, "expected a list of sentences");
    return notes;
  }
  for (std::size_t i = 0; i < list->value->items.size(); ++i) {
    notes.push_back(read_text(list->item(i), reader.diagnostics()).value_or(""));
  }
  return notes;
}

/// Freezes the first modules of `graph`, of its slices, and of what it is for packed samples.
void freeze_first(ModelGraph& graph, int modules) {
  if (modules == 0) return;
  std::vector<Module>& all = graph.modules.edit();
  const int count = std::min(modules, static_cast<int>(all.size()));
  for (int i = 0; i < count; ++i) freeze(all[static_cast<std::size_t>(i)]);
  const auto frozen = [modules](auto& make) {
    if (!make) return;
    make = [whole = std::move(make), modules](const auto& argument) {
      ModelGraph part = whole(argument);
      freeze_first(part, modules);
      return part;
    };
  };
  frozen(graph.slice);
  frozen(graph.packed);
}

ModelGraph built_as_described(const ModelObject& model, const BuildOptions& options,
                              Diagnostics& diagnostics) {
  std::vector<std::string> names;
  for (const ModelKind& kind : kModelKinds) names.push_back(kind.name());
  const auto kind =
      ObjectReader(model.node, diagnostics)
          .require("kind", join_choices(names) +
                               "; or, in a config.json of Hugging Face, \"model_type\": \"llama\" "
                               "or another that docs/models.md lists");
  const auto index = kind ? read_choice(*kind, names, diagnostics) : std::nullopt;
  if (!index) return {};  // which keys are known depends on the kind
  const ModelKind& found = kModelKinds[*index];
  Section reader(found.object(), model.node, diagnostics);
  reader.get("kind");
  const std::string name = reader.text("name", model.name.empty() ? found.name() : model.name);
  reader.text("source", "");
  const std::vector<std::string> notes = read_notes(reader);
  ModelGraph graph = found.build(reader, options);
  graph.name = name;
  graph.notes = notes;
  freeze_first(graph, options.frozen_modules);
  return graph;
}

}  // namespace

const std::vector<ContractObject>& model_contract() {
  static const std::vector<ContractObject> all = [] {
    std::vector<ContractObject> objects;
    const auto add = [&](const std::vector<ContractObject>& more) {
      objects.insert(objects.end(), more.begin(), more.end());
    };
    for (const ModelKind& kind : kModelKinds) add(kind.contract());
    add(head_contract());
    add(other_descriptions());
    return objects;
  }();
  return all;
}

ContractType model_type() {
  std::vector<ContractType> forms = {contract::named(zoo_names)};
  for (const ModelKind& kind : kModelKinds) forms.push_back(contract::object(kind.object().name));
  for (const ContractObject& other : other_descriptions()) {
    forms.push_back(contract::object(other.name));
  }
  return contract::either(forms);
}

ModelGraph build_model(const JsonNode& model, const BuildOptions& options,
                       Diagnostics& diagnostics) {
  Diagnostics own;
  const std::optional<ModelObject> found = find_model(model, own);
  ModelGraph graph = found ? build_described(*found, options, own) : ModelGraph();
  diagnostics.add_new(own);
  return graph;
}

ModelGraph build_described(const ModelObject& model, const BuildOptions& options,
                           Diagnostics& diagnostics) {
  Diagnostics own;  // of this model only: it is built if there are none
  ModelGraph graph = built_as_described(model, options, own);
  diagnostics.add_new(own);
  return own.empty() ? graph : ModelGraph();
}

}  // namespace interlock
