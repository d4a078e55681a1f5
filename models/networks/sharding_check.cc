// Sharding check: the sizes that a layout divides, one sentence for each that it cannot.
// SPDX-License-Identifier: Apache-2.0
#include "models/networks/sharding_check.h"

#include "base/text.h"
#include "models/transformer/block.h"

namespace interlock {
namespace {

std::string number(std::int64_t value) { return std::to_string(value); }

void report_at_model(ObjectReader& reader, const std::string& message) {
  report(reader.diagnostics(), reader.node(), message);
}

/// Returns the node that a message about the number at `key` points to.
JsonNode place_of(ObjectReader& reader, std::string_view key) {
  return reader.get(key).value_or(reader.node());
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

void check_head(ObjectReader& reader, const HeadSpec& head, const Sharding& sharding) {
  const int parts = stored_columns(sharding);
  if (!head.hidden_size || *head.hidden_size % parts == 0) return;
  report_at_model(reader, "heads of hidden_size " + number(*head.hidden_size) +
                              " cannot be divided among " + columns_of(sharding, parts) +
                              "; expected a multiple of " + number(parts));
}

/// Refuses models that rows and columns of devices cannot share.
void refuse_grids(ObjectReader& reader, const Transformer& t) {
  const auto refuse = [&](bool has, std::string_view key) {
    if (!has) return;
    report(reader.diagnostics(), place_of(reader, key),
           "divided by the 1D tensor layout only; expected that layout or no " + in_quotes(key));
  };
  refuse(t.head_size * t.attention_heads != t.hidden_size, "head_size");
  refuse(t.latents.kv_rank > 0, "latent_attention");
  refuse(t.patches.image_size > 0, "patches");
  refuse(t.readout != Transformer::Readout::Lm, "readout");
}

void check_tensor(ObjectReader& reader, const Transformer& t, const BuildOptions& options) {
  const Sharding& sharding = options.sharding;
  const ActivationParts inner = inner_parts(sharding);
  const int stored = stored_columns(sharding);
  const std::string among = columns_of(sharding, stored);
  check_parts(reader, "attention_heads", t.attention_heads, inner.columns,
              columns_of(sharding, inner.columns));
  if (t.kv_heads != t.attention_heads && t.kv_heads % inner.columns != 0 &&
      inner.columns % t.kv_heads != 0) {
    report(reader.diagnostics(), place_of(reader, "kv_heads"),
           "kv_heads " + number(t.kv_heads) + " can be neither divided nor copied equally among " +
               columns_of(sharding, inner.columns) + "; expected a multiple or a divisor of " +
               number(inner.columns));
  }
  if (t.experts.count == 0 || t.experts.dense_layers > 0) {
    check_parts(reader, "ffn_hidden_size", t.ffn_hidden_size, stored, among);
  }
  if (t.experts.count > 0) {
    const int parts = sharding.expert_tensor.value_or(stored);
    check_parts(reader, "expert_ffn_hidden_size", t.experts.ffn_hidden_size, parts,
                parts == stored ? among : number(parts) + " devices that divide each expert");
  }
  check_head(reader, t.head, sharding);
  if (sharding.tensor_layout == TensorLayout::OneD) return;
  refuse_grids(reader, t);
  check_parts(reader, "hidden_size", t.hidden_size, stored, among);
  check_samples(reader, options);
}

void check_sequence(ObjectReader& reader, const Transformer& t, const Sharding& sharding) {
  const int tensor = sharding.sequence_parallel ? sharding.tensor : 1;
  std::string among = number(sharding.context) + " context devices";
  if (tensor > 1) among += " x " + number(tensor) + " tensor devices";
  const std::int64_t parts = static_cast<std::int64_t>(sharding.context) * tensor;
  check_parts(reader, "sequence_length", t.sequence_length, parts, among);
}

void check_context(ObjectReader& reader, const Transformer& t, const Sharding& sharding) {
  if (sharding.context == 1) return;
  if (t.attention == Transformer::Attention::Retention) {
    refuse_context(reader, sharding, "retention, which hands a state along the sequence,");
    return;
  }
  if (sharding.context_layout != ContextLayout::AllToAll) return;
  const int columns = inner_parts(sharding).columns;
  const std::int64_t parts = static_cast<std::int64_t>(columns) * sharding.context;
  std::string among = number(sharding.context) + " context devices";
  if (columns > 1) among += " x " + columns_of(sharding, columns);
  check_parts(reader, "attention_heads", t.attention_heads, parts, among);
  if (t.kv_heads != t.attention_heads) {
    check_parts(reader, "kv_heads", t.kv_heads, parts, among);
  }
}

void check_experts(ObjectReader& reader, const Transformer& t, const Sharding& sharding) {
  if (t.experts.count == 0) {
    refuse_experts(reader, sharding, "a transformer without \"experts\"");
    return;
  }
  check_parts(reader, "experts", t.experts.count, sharding.expert,
              number(sharding.expert) + " expert devices");
  if (sharding.tensor_layout != TensorLayout::OneD && sharding.tensor > 1) {
    report(reader.diagnostics(), place_of(reader, "experts"),
           "experts are divided by the 1D tensor layout only; expected that layout or no "
           "\"experts\"");
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
void check_bands(ObjectReader& reader, int side, const std::vector<Window>& windows, int bands,
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

}  // namespace

void check_images(ObjectReader& reader, int side, const std::vector<Window>& windows,
                  const Sharding& sharding) {
  check_bands(reader, side, windows, sharding.image_rows, "rows");
  check_bands(reader, side, windows, sharding.image_columns, "columns");
}

void check_parts(ObjectReader& reader, std::string_view key, std::int64_t value, std::int64_t parts,
                 const std::string& among) {
  if (value % parts == 0) return;
  report(reader.diagnostics(), place_of(reader, key),
         std::string(key) + " " + number(value) + " cannot be divided among " + among +
             "; expected a multiple of " + number(parts) + ", e.g. " +
             number((value / parts + 1) * parts));
}

void check_samples(ObjectReader& reader, const BuildOptions& options) {
  const int rows = outer_parts(options.sharding).rows;
  if (options.micro_batch_size % rows == 0) return;
  report_at_model(reader, "micro-batches of " + number(options.micro_batch_size) +
                              " cannot be divided among " + number(rows) + " rows of " +
                              of_tensor(options.sharding) + "; expected a multiple of " +
                              number(rows));
}

bool check_layout(ObjectReader& reader, const Sharding& sharding) {
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
  if (sharding.sequence_parallel && sharding.tensor > 1) {
    report_at_model(reader,
                    "sequence parallelism goes with the 1D tensor layout, the others divide "
                    "everything already; expected one of the two");
    good = false;
  }
  return good;
}

void check_sharding(ObjectReader& reader, const Transformer& t, const BuildOptions& options) {
  refuse_split_brain(reader, options.sharding, "a transformer");
  refuse_images(reader, options.sharding, "a transformer");
  if (!check_layout(reader, options.sharding)) return;
  check_tensor(reader, t, options);
  check_sequence(reader, t, options.sharding);
  check_context(reader, t, options.sharding);
  check_experts(reader, t, options.sharding);
}

void pad_vocabulary(Transformer& t, const Sharding& sharding) {
  constexpr std::int64_t kTokens = 128;
  const int parts = stored_columns(sharding);
  if (t.vocab_size % parts == 0) return;
  const std::int64_t whole = kTokens * parts;
  t.vocab_size = static_cast<int>((t.vocab_size + whole - 1) / whole * whole);
}

void check_sharding(ObjectReader& reader, const Mlp& mlp, const BuildOptions& options) {
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

void refuse_tensor(ObjectReader& reader, const Sharding& sharding, const std::string& model) {
  if (sharding.tensor == 1) return;
  report_at_model(reader, model + " cannot be divided among " + of_tensor(sharding) +
                              "; expected tensor 1, or a transformer or an MLP");
}

void refuse_context(ObjectReader& reader, const Sharding& sharding, const std::string& model) {
  if (sharding.context == 1) return;
  report_at_model(reader, model + " cannot be divided among " + number(sharding.context) +
                              " context devices; expected context 1, or a transformer with "
                              "attention");
}

void refuse_images(ObjectReader& reader, const Sharding& sharding, const std::string& model) {
  const int parts = sharding.image_parts();
  if (parts == 1) return;
  report_at_model(reader, model + " has no images that " + number(parts) +
                              " devices could divide; expected spatial 1, or a ResNet or a VGG");
}

void refuse_experts(ObjectReader& reader, const Sharding& sharding, const std::string& model) {
  if (sharding.expert == 1 && !sharding.expert_tensor) return;
  report_at_model(reader, model + " cannot be divided among " + number(sharding.expert) +
                              " expert devices; expected expert 1, or a transformer with "
                              "\"experts\"");
}

void refuse_split_brain(ObjectReader& reader, const Sharding& sharding, const std::string& model) {
  if (sharding.split_brain == 1) return;
  report_at_model(reader, model + " has no fully connected layers behind convolutions to divide " +
                              "among " + number(sharding.split_brain) +
                              " devices; expected split_brain 1, or a VGG");
}

}  // namespace interlock
