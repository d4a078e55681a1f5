// The result of a search, as a terminal shows it.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "base/text.h"
#include "reports/answers/search_report.h"
#include "reports/headlines/economics_headlines.h"
#include "reports/terminal/layout.h"
#include "reports/words/scale.h"
#include "scenarios/simulate/economics.h"

namespace interlock {
namespace {

constexpr std::size_t kMostPlans = 24;

std::string grouped(std::size_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

std::size_t lost(const SearchCounts& counts, Grade grade, Loss loss) {
  return counts.lost[static_cast<std::size_t>(grade)][static_cast<std::size_t>(loss)];
}

/// "5,007 beyond the memory limit, 525 no better than what was found", of plans that `grade`
/// decided.
std::string losses(const SearchCounts& counts, Grade grade) {
  static constexpr std::array kWords = {
      "beyond the time limit",         "beyond the memory",       "beyond the cost limit",
      "beyond the energy limit",       "beyond the power",        "beyond the hosts' memory",
      "no better than what was found", "the same as another plan"};
  static_assert(kWords.size() == kLosses, "words for each");
  std::string words;
  for (int loss = 0; loss < kLosses; ++loss) {
    const std::size_t plans = lost(counts, grade, static_cast<Loss>(loss));
    if (plans == 0) continue;
    words +=
        (words.empty() ? "" : ", ") + grouped(plans) + " " + kWords[static_cast<std::size_t>(loss)];
  }
  return words.empty() ? "none lost" : words;
}

/// Returns "1.78 GPU-hours" for `seconds` of all devices of `plan`.
std::string hours_words(const FoundPlan& plan, double seconds) {
  return format_number(device_hours(plan.layout.devices, Seconds(seconds))) + " GPU-hours";
}

/// Says what the tensors of a device may take.
std::string room(const SearchResult& result) {
  if (result.memory_limit <= Bytes(0)) return "";
  if (result.request.limits.memory) {
    return "of a device; at most " + format(result.memory_limit) + ", as \"limits\" says";
  }
  return (is_mixed(result.scenario.cluster) ? "of the fullest device; at most "
                                            : "of a device; at most ") +
         format(result.memory_limit) + " may be tensors";
}

/// Returns the numbers of the best plan.
std::vector<Headline> answer(const SearchResult& result, const FoundPlan& best) {
  const auto at = [&](Aim aim) { return best.estimate.values[static_cast<std::size_t>(aim)]; };
  std::string note = hours_words(best, best.estimate.step_time);
  if (best.estimate.too_large) {
    note += "; as if no messages met on a link: not simulated, as there are too many devices";
  }
  if (best.estimate.nearly) note += "; devices stand for others nearly, not exactly";
  if (!best.simulated) {
    note += "; as if no messages met on a link: not simulated before the interrupt";
  }
  std::vector<Headline> headlines = {{"Step", format(Seconds(best.estimate.step_time)), note}};
  for (Headline& range : range_headlines(result.confidence)) headlines.push_back(std::move(range));
  const double tokens = best.estimate.tokens, samples = best.estimate.samples;
  if (tokens > 0 || samples > 0) {
    headlines.push_back({tokens > 0 ? "Tokens/s/GPU" : "Samples/s/GPU",
                         format_number(per_device(best, tokens > 0 ? tokens : samples)),
                         rate_words(best.estimate)});
  }
  headlines.push_back({"Memory", format(Bytes(best.estimate.peak_memory)), room(result)});
  // On mixed clusters the device that takes the largest part of its own may not take most.
  if (best.estimate.fullest_memory == best.estimate.peak_memory) {
    for (Headline& held : classes_headline(best.estimate.memory)) {
      headlines.push_back(std::move(held));
    }
  }
  if (!result.request.limits.memory && result.memory_limit > Bytes(0)) {
    headlines.push_back({"Reserve", format_percent(1 - best.estimate.usable_share),
                         reserve_words(result.scenario, result.request.limits.reserve)});
  }
  const bool goal = result.scenario.goal.has_value();
  if (goal) {
    headlines.push_back({"Time", format(Seconds(at(Aim::Time))),
                         "until the goal; " + hours_words(best, at(Aim::Time))});
  }
  const std::optional<HourlyPrice> price = device_hour(result.scenario);
  if (at(Aim::Cost) > 0 && price) {
    headlines.push_back({"Cost", format_number(at(Aim::Cost)) + " " + price->currency,
                         goal ? "until the goal" : "of a step"});
  }
  return headlines;
}

/// Says that predictions do not tell which of plan 1 and the next best is faster; or "".
std::string near_tie_words(const SearchResult& result, const FoundPlan& best,
                           const FoundPlan& next) {
  const Confidence& confidence = result.confidence;
  if (result.request.aim != Aim::Time || !confidence.range) return "";
  const std::size_t time = static_cast<std::size_t>(Aim::Time);
  const double slower = next.estimate.values[time] / best.estimate.values[time] - 1;
  if (slower > confidence.range->between) return "";
  return "The first takes " + format_percent(slower) + " longer, and " +
         error_between_words(confidence.range->between) +
         ", so the order may be the other way round.";
}

/// Says what plans that were not looked at may be.
std::string words_of_left(const SearchResult& result) {
  const std::size_t better = result.counts.left_better;
  const std::string cost = "as they cost too much";
  if (result.plans.empty()) return cost + "; some may be within the limits";
  if (better == 0) return cost + ": none is better than the best, but some may be worth having";
  return cost + ": " + grouped(better) + " may be better than the best by their bounds";
}

/// Says what a search that was stopped does not know.
std::string words_of_stop(const SearchResult& result) {
  if (!result.cut_off) return "Interrupted: below it plans that are worth having may be missing.";
  std::string words = "Interrupted before the best was proven: this is the best of what was ";
  words += result.plans.front().simulated ? "simulated" : "estimated";
  const std::size_t better = result.counts.waiting_better;
  if (better > 0) words += ", and " + grouped(better) + " plans may be better by their bounds";
  return words + ".";
}

std::vector<Headline> effort(const SearchResult& result) {
  const SearchCounts& counts = result.counts;
  std::string refused = grouped(counts.layouts) + " ways to divide the work";
  if (counts.refused > 0) refused += "; " + grouped(counts.refused) + " are not possible";
  if (!counts.left_out.empty()) refused += "; left out, as there were more: " + counts.left_out;
  if (counts.useless > 0) {
    refused += "; " + grouped(counts.useless) +
               " that would have come next are none for that program, the first: " +
               counts.useless_because;
  }
  std::vector<Headline> headlines = {
      {"Plans", grouped(counts.plans), refused},
      {"Bounds of layouts", grouped(counts.bounded_layouts), losses(counts, Grade::LayoutBound)},
      {"Bounds of plans", grouped(counts.bounded), losses(counts, Grade::PlanBound)},
      {"Quick estimates", grouped(counts.looked_at), losses(counts, Grade::Look)},
      {"Full simulations", grouped(counts.judged), losses(counts, Grade::Simulation)}};
  if (counts.shortened > 0) {
    headlines.back().note += "; " + grouped(counts.shortened) + " by a shorter step";
  }
  if (counts.too_large > 0) {
    headlines.push_back({"Too large", grouped(counts.too_large),
                         "to simulate device by device: as if no messages met on a link"});
  }
  if (counts.left > 0) {
    headlines.push_back({"Not looked at", grouped(counts.left), words_of_left(result)});
  }
  if (counts.waiting > 0) {
    headlines.push_back({"Interrupted", grouped(counts.waiting),
                         "were not looked at, as the search was interrupted", true});
  }
  if (counts.cut_anew > 0) {
    headlines.push_back({"Cut anew", grouped(counts.cut_anew),
                         "the best plan, module by module, as its ranks have several stages"});
  }
  if (counts.unfinished > 0) {
    headlines.push_back({"Failed", grouped(counts.unfinished), counts.failure, true});
  }
  return headlines;
}

/// A column that is shown only where plans differ in it.
void add_if_various(const std::string& head, const std::vector<std::string>& texts, bool number,
                    Grid& grid) {
  const bool various = std::any_of(texts.begin(), texts.end(),
                                   [&](const std::string& text) { return text != texts.front(); });
  if (!various) return;
  grid.columns.push_back({head, "", number});
  for (std::size_t row = 0; row < texts.size(); ++row) grid.rows[row].push_back({texts[row]});
}

template <class Text>
std::vector<std::string> texts_of(const std::vector<const FoundPlan*>& plans, Text text) {
  std::vector<std::string> texts;
  texts.reserve(plans.size());
  for (const FoundPlan* plan : plans) texts.push_back(text(*plan));
  return texts;
}

void add_values(const SearchResult& result, const std::vector<const FoundPlan*>& plans,
                Grid& grid) {
  const std::optional<HourlyPrice> price = device_hour(result.scenario);
  const std::string currency = price ? price->currency : "";
  const std::array<std::string, kAims> heads = {result.scenario.goal ? "Time" : "Step", "Memory",
                                                "Cost", "Energy"};
  for (const Aim aim : {Aim::Time, Aim::Memory, Aim::Cost, Aim::Energy}) {
    const std::size_t at = static_cast<std::size_t>(aim);
    std::vector<double> values;
    values.reserve(plans.size());
    for (const FoundPlan* plan : plans) values.push_back(plan->estimate.values[at]);
    if (values.front() <= 0) continue;
    const Scale scale = aim == Aim::Time     ? scale_of_seconds(values)
                        : aim == Aim::Memory ? scale_of_bytes(values)
                        : aim == Aim::Energy ? scale_of_joules(values)
                                             : scale_of_numbers(values, currency);
    grid.columns.push_back({heads[at], scale.unit});
    for (std::size_t row = 0; row < plans.size(); ++row) {
      grid.rows[row].push_back({scaled(values[row], scale)});
    }
  }
}

std::string plan_table(const SearchResult& result, const std::vector<const FoundPlan*>& plans,
                       const TableStyle& style) {
  Grid grid{{{"Plan", "", false}}, {}};
  for (std::size_t i = 0; i < plans.size(); ++i) grid.rows.push_back({{std::to_string(i + 1)}});
  add_values(result, plans, grid);
  const auto add = [&](const char* head, bool number, auto text) {
    add_if_various(head, texts_of(plans, text), number, grid);
  };
  using P = const FoundPlan&;
  add("Devices", true, [](P plan) { return std::to_string(plan.layout.devices); });
  add("Strategy", false, [](P plan) { return words_of_value(plan.layout.strategy); });
  add("Tensor", true, [](P plan) { return tensor_words(plan.layout); });
  add("Pipeline", true, [](P plan) { return std::to_string(plan.layout.pipeline); });
  add("Data", true, [](P plan) { return data_words(plan.layout); });
  add("Context", true, [](P plan) { return std::to_string(plan.layout.context); });
  add("Contexts", false, [](P plan) { return words_of_value(plan.layout.context_layout); });
  add("Expert", true, [](P plan) { return std::to_string(plan.layout.expert); });
  add("Expert tensor", true, [](P plan) {
    const PlanLayout& layout = plan.layout;
    return layout.expert_tensor == layout.tensor ? "" : std::to_string(layout.expert_tensor);
  });
  add("ZeRO", true, [](P plan) { return zero_words(plan); });
  add("Micro-batch", true, [](P plan) { return std::to_string(plan.layout.micro_batch_size); });
  add("Recompute", false, [](P plan) { return recompute_words(plan.layout.recompute); });
  add("Precision", false, [](P plan) { return precision_words(plan); });
  add("Options", false, [](P plan) { return option_words(plan.layout); });
  add("Schedule", false, [](P plan) {
    const std::string name = words_of_value(plan.order.schedule);
    return plan.order.chunks > 1 ? name + " x" + std::to_string(plan.order.chunks) : name;
  });
  add("Partition", false, [](P plan) { return partition_words(plan.order.partition); });
  return lay_out(grid, style);
}

std::string no_plan(const SearchResult& result, const TableStyle& style) {
  const SearchCounts& counts = result.counts;
  std::string text = paragraph(no_plan_words(counts) + ".", Ink::Alarm, style);
  bool others = false;  // limits other than that of memory decided on some
  for (const Loss loss : {Loss::Time, Loss::Cost, Loss::Energy, Loss::Power, Loss::HostMemory}) {
    others = others || lost(counts, loss) > 0;
  }
  if (others || lost(counts, Loss::Memory) == 0) {
    text +=
        paragraph("Wider limits, or more values to choose from, may give one.", Ink::Plain, style);
  } else if (result.closest.empty()) {
    const std::optional<Bytes>& limit = result.request.limits.memory;
    text += paragraph(limit ? "None comes near the " + format(*limit) +
                                  " of a device that search.limits.memory allows: a wider limit, "
                                  "more devices, or offload, may."
                            : "None comes near the memory that there is: more devices, or "
                              "offload, may.",
                      Ink::Plain, style);
  }
  if (result.closest.empty()) return text;
  const FoundPlan& closest = result.closest.front();
  const double needs = closest.estimate.values[static_cast<std::size_t>(Aim::Memory)];
  return text + paragraph((others ? "Of those beyond the memory, the least needs "
                                  : "The least memory that one needs is ") +
                              format(Bytes(needs)) + ": " + plan_words(closest) + ".",
                          Ink::Plain, style);
}

}  // namespace

std::string search_text(const SearchResult& result, const TableStyle& style) {
  std::string text = paragraph(result.name, Ink::Strong, style);
  const std::string counted = "\n" + paragraph("How it was found", Ink::Strong, style) +
                              headline_lines(effort(result), style);
  if (result.plans.empty()) return text + no_plan(result, style) + counted;
  std::vector<const FoundPlan*> worth, others;
  for (const FoundPlan& plan : result.plans) {
    (plan.worth_having ? worth : others).push_back(&plan);
  }
  const FoundPlan& best = *worth.front();
  const std::size_t front = worth.size();
  if (front > kMostPlans) worth.resize(kMostPlans);
  text += paragraph("Best: " + plan_words(best), Ink::Strong, style);
  if (const std::string one = one_stage_words(result); !one.empty()) {
    text += paragraph(one, Ink::Alarm, style);
  }
  if (result.stopped) text += paragraph(words_of_stop(result), Ink::Alarm, style);
  text += headline_lines(answer(result, best), style) + "\n";
  text += plan_table(result, worth, style);
  if (front > worth.size()) {
    text += paragraph(std::to_string(front - worth.size()) + " more; --json has all.", Ink::Faint,
                      style);
  }
  text += paragraph("Each is better by " + fixed(100 * result.request.worth, 1) +
                        "% than every one above it in time, memory, cost or energy.",
                    Ink::Faint, style);
  const std::size_t costly = unproven(result.counts) - result.counts.waiting_better;
  if (costly > 0) {
    text += paragraph(
        grouped(costly) + " plans may be better than plan 1, and cost too much to simulate.",
        Ink::Faint, style);
  }
  if (!others.empty()) {
    text += "\n" + paragraph("Next best, and why they lost to plan 1", Ink::Strong, style);
    const std::string tie = near_tie_words(result, best, *others.front());
    if (!tie.empty()) text += paragraph(tie, Ink::Faint, style);
  }
  for (const FoundPlan* plan : others) {
    text += plan_words(*plan) + "\n";
    text += paint("    " + loss_words(*plan, best, result.request.aim), Ink::Faint, style) + "\n";
  }
  return text + counted;
}

}  // namespace interlock
