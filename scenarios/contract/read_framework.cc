// Reads "training.framework": what a training framework adds to kernels and rates.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/contract/read_framework.h"

#include "hardware/devices/catalogue_file.h"
#include "scenarios/contract/contract.h"

namespace interlock {
namespace {

constexpr const char* kFolder = "scenarios/frameworks";
constexpr double kLeastSpeed = 0.01;

/// Reads one size, for every architecture, or one for each.
std::map<std::string, Bytes> read_library_memory(const JsonNode& node, Diagnostics& diagnostics) {
  std::map<std::string, Bytes> memory;
  if (node.value->kind != JsonValue::Kind::Object) {
    memory["other"] = read_bytes(node, diagnostics).value_or(Bytes(0));
    return memory;
  }
  for (const JsonMember& member : node.value->members) {
    memory[member.first] = read_bytes(node.child(member.first), diagnostics).value_or(Bytes(0));
  }
  return memory;
}

/// Reads a speed for each architecture.
std::map<std::string, double> read_speeds(const JsonNode& node, Diagnostics& diagnostics) {
  std::map<std::string, double> speeds;
  if (node.value->kind != JsonValue::Kind::Object) {
    report(diagnostics, node, "expected an object of speeds, by architecture of devices");
    return speeds;
  }
  for (const JsonMember& member : node.value->members) {
    speeds[member.first] =
        read_number(node.child(member.first), kLeastSpeed, 1, diagnostics).value_or(1);
  }
  return speeds;
}

/// Reads a list of two names, each at most once, as two answers.
void read_pair(const JsonNode& node, const std::vector<std::string>& names, bool& first,
               bool& second, Diagnostics& diagnostics) {
  if (node.value->kind != JsonValue::Kind::Array || node.value->items.empty()) {
    report(diagnostics, node,
           "expected a list of \"" + names[0] + "\" and \"" + names[1] + "\", or one of them");
    return;
  }
  for (std::size_t i = 0; i < node.value->items.size(); ++i) {
    const auto part = read_choice(node.item(i), names, diagnostics);
    if (!part) continue;
    bool& stands = *part == 0 ? first : second;
    if (stands) report(diagnostics, node.item(i), "stands in the list twice");
    stands = true;
  }
}

/// Reads "cuda_graphs": "none", "step", or a list of parts of a layer.
void read_graphs(const JsonNode& node, Framework& framework, Diagnostics& diagnostics) {
  const JsonValue& value = *node.value;
  if (value.kind != JsonValue::Kind::Array || value.items.empty()) {
    const bool step = value.text == "step";
    if (value.kind != JsonValue::Kind::String || (!step && value.text != "none")) {
      report(diagnostics, node,
             "expected \"none\", \"step\", or a list of \"attention\" and \"router\"");
    }
    if (step) {
      framework.kernel_issue = framework.expert_issue = framework.exchange_issue = Seconds(0);
      framework.backward_issue.reset();
    }
    return;
  }
  CudaGraphs& graphs = framework.graphs;
  read_pair(node, {"attention", "router"}, graphs.attention, graphs.router, diagnostics);
}

}  // namespace

Framework read_framework(const JsonNode& node, Diagnostics& diagnostics) {
  Framework framework;
  const auto find = [](const JsonNode& named, Diagnostics& mistakes) {
    return find_entry(named, kFolder, mistakes);
  };
  const auto entry = find_on_base(node, "a framework", find, diagnostics);
  if (!entry) return framework;
  framework.name = entry->name;
  Section section(contract_object("training.framework"), entry->root(), diagnostics);
  if (const auto issue = section.get("kernel_issue")) {
    framework.kernel_issue = delay_at(*issue, diagnostics);
  }
  if (const auto issue = section.get("backward_issue")) {
    framework.backward_issue = delay_at(*issue, diagnostics);
  }
  if (const auto issue = section.get("expert_issue")) {
    framework.expert_issue = delay_at(*issue, diagnostics);
  }
  if (const auto issue = section.get("exchange_issue")) {
    framework.exchange_issue = delay_at(*issue, diagnostics);
  }
  framework.product_speed = section.number("product_speed");
  framework.wide_product_speed = section.written_number("wide_product_speed");
  framework.attention_speed = section.number("attention_speed");
  if (const auto speeds = section.get("attention_speeds")) {
    framework.attention_speeds = read_speeds(*speeds, diagnostics);
  }
  framework.odd_product_speed = section.number("odd_product_speed");
  framework.loss_traffic = section.number("loss_traffic");
  framework.loss_stash = section.number("loss_stash");
  framework.loss_gradients = section.written_number("loss_gradients");
  framework.routes_in_steps = section.choice("routing") == 1;
  framework.gathers_vocabulary = section.choice("vocabulary") == 1;
  framework.reserve = section.number("reserve");
  if (const auto memory = section.get("library_memory")) {
    framework.library_memory = read_library_memory(*memory, diagnostics);
  }
  if (const auto memory = section.get("expert_library_memory")) {
    framework.expert_library_memory = read_library_memory(*memory, diagnostics);
  }
  framework.dummy_gradients = static_cast<DummyGradients>(section.choice("dummy_weight_gradients"));
  framework.keeps_attention_scores_buffer = section.boolean("attention_scores_buffer");
  if (const auto context = section.get("context_memory")) {
    framework.context_memory = read_bytes(*context, diagnostics);
  }
  framework.keeps_narrow = section.choice("fp8_inputs") == 1;
  framework.softmax_traffic = section.number("softmax_traffic");
  framework.softmax_group = section.number("softmax_group");
  framework.gradient_passes = section.number("gradient_passes");
  framework.table_gradients = static_cast<TableGradients>(section.choice("table_gradients"));
  framework.gradient_sweeps = section.number("gradient_sweeps");
  framework.update_bytes = section.number("update_bytes");
  framework.update_buffers = section.number("update_buffers");
  if (const auto rate = section.get("message_copies")) {
    framework.message_copies = bandwidth_at(*rate, diagnostics);
  }
  framework.collective_sms = section.number("collective_sms");
  const int gradients = section.choice("gradients");
  framework.fp32_gradients = gradients == 1 || gradients == 2;
  framework.keeps_made_gradients = gradients == 2;
  framework.copies_gradients = gradients == 3;
  framework.gradient_reduction =
      static_cast<GradientReduction>(section.choice("gradient_reduction"));
  framework.overlaps_sums = section.boolean("overlaps_sums");
  framework.scores_activations = section.choice("expert_scores") == 1;
  framework.recomputes_output = section.choice("recompute_until") == 0;
  framework.recompute_steps = section.count("recompute_steps");
  framework.copies_gathered = section.boolean("gather_copies");
  framework.waits_for_sends = section.boolean("waits_for_sends");
  framework.divides_messages = section.boolean("divides_messages");
  if (const auto origin = section.get("origin")) check_origin(*origin, diagnostics);
  section.finish();
  return framework;
}

void read_kernel_settings(Section& training, Framework& framework) {
  Diagnostics& diagnostics = training.diagnostics();
  if (const auto graphs = training.get("cuda_graphs")) {
    read_graphs(*graphs, framework, diagnostics);
  }
  if (const auto fused = training.get("fused_routing")) {
    FusedRouting& parts = framework.fused_routing;
    read_pair(*fused, {"router", "permutation"}, parts.router, parts.permutation, diagnostics);
  }
  framework.blocking_launches = training.boolean("blocking_launches");
}

std::vector<std::string> framework_names() { return catalogue_entries(kFolder); }

}  // namespace interlock
