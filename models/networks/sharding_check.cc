// Sharding check: the sizes that a layout divides, one sentence for each that it cannot.
// SPDX-License-Identifier: Apache-2.0
#include "models/networks/sharding_check.h"

#include <algorithm>

#include "base/text.h"
#include "models/transformer/block.h"

namespace interlock {
namespace {

std::string number(std::int64_t value) { return std::to_string(value); }

void report_at_model(Section& reader, const std::string& message) {
  report(reader.diagnostics(), reader.node(), message);
}

/// Returns the node that a message about the number at `key` points to.
JsonNode place_of(const Section& reader, std::string_view key) {
  const JsonNode& node = reader.node();
  return node.value->find(key) ? node.child(key) : node;
}

std::string of_tensor(const Sharding& sharding) {
  return number(sharding.tensor) + " tensor devices";
}

/// Widths: the parts that `outputs` of a linear layer are stored in.
std::string columns_of(const Sharding& sharding, int parts) {
  if (sharding.tensor_layout == TensorLayout::OneD) return of_tensor(sharding);
  return number(parts) + " columns of " + of_tensor(sharding);
}

/// Parts in which the columns of a weight are stored; those of a cube are gathered for a product.
int stored_columns(const Sharding& sharding) {
  const int columns = inner_parts(sharding).columns;
  return sharding.tensor_layout == TensorLayout::ThreeD ? columns * columns : columns;
}

void check_head(Section& reader, const HeadSpec& head, const Sharding& sharding) {
  const int parts = stored_columns(sharding);
  if (!head.hidden_size || *head.hidden_size % parts == 0) return;
  report_at_model(reader, "heads of hidden_size " + number(*head.hidden_size) +
                              " cannot be divided among " + columns_of(sharding, parts) +
                              "; expected a multiple of " + number(parts));
}

/// Refuses models that rows and columns of devices cannot share.
void refuse_grids(Section& reader, const Transformer& t, const BlockForm& b) {
  const auto refuse = [&](bool has, std::string_view key) {
    if (!has) return;
    report(reader.diagnostics(), place_of(reader, key),
           "divided by the 1D tensor layout only; expected that layout or no " + in_quotes(key));
  };
  const bool attention = attends(b.mixer) || b.mixer == Mixer::Retention;
  refuse(!attention, "attention");
  refuse(attention && b.head_size * b.attention_heads != t.stream.hidden_size, "head_size");
  refuse(b.latents.kv_rank > 0, "latent_attention");
  refuse(b.compression.query_rank > 0, "compressed_attention");
  refuse(b.stream.connections.streams > 1, "hyper_connections");
  refuse(b.gate, "attention_gate");
  refuse(b.sinks, "attention_sinks");
  refuse(b.qk_norm == QkNorm::Whole, "qk_norm");
  refuse(t.patches.image_size > 0, "patches");
  refuse(b.source_tokens > 0, "encoder");
  refuse(t.readout != Transformer::Readout::Lm, "readout");
  refuse(t.later_tokens > 0, "multi_token_prediction");
}

void check_heads(Section& reader, const BlockForm& b, const Sharding& sharding) {
  const int columns = inner_parts(sharding).columns;
  const std::string among = columns_of(sharding, columns);
  const auto check = [&](std::string_view key, std::int64_t value) {
    check_parts(reader, key, value, columns, among);
  };
  const GatedDelta& delta = b.gated_delta;
  switch (b.mixer) {
    case Mixer::None:
      return;
    case Mixer::Mamba:
      return check("hidden_size", static_cast<std::int64_t>(b.mamba.expand) * b.stream.hidden_size);
    case Mixer::Mamba2:
      check("heads", b.mamba2.heads);
      return check("groups", b.mamba2.groups);
    case Mixer::GatedDelta:
      check("value_heads", delta.value_heads);
      if (delta.key_heads != delta.value_heads) check("key_heads", delta.key_heads);
      return;
    case Mixer::Materialised:
    case Mixer::Fused:
    case Mixer::Retention:
      check("attention_heads", b.attention_heads);
      if (b.compression.query_rank > 0) check("output_groups", b.compression.output_groups);
  }
  if (b.kv_heads != b.attention_heads && b.kv_heads % columns != 0 && columns % b.kv_heads != 0) {
    report(reader.diagnostics(), place_of(reader, "kv_heads"),
           "kv_heads " + number(b.kv_heads) + " can be neither divided nor copied equally among " +
               among + "; expected a multiple or a divisor of " + number(columns));
  }
}

void check_tensor(Section& reader, const Transformer& t, const BlockForm& b,
                  const Sharding& sharding) {
  const int stored = stored_columns(sharding);
  const std::string among = columns_of(sharding, stored);
  check_heads(reader, b, sharding);
  if (b.ffn == FeedForward::Dense) {
    check_parts(reader, "ffn_hidden_size", b.ffn_hidden_size, stored, among);
  }
  if (b.ffn == FeedForward::Experts) {
    const Experts& experts = b.experts;
    const int parts = sharding.expert_tensor.value_or(stored);
    check_parts(reader, "expert_ffn_hidden_size", experts.ffn_hidden_size, parts,
                parts == stored ? among : number(parts) + " devices that divide each expert");
    if (experts.shared > 0 && experts.shared_ffn_hidden_size != experts.ffn_hidden_size) {
      check_parts(reader, "shared_expert_ffn_hidden_size", experts.shared_ffn_hidden_size, stored,
                  among);
    }
  }
  if (sharding.tensor_layout == TensorLayout::OneD) return;
  refuse_grids(reader, t, b);
}

void check_sequence(Section& reader, const Transformer& t, const Sharding& sharding) {
  const int tensor = sharding.sequence_parallel ? sharding.tensor : 1;
  std::string among = number(sharding.context) + " context devices";
  if (tensor > 1) among += " x " + number(tensor) + " tensor devices";
  const std::int64_t parts = static_cast<std::int64_t>(sharding.context) * tensor;
  check_parts(reader, "sequence_length", t.stream.sequence_length, parts, among);
}

void check_context(Section& reader, const BlockForm& b, const Sharding& sharding) {
  if (sharding.context == 1 || b.mixer == Mixer::None) return;
  if (b.latents.selection.tokens > 0) {
    report_at_model(reader,
                    "attention to tokens that are chosen among all cannot be divided among " +
                        number(sharding.context) +
                        " context devices; expected context 1, or no \"selection\"");
    return;
  }
  if (b.compression.query_rank > 0) {
    refuse_context(reader, sharding, "attention to entries of tokens");
    return;
  }
  if (!attends(b.mixer)) {
    const bool retention = b.mixer == Mixer::Retention;
    refuse_context(reader, sharding,
                   std::string(retention ? "retention" : "a mixer of states") +
                       ", which hands a state along the sequence,");
    return;
  }
  const int turning = sharding.turning_devices();
  if (turning == 1) return;
  const int columns = inner_parts(sharding).columns;
  const std::int64_t parts = static_cast<std::int64_t>(columns) * turning;
  std::string among = number(turning) + " context devices";
  if (columns > 1) among += " x " + columns_of(sharding, columns);
  check_parts(reader, "attention_heads", b.attention_heads, parts, among);
  if (b.kv_heads != b.attention_heads) {
    check_parts(reader, "kv_heads", b.kv_heads, parts, among);
  }
}

void check_experts(Section& reader, const Transformer& t, const BuildOptions& options) {
  const Sharding& sharding = options.sharding;
  const auto routed = [](const BlockForm& b) { return b.ffn == FeedForward::Experts; };
  const auto found = std::ranges::find_if(t.forms, routed);
  if (found == t.forms.end()) {
    if (!options.left_out.empty()) return;  // with those that have experts
    refuse_experts(reader, sharding, "a transformer without \"experts\"");
    return;
  }
  check_parts(reader, "experts", found->experts.count, sharding.expert,
              number(sharding.expert) + " expert devices");
  if (sharding.expert_loads > 0 && sharding.expert_loads != found->experts.count) {
    report(reader.diagnostics(), place_of(reader, "experts"),
           number(found->experts.count) + " experts, and loads of " +
               number(sharding.expert_loads) +
               " of them (parallel.expert_load); expected as many loads");
  }
  if (sharding.tensor_layout != TensorLayout::OneD && sharding.tensor > 1) {
    report(reader.diagnostics(), place_of(reader, "experts"),
           "experts are divided by the 1D tensor layout only; expected that layout or no "
           "\"experts\"");
  }
}

/// Checks each form of the blocks until one cannot be divided: the next often cannot either.
void check_blocks(Section& reader, const Transformer& t, const Sharding& sharding) {
  const std::size_t before = reader.diagnostics().messages().size();
  for (const BlockForm& block : t.forms) {
    check_tensor(reader, t, block, sharding);
    check_context(reader, block, sharding);
    if (reader.diagnostics().messages().size() > before) return;
  }
}

/// Returns true if the halo of every part comes only from the parts beside it.
bool near(int length, int parts, const Window& window) {
  for (int i = 0; i < parts; ++i) {
    const Halo halo = halo_of(length, parts, i, window);
    if (i > 0 && halo.left > part_of(length, parts, i - 1).size()) return false;
    if (i + 1 < parts && halo.right > part_of(length, parts, i + 1).size()) return false;
  }
  return true;
}

/// One dimension of images: `lines` are rows or columns.
void check_bands(Section& reader, int side, const std::vector<Window>& windows, int bands,
                 const std::string& lines) {
  if (bands == 1) return;
  int length = side;
  for (const Window& window : windows) length = static_cast<int>(output_length(length, window));
  if (length < bands) {
    report_at_model(reader, "images of " + number(length) + " " + lines +
                                ", which the deepest layers make, cannot be cut into " +
                                number(bands) + " bands; expected at most " + number(length) +
                                " (parallel.spatial), or larger images");
    return;
  }
  length = side;
  for (const Window& window : windows) {
    if (!near(length, bands, window)) {
      report_at_model(reader, "where images have " + number(length) + " " + lines +
                                  ", windows of " + number(window.kernel) +
                                  " read further than the next of " + number(bands) +
                                  " bands; expected fewer bands (parallel.spatial), or as many as "
                                  "divide image_size and its halves");
      return;
    }
    length = static_cast<int>(output_length(length, window));
  }
}

/// Checks an encoder in front of a decoder, whose samples are whole on every device.
void check_encoder(Section& whole, const Transformer& encoder, const Sharding& sharding) {
  Section reader(contract_object(transformer_contract(), "model.transformer.encoder"),
                 *whole.get("encoder"), whole.diagnostics());
  const std::size_t before = whole.diagnostics().messages().size();
  const bool images = encoder.patches.image_size > 0;
  refuse_context(reader, sharding,
                 images ? "a model with an encoder of images" : "a model with an encoder");
  if (whole.diagnostics().messages().size() > before) return;
  check_blocks(reader, encoder, sharding);
  if (!sharding.sequence_parallel) return;
  const std::string among = of_tensor(sharding) + " (sequence parallelism)";
  if (!images) return check_sequence(reader, encoder, sharding);
  check_parts(reader, "patches", encoder.stream.sequence_length, sharding.tensor, among);
  check_parts(reader, "connector", encoder.image_tokens(), sharding.tensor, among);
}

}  // namespace

void check_images(Section& reader, int side, const std::vector<Window>& windows,
                  const Sharding& sharding) {
  check_bands(reader, side, windows, sharding.image_rows, "rows");
  check_bands(reader, side, windows, sharding.image_columns, "columns");
}

void check_parts(Section& reader, std::string_view key, std::int64_t value, std::int64_t parts,
                 const std::string& among) {
  if (value % parts == 0) return;
  report(reader.diagnostics(), place_of(reader, key),
         std::string(key) + " " + number(value) + " cannot be divided among " + among +
             "; expected a multiple of " + number(parts) + ", e.g. " +
             number((value / parts + 1) * parts));
}

void check_samples(Section& reader, const BuildOptions& options) {
  const int rows = outer_parts(options.sharding).rows;
  if (options.micro_batch_size % rows == 0) return;
  report_at_model(reader, "micro-batches of " + number(options.micro_batch_size) +
                              " cannot be divided among " + number(rows) + " rows of " +
                              of_tensor(options.sharding) + "; expected a multiple of " +
                              number(rows));
}

bool check_layout(Section& reader, const Sharding& sharding) {
  if (sharding.tensor_layout == TensorLayout::OneD) return true;
  bool good = true;
  if (!grid_side(sharding)) {
    const bool cube = sharding.tensor_layout == TensorLayout::ThreeD;
    std::string shape = cube ? "a 3D tensor layout is a cube; expected 1, 8, 27, 64, ... devices"
                             : "a 2D tensor layout is a square; expected 1, 4, 9, 16, ... devices";
    if (sharding.tensor_layout == TensorLayout::TwoAndAHalfD) {
      shape = "a 2.5D tensor layout is " + number(sharding.tensor_depth) +
              " squares; expected that many times 1, 4, 9, 16, ... devices";
    }
    report_at_model(reader, shape + ", got " + number(sharding.tensor));
    good = false;
  }
  if (sharding.expert_tensor) {
    report_at_model(reader,
                    "expert_tensor goes with the 1D tensor layout, the others divide experts as "
                    "everything; expected one of the two");
    good = false;
  }
  if (sharding.sequence_parallel && sharding.tensor > 1) {
    report_at_model(reader,
                    "sequence parallelism goes with the 1D tensor layout, the others divide "
                    "everything already; expected one of the two");
    good = false;
  }
  return good;
}

void replace_left_out(Transformer& t, const BuildOptions& options) {
  // Others are read by modules that may be asked for.
  const bool apart = t.encoder.empty() && t.later_tokens == 0 && t.position_buckets == 0 &&
                     t.head.kind != HeadKind::LaterLayers;
  if (options.left_out.empty() || !apart) return;
  std::vector<bool> used(t.forms.size(), false);
  for (std::size_t i = 0; i < t.layers.size(); ++i) {
    if (!options.left_out.at(1 + i)) used[static_cast<std::size_t>(t.layers[i])] = true;
  }
  for (std::size_t form = 0; form < used.size(); ++form) {
    BlockForm& block = t.forms[form];
    if (used[form]) continue;
    block = {.stream = block.stream,
             .mixer = Mixer::None,
             .ffn = FeedForward::Dense,
             .ffn_hidden_size = options.sharding.tensor};
  }
}

void check_sharding(Section& reader, const Transformer& t, const BuildOptions& options) {
  refuse_split_brain(reader, options.sharding, "a transformer");
  refuse_images(reader, options.sharding, "a transformer");
  if (!check_layout(reader, options.sharding)) return;
  const Sharding& sharding = options.sharding;
  check_blocks(reader, t, sharding);
  check_head(reader, t.head, sharding);
  if (sharding.tensor_layout != TensorLayout::OneD) {
    const int stored = stored_columns(sharding);
    check_parts(reader, "hidden_size", t.stream.hidden_size, stored, columns_of(sharding, stored));
    check_samples(reader, options);
  }
  check_sequence(reader, t, sharding);
  check_experts(reader, t, options);
  if (!t.encoder.empty()) check_encoder(reader, t.encoder.front(), sharding);
}

void pad_vocabulary(Transformer& t, const Sharding& sharding) {
  constexpr std::int64_t kTokens = 128;
  const int parts = stored_columns(sharding);
  if (t.vocab_size % parts == 0) return;
  const std::int64_t whole = kTokens * parts;
  t.vocab_size = static_cast<int>((t.vocab_size + whole - 1) / whole * whole);
  for (Transformer& encoder : t.encoder) encoder.vocab_size = t.vocab_size;
}

void check_sharding(Section& reader, const Mlp& mlp, const BuildOptions& options) {
  const Sharding& sharding = options.sharding;
  refuse_context(reader, sharding, "an MLP");
  refuse_experts(reader, sharding, "an MLP");
  refuse_split_brain(reader, sharding, "an MLP");
  refuse_images(reader, sharding, "an MLP");
  if (!check_layout(reader, sharding) || !reader.diagnostics().empty()) return;
  if (sharding.sequence_parallel && sharding.tensor > 1) {
    report_at_model(reader,
                    "an MLP has no sequences; expected no sequence parallelism, or a transformer");
  }
  const bool line = sharding.tensor_layout == TensorLayout::OneD;
  const int parts = stored_columns(sharding);
  const std::string among = columns_of(sharding, parts);
  const std::string_view key = reader.get("hidden_sizes") ? "hidden_sizes" : "hidden_size";
  const std::vector<int>& widths = mlp.hidden_sizes;
  // On a line only what a Column layer puts out is divided: every other width.
  for (std::size_t i = 0; i < widths.size(); i += line ? 2 : 1) {
    if (widths[i] % parts == 0) continue;
    check_parts(reader, key, widths[i], parts, among);
    break;  // the others are of the same kind
  }
  check_head(reader, mlp.head, sharding);
  if (line) return;
  const int columns = inner_parts(sharding).columns;
  check_parts(reader, "input_size", mlp.input_size, columns, columns_of(sharding, columns));
  check_parts(reader, "classes", mlp.classes, parts, among);
  check_samples(reader, options);
}

void refuse_tensor(Section& reader, const Sharding& sharding, const std::string& model) {
  if (sharding.tensor == 1) return;
  report_at_model(reader, model + " cannot be divided among " + of_tensor(sharding) +
                              "; expected tensor 1, or a transformer or an MLP");
}

void refuse_context(Section& reader, const Sharding& sharding, const std::string& model) {
  if (sharding.context == 1) return;
  report_at_model(reader, model + " cannot be divided among " + number(sharding.context) +
                              " context devices; expected context 1, or a transformer with "
                              "attention");
}

void refuse_images(Section& reader, const Sharding& sharding, const std::string& model) {
  const int parts = sharding.image_parts();
  if (parts == 1) return;
  report_at_model(reader, model + " has no images that " + number(parts) +
                              " devices could divide; expected spatial 1, or a ResNet or a VGG");
}

void refuse_experts(Section& reader, const Sharding& sharding, const std::string& model) {
  if (sharding.expert == 1 && !sharding.expert_tensor) return;
  report_at_model(reader, model + " cannot be divided among " + number(sharding.expert) +
                              " expert devices; expected expert 1, or a transformer with "
                              "\"experts\"");
}

void refuse_split_brain(Section& reader, const Sharding& sharding, const std::string& model) {
  if (sharding.split_brain == 1) return;
  report_at_model(reader, model + " has no fully connected layers behind convolutions to divide " +
                              "among " + number(sharding.split_brain) +
                              " devices; expected split_brain 1, or a VGG");
}

}  // namespace interlock
