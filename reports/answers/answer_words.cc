// Limits, paths and changes in words.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "reports/answers/answer_report.h"
#include "reports/headlines/headlines.h"
#include "reports/words/mesh_words.h"
#include "reports/words/op_words.h"
#include "reports/words/palette.h"
#include "sim/measure/explained.h"

namespace interlock {
namespace {

using Part = StepPiece::Kind;

std::string numbers_of(const std::vector<int>& ranks, const Plan& plan) {
  std::vector<int> numbers;
  numbers.reserve(ranks.size());
  const std::vector<int> all = device_numbers(plan);
  for (const int rank : ranks) numbers.push_back(all.at(static_cast<std::size_t>(rank)));
  std::sort(numbers.begin(), numbers.end());
  return list_stages(numbers);
}

/// Returns the device, or all that are as busy as it.
std::string busiest(const Answers& answers) {
  const StepLimits& limits = answers.baseline.limits;
  const ScenarioResult& result = answers.baseline.result;
  const std::size_t devices = result.measurement.metrics.devices.size();
  if (devices > 1 && limits.as_busy.size() == devices) return "every device";
  if (limits.as_busy.size() > 1 && limits.as_busy.size() <= 8) {
    return "devices " + numbers_of(limits.as_busy, result.plan);
  }
  return "device " + numbers_of({limits.rank}, result.plan);
}

/// Links have names such as "0->1" and "gpu3 up"; groups have words.
std::string of_link(const std::string& where) {
  if (where.empty()) return "messages";
  const bool group = where.find("devices") != std::string::npos || where == "experts";
  return group ? "exchanges of " + where : "link " + where;
}

/// Parts of one kind, whatever their device or link.
double seconds_of(const Answers& answers, Part kind) {
  double seconds = 0;
  for (const StepPiece& part : answers.baseline.limits.parts) {
    if (part.kind == kind) seconds += part.seconds;
  }
  return seconds;
}

std::string bubble_reason(const Answers& answers) {
  const auto& explanation = answers.baseline.result.measurement.metrics.explanation;
  if (!explanation) return "";
  const Bubbles& bubbles =
      explanation->devices[static_cast<std::size_t>(answers.baseline.limits.rank)];
  // Leaves out messages on their way and exchanges inside ops, which are told elsewhere.
  std::size_t most = 0;
  for (std::size_t i = 0; i < bubbles.size(); ++i) {
    if (i == static_cast<std::size_t>(BubbleCause::Message)) continue;
    if (i == static_cast<std::size_t>(BubbleCause::Exchange)) continue;
    if (bubbles[i] > bubbles[most]) most = i;
  }
  switch (static_cast<BubbleCause>(most)) {
    case BubbleCause::Fill:
      return "it mostly waits for the first op of a step to reach it";
    case BubbleCause::Drain:
      return "it mostly waits for the others to end the step";
    case BubbleCause::Activation:
      return "it mostly waits for stages before it";
    case BubbleCause::Gradient:
      return "it mostly waits for gradients of stages behind it";
    case BubbleCause::Peers:
      return "it mostly waits for others to join a collective";
    case BubbleCause::Room:
      return "it mostly waits for room in a queue of messages";
    default:
      return "";
  }
}

}  // namespace

std::string words_of(const StepPiece& part, const Answers& answers) {
  switch (part.kind) {
    case Part::Compute:
      return "compute of " + busiest(answers);
    case Part::Memory:
      return "memory bandwidth of " + busiest(answers);
    case Part::Launches:
      return "kernel launches by the host of " + busiest(answers);
    case Part::Inside:
      return "exchanges of " + part.where + " inside ops";
    case Part::Transfer:
      return of_link(part.where) + ", exposed";
    case Part::Latency:
      return "latency of " + of_link(part.where) + ", exposed";
    case Part::Bubble:
      return "bubble: waiting for other devices";
    case Part::Unknown:
      return "between ops";
  }
  return "";
}

std::string words_of(const PathShare& share, const Answers& answers) {
  const ScenarioResult& result = answers.baseline.result;
  switch (share.kind) {
    case PathShare::Kind::Op:
      return meaning_in(result.measurement.program, share.op) + " on device " +
             numbers_of({share.rank}, result.plan);
    case PathShare::Kind::Message:
      return std::string(name_of(share.cargo)) + (share.link.empty() ? "" : " over " + share.link);
    case PathShare::Kind::Collective:
      return name_of(share.collective) + ", " + name_of(share.axis);
    case PathShare::Kind::Unknown:
      return "between ops";
  }
  return "";
}

std::string limit_sentence(const Answers& answers) {
  const Metrics& metrics = answers.baseline.result.measurement.metrics;
  std::string text;
  if (!metrics.fits_in_memory && !metrics.devices.empty()) {
    const DeviceMetrics& fullest = fullest_device(metrics);
    text = metrics.memory_capacity && fullest.peak_memory > *metrics.memory_capacity
               ? "Memory of " + device_name(answers.baseline.result.plan, fullest.rank) +
                     ": it lacks " + format(fullest.peak_memory - *metrics.memory_capacity) +
                     ", so nothing runs; if it had them: "
               : std::string("Memory of a host, so nothing runs; if it sufficed: ");
  }
  const auto& parts = answers.baseline.limits.parts;
  if (parts.empty() || metrics.step_time <= Seconds(0)) return text + "nothing takes time";
  const StepPiece& most = parts.front();
  std::string what = words_of(most, answers);
  if (most.kind == Part::Bubble) {
    what = "the bubble of the schedule";
    const std::string reason = bubble_reason(answers);
    if (!reason.empty()) what += " (" + busiest(answers) + ": " + reason + ")";
  }
  text += what + ", " + format_percent(most.seconds / metrics.step_time.value()) + " of a step";
  const double exposed = seconds_of(answers, Part::Transfer) + seconds_of(answers, Part::Latency);
  const bool moves = most.kind == Part::Transfer || most.kind == Part::Latency;
  if (moves && exposed > most.seconds * 1.001) {
    text += "; exposed communication in all " + format_percent(exposed / metrics.step_time.value());
  }
  return text;
}

std::vector<std::string> unexplained(const Answers& answers) {
  const ScenarioResult& result = answers.baseline.result;
  const Question& scenario = result.plan.question;
  std::vector<std::string> lines;
  if (answers.baseline.limits.path.empty()) {
    lines.push_back(
        result.varied ? "No critical path: steps differ. Times are means over their seeds, the "
                        "same for every "
                        "change."
        : result.measurement.metrics.explanation
            ? "No critical path: the run is not known op by op."
        : result.measurement.metrics.tasks > kMostTasksExplained
            ? "No critical path and no causes of waiting: the run has " +
                  format_number(static_cast<double>(result.measurement.metrics.tasks)) +
                  " tasks, more than " + format_number(static_cast<double>(kMostTasksExplained)) +
                  "; fewer training.steps make it shorter."
            : "No critical path and no causes of waiting: the schedule replays old inputs.");
  }
  if (scenario.trace()) {
    lines.emplace_back("A workload was written down as it ran: only the machine can change.");
  }
  if (scenario.run || scenario.swarm) {
    lines.emplace_back("A step is explained, not its run or swarm.");
  }
  return lines;
}

std::string set_options(const Change& change) {
  std::string text;
  for (const std::string& setting : change.settings) {
    const bool plain = setting.find_first_not_of(
                           "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                           "._-=/") == std::string::npos;
    text += (text.empty() ? "--set " : " --set ") + (plain ? setting : "'" + setting + "'");
  }
  return text;
}

}  // namespace interlock
