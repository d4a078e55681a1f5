// One calibration: launches, streams, kernels, copies, neighbours; then the fits.
// SPDX-License-Identifier: Apache-2.0
#include "validate/calibration/calibration.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "hardware/devices/calibrated_model.h"
#include "hardware/devices/device.h"
#include "validate/calibration/least_squares.h"
#include "validate/calibration/model_fit.h"
#include "validate/calibration/probe_grid.h"
#include "validate/calibration/protocol.h"

namespace interlock {
namespace {

constexpr double kLeastMessage = 4096, kMostMessage = 32e6;  // bytes

void tell(const CalibrationOptions& options, const std::string& sentence) {
  if (options.progress) options.progress(sentence);
}

Protocol protocol_of(const CalibrationOptions& options) {
  return {.readings = options.quick ? 15 : 31,
          .seed = static_cast<std::uint64_t>(options.seed),
          .beside = options.beside,
          .progress = options.progress};
}

GridSize grid_of(const Bench& bench, const CalibrationOptions& options, Precision precision) {
  GridSize grid = {.most_flops = bench.most_flops[static_cast<std::size_t>(precision)],
                   .most_bytes = bench.most_bytes * 0.5,
                   .seed = static_cast<std::uint64_t>(options.seed),
                   .longest_side = bench.longest_side};
  if (!options.quick) return grid;
  grid.linears = 24;
  grid.attentions = 8;
  grid.convolutions = 10;
  grid.sizes = 9;
  grid.most_flops *= 0.3;
  grid.most_bytes *= 0.5;
  return grid;
}

double size_of(const Probe& probe) {
  return probe.work.flops > Flops(0) ? probe.work.flops.value() : probe.work.bytes.value();
}

/// Returns the probes of the grid, and those that scenarios want in the place of equal ones: two
/// rows of one work would contradict each other.
std::vector<Probe> all_probes(const Bench& bench, const CalibrationOptions& options) {
  if (options.warm && !bench.cold) {
    throw Error("processors are always measured with warm caches; leave --warm out");
  }
  std::vector<Probe> probes = options.wanted;
  for (const Probe& probe : probes) {
    const auto& known = bench.precisions;
    if (std::find(known.begin(), known.end(), probe.precision) != known.end()) continue;
    throw Error("a scenario trains in " +
                precision_names()[static_cast<std::size_t>(probe.precision)] +
                ", in which this device is not measured; expected \"training.precision\": " +
                in_quotes(precision_names()[static_cast<std::size_t>(known.front())]));
  }
  for (const Precision precision : bench.precisions) {
    for (const Probe& probe : probe_grid(grid_of(bench, options, precision), precision)) {
      const bool wanted =
          std::any_of(options.wanted.begin(), options.wanted.end(), [&](const Probe& one) {
            return one.precision == precision && is_same_kernel(one.work, probe.work);
          });
      if (!wanted) probes.push_back(probe);
    }
  }
  for (Probe& probe : probes) probe.warm = options.warm;
  return probes;
}

/// Times the probe of middle size of each class, alone and beside others.
std::vector<Slowdown> slowdowns(const Bench& bench, std::vector<Probe> probes, int readings) {
  std::sort(probes.begin(), probes.end(),
            [](const Probe& a, const Probe& b) { return size_of(a) < size_of(b); });
  std::map<OpClass, std::vector<const Probe*>> classes;
  for (const Probe& probe : probes) classes[probe.work.op_class].push_back(&probe);
  std::vector<Slowdown> found;
  for (const auto& [op_class, members] : classes) {
    const Probe& probe = *members[members.size() / 2];
    const auto time = [&](Beside beside) {
      return sample_of(probe, bench.time(probe, readings, beside)).time;
    };
    const Seconds alone = time(Beside::Nothing);
    for (const Beside beside : {Beside::Products, Beside::Copies}) {
      found.push_back({op_class, beside, time(beside) / alone});
    }
  }
  return found;
}

std::optional<LinkSpeed> link_of(const Bench& bench, const CalibrationOptions& options) {
  if (!bench.copy) return std::nullopt;
  const int sizes = options.quick ? 5 : 9;
  std::vector<StreamPoint> messages;
  for (int i = 0; i < sizes; ++i) {
    const double growth = std::pow(kMostMessage / kLeastMessage, i / (sizes - 1.0));
    const Bytes bytes(std::floor(kLeastMessage * growth));
    const Readings readings = bench.copy(bytes, protocol_of(options).readings);
    messages.push_back({bytes, sample_of({}, readings).wall});
  }
  return fit_link(messages);
}

/// Times each collective by size, among all devices and among halves of them.
void time_collectives(const Bench& bench, const CalibrationOptions& options, Calibration& result) {
  if (!bench.collective) return;
  constexpr double kLeast = 16384;
  const double growth = bench.most_exchanged.value() / kLeast;
  const int sizes = options.quick ? 6 : 12, readings = protocol_of(options).readings;
  for (const CollectiveKind kind : bench.collectives) {
    for (int members = bench.most_members; members >= 2; members /= 2) {
      std::vector<StreamPoint> points;
      for (int i = 0; i < sizes; ++i) {
        // Numbers of four bytes at most, as many for each member.
        const double unit = 4.0 * members;
        const double even = kLeast * std::pow(growth, i / (sizes - 1.0));
        const Bytes bytes(std::max(1.0, std::floor(even / unit)) * unit);
        const Sample one = sample_of({}, bench.collective(kind, members, bytes, readings));
        result.collectives.push_back({kind, members, bytes, one.time, one.low, one.high});
        points.push_back({sent_by_each(kind, members, bytes), one.time});
      }
      result.network.push_back({kind, members, fit_link(points)});
    }
  }
}

}  // namespace

LinkSpeed fit_link(const std::vector<StreamPoint>& messages) {
  CHECK(messages.size() > 1, "messages of two sizes");
  const ResidualsOf residuals = [&](const Eigen::VectorXd& at) -> Eigen::VectorXd {
    Eigen::VectorXd values(static_cast<Eigen::Index>(messages.size()));
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const double time = std::exp(at[0]) + messages[i].bytes.value() / std::exp(at[1]);
      values[static_cast<Eigen::Index>(i)] = std::log(time / messages[i].time.value());
    }
    return values;
  };
  const StreamPoint &least = messages.front(), &most = messages.back();
  const Eigen::Vector2d guess(std::log(least.time.value()),
                              std::log(most.bytes.value() / most.time.value()));
  const Eigen::VectorXd found = least_squares(residuals, guess);
  return {Seconds(std::exp(found[0])), BytesPerSecond(std::exp(found[1]))};
}

Calibration calibrate(const Bench& bench, const CalibrationOptions& options) {
  const Protocol protocol = protocol_of(options);
  Calibration result = {.facts = bench.facts, .options = options};
  tell(options, "launches");
  result.launch = sample_of({}, bench.launch(protocol.readings)).time;
  const std::vector<Probe> probes = all_probes(bench, options);
  tell(options, "streams");
  Protocol quietly = protocol;
  quietly.progress = {};
  const MeasuredSamples streams = measure(
      bench, stream_probes(options.quick ? 10 : 16, bench.most_bytes, bench.precisions.front()),
      quietly);
  const MeasuredSamples kernels = measure(bench, probes, protocol);
  result.streams = streams.samples;
  result.samples = kernels.samples;
  result.rejected = streams.rejected + kernels.rejected;
  result.drift = kernels.drift;
  if (result.streams.empty() || result.samples.size() < probes.size() / 4) {
    throw Error("hardly anything could be measured: " + std::to_string(result.rejected) +
                " measurements scatter by more than " +
                std::to_string(static_cast<int>(100 * bench.most_spread)) +
                " %; try again when the machine is idle");
  }
  tell(options, "copies between workers");
  result.copies = link_of(bench, options);
  if (bench.collective) tell(options, "collectives");
  time_collectives(bench, options, result);
  tell(options, "kernels beside others");
  result.interference = slowdowns(bench, probes, protocol.readings);
  tell(options, "fits");
  const std::vector<StreamPoint> stream = fit_stream(result.streams, result.launch);
  result.model = fit_model(result.samples, stream);
  result.errors = held_out_errors(result.samples, stream, options.seed);
  return result;
}

}  // namespace interlock
