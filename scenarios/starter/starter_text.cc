// A scenario with a comment at every choice.
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "base/text.h"
#include "scenarios/starter/starter.h"

namespace interlock {
namespace {

std::string number(int value) { return std::to_string(value); }

/// `text` in JSON; names and paths have no control characters but what a user forces in.
std::string quoted(const std::string& text) {
  std::string safe = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') safe += '\\';
    safe += c;
  }
  return safe + "\"";
}

/// Returns a path as seen from the folder of the scenario; a name as it is.
std::string seen_from(const std::string& name, const std::string& folder) {
  const bool path = name.find('/') != std::string::npos || name.ends_with(".json");
  if (!path || folder.empty()) return quoted(name);
  return quoted(std::filesystem::proximate(name, folder).string());
}

std::string model_text(const StarterQuestion& question, const std::string& folder) {
  std::string model = seen_from(question.model, folder);
  if (question.sequence_length == 0) return model;
  return "{\"base\": " + model + ", \"sequence_length\": " + number(question.sequence_length) + "}";
}

std::string cluster_text(const Starter& starter, const std::string& folder) {
  std::string text = "{\"machine\": " + seen_from(starter.question.machine, folder);
  if (starter.devices_per_node > 0) {
    text += ", \"devices_per_node\": " + number(starter.devices_per_node);
  }
  if (starter.nodes > 0) text += ", \"nodes\": " + number(starter.nodes);
  return text + ", \"devices\": " + number(starter.question.devices) + "}";
}

std::string parallel_text(const StarterPlan& plan) {
  std::string text = "{\"pipeline\": " + number(plan.pipeline);
  if (plan.tensor > 1) {
    text += ", \"tensor\": " + number(plan.tensor) + ", \"sequence_parallel\": true";
  }
  if (plan.context > 1) text += ", \"context\": " + number(plan.context);
  if (plan.data > 1) text += ", \"data\": " + number(plan.data);
  if (plan.expert > 1) text += ", \"expert\": " + number(plan.expert);
  if (plan.expert_tensor != plan.tensor) {
    text += ", \"expert_tensor\": " + number(plan.expert_tensor);
  }
  const int replicas = plan.data * plan.context;
  const bool copies = replicas > 1 || plan.tensor > plan.expert * plan.expert_tensor;
  if (copies) text += ", \"zero_stage\": 1";
  return text + "}";
}

std::string head(const Starter& starter) {
  std::string text = "// " + starter.question.model + " on " + number(starter.question.devices) +
                     (starter.question.devices == 1 ? " device of " : " devices of ") +
                     starter.question.machine + ", written by interlock init.\n";
  for (const std::string& note : starter.notes) text += "// Note: " + note + ".\n";
  if (!starter.share.empty()) text += "// Note: " + starter.share + ".\n";
  if (!starter.borrowed.empty()) text += "// Note: " + starter.borrowed + ".\n";
  if (starter.plans == 0) return text;
  const bool known = starter.peak_memory > Bytes(0);
  const std::string memory = known ? format(starter.peak_memory) + " of " + format(starter.memory)
                                   : "in memory that is unknown, as the model has times only";
  text +=
      "// Among " + std::to_string(starter.plans) + " plans of 1F1B and ZeRO 1 this one is the ";
  if (starter.fits_well) {
    text += std::string(known ? "fastest that fits well: " : "fastest: ") +
            format(starter.step_time) + " a step, " + memory + ".\n" +
            "// Other schedules, ZeRO stages and overlaps: interlock search.\n";
    if (known && !starter.reserve.empty()) text += "// Left free: " + starter.reserve + ".\n";
  } else if (starter.fits) {
    text += "leanest, and fits with little room: " + format(starter.step_time) + " a step, " +
            memory + ".\n";
  } else {
    text += "leanest, and none fits: it takes " + memory +
            ".\n// More devices, or offloading, make room.\n";
  }
  if (!starter.left_out.empty()) {
    text += "// Left out, as there were too many plans: " + starter.left_out + ".\n";
  }
  if (starter.cut_off) {
    text += "// The search for it was interrupted: others may be " +
            std::string(starter.fits_well ? "faster" : "leaner") + ".\n";
    if (!starter.simulated) {
      text += "// It was not simulated: its time is as if no messages met.\n";
    }
  } else if (starter.unproven > 0) {
    text += "// " + std::to_string(starter.unproven) + " plans that may be " +
            (starter.fits_well ? "faster" : "leaner") + " cost too much to look at.\n";
  }
  if (starter.too_large) {
    text +=
        "// It was not simulated, as it has too many devices: its time is as if no messages met.\n";
  }
  return text +
         "// Next: interlock simulate FILE; interlock explain FILE says what would make it "
         "faster,\n// interlock search FILE tries other schedules and ZeRO stages, too.\n";
}

std::string batch_text(const Starter& starter) {
  const StarterPlan& plan = starter.plan;
  std::string text = "    // Samples of one step. Assumed: put your own.";
  if (starter.tokens_per_sample) {
    text += " " + number(plan.global_batch_size) + " samples are " +
            format_number(plan.global_batch_size * *starter.tokens_per_sample) + " tokens.";
  }
  text += "\n    \"global_batch_size\": " + number(plan.global_batch_size) + ",\n";
  text += "    // Samples of one micro-batch: " +
          number(plan.global_batch_size / plan.data / plan.micro_batch_size) +
          " micro-batches a step.\n";
  return text + "    \"micro_batch_size\": " + number(plan.micro_batch_size) + ",\n";
}

}  // namespace

std::string starter_text(const Starter& starter, const std::string& folder) {
  const StarterPlan& plan = starter.plan;
  std::string text = head(starter) + "{\n";
  text +=
      "  // A name (interlock list models), the config.json of a Hugging Face model, or an "
      "object.\n"
      "  \"model\": " +
      model_text(starter.question, folder) + ",\n";
  text += "  // A name (interlock list machines), a file, or an object.\n  \"cluster\": " +
          cluster_text(starter, folder) + ",\n";
  text +=
      "  // pipeline x tensor x context x data are all devices. Tensors are divided inside a "
      "node.\n";
  if (plan.expert > 1) {
    text +=
        "  // \"expert\" devices of a pipeline rank share the experts of a layer between them, "
        "each "
        "of\n  // which \"expert_tensor\" (usually as many as \"tensor\") divide.\n";
  }
  text += "  \"parallel\": " + parallel_text(plan) + ",\n";
  text +=
      "  \"training\": {\n"
      "    // End-to-end backpropagation; \"pairwise\" and \"local\" need no gradients from far "
      "away.\n    \"strategy\": \"global\",\n";
  if (plan.pipeline > 1) {
    text +=
        "    // Others: interlock list schedules. \"zb-h1\" and \"interleaved\" idle less.\n"
        "    \"schedule\": \"1f1b\",\n";
  }
  text += batch_text(starter);
  text += "    \"precision\": " + quoted(starter.precision) +
          ",\n    \"optimizer\": " + quoted(starter.optimizer) + ",\n";
  text +=
      "    // \"none\", \"selective\" (attention's inner tensors) or \"full\": less memory, more "
      "work.\n    \"recompute\": " +
      quoted(plan.recompute) + ",\n";
  text += "    // Measured after those that fill the pipeline.\n    \"steps\": 2\n  }\n";
  text +=
      "  // Several at once: put a comma behind the brace above, and\n"
      "  // \"sweep\": {\"training.micro_batch_size\": [1, 2, 4]}\n}\n";
  return text;
}

}  // namespace interlock
