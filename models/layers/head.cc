// Head: reads descriptions of auxiliary heads and adds up their work.
// SPDX-License-Identifier: Apache-2.0
#include "models/layers/head.h"

#include <algorithm>

namespace interlock {
namespace {

/// Returns the type of names of HeadKind, in its order.
ContractType head_kind() {
  return contract::one_of({"convolution", "linear", "mlp", "lm", "later-layers"});
}

/// Returns the names that a key of a head accepts.
const std::vector<std::string>& names_at(std::string_view key) {
  return contract_names(contract_object(head_contract(), "model.head"), key);
}

void read_weights(const JsonNode& node, HeadSpec& spec, Diagnostics& diagnostics) {
  if (node.value->kind == JsonValue::Kind::Object) {
    Section reader(contract_object(head_contract(), "model.head.weights"), node, diagnostics);
    reader.required_count("stale_every", "steps between two broadcasts");
    reader.finish();
    spec.trainable = false;
  } else if (const auto choice = read_choice(node, names_at("weights"), diagnostics)) {
    spec.trainable = *choice == 0;
  }
}

/// Returns whether a head of `kind` reads what is at `site`.
bool reads(HeadKind kind, SiteKind site) {
  if (kind == HeadKind::Convolution) return site == SiteKind::Image;
  return kind != HeadKind::Lm || site == SiteKind::Sequence;
}

void check_site(const JsonNode& node, HeadKind kind, SiteKind site, Diagnostics& diagnostics) {
  if (reads(kind, site)) return;
  const std::vector<std::string>& names = names_at("kind");
  std::vector<std::string> others;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (reads(static_cast<HeadKind>(i), site)) others.push_back(in_quotes(names[i]));
  }
  report(diagnostics, node,
         std::string(kind == HeadKind::Lm ? "an lm head reads sequences"
                                          : "a convolution head reads images") +
             "; expected " + join_choices(others) + " for this model");
}

HeadSpec read_object(const JsonNode& node, SiteKind site, Diagnostics& diagnostics) {
  HeadSpec spec;
  Section reader(contract_object(head_contract(), "model.head"), node, diagnostics);
  const auto kind = reader.get("kind");
  if (const int choice = reader.choice("kind", -1); choice >= 0) {
    spec.kind = static_cast<HeadKind>(choice);
    check_site(*kind, *spec.kind, site, diagnostics);
  }
  if (const auto weights = reader.get("weights")) read_weights(*weights, spec, diagnostics);
  if (!kind || spec.kind) reader.refuse_unused(kind ? kind->value->text : "", "head");
  spec.hidden_size = reader.written_count("hidden_size");
  spec.layers = reader.count("layers");
  reader.finish();
  return spec;
}

/// Returns the tensor of an image's site.
Images images_of(const HeadSite& site, double element) {
  CHECK(site.kind == SiteKind::Image, "images at the site");
  return {site.samples, site.rows, site.columns, site.width, element};
}

/// Vectors of `width` elements that the site's tensor, or the mean of its images, has.
double rows_of(const HeadSite& site) {
  switch (site.kind) {
    case SiteKind::Vector:
      return site.samples;
    case SiteKind::Image:
      return images_of(site, 1).samples_behind();
    case SiteKind::Sequence:
      return site.samples * site.positions;
  }
  CHECK(false, "a site should be of one of the three kinds");
}

LinearRole role_at(const HeadSite& site) {
  return site.inner ? LinearRole::Row : LinearRole::Column;
}

/// A few classes that a line of devices cannot share equally are the work of each of them.
Sharding sharding_of_classes(const HeadSite& site) {
  const Sharding& sharding = site.sharding;
  const bool divides = site.classes % sharding.tensor == 0;
  const bool line = sharding.tensor_layout == TensorLayout::OneD;
  return divides || site.inner || !line ? sharding : Sharding();
}

std::vector<Operator> convolution_head(const HeadSite& site, double element) {
  std::vector<Operator> operators;
  Images images = images_of(site, element);
  for (const std::int64_t outputs : {std::int64_t{128}, std::int64_t{64}}) {
    operators.push_back(convolve(images, {.channels = outputs, .bias = true}));
    operators.push_back(normalisation(images.elements(), 2 * outputs, element));
    operators.push_back(relu(images.elements(), element));
  }
  HeadSite last = site;
  last.width = images.channels;
  for (const Operator& op : readout(last, true, element)) operators.push_back(op);
  return operators;
}

std::vector<Operator> mlp_head(const HeadSpec& spec, const HeadSite& site, double element) {
  std::vector<Operator> operators;
  HeadSite hidden = site;
  if (site.kind == SiteKind::Image) {
    operators.push_back(average(images_of(site, element)));
    hidden.kind = SiteKind::Vector;
    hidden.samples = rows_of(site);
  }
  const double rows = rows_of(hidden);
  hidden.width = spec.hidden_size ? *spec.hidden_size : site.width;
  const LinearRole role = role_at(site);
  operators.push_back(
      sharded_linear({rows, site.width, hidden.width}, role, site.sharding, element));
  operators.push_back(
      relu(rows * static_cast<double>(hidden.width) * output_parts(site.sharding, role).share(),
           element));
  hidden.inner = !site.inner;
  for (const Operator& op : readout(hidden, true, element)) operators.push_back(op);
  return operators;
}

std::vector<Operator> head_operators(const HeadSpec& spec, const HeadSite& site, double element) {
  switch (*spec.kind) {
    case HeadKind::Convolution:
      return convolution_head(site, element);
    case HeadKind::Linear:
      return readout(site, true, element);
    case HeadKind::Mlp:
      return mlp_head(spec, site, element);
    case HeadKind::Lm: {
      std::vector<Operator> operators = {
          sharded_norm({rows_of(site), site.width, site.norm_parameters}, site.sharding, element)};
      for (const Operator& op : readout(site, false, element)) operators.push_back(op);
      return operators;
    }
    case HeadKind::LaterLayers:
      break;
  }
  CHECK(false, "copies of later layers should be made from modules, not from operators");
}

/// Adds `work`, merged with equal kernels that are there: many copies take little memory.
void add_work(std::vector<Work>& works, const Work& work) {
  for (Work& known : works) {
    if (known.op_class == work.op_class && known.role == work.role &&
        known.variant == work.variant && known.shape == work.shape &&
        known.replayed == work.replayed && known.awaited == work.awaited &&
        known.wide == work.wide && known.flops * work.launches == work.flops * known.launches &&
        known.bytes * work.launches == work.bytes * known.launches) {
      if (known.counted || work.counted) {
        known.counted = counted_flops(known) + counted_flops(work);
      }
      known.flops += work.flops;
      known.bytes += work.bytes;
      known.launches += work.launches;
      known.more_issues += work.more_issues;
      return;
    }
  }
  works.push_back(work);
}

void add_copy(Head& head, const Module& module, Bytes& workspace) {
  std::vector<const std::vector<Work>*> parts = {&module.forward, &module.recompute,
                                                 &module.backward_input};
  if (head.trainable) parts.push_back(&module.backward_weight);
  for (const auto* part : parts) {
    for (const Work& work : *part) add_work(head.work, work);
  }
  for (const auto* part :
       {&module.forward_exchanges, &module.recompute_exchanges, &module.backward_input_exchanges}) {
    append_exchanges(head.exchanges, *part);
  }
  if (head.trainable) append_exchanges(head.exchanges, module.backward_weight_exchanges);
  head.parameters += module.parameters + module.tied_parameters;
  head.memory += module.stash;
  workspace = std::max(workspace, module.workspace);
}

}  // namespace

ContractType head_type() { return contract::either({head_kind(), contract::object("model.head")}); }

ContractKey head_key(const std::string& otherwise) {
  return {"head", head_type(), otherwise,
          "Auxiliary head of each stage that is trained by a loss of its own."};
}

const std::vector<ContractObject>& head_contract() {
  using namespace contract;
  static const std::vector<ContractObject> objects = {
      {.name = "model.head",
       .meaning = "Auxiliary head of a stage that is trained by a loss of its own. The strategy's "
                  "overrides the model's; a profile's heads are measured and take `weights` only.",
       .keys = {{"kind", head_kind(), "the model's",
                 "Form of the head. `convolution`: two 3x3 convolutions to 128 and 64 channels, "
                 "mean, linear. `linear`: a linear layer. `mlp`: one hidden layer. `lm`: norm and "
                 "vocabulary projection. `later-layers`: copies of the next modules and the last."},
                {"hidden_size",
                 whole(1, 1e7),
                 "the width of what it reads",
                 "Width of its hidden layer.",
                 {"mlp"}},
                {"layers",
                 whole(1, 64),
                 "1",
                 "How many of the next modules are copied, before the last one.",
                 {"later-layers"}},
                {"weights",
                 either({one_of({"private", "shared-frozen"}), object("model.head.weights")}),
                 "private",
                 "`private`: trained with its stage. `shared-frozen`: never trained. Or an object: "
                 "copies of the last stage's readout."}}},
      {.name = "model.head.weights",
       .meaning = "Copies of the last stage's readout, broadcast now and then.",
       .keys = {{"stale_every", whole(1, 1e9), "required",
                 "Steps between two broadcasts of the readout."}}}};
  return objects;
}

HeadSpec read_head(const JsonNode& node, SiteKind site, Diagnostics& diagnostics) {
  if (node.value->kind != JsonValue::Kind::String) return read_object(node, site, diagnostics);
  HeadSpec spec;
  if (const auto choice = read_choice(node, names_at("kind"), diagnostics)) {
    spec.kind = static_cast<HeadKind>(*choice);
    check_site(node, *spec.kind, site, diagnostics);
  }
  return spec;
}

void check_measured_head(const JsonNode& node, Diagnostics& diagnostics) {
  const JsonValue& value = *node.value;
  const JsonValue* weights = value.find("weights");
  if (value.kind != JsonValue::Kind::Object || value.members.size() != (weights ? 1u : 0u)) {
    report(diagnostics, node,
           "a profile's heads are measured; expected \"weights\" at most, and \"head\" times in "
           "the profile's modules");
    return;
  }
  HeadSpec ignored;
  if (weights) read_weights(node.child("weights"), ignored, diagnostics);
}

void keep_wide(Operator& op) {
  for (Work* work : {&op.forward, &op.input_gradient, &op.weight_gradient}) work->wide = true;
}

std::vector<Operator> readout(const HeadSite& site, bool bias, double element) {
  std::vector<Operator> operators;
  const double rows = rows_of(site);
  if (site.kind == SiteKind::Image) operators.push_back(average(images_of(site, element)));
  const LinearRole role = role_at(site);
  const Sharding sharding = sharding_of_classes(site);
  operators.push_back(
      sharded_linear({rows, site.width, site.classes, bias}, role, sharding, element));
  keep_wide(operators.back());
  const bool gathers = site.gathers && sharding.tensor > 1;
  if (gathers) {
    const Bytes logits(rows * static_cast<double>(site.classes) * element);
    append_exchanges(operators.back().forward_exchanges,
                     {{.kind = CollectiveKind::AllGather, .bytes = logits}});
  }
  operators.push_back(gathers ? cross_entropy(rows, site.classes, element)
                              : sharded_cross_entropy(rows, site.classes, role, sharding, element));
  return operators;
}

Head make_head(const HeadSpec& spec, const HeadSite& site, const BuildOptions& options) {
  BuildOptions kept = options;  // a head's backward follows its forward at once
  kept.recompute = Recompute::None;
  kept.adapters = {};
  const Module module = make_module(
      {.recomputable = false}, head_operators(spec, site, element_bytes(options.precision)), kept);
  Head head = {.parameters = module.parameters, .trainable = spec.trainable};
  head.work = module.forward;
  head.exchanges = module.forward_exchanges;
  append_exchanges(head.exchanges, module.backward_input_exchanges);
  head.work.insert(head.work.end(), module.backward_input.begin(), module.backward_input.end());
  if (spec.trainable) {
    head.work.insert(head.work.end(), module.backward_weight.begin(), module.backward_weight.end());
    head.update = module.update;
    append_exchanges(head.exchanges, module.backward_weight_exchanges);
  }
  head.memory = module.stash + module.workspace;  // its first operator saves the input
  return head;
}

void attach_later_layers(const HeadSpec& spec, const BuildOptions& options,
                         std::vector<Module>& modules) {
  const std::size_t last = modules.size() - 1;
  for (std::size_t i = 0; i < last; ++i) {
    Head head = {.trainable = spec.trainable};
    Bytes workspace;
    const std::size_t end = std::min(last, i + 1 + static_cast<std::size_t>(spec.layers));
    for (std::size_t copied = i + 1; copied < end; ++copied) {
      add_copy(head, modules[copied], workspace);
    }
    add_copy(head, modules[last], workspace);
    head.memory += workspace;
    if (spec.trainable) {
      head.update =
          update_work(head.parameters, options.optimizer, options.precision, options.framework);
    }
    modules[i].head = head;
  }
}

}  // namespace interlock
