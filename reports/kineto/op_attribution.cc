// Follows each kernel to its launch, and from there to the names around it.
// SPDX-License-Identifier: Apache-2.0
#include "reports/kineto/op_attribution.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "reports/kineto/range_index.h"

namespace interlock {
namespace {

using Numbered = std::vector<std::pair<std::int64_t, std::int32_t>>;  // a number, and whose it is

/// Returns the last entry with `number`. REQUIRES: the entries are sorted.
std::optional<std::int32_t> last_of(const Numbered& entries, std::int64_t number) {
  const auto after =
      std::upper_bound(entries.begin(), entries.end(), number,
                       [](std::int64_t n, const auto& entry) { return n < entry.first; });
  if (after == entries.begin() || std::prev(after)->first != number) return std::nullopt;
  return std::prev(after)->second;
}

/// A moment of a thread.
struct Moment {
  std::int32_t thread = 0;
  std::int64_t at = 0;
};

/// The owner of a kernel: a range, and how the range was found.
struct Owner {
  std::int32_t range = 0;  // in events.host
  PhaseName name;
};

bool is_backward(Phase phase) {
  return phase == Phase::Backward || phase == Phase::BackwardInput ||
         phase == Phase::BackwardWeight;
}

class Owners {
 public:
  explicit Owners(const KinetoEvents& events) : events_(events) {
    for (const std::string& name : events.names) phases_.push_back(read_phase_name(name));
    index_ranges();
    index_operators();
    for (std::size_t i = 0; i < events.launches.size(); ++i) {
      launches_.emplace_back(events.launches[i].correlation, static_cast<std::int32_t>(i));
    }
    for (Numbered* entries : {&operators_, &forwards_, &launches_}) {
      std::stable_sort(entries->begin(), entries->end(),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
    }
  }

  std::optional<Owner> of(const DeviceActivity& event) const {
    const auto op = event.external == 0 ? std::nullopt : last_of(operators_, event.external);
    if (op && names_phase(events_.host[*op])) return owner(*op);
    const std::optional<Moment> moment = launch_of(event, op);
    if (!moment) return std::nullopt;
    const auto own = ranges_[moment->thread].at(moment->at);
    std::optional<Owner> around = own ? owner(*own) : other_thread(*moment);
    if (around && !is_backward(around->name.phase)) return around;
    // The range around a backward may know less of the model than the ranges of its forward.
    const std::optional<Owner> forward = forward_of(*moment);
    if (!forward || forward->name.phase != Phase::Forward) return around;
    if (around && around->name.part == forward->name.part) return around;
    const Phase phase = around ? around->name.phase : Phase::Backward;
    return Owner{forward->range, {phase, forward->name.part}};
  }

 private:
  const std::optional<PhaseName>& phase(const HostEvent& event) const {
    return phases_[event.name];
  }
  /// An operator may be called forward for reasons of its own; one that names a part is ours.
  bool names_phase(const HostEvent& event) const {
    const std::optional<PhaseName>& name = phase(event);
    return name && (event.annotation || !name->part.empty() || name->phase == Phase::Update);
  }
  Owner owner(std::int32_t range) const { return {range, *phase(events_.host[range])}; }

  void index_ranges() {
    std::vector<std::vector<NamedRange>> named(events_.process_of.size()), back(named.size());
    for (std::size_t i = 0; i < events_.host.size(); ++i) {
      const HostEvent& event = events_.host[i];
      const NamedRange range = {event.start, event.end, static_cast<std::int32_t>(i)};
      if (names_phase(event)) named[event.thread].push_back(range);
      if (event.backward && event.sequence >= 0) back[event.thread].push_back(range);
    }
    for (std::vector<NamedRange>& ranges : named) ranges_.emplace_back(std::move(ranges));
    for (std::vector<NamedRange>& ranges : back) backwards_.emplace_back(std::move(ranges));
  }

  void index_operators() {
    for (std::size_t i = 0; i < events_.host.size(); ++i) {
      const HostEvent& event = events_.host[i];
      const auto index = static_cast<std::int32_t>(i);
      if (event.external != 0) operators_.emplace_back(event.external, index);
      const bool forward = !event.backward && event.sequence >= 0 && !event.annotation;
      if (forward) forwards_.emplace_back(event.sequence, index);
    }
    // Operators without a backward have the number of the next one that has: the last is it.
    std::sort(forwards_.begin(), forwards_.end(), [&](const auto& a, const auto& b) {
      return events_.host[a.second].start < events_.host[b.second].start;
    });
  }

  std::optional<Moment> launch_of(const DeviceActivity& event,
                                  std::optional<std::int32_t> op) const {
    const auto launch =
        event.correlation == 0 ? std::nullopt : last_of(launches_, event.correlation);
    if (launch) return Moment{events_.launches[*launch].thread, events_.launches[*launch].at};
    if (op) return Moment{events_.host[*op].thread, events_.host[*op].start};
    return std::nullopt;
  }

  /// Returns the range of the forward whose backward is running.
  std::optional<Owner> forward_of(const Moment& moment) const {
    const auto back = backwards_[moment.thread].at(moment.at);
    if (!back) return std::nullopt;
    const auto forward = last_of(forwards_, events_.host[*back].sequence);
    if (!forward) return std::nullopt;
    const HostEvent& op = events_.host[*forward];
    const auto range = ranges_[op.thread].at(op.start);
    return range ? std::optional(owner(*range)) : std::nullopt;
  }

  /// Returns the range that another thread of the process is in, if it is the only one.
  std::optional<Owner> other_thread(const Moment& moment) const {
    std::optional<Owner> found;
    for (std::size_t thread = 0; thread < ranges_.size(); ++thread) {
      if (events_.process_of[thread] != events_.process_of[moment.thread]) continue;
      const auto range = ranges_[thread].at(moment.at);
      if (!range) continue;
      if (found) return std::nullopt;
      found = owner(*range);
    }
    return found;
  }

  const KinetoEvents& events_;
  std::vector<std::optional<PhaseName>> phases_;  // (names)
  std::vector<RangeIndex> ranges_, backwards_;    // (threads)
  Numbered operators_, forwards_, launches_;
};

/// Sums up the kernels of each occurrence; of those that run at once, the time is counted once.
void measure(const KinetoEvents& events, OpAttribution& result) {
  std::vector<std::tuple<std::int32_t, std::int64_t, std::int64_t>> kernels;
  for (std::size_t i = 0; i < events.device.size(); ++i) {
    const std::int32_t occurrence = result.occurrence_of[i];
    if (occurrence < 0) continue;
    kernels.emplace_back(occurrence, events.device[i].start, events.device[i].end);
  }
  std::sort(kernels.begin(), kernels.end());
  std::int32_t before = -1;
  for (const auto& [index, start, end] : kernels) {
    OpOccurrence& op = result.occurrences[index];
    if (index != before) op.start = op.end = start;
    before = index;
    op.busy += std::max<std::int64_t>(0, end - std::max(start, op.end));
    op.end = std::max(op.end, end);
  }
}

}  // namespace

OpAttribution attribute_ops(const KinetoEvents& events) {
  const Owners owners(events);
  OpAttribution result;
  std::map<std::pair<std::int32_t, Phase>, std::int32_t> known;
  for (const DeviceActivity& event : events.device) {
    const auto owner = event.work == DeviceWork::Kernel ? owners.of(event) : std::nullopt;
    result.occurrence_of.push_back(-1);
    if (!owner) continue;
    const auto [entry, is_new] =
        known.emplace(std::pair(owner->range, owner->name.phase),
                      static_cast<std::int32_t>(result.occurrences.size()));
    if (is_new) result.occurrences.push_back({.name = owner->name});
    result.occurrence_of.back() = entry->second;
  }
  measure(events, result);
  return result;
}

}  // namespace interlock
