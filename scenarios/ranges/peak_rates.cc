// Adds up the time of kernels that are priced at the peak rates.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/ranges/peak_rates.h"

#include "base/text.h"
#include "hardware/devices/priced_class.h"
#include "scenarios/ranges/scenario_kernels.h"

namespace interlock {
namespace {

struct PeakShare {
  Seconds all, at_peak;
  std::array<bool, kOpClasses> classes{};  // of those at the peak
};

PeakShare peak_share(const Plan& plan, const Device& device) {
  const Question& question = plan.question;
  PeakShare share;
  visit_kernels(plan, [&](const Work& work) {
    const OpClass priced = priced_class(work);
    const Seconds time = time_of(work, device, question.training().precision);
    share.all += time;
    if (!at_peak_rates(device, priced)) return;
    share.at_peak += time;
    share.classes[static_cast<std::size_t>(priced)] = true;
  });
  return share;
}

bool any_at_peak(const Device& device) {
  for (std::size_t i = 0; i < op_class_names().size(); ++i) {
    if (at_peak_rates(device, static_cast<OpClass>(i))) return true;
  }
  return false;
}

std::optional<std::string> peak_rates_of(const Plan& plan, const Device& device) {
  // Every device of the catalogue states all efficiencies: nothing is added up for those.
  if (device.calibrated || plan.question.trace() || !any_at_peak(device)) return std::nullopt;
  const PeakShare share = peak_share(plan, device);
  if (share.at_peak <= share.all * kWorthTelling) return std::nullopt;
  std::string kernels = "kernels are";
  if (share.at_peak < share.all) {
    kernels = format_percent(share.at_peak / share.all) + " of the kernels' time (" +
              class_list(share.classes) + ") is";
  }
  return kernels + " priced at the peak rates of " + in_quotes(device.name) +
         ", which states no efficiency for them: real kernels take longer, and no measured run " +
         "says by how much";
}

}  // namespace

std::optional<std::string> peak_rates(const Plan& plan) {
  for (const Machine& machine : plan.question.cluster.machines) {
    if (auto told = peak_rates_of(plan, machine.device)) return told;
  }
  return std::nullopt;
}

}  // namespace interlock
