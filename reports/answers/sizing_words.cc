// Sizes in words: what is trained, which size is recommended, and why.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/text.h"
#include "reports/answers/search_report.h"
#include "reports/answers/sizing_report.h"
#include "reports/headlines/economics_headlines.h"

namespace interlock {
namespace {

/// Returns "within 30.0 d and 2 M USD" of what was asked for.
std::string aim_words(const SizingAims& aims) {
  std::string words;
  if (aims.time) words = format(*aims.time);
  if (aims.budget) {
    words += (words.empty() ? "" : " and ") + format_number(aims.budget->amount) + " " +
             aims.budget->currency;
  }
  return words;
}

/// Returns "+12.3%" of `value` over `of`.
std::string over(double value, double of) { return signed_percent(value / of - 1) + "%"; }

/// Says how many sizes were not searched; "" of none.
std::string left_words(const Sizing& sizing) {
  const auto left =
      std::ranges::count_if(sizing.rows, [](const SizedPlan& row) { return !row.searched; });
  if (left == 0) return "";
  return " of those searched, " + std::to_string(left) + " of " +
         std::to_string(sizing.rows.size()) + " not searched";
}

/// Says why the first of the ranking is the first: it is `within` what was asked for, or not.
std::string reason(const Sizing& sizing, bool within) {
  const SizingAims& aims = sizing.question.aims;
  const std::string left = left_words(sizing);
  if (!aims.time && !aims.budget) {
    if (sizing.ranking.size() == 1) return "the only size that fits" + left;
    if (!left.empty()) return "time x cost is least" + left;
    const SizedPlan& best = sizing.rows[sizing.ranking.front()];
    if (best.devices == sizing.question.devices.back()) {
      return "time x cost is least, and may be less still with more devices";
    }
    const bool larger = std::ranges::any_of(sizing.rows, [&](const SizedPlan& row) {
      return row.fits && row.machine == best.machine && row.devices > best.devices;
    });
    return larger ? "time x cost is least: more devices add more to the cost than they save in time"
                  : "time x cost is least of the sizes that fit";
  }
  if (within && sizing.safer) {
    return (aims.time ? "the cheapest" : "the quickest") +
           (" whose whole range is within " + aim_words(aims)) + left;
  }
  if (within) {
    return (aims.time ? "the cheapest within " : "the quickest within ") + aim_words(aims) + left;
  }
  const SizedPlan& best = sizing.rows[sizing.ranking.front()];
  std::string excess;
  if (aims.time && best.time > *aims.time) {
    excess += ", " + over(best.time.value(), aims.time->value()) + " over the time";
  }
  if (aims.budget && cost_of(sizing, best) > aims.budget->amount) {
    excess += ", " + over(cost_of(sizing, best), aims.budget->amount) + " over the budget";
  }
  return (left.empty() ? "no size is within " : "no size" + left + ", is within ") +
         aim_words(aims) +
         (aims.time && aims.budget ? "; this one exceeds them least"
          : aims.time              ? "; this one is the quickest"
                                   : "; this one is the cheapest") +
         excess;
}

/// Says what `row` takes at the upper end of its range, of what was asked for. REQUIRES: it is
/// known.
std::string reach_words(const Sizing& sizing, const SizedPlan& row) {
  const SizePrice most = *most_of(sizing, row);
  const SizingAims& aims = sizing.question.aims;
  std::string words;
  if (aims.time) words = format(most.time);
  if (aims.budget) {
    words +=
        (words.empty() ? "" : " and ") + format_number(most.cost) + " " + aims.budget->currency;
  }
  return words;
}

/// Says that the time of `row` is none of a simulation; or "".
std::string unjudged_words(const SizedPlan& row) {
  return row.plan->estimate.too_large ? ", as if no messages met (not simulated)" : "";
}

std::string size_words(const Sizing& sizing, const SizedPlan& row) {
  return std::to_string(row.devices) + (row.devices == 1 ? " device of " : " devices of ") +
         machine_name(sizing, row.machine);
}

}  // namespace

std::string machine_name(const Sizing& sizing, std::size_t machine) {
  const std::vector<SizedMachine>& machines = sizing.question.machines;
  const auto short_name = [](const SizedMachine& one) {
    return std::filesystem::path(one.name).stem().string();
  };
  const std::string& name = machines[machine].name;
  if (name.find('/') == std::string::npos && !name.ends_with(".json")) return name;
  const auto alike = std::count_if(machines.begin(), machines.end(), [&](const SizedMachine& one) {
    return short_name(one) == short_name(machines[machine]);
  });
  return alike == 1 ? short_name(machines[machine]) : name;
}

std::string name_of(const Sizing& sizing, const SizedPlan& row) {
  return machine_name(sizing, row.machine) + " x " + std::to_string(row.devices);
}

std::string cost_words(const Sizing& sizing, const SizedPlan& row) {
  return format_number(cost_of(sizing, row)) + " " +
         (sizing.by_money ? row.cost->currency : "GPU-hours");
}

std::string training_words(const Sizing& sizing) {
  const SizingQuestion& question = sizing.question;
  const std::string unit = question.in_samples ? " samples" : " tokens";
  std::string words = question.model + ", " + format_number(question.length) + unit + ", ";
  const auto batch = std::find_if(sizing.rows.begin(), sizing.rows.end(),
                                  [](const SizedPlan& row) { return row.global_batch_size > 0; });
  const int samples = batch == sizing.rows.end() ? 0 : batch->global_batch_size;
  if (sizing.tokens_per_sample) {
    words += format_number(samples * *sizing.tokens_per_sample) + " tokens (" +
             std::to_string(samples) + " sequences of " +
             std::to_string(std::llround(*sizing.tokens_per_sample)) + ")";
  } else {
    words += std::to_string(samples) + " samples";
  }
  return words +
         (question.weak ? " a step of the smallest size, as much more of larger ones" : " a step");
}

Scale scale_of_amounts(const std::vector<double>& values, const std::string& unit) {
  const double most = *std::max_element(values.begin(), values.end());
  Scale scale = scale_of_numbers(values, unit);
  for (const auto& [size, letter] : {std::pair{1e9, "G"}, {1e6, "M"}, {1e3, "k"}}) {
    if (most < 10 * size) continue;
    std::vector<double> scaled_values = values;
    for (double& value : scaled_values) value /= size;
    scale = scale_of_numbers(scaled_values, unit.empty() ? letter : letter + (" " + unit));
    scale.size = size;
    return scale;
  }
  return scale;
}

Scale scale_of_costs(const Sizing& sizing) {
  std::vector<double> costs;
  for (const std::size_t i : sizing.ranking) costs.push_back(cost_of(sizing, sizing.rows[i]));
  const SizedPlan& first = sizing.rows[sizing.ranking.front()];
  return scale_of_amounts(costs, sizing.by_money ? first.cost->currency : "GPU-hours");
}

std::string row_words(const SizedPlan& row) {
  if (!row.plan) return row.problem;
  if (row.fits) return plan_words(*row.plan);
  const PlanEstimate& estimate = row.plan->estimate;
  std::string limit = format(row.memory_limit) + " that tensors may take";
  if (estimate.memory_capacity > 0) limit += " of " + format(Bytes(estimate.memory_capacity));
  return "does not fit: " + format(Bytes(estimate.peak_memory)) + " of the " + limit +
         (row.proven ? ", with the leanest plan: "
                     : ", with the leanest plan of those looked at; others cost too much: ") +
         plan_words(*row.plan);
}

namespace {

/// Says that the range of `best`, the recommended size, goes beyond what was asked for, and which
/// size's does not.
std::string beyond_words(const Sizing& sizing, const SizedPlan& best) {
  const SizingAims& aims = sizing.question.aims;
  const std::string words =
      "Its range reaches " + reach_words(sizing, best) + ", beyond " + aim_words(aims) + ": ";
  const std::optional<std::size_t> safe = first_wholly_within(sizing);
  if (!safe) return words + "no size has a range that is wholly within.";
  const SizedPlan& row = sizing.rows[*safe];
  return words + (aims.time ? "the cheapest" : "the quickest") +
         " whose whole range is within is " + size_words(sizing, row) + ", " + format(row.time) +
         " (at most " + reach_words(sizing, row) + "), " + cost_words(sizing, row) + " (" +
         over(cost_of(sizing, row), cost_of(sizing, best)) + ").";
}

/// Names the sizes that were searched and have no plan at all; or "".
std::string impossible_words(const Sizing& sizing) {
  std::string names;
  for (const SizedPlan& row : sizing.rows) {
    if (row.plan || !row.searched) continue;
    names += (names.empty() ? "" : ", ") + name_of(sizing, row);
  }
  return names.empty() ? "" : "No plan, see below: " + names + ".";
}

}  // namespace

std::vector<std::string> recommendation(const Sizing& sizing) {
  if (sizing.ranking.empty()) {
    const bool any = std::ranges::any_of(sizing.rows, &SizedPlan::searched);
    if (sizing.stopped && !any) return {"No size was searched to its end."};
    const std::string left = left_words(sizing);
    return {"No size" + (left.empty() ? "" : left + ",") +
            " has a plan that fits: more devices, or devices with more memory, may."};
  }
  const SizingAims& aims = sizing.question.aims;
  const SizedPlan& best = sizing.rows[sizing.ranking.front()];
  const bool within = (!aims.time || best.time <= *aims.time) &&
                      (!aims.budget || cost_of(sizing, best) <= aims.budget->amount);
  const bool reaches = within && !wholly_within(sizing, best).value_or(true);
  std::vector<std::string> sentences = {"Recommended: " + size_words(sizing, best) + ", " +
                                        format(best.time) + ", " + cost_words(sizing, best) + ": " +
                                        reason(sizing, within) + unjudged_words(best) + "."};
  if (reaches) sentences.push_back(beyond_words(sizing, best));
  if (const std::string none = impossible_words(sizing); !none.empty()) sentences.push_back(none);
  if (sizing.ranking.size() == 1) return sentences;
  const SizedPlan& next = sizing.rows[sizing.ranking[1]];
  sentences.push_back(
      "Next best: " + size_words(sizing, next) + ", " + format(next.time) + " (" +
      over(next.time.value(), best.time.value()) + "), " + cost_words(sizing, next) + " (" +
      over(cost_of(sizing, next), cost_of(sizing, best)) + ")" + unjudged_words(next) +
      (sizing.safer ? "; its range reaches " + reach_words(sizing, next) : "") + ".");
  if (const std::optional<NearTie> tie = near_tie(sizing)) {
    sentences.push_back(
        "A near tie: with steps " + format_percent(tie->share) +
        " shorter than predicted the next best would be first, and " +
        (tie->between ? error_between_words(tie->typical)
                      : "the typical error on published rows is " + format_percent(tie->typical)) +
        ", so the order may be the other way round.");
  }
  return sentences;
}

namespace {

/// Says why sizes are compared by GPU-hours. REQUIRES: they are.
std::string why_no_money(const Sizing& sizing) {
  std::vector<std::string> unknown;
  for (std::size_t machine = 0; machine < sizing.question.machines.size(); ++machine) {
    const bool asks = std::ranges::any_of(sizing.ranking, [&](std::size_t i) {
      return sizing.rows[i].machine == machine && !sizing.rows[i].cost;
    });
    if (asks) unknown.push_back("--price '" + machine_name(sizing, machine) + "=2.50 USD/h'");
  }
  if (unknown.empty()) return "Prices are in several currencies, so GPU-hours are the cost.";
  std::string options;
  for (const std::string& option : unknown) options += (options.empty() ? "" : " ") + option;
  return std::string("GPU-hours are the cost, as ") +
         (unknown.size() == 1 ? "a price is unknown: " : "prices are unknown: ") + options + ".";
}

/// Says which sizes take a part of each node: a sentence for each part.
std::vector<std::string> share_notes(const Sizing& sizing) {
  std::map<std::pair<int, int>, std::string> names;  // of sizes, by part and node
  for (const SizedPlan& row : sizing.rows) {
    if (row.share == 0) continue;
    std::string& those = names[{row.share, row.of_node}];
    those += (those.empty() ? "" : ", ") + name_of(sizing, row);
  }
  std::vector<std::string> notes;
  for (const auto& [part, those] : names) {
    notes.push_back(std::to_string(part.first) + " of the " + std::to_string(part.second) +
                    " devices of each node are used, as no whole nodes are filled: " + those + ".");
  }
  return notes;
}

/// Says on what the times of a machine rest, whose row `row` fits; or "".
std::string basis_note(const Sizing& sizing, const SizedPlan& row) {
  const std::string name = machine_name(sizing, row.machine);
  const Confidence& confidence = row.confidence;
  if (!confidence.at_peak.empty()) return "At the peak: on " + name + ", " + confidence.at_peak;
  if (!confidence.range) return "";
  const TimeRange& range = *confidence.range;
  const double step = row.plan->estimate.step_time;
  const std::string took = ". Steps took " + fixed(range.low.value() / step, 2) + " to " +
                           fixed(range.high.value() / step, 2) + " times as long as predicted in " +
                           format_number(100 * range.level) + "% of " + range.basis;
  if (row.borrowed) {
    return "Borrowed: " + name + ", with the efficiencies of " + row.borrowed->from +
           ", as it states none" + took;
  }
  if (range.of_others) return "Hardly measured: " + name + took;
  return "Measured: " + name + took;
}

/// Says on what the times of each machine rest.
std::vector<std::string> basis_notes(const Sizing& sizing) {
  std::vector<std::string> notes;
  std::set<std::size_t> told;
  for (const SizedPlan& row : sizing.rows) {
    if (!row.fits || !told.insert(row.machine).second) continue;
    if (const std::string note = basis_note(sizing, row); !note.empty())
      notes.push_back(note + ".");
  }
  return notes;
}

std::string memory_note(const Sizing& sizing) {
  if (sizing.limits.memory) {
    return "Tensors take at most " + format(*sizing.limits.memory) + " of a device.";
  }
  if (sizing.limits.reserve) {
    return "Plans leave as much memory of each device free as --reserve says.";
  }
  return "Plans leave memory for contexts, communicators and allocators, priced by plan; --reserve "
         "'6 GiB' says it.";
}

}  // namespace

std::vector<std::string> sizing_notes(const Sizing& sizing) {
  std::vector<std::string> notes;
  if (!sizing.ranking.empty()) {
    notes.push_back(
        "Best: recommended. Front: every other size takes more time or costs more, by over 0.1%.");
    if (!sizing.by_money) notes.push_back(why_no_money(sizing));
  }
  for (const std::string& note : basis_notes(sizing)) notes.push_back(note);
  notes.push_back(memory_note(sizing));
  for (const std::string& note : share_notes(sizing)) notes.push_back(note);
  std::string alone;
  for (const SizedPlan& row : sizing.rows) {
    if (!row.fits || !row.plan->estimate.too_large) continue;
    alone += (alone.empty() ? "" : ", ") + name_of(sizing, row);
  }
  std::string unproven;
  for (const SizedPlan& row : sizing.rows) {
    if (!row.left_out.empty()) {
      notes.push_back(name_of(sizing, row) +
                      ": left out, as there are too many plans: " + row.left_out + ".");
    }
    if (row.proven || !row.fits) continue;
    unproven += (unproven.empty() ? "" : ", ") + name_of(sizing, row);
  }
  if (!unproven.empty()) {
    notes.push_back(
        "Plans that are faster may have been missed, as they cost too much to simulate: " +
        unproven + ".");
  }
  const auto is = [&](const auto& holds) {
    return std::ranges::any_of(sizing.rows,
                               [&](const SizedPlan& row) { return row.fits && holds(row); });
  };
  const bool mfu = is([](const SizedPlan& row) { return row.plan->estimate.mfu > 0; });
  if (mfu && sizing.tokens_per_sample) {
    notes.push_back("MFU and TFLOP/s count full attention, as simulate does.");
  }
  if (is([](const SizedPlan& row) { return row.energy && row.devices_alone; })) {
    notes.push_back("Energy *: of the devices alone, as the power of the host is unknown.");
  }
  if (!alone.empty()) {
    notes.push_back("As if no messages met on a link, as there are too many devices to simulate: " +
                    alone + ".");
  }
  return notes;
}

}  // namespace interlock
