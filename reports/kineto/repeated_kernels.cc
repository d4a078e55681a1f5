// Repeated kernels: finds the shortest part that comes again and again in a row.
// SPDX-License-Identifier: Apache-2.0
#include "reports/kineto/repeated_kernels.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "reports/kineto/module_frames.h"
#include "reports/kineto/phase_names.h"

namespace interlock {
namespace {

/// A kernel as a thread launched it.
struct Launched {
  std::int64_t at = 0;
  std::int32_t name = 0;
};
using LaunchSequence = std::vector<Launched>;

/// A part of `period` kernels that comes `count` times from `first` on.
struct Repeats {
  std::size_t first = 0, period = 1, count = 2;
  std::size_t end() const { return first + period * count; }
};

constexpr std::size_t kLongestPeriod = 4096;  // kernels of a layer

/// Returns the kernels of each thread in the order of their launches.
std::vector<LaunchSequence> launched_kernels(const KinetoEvents& events) {
  std::map<std::int64_t, const Launch*> launches;
  for (const Launch& launch : events.launches) launches[launch.correlation] = &launch;
  std::vector<LaunchSequence> threads(events.process_of.size());
  for (const DeviceActivity& event : events.device) {
    if (event.work != DeviceWork::Kernel || event.correlation == 0) continue;
    const auto launch = launches.find(event.correlation);
    if (launch == launches.end()) continue;
    const auto thread = static_cast<std::size_t>(launch->second->thread);
    threads[thread].push_back({launch->second->at, event.name});
  }
  for (LaunchSequence& thread : threads) {
    std::stable_sort(thread.begin(), thread.end(),
                     [](const Launched& a, const Launched& b) { return a.at < b.at; });
  }
  return threads;
}

/// Returns where a part of `period` kernels comes at least twice in a row, as often as it does.
std::vector<Repeats> repeats_of(const LaunchSequence& kernels, std::size_t period) {
  std::vector<Repeats> found;
  for (std::size_t first = 0; first + period < kernels.size();) {
    std::size_t last = first;
    while (last + period < kernels.size() && kernels[last].name == kernels[last + period].name) {
      ++last;
    }
    const std::size_t count = (last - first + period) / period;
    if (count >= 2) found.push_back({first, period, count});
    first = last + 1;
  }
  return found;
}

/// Returns the repeats of the shortest period that is most of `kernels` and comes equally often
/// each time; nothing if there is none.
std::vector<Repeats> layers_of(const LaunchSequence& kernels) {
  for (std::size_t period = 1; period <= std::min(kernels.size() / 2, kLongestPeriod); ++period) {
    std::vector<Repeats> found = repeats_of(kernels, period);
    std::size_t covered = 0;
    std::set<std::size_t> counts;
    for (const Repeats& one : found) {
      covered += one.period * one.count;
      counts.insert(one.count);
    }
    if (2 * covered > kernels.size() && counts.size() == 1) return found;
  }
  return {};
}

class Naming {
 public:
  explicit Naming(KinetoEvents& events) : events_(events), threads_(launched_kernels(events)) {
    std::vector<bool> updates;
    for (const std::string& name : events.names) {
      const auto phase = read_phase_name(name);
      updates.push_back(phase && phase->phase == Phase::Update);
    }
    for (const HostEvent& event : events.host) {
      if (updates[static_cast<std::size_t>(event.name)]) updates_.push_back(event);
    }
  }

  void run() {
    const std::size_t forwards = first_thread();
    if (forwards == threads_.size()) return;
    const std::vector<Repeats> layers = layers_of(threads_[forwards]);
    if (layers.empty() || is_interrupted(forwards, layers)) return;
    const std::size_t count = layers.front().count;
    name_layers(forwards, layers, "forward", false);
    for (std::size_t i = 0; i < layers.size(); ++i) name_rest(forwards, layers, i);
    for (std::size_t thread = 0; thread < threads_.size(); ++thread) {
      if (!shares_process(thread, forwards)) continue;
      const std::vector<Repeats> back = layers_of(threads_[thread]);
      const bool equal = !back.empty() && back.size() == layers.size();
      if (equal && back.front().count == count) name_layers(thread, back, "backward", true);
    }
  }

 private:
  /// Returns the thread that launches first.
  std::size_t first_thread() const {
    std::size_t first = threads_.size();
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      if (threads_[i].empty()) continue;
      if (first == threads_.size() || threads_[i].front().at < threads_[first].front().at)
        first = i;
    }
    return first;
  }

  bool shares_process(std::size_t thread, std::size_t forwards) const {
    return thread != forwards && events_.process_of[thread] == events_.process_of[forwards];
  }

  /// Returns the first launch at or after `from` by another thread of the process; nothing if none
  /// follows before `end`.
  std::optional<std::int64_t> other_launch(std::size_t forwards, std::int64_t from,
                                           std::int64_t end) const {
    std::optional<std::int64_t> found;
    for (std::size_t thread = 0; thread < threads_.size(); ++thread) {
      if (!shares_process(thread, forwards)) continue;
      const LaunchSequence& kernels = threads_[thread];
      const auto next =
          std::lower_bound(kernels.begin(), kernels.end(), from,
                           [](const Launched& kernel, std::int64_t at) { return kernel.at < at; });
      if (next == kernels.end() || next->at >= end) continue;
      found = std::min(found.value_or(next->at), next->at);
    }
    return found;
  }

  /// Returns true if other threads launch kernels between repeats: then those are micro-batches.
  bool is_interrupted(std::size_t forwards, const std::vector<Repeats>& layers) const {
    const LaunchSequence& kernels = threads_[forwards];
    return std::any_of(layers.begin(), layers.end(), [&](const Repeats& one) {
      return other_launch(forwards, kernels[one.first].at, kernels[one.end() - 1].at).has_value();
    });
  }

  void name(std::size_t thread, std::size_t first, std::size_t end, const std::string& text) {
    const auto [known, is_new] =
        names_.emplace(text, static_cast<std::int32_t>(events_.names.size()));
    if (is_new) events_.names.push_back(text);
    events_.host.push_back({.start = threads_[thread][first].at,
                            .end = threads_[thread][end - 1].at,
                            .name = known->second,
                            .thread = static_cast<std::int32_t>(thread),
                            .annotation = true});
  }

  void name_layers(std::size_t thread, const std::vector<Repeats>& layers, const std::string& phase,
                   bool last_first) {
    for (const Repeats& one : layers) {
      for (std::size_t i = 0; i < one.count; ++i) {
        const std::size_t layer = last_first ? one.count - 1 - i : i;
        const std::size_t first = one.first + i * one.period;
        name(thread, first, first + one.period, phase + " layer " + std::to_string(layer));
      }
    }
  }

  /// Returns when the last update that begins before `moment` ends on a thread.
  std::int64_t update_before(std::size_t thread, std::int64_t moment) const {
    std::int64_t last = std::numeric_limits<std::int64_t>::min();
    for (const HostEvent& event : updates_) {
      if (static_cast<std::size_t>(event.thread) != thread || event.start >= moment) continue;
      last = std::max(last, event.end);
    }
    return last;
  }

  /// Names what a forward has before its layers, since the backward and the update before it, and
  /// behind them, until another thread goes on.
  void name_rest(std::size_t thread, const std::vector<Repeats>& layers, std::size_t index) {
    const LaunchSequence& kernels = threads_[thread];
    const Repeats& own = layers[index];
    const std::int64_t begin = kernels[own.first].at, updated = update_before(thread, begin);
    std::size_t first = index == 0 ? 0 : layers[index - 1].end();
    const bool alone = index > 0 && !other_launch(thread, kernels[first - 1].at, begin);
    while (first < own.first && (alone || kernels[first].at <= updated ||
                                 other_launch(thread, kernels[first].at, begin))) {
      ++first;
    }
    if (first < own.first) name(thread, first, own.first, "forward before");
    const std::size_t next = index + 1 < layers.size() ? layers[index + 1].first : kernels.size();
    std::size_t last = own.end();
    while (last < next && !other_launch(thread, kernels[own.end() - 1].at, kernels[last].at))
      ++last;
    if (own.end() < last) name(thread, own.end(), last, "forward behind");
  }

  KinetoEvents& events_;
  std::vector<LaunchSequence> threads_;
  std::vector<HostEvent> updates_;
  std::map<std::string, std::int32_t> names_;
};

}  // namespace

void name_repeated_kernels(KinetoEvents& events) {
  if (!names_its_parts(events)) Naming(events).run();
}

}  // namespace interlock
