// Refuses absurd runs: too large, too long to write down, or impossible to order.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "base/text.h"
#include "scenarios/load/loader.h"

namespace interlock {
namespace {

constexpr double kMostOpsOfRun = 2e9;                   // of a run
constexpr double kMostOpsSearched = 1e6;                // of a step that "auto" looks for
constexpr double kMostOpsInFlight = 4e6;                // of all micro-batches under way
constexpr double kLongestPattern = 2e7;                 // ops until the order of work repeats
constexpr std::int64_t kLongestPeriod = 1'000'000'000;  // micro-batches

/// Returns the ops of a stage for one micro-batch: its gradients, at most, and the others.
double ops_per_stage(const Question& question, int stages) {
  const Strategy& strategy = question.training().strategy;
  double gradients = 1;
  if (strategy.kind == StrategyKind::Interlocking) {
    const std::vector<int>& own = strategy.n_of_losses;
    const int most = own.empty() ? strategy.n_wise : *std::max_element(own.begin(), own.end());
    gradients = strategy.sought ? stages : std::min(most, stages);
  }
  if (strategy.kind == StrategyKind::Overlapping) gradients = 2;
  if (strategy.kind == StrategyKind::BackLink) gradients = 2;
  return 2 + gradients;
}

/// Returns the micro-batches until local, interlocking and naive orders repeat; 0 if beyond
/// counting.
std::int64_t pattern_length(const Question& question) {
  const Training& training = question.training();
  const std::int64_t readout =
      std::int64_t{training.strategy.readout_every} * training.micro_batches;
  std::int64_t length =
      std::lcm<std::int64_t>(training.schedule.update_every, training.schedule.in_flight);
  if (readout > kLongestPeriod) return 0;
  if (readout > 0) length = std::lcm(length, readout);
  return length > kLongestPeriod ? 0 : length;
}

std::string in_words(double ops) { return format_number(ops); }

}  // namespace

void check_size(const Question& question, int stages, int slices, const JsonNode& place,
                Diagnostics& diagnostics) {
  const Training& training = question.training();
  if (training.schedule.copies_on_compute_stream && stages > question.layout.ranks()) {
    report(diagnostics, place,
           "copies on the compute stream leave a device one stage; expected " +
               std::to_string(question.layout.ranks()) + " stages, got " + std::to_string(stages));
    return;
  }
  const double once = ops_per_stage(question, stages) * stages;
  const double micro_batches =
      static_cast<double>(training.micro_batches) * slices * training.steps;
  if (once * micro_batches > kMostOpsOfRun) {
    report(diagnostics, place,
           "the run has about " + in_words(once * micro_batches) +
               " ops (stages x micro-batches "
               "x steps); expected at most " +
               in_words(kMostOpsOfRun));
    return;
  }
  if (training.schedule.kind->order == OrderSource::Search &&
      once * training.micro_batches > kMostOpsSearched) {
    report(diagnostics, place,
           "\"auto\" would look for the order of about " + in_words(once * training.micro_batches) +
               " ops (stages x micro-batches); expected at most " + in_words(kMostOpsSearched) +
               ", or the name of a schedule");
    return;
  }
  const double in_flight = std::min<double>(training.schedule.in_flight, micro_batches) * slices;
  if (once * in_flight > kMostOpsInFlight) {
    report(diagnostics, place,
           "the micro-batches in flight take " + in_words(once * in_flight) +
               " ops; expected at most " + in_words(kMostOpsInFlight));
    return;
  }
  if (training.schedule.kind->flushes) return;
  const std::int64_t length = pattern_length(question);
  const double pattern = std::min(static_cast<double>(length), micro_batches) * once;
  if (length == 0 || pattern > kLongestPattern) {
    report(diagnostics, place,
           "the order of work repeats only after " +
               (length == 0 ? "billions of" : in_words(pattern)) + " ops; expected at most " +
               in_words(kLongestPattern) +
               ", by a smaller \"update_every\", \"in_flight\" or \"stale_every\"");
  }
}

}  // namespace interlock
