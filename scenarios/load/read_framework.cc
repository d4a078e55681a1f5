// Reads "training.framework": what a training framework adds to kernels and rates.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/load/read_framework.h"

#include "hardware/devices/catalogue_file.h"
#include "scenarios/contract/contract.h"

namespace interlock {
namespace {

constexpr const char* kFolder = "scenarios/frameworks";
constexpr double kMostTraffic = 100, kMostPasses = 100, kLeastSpeed = 0.01, kMostSms = 0.9;

}  // namespace

Framework read_framework(const JsonNode& node, Diagnostics& diagnostics) {
  Framework framework;
  const auto entry = find_entry(node, kFolder, diagnostics);
  if (!entry) return framework;
  framework.name = entry->name;
  Section section("training.framework", entry->root(), diagnostics);
  if (const auto issue = section.get("kernel_issue")) {
    framework.kernel_issue = delay_at(*issue, diagnostics);
  }
  if (const auto issue = section.get("backward_issue")) {
    framework.backward_issue = delay_at(*issue, diagnostics);
  }
  if (const auto issue = section.get("exchange_issue")) {
    framework.exchange_issue = delay_at(*issue, diagnostics);
  }
  const auto number = [&](std::string_view key, double least, double most) {
    const double usual = least > 0 ? 1 : 0;
    const auto written = section.get(key);
    return written ? read_number(*written, least, most, diagnostics).value_or(usual) : usual;
  };
  framework.product_speed = number("product_speed", kLeastSpeed, 1);
  framework.attention_speed = number("attention_speed", kLeastSpeed, 1);
  framework.loss_traffic = number("loss_traffic", 1, kMostTraffic);
  framework.softmax_traffic = number("softmax_traffic", 1, kMostTraffic);
  framework.gradient_passes = number("gradient_passes", 0, kMostPasses);
  if (const auto rate = section.get("message_copies")) {
    framework.message_copies = bandwidth_at(*rate, diagnostics);
  }
  framework.collective_sms = number("collective_sms", 0, kMostSms);
  framework.fp32_gradients = section.choice("gradients", 0) == 1;
  framework.gradient_reduction =
      static_cast<GradientReduction>(section.choice("gradient_reduction", 0));
  framework.overlaps_sums = section.boolean("overlaps_sums", false);
  framework.waits_for_sends = section.boolean("waits_for_sends", false);
  framework.divides_messages = section.boolean("divides_messages", false);
  if (const auto origin = section.get("origin")) check_origin(*origin, diagnostics);
  section.finish();
  return framework;
}

std::vector<std::string> framework_names() { return catalogue_entries(kFolder); }

}  // namespace interlock
