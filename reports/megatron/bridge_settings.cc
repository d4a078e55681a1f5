// Bridge settings: the table of names, and the sections that each program has.
// SPDX-License-Identifier: Apache-2.0
#include "reports/megatron/bridge_settings.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "reports/imports/setting_files.h"
#include "reports/megatron/megatron_names.h"

namespace interlock {
namespace {

struct Renamed {
  std::string_view theirs, megatrons;
  bool turned = false;  // true there is false here
};

constexpr Renamed kRenamed[] = {
    {"num-moe-experts", "num-experts"},
    {"sequence-length", "seq-length"},
    {"encoder-seq-length", "seq-length"},
    {"virtual-pipeline-model-parallel-size", "num-virtual-stages-per-pipeline-rank"},
    {"num-layers-in-first-pipeline-stage", "decoder-first-pipeline-num-layers"},
    {"num-layers-in-last-pipeline-stage", "decoder-last-pipeline-num-layers"},
    {"add-bias-linear", "disable-bias-linear", true},
    {"bias", "disable-bias-linear", true},
    {"qkv-bias", "add-qkv-bias"},
    {"gated-linear-unit", "swiglu"},
    {"share-embeddings-and-output-weights", "untie-embeddings-and-output-weights", true},
    {"gradient-accumulation-fusion", "no-gradient-accumulation-fusion", true},
    {"rotary-percentage", "rotary-percent"},
    {"activations-checkpoint-granularity", "recompute-granularity"},
    {"activations-checkpoint-method", "recompute-method"},
    {"activations-checkpoint-num-layers", "recompute-num-layers"},
    {"fp8-activation-input-store", "activation-func-fp8-input-store"},
    {"grad-reduce-in-fp32", "accumulate-allreduce-grads-in-fp32"},
    {"bucket-size", "ddp-bucket-size"},
    {"fp8", "fp8-format"},
    {"num-nodes", "nnodes"},
    {"devices", "nproc-per-node"},
    {"tp-comm-overlap", "tp-comm-overlap"},
    {"ub-tp-comm-overlap", "tp-comm-overlap"},
};

/// Sections that change neither time nor memory.
constexpr std::string_view kIdleSections[] = {"checkpoint",
                                              "logger",
                                              "rng",
                                              "scheduler",
                                              "tokenizer",
                                              "exp_manager",
                                              "s3_checkpointing",
                                              "straggler",
                                              "profiling",
                                              "rerun_state_machine",
                                              "nsys_profile",
                                              "validation",
                                              "dist",
                                              "ft",
                                              "nvrx_straggler",
                                              "inprocess_restart",
                                              "run",
                                              "log",
                                              "resume",
                                              "data",
                                              "experiment"};

std::string dashes(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

NameBearing bridge_bearing(const std::string& name) {
  if (name.starts_with("idle:")) return {NameBearing::None};
  return megatron_bearing(name);
}

/// Says one value under Megatron's name; some values mean several arguments.
class Translator {
 public:
  explicit Translator(Settings& settings) : settings_(settings) {}

  void add(const std::string& path, const std::string& key, std::string value, int line) {
    if (value == "null" || value.empty() || value.starts_with("${")) return;
    path_ = path;
    line_ = line;
    std::string name = dashes(key);
    if (name == "precision" || name == "mixed-precision") return add_precision(value);
    if (name == "activation" || name == "activation-func") return add_activation(value);
    if (name == "name" || name == "optimizer") return add_optimizer(name, value);
    if (name == "normalization") return say(name, norm(value));
    if (name == "attention-backend") return say(name, value.substr(value.find('.') + 1));
    const auto renamed = std::ranges::find(kRenamed, name, &Renamed::theirs);
    if (renamed != std::end(kRenamed)) {
      name = renamed->megatrons;
      if (renamed->turned) value = is_false(value) ? "true" : "false";
    }
    add_named(name, std::move(value));
  }

 private:
  /// Adds what has Megatron's name by now. A flag that is off is as if it was never said, but for
  /// those that a number of layers, or a default, switches on.
  void add_named(const std::string& name, std::string value) {
    const bool is_switch = name == "cpu-offloading" || name == "cpu-offloading-activations";
    if (is_false(value) && !settings_.has(name) && !is_switch) return;
    if (name == "fp8-format" && value == "true") value = "hybrid";
    say(name, value);
    if (name == "num-query-groups") say("group-query-attention", "true");
  }
  static bool is_false(const std::string& value) { return value == "false" || value == "False"; }
  void say(const std::string& name, const std::string& value) {
    settings_.say(name, value, line_, path_);
  }
  static std::string norm(const std::string& value) {
    return value == "rmsnorm" || value == "RMSNorm" ? "RMSNorm" : "LayerNorm";
  }
  void add_precision(const std::string& value) {
    if (value.find("bf16") != value.npos) say("bf16", "true");
    if (value == "16" || value.find("fp16") != value.npos || value.starts_with("16")) {
      say("fp16", "true");
    }
    if (value.find("fp8") != value.npos) say("fp8-format", "hybrid");
    if (value.find("mxfp8") != value.npos) say("fp8-recipe", "mxfp8");
    if (value.find("nvfp4") != value.npos) say("fp4-format", "e2m1");
  }
  void add_activation(const std::string& value) {
    if (value.ends_with("glu") && value != "gelu") say("swiglu", "true");
  }
  void add_optimizer(const std::string& name, const std::string& value) {
    const bool optimizer = name == "optimizer" || path_.find("optim") != path_.npos;
    if (!optimizer) return say("idle:" + path_, value);
    say("optimizer", value.find("sgd") != value.npos    ? "sgd"
                     : value.find("muon") != value.npos ? "muon"
                                                        : "adam");
    if (value.find("distributed") != value.npos) say("use-distributed-optimizer", "true");
  }

  Settings& settings_;
  std::string path_;
  int line_ = 1;
};

void add_leaves(Translator& translator, Settings& settings, const JsonValue& value,
                const std::string& path, const std::string& key) {
  if (value.kind == JsonValue::Kind::Object) {
    for (const auto& [name, item] : value.members) {
      const bool idle =
          path.empty() && std::find(std::begin(kIdleSections), std::end(kIdleSections), name) !=
                              std::end(kIdleSections);
      if (idle) {
        settings.say("idle:" + name, "", item.line, name);
      } else if (!name.starts_with("_")) {
        add_leaves(translator, settings, item, path.empty() ? name : path + "." + name, name);
      }
    }
  } else {
    translator.add(path, key, setting_text(value), value.line);
  }
}

/// Returns `text` with every "${NAME:otherwise}" as "otherwise".
std::string with_defaults(const std::string& text) {
  std::string whole;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t open = std::min(text.find("${", at), text.size());
    const std::size_t close = text.find('}', open), colon = text.find(':', open);
    whole += text.substr(at, open - at);
    if (close == text.npos) return whole + text.substr(open);
    whole += colon < close ? text.substr(colon + 1, close - colon - 1)
                           : text.substr(open, close + 1 - open);
    at = close + 1;
  }
  return whole;
}

JsonValue with_defaults(JsonValue value) {
  value.text = with_defaults(value.text);
  for (auto& [name, item] : value.members) item = with_defaults(item);
  return value;
}

/// Adds a preset and, before it, those that it extends. Returns false if a file is not there.
bool add_preset(Translator& translator, Settings& settings, const std::filesystem::path& path,
                int depth) {
  if (depth > 16 || !std::filesystem::exists(path)) return false;
  const JsonValue preset = with_defaults(read_settings_file(path.string()));
  bool whole = true;
  if (const JsonValue* bases = preset.find("extends")) {
    for (const JsonValue& base : bases->items) {
      whole = add_preset(translator, settings, path.parent_path() / base.text, depth + 1) && whole;
    }
  }
  for (const auto& [name, item] : preset.members) {
    if (name != "extends" && name != "includes") {
      add_leaves(translator, settings, item, name, name);
    }
  }
  return whole;
}

/// Searches for Primus's presets in the folders above `path`.
std::filesystem::path preset_path(const std::string& path, const std::string& model) {
  std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  for (;; folder = folder.parent_path()) {
    auto found = folder / "primus/configs/models/megatron" / model;
    if (std::filesystem::exists(found)) return found;
    if (folder == folder.root_path()) return {};
  }
}

}  // namespace

Settings read_bridge_settings(const std::string& path) {
  const JsonValue file = read_settings_file(path);
  if (file.find("model") == nullptr) {
    throw Error(path +
                ":1: no section \"model\"; expected a configuration as NeMo or "
                "Megatron-Bridge prints it");
  }
  Settings settings(path, bridge_bearing);
  Translator translator(settings);
  add_leaves(translator, settings, file, "", "");
  return settings;
}

PrimusSettings read_primus_settings(const std::string& path) {
  const JsonValue file = with_defaults(read_settings_file(path));
  const JsonValue* modules = file.find("modules");
  if (modules == nullptr || modules->members.empty()) {
    throw Error(path + ":1: no \"modules\"; expected an experiment of Primus");
  }
  const JsonValue& module = modules->members.front().second;
  const JsonValue* framework = module.find("framework");
  if (framework != nullptr && framework->text != "megatron") {
    throw Error(path + ":" + std::to_string(framework->line) + ": framework " +
                in_quotes(framework->text) + "; expected megatron" +
                (framework->text == "torchtitan" ? ", or import torchtitan of its TOML" : ""));
  }
  PrimusSettings primus{Settings(path, bridge_bearing)};
  Translator translator(primus.settings);
  const JsonValue* model = module.find("model");
  const auto preset = preset_path(path, holds_text(model) ? model->text : "");
  primus.needs_model = preset.empty() || !holds_text(model);
  if (!primus.needs_model) add_preset(translator, primus.settings, preset, 0);
  if (const JsonValue* overrides = module.find("overrides")) {
    for (const auto& [name, item] : overrides->members) {
      add_leaves(translator, primus.settings, item, name, name);
    }
  }
  if (!primus.settings.has("bf16") && !primus.settings.has("fp16")) {
    primus.settings.say("bf16", "true", 1, "bf16");  // Primus's presets of trainers have it
  }
  return primus;
}

}  // namespace interlock
