// The steps of cycles as a list of events, and metrics of steps and outer steps added up.
// SPDX-License-Identifier: Apache-2.0
#include "sim/measure/outer_cycle.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"

namespace interlock {
namespace {

/// Cycles after which an average is taken where they do not repeat yet: a network that is hardly
/// too slow falls behind for long.
constexpr int kCyclesToSettle = 2000;
constexpr double kSameCycle = 1e-12;  // of a cycle

/// Cycles in a row.
class Cycles {
 public:
  Cycles(const OuterCycle& cycle, Seconds step) : cycle_(cycle), step_(step) {}

  /// Runs one more cycle; returns the time at its end.
  Seconds next() {
    for (int exchange = 0; exchange < cycle_.exchanges; ++exchange) {
      const std::int64_t begins =
          cycles_ * cycle_.every + std::int64_t{cycle_.every} * (exchange + 1) / cycle_.exchanges;
      apply_until(begins);
      pass_to(begins);
      network_free_ = std::max(network_free_, now_) + cycle_.exchange;
      under_way_.push_back({begins + cycle_.overlap, network_free_});
      if (cycle_.overlap == 0) apply_until(begins);
    }
    ++cycles_;  // the last exchange begins with the last step
    return now_;
  }

 private:
  struct UnderWay {
    std::int64_t wait_after;  // steps
    Seconds done;
  };

  void pass_to(std::int64_t step) {
    now_ += step_ * static_cast<double>(step - steps_);
    steps_ = step;
  }

  /// Applies what is waited for after `step` or sooner.
  void apply_until(std::int64_t step) {
    while (!under_way_.empty() && under_way_.front().wait_after <= step) {
      pass_to(under_way_.front().wait_after);
      now_ = std::max(now_, under_way_.front().done) + cycle_.apply;
      under_way_.pop_front();
    }
  }

  const OuterCycle& cycle_;
  Seconds step_, now_, network_free_;
  std::int64_t steps_ = 0, cycles_ = 0;
  std::deque<UnderWay> under_way_;
};

/// Spreads what is done in every outer step over the steps of a cycle.
struct OuterShares {
  double outer_steps = 0;  // for each step
  Seconds before, after;   // step times
  Seconds outer;           // time of an outer step's run
  double share(double of_step, double of_outer) const {
    return (of_step * before + of_outer * outer_steps * outer) / after;
  }
};

/// Adds what each device does in outer steps; what is left of the longer steps it waits.
void add_devices(const OuterShares& shares, const Metrics& outer, Metrics& metrics) {
  const auto exposed = static_cast<std::size_t>(TimeUse::Exposed);
  Seconds all_waiting(0);
  metrics.busy = 0;
  for (std::size_t d = 0; d < metrics.devices.size(); ++d) {
    DeviceMetrics& device = metrics.devices[d];
    const double updating = shares.outer > Seconds(0) ? outer.devices.at(d).busy : 0;
    const Seconds updates = updating * shares.outer_steps * shares.outer;
    const Seconds waiting = std::max(shares.after - shares.before - updates, Seconds(0));
    for (double& part : device.time) part = shares.share(part, 0);
    device.time[static_cast<std::size_t>(TimeUse::Update)] += updates / shares.after;
    device.time[exposed] += waiting / shares.after;
    device.busy = shares.share(device.busy, updating);
    device.useful = shares.share(device.useful, 0);
    metrics.busy += device.busy / static_cast<double>(metrics.devices.size());
    all_waiting += waiting;
    if (!metrics.explanation) continue;
    metrics.explanation->devices[d][static_cast<std::size_t>(BubbleCause::Exchange)] +=
        waiting.value();
  }
  const Seconds waiting = all_waiting / static_cast<double>(metrics.devices.size());
  metrics.exposed_communication += waiting;
  metrics.limiting_device = first_of_busiest(metrics.devices);
  if (!metrics.explanation) return;
  PathUse& path = metrics.explanation->path;
  const double stands = (shares.after - shares.before).value();
  path.collectives += waiting.value();
  path.ops[static_cast<std::size_t>(OpKind::U)] += stands - waiting.value();
}

/// Returns the names of the links that link `l` of a program stands for, its own first.
std::vector<std::string> names_of(const Program& program, std::size_t l) {
  std::vector<std::string> names = {program.links[l].name};
  const std::vector<std::string>& likes = program.links[l].likes;
  names.insert(names.end(), likes.begin(), likes.end());
  return names;
}

/// Returns by link of `outer` the link of `measured` that stands for the same ones, which is added
/// if there is none.
std::vector<std::size_t> same_links(const Measurement& outer, Measurement& measured) {
  std::unordered_map<std::string, std::size_t> known;
  std::vector<LinkMetrics>& links = measured.metrics.links;
  for (std::size_t l = 0; l < links.size(); ++l) {
    for (const std::string& name : names_of(measured.program, l)) known[name] = l;
  }
  std::vector<std::size_t> same;
  for (std::size_t l = 0; l < outer.metrics.links.size(); ++l) {
    const std::vector<std::string> names = names_of(outer.program, l);
    const auto at =
        std::ranges::find_if(names, [&](const std::string& name) { return known.contains(name); });
    same.push_back(at == names.end() ? links.size() : known[*at]);
    if (at != names.end()) continue;
    const LinkMetrics& link = outer.metrics.links[l];
    links.push_back({.name = link.name, .stands_for = link.stands_for});
  }
  return same;
}

/// Adds the bytes of outer steps, on average over the links that one stands for.
void add_links(const OuterShares& shares, const Metrics& outer,
               const std::vector<std::size_t>& same, Metrics& metrics) {
  for (LinkMetrics& link : metrics.links) link.utilisation = shares.share(link.utilisation, 0);
  for (std::size_t l = 0; l < outer.links.size(); ++l) {
    LinkMetrics& whole = metrics.links[same[l]];
    const double part = static_cast<double>(outer.links[l].stands_for) / whole.stands_for;
    whole.bytes += outer.links[l].bytes * part * shares.outer_steps;
    whole.utilisation += shares.share(0, outer.links[l].utilisation * part);
  }
}

/// Returns the time in which the busiest link carries what it has to in a cycle.
Seconds busiest_link(const OuterCycle& cycle, const Metrics& outer,
                     const std::vector<std::size_t>& same, const Metrics& metrics) {
  std::vector<Seconds> carries;
  for (const LinkMetrics& link : metrics.links) {
    carries.push_back(link.utilisation * cycle.every * metrics.step_time);
  }
  for (std::size_t l = 0; l < outer.links.size(); ++l) {
    const double part =
        static_cast<double>(outer.links[l].stands_for) / metrics.links[same[l]].stands_for;
    carries[same[l]] += outer.links[l].utilisation * part * cycle.exchanges * outer.step_time;
  }
  return carries.empty() ? Seconds(0) : *std::max_element(carries.begin(), carries.end());
}

}  // namespace

int exchanges_within(double share, const OuterCycle& cycle, Seconds step) {
  const double fit = share * cycle.every * step.value() / cycle.exchange.value();
  const std::int64_t back =
      std::int64_t{cycle.exchanges} * cycle.every / std::max(cycle.overlap, 1);
  const int most = static_cast<int>(std::min<std::int64_t>(back, cycle.every));
  if (!(fit < most)) return most;
  return std::max(cycle.exchanges, static_cast<int>(fit));
}

Seconds cycle_time(const OuterCycle& cycle, Seconds step) {
  Cycles cycles(cycle, step);
  constexpr int kHalf = kCyclesToSettle / 2;
  Seconds before = cycles.next(), took(-1), halfway(0);
  int repeated = 0;
  for (int i = 1; i < kCyclesToSettle; ++i) {
    const Seconds end = cycles.next(), now = end - before;
    const double differs = (now - took).value();
    repeated = std::abs(differs) <= kSameCycle * now.value() ? repeated + 1 : 0;
    // An exchange may be under way for a whole cycle, and be waited for in the next.
    if (repeated == 3) return now;
    if (i == kHalf) halfway = end;
    took = now;
    before = end;
  }
  return (before - halfway) / (kCyclesToSettle - 1 - kHalf);
}

void add_outer_steps(const OuterCycle& cycle, const Measurement& outer, Measurement& measured) {
  Metrics& metrics = measured.metrics;
  CHECK(outer.metrics.devices.size() == metrics.devices.size(), "outer steps of the same devices");
  const std::vector<std::size_t> same = same_links(outer, measured);
  const Seconds all = std::max(cycle_time(cycle, metrics.step_time),
                               busiest_link(cycle, outer.metrics, same, metrics));
  const OuterShares shares = {.outer_steps = static_cast<double>(cycle.exchanges) / cycle.every,
                              .before = metrics.step_time,
                              .after = all / cycle.every,
                              .outer = outer.metrics.step_time};
  metrics.outer_exchanges = cycle.exchanges;
  metrics.outer_exchange_s = cycle.exchange.value();
  metrics.outer_exposed_s = (shares.after - shares.before).value();
  if (shares.after <= Seconds(0)) return;
  add_devices(shares, outer.metrics, metrics);
  add_links(shares, outer.metrics, same, metrics);
  metrics.useful = shares.share(metrics.useful, 0);
  for (auto* share : {&metrics.mfu, &metrics.hfu}) {
    if (*share) *share = shares.share(**share, 0);
  }
  metrics.step_time = shares.after;
}

}  // namespace interlock
