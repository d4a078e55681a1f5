// Tables of words of other tools.
// SPDX-License-Identifier: Apache-2.0
#include "base/json/typed_words.h"

#include <algorithm>
#include <cctype>

namespace interlock {
namespace {

/// `section`: where the key is; empty: meant only where it is known.
struct TypedKey {
  std::string_view typed, section, key;
};

constexpr TypedKey kKeys[] = {
    {"tp", "parallel", "tensor"},
    {"tensor_parallel", "parallel", "tensor"},
    {"tensor_model_parallel_size", "parallel", "tensor"},
    {"pp", "parallel", "pipeline"},
    {"pipeline_parallel", "parallel", "pipeline"},
    {"pipeline_model_parallel_size", "parallel", "pipeline"},
    {"dp", "parallel", "data"},
    {"data_parallel", "parallel", "data"},
    {"ep", "parallel", "expert"},
    {"expert_parallel", "parallel", "expert"},
    {"expert_model_parallel_size", "parallel", "expert"},
    {"cp", "parallel", "context"},
    {"context_parallel", "parallel", "context"},
    {"context_parallel_size", "parallel", "context"},
    {"gbs", "training", "global_batch_size"},
    {"batch_size", "training", "global_batch_size"},
    {"mbs", "training", "micro_batch_size"},
    {"seq_len", "model", "sequence_length"},
    {"seq_length", "model", "sequence_length"},
    {"max_seq_len", "model", "sequence_length"},
    {"dtype", "training", "precision"},
    {"gpus", "cluster", "devices"},
    {"num_gpus", "cluster", "devices"},
    {"machine", "", "cluster"},
    {"cluster", "", "machine"},
};

struct TypedName {
  std::string_view typed, name;
};

constexpr TypedName kNames[] = {{"bfloat16", "bf16"}, {"float16", "fp16"}, {"half", "fp16"},
                                {"float32", "fp32"},  {"float", "fp32"},   {"float8", "fp8"},
                                {"float4", "fp4"},    {"mxfp8", "fp8"},    {"mxfp4", "fp4"},
                                {"nvfp4", "fp4"}};

constexpr TypedName kUnits[] = {
    {"Tbps", "Tb/s"},      {"Gbps", "Gb/s"},        {"Mbps", "Mb/s"},
    {"Gbit/s", "Gb/s"},    {"TBps", "TB/s"},        {"GBps", "GB/s"},
    {"MBps", "MB/s"},      {"GB/sec", "GB/s"},      {"TFLOPS", "TFLOP/s"},
    {"TFLOPs", "TFLOP/s"}, {"TFlops", "TFLOP/s"},   {"tflops", "TFLOP/s"},
    {"PFLOPS", "PFLOP/s"}, {"PFLOPs", "PFLOP/s"},   {"GFLOPS", "GFLOP/s"},
    {"GFLOPs", "GFLOP/s"}, {"TFLOPS/s", "TFLOP/s"}, {"TFLOPs/s", "TFLOP/s"},
    {"usec", "us"},        {"msec", "ms"},          {"sec", "s"},
    {"secs", "s"},         {"seconds", "s"},        {"hours", "h"}};

/// Small letters, and "_" for "-".
std::string plain(std::string_view typed) {
  std::string word(typed);
  for (char& c : word) {
    c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return word;
}

bool has(const std::vector<std::string>& known, std::string_view name) {
  return std::find(known.begin(), known.end(), name) != known.end();
}

}  // namespace

std::optional<std::string> key_meant(std::string_view typed,
                                     const std::vector<std::string>& known) {
  const std::string word = plain(typed);
  for (const TypedKey& one : kKeys) {
    if (one.typed != word) continue;
    if (has(known, one.key)) return std::string(one.key);
    if (one.section.empty()) continue;
    return std::string(one.section) + "." + std::string(one.key);
  }
  return std::nullopt;
}

std::optional<std::string> name_meant(std::string_view typed,
                                      const std::vector<std::string>& known) {
  const std::string word = plain(typed);
  for (const TypedName& one : kNames) {
    if (one.typed == word && has(known, one.name)) return std::string(one.name);
  }
  return std::nullopt;
}

std::optional<std::string> quantity_meant(std::string_view typed) {
  const std::size_t end = typed.find_first_not_of("0123456789.+-eE");
  if (end == 0 || end == std::string_view::npos) return std::nullopt;
  const std::size_t unit = typed.find_first_not_of(' ', end);
  if (unit == std::string_view::npos) return std::nullopt;
  for (const TypedName& one : kUnits) {
    if (one.typed != typed.substr(unit)) continue;
    return std::string(typed.substr(0, end)) + " " + std::string(one.name);
  }
  return std::nullopt;
}

}  // namespace interlock
