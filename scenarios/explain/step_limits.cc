// Divides a step among what it waits for.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/explain/step_limits.h"

#include <algorithm>
#include <cmath>

namespace interlock {
namespace {

using Part = StepPiece::Kind;
constexpr double kAsBusy = 0.01;   // of a step
constexpr double kNothing = 1e-9;  // of a step

/// Seconds of a window, a step's share of which is kept.
class Parts {
 public:
  explicit Parts(int steps) : steps_(steps) {}
  void add(Part kind, int rank, const std::string& where, double seconds) {
    if (seconds <= 0) return;
    for (StepPiece& part : parts_) {
      if (part.kind != kind || part.rank != rank || part.where != where) continue;
      part.seconds += seconds / steps_;
      return;
    }
    parts_.push_back({kind, rank, where, seconds / steps_});
  }
  double sum() const {
    double sum = 0;
    for (const StepPiece& part : parts_) sum += part.seconds;
    return sum;
  }
  const std::vector<StepPiece>& all() const { return parts_; }

 private:
  int steps_;
  std::vector<StepPiece> parts_;
};

const char* group_words(MeshAxis axis) {
  switch (axis) {
    case MeshAxis::Tensor:
    case MeshAxis::TensorRow:
    case MeshAxis::TensorColumn:
    case MeshAxis::TensorDepth:
      return "tensor devices";
    case MeshAxis::Context:
      return "context devices";
    case MeshAxis::ContextRows:
    case MeshAxis::ContextColumns:
      return "devices with parts of sequences or images";
    case MeshAxis::Expert:
    case MeshAxis::ExpertTensor:
      return "experts";
    case MeshAxis::Data:
    case MeshAxis::Shard:
    case MeshAxis::Replica:
    case MeshAxis::ExpertData:
      return "data devices";
    case MeshAxis::Resharding:
      return "devices between layers of different degrees";
    case MeshAxis::ToHost:
    case MeshAxis::FromHost:
      return "devices and hosts";
    case MeshAxis::Pipeline:
    case MeshAxis::FromFirst:
    case MeshAxis::FromLast:
      return "pipeline ranks";
  }
  return "";
}

/// Returns the narrowest link of a wire, the first of equals.
std::string narrowest_link(const Program& program, int wire) {
  std::string name;
  BytesPerSecond least(kInfinity);
  for (const int index : program.wires[wire].links) {
    const ProgramLink& link = program.links[index];
    if (link.bandwidth >= least) continue;
    least = link.bandwidth;
    name = link.name;
  }
  return name;
}

std::string link_of(const Program& program, const Channel& channel) {
  const int wire = channel.flows.empty() ? channel.wire : channel.flows.front().wire;
  return wire < 0 ? "" : narrowest_link(program, wire);
}

/// Adds the kernels that the busiest device executes.
void add_kernels(const Measurement& run, int rank, Parts& parts) {
  const TimeWindow window = window_of(run.metrics);
  for (const Span& span : run.log.spans) {
    if (span.rank != rank) continue;
    const double seconds = window.share(run.program, span) * (span.end - span.start).value();
    if (seconds <= 0) continue;
    const OpInfo& op = run.program.ops[span.op];
    const double inside =
        op.duration > Seconds(0) ? std::min(1.0, op.communication / op.duration) : 0;
    const double launches = std::max(0.0, 1 - op.compute_bound - op.memory_bound - inside);
    const std::string group =
        op.inside.empty() ? "" : group_words(run.program.collectives[op.inside.front().first].axis);
    parts.add(Part::Compute, rank, "", op.compute_bound * seconds);
    parts.add(Part::Memory, rank, "", op.memory_bound * seconds);
    parts.add(Part::Launches, rank, "", launches > kNothing ? launches * seconds : 0);
    parts.add(Part::Inside, rank, group, inside * seconds);
  }
}

/// The transfers of the critical path.
void add_transfers(const Measurement& run, const std::vector<PathPart>& path, Parts& parts) {
  for (const PathPart& stretch : path) {
    const double whole = (stretch.end - stretch.begin).value();
    if (stretch.node.kind == TraceNode::Kind::Transfer) {
      const Transfer& transfer = run.log.transfers[stretch.node.index];
      const Channel& channel = run.program.channels[transfer.channel];
      const double wire = std::clamp((transfer.end - stretch.begin).value(), 0.0, whole);
      parts.add(Part::Transfer, -1, link_of(run.program, channel), wire);
      parts.add(Part::Latency, -1, link_of(run.program, channel), whole - wire);
    } else if (stretch.node.kind == TraceNode::Kind::Collective) {
      const CollectiveSpan& span = run.log.collectives[stretch.node.index];
      const Collective& collective = run.program.collectives[span.collective];
      const Seconds alone = collective.occupancy + collective.latency;
      const double latency = alone > Seconds(0) ? collective.latency / alone : 0;
      parts.add(Part::Transfer, -1, group_words(collective.axis), (1 - latency) * whole);
      parts.add(Part::Latency, -1, group_words(collective.axis), latency * whole);
    } else if (stretch.node.kind == TraceNode::Kind::Begin) {
      parts.add(Part::Unknown, -1, "", whole);
    }
  }
}

PathShare share_of(const Measurement& run, const PathPart& stretch) {
  PathShare share;
  switch (stretch.node.kind) {
    case TraceNode::Kind::Span: {
      const Span& span = run.log.spans[stretch.node.index];
      share.op = run.program.ops[span.op].kind;
      share.rank = span.rank;
      break;
    }
    case TraceNode::Kind::Transfer: {
      const Channel& channel = run.program.channels[run.log.transfers[stretch.node.index].channel];
      share.kind = PathShare::Kind::Message;
      share.cargo = channel.cargo;
      share.link = link_of(run.program, channel);
      break;
    }
    case TraceNode::Kind::Collective: {
      const CollectiveSpan& span = run.log.collectives[stretch.node.index];
      share.kind = PathShare::Kind::Collective;
      share.collective = run.program.collectives[span.collective].kind;
      share.axis = run.program.collectives[span.collective].axis;
      break;
    }
    case TraceNode::Kind::Begin:
      share.kind = PathShare::Kind::Unknown;
      break;
  }
  return share;
}

bool alike(const PathShare& a, const PathShare& b) {
  return a.kind == b.kind && a.op == b.op && a.rank == b.rank && a.cargo == b.cargo &&
         a.link == b.link && a.collective == b.collective && a.axis == b.axis;
}

std::vector<PathShare> shares_of(const Measurement& run, const std::vector<PathPart>& path) {
  std::vector<PathShare> shares;
  for (const PathPart& stretch : path) {
    const PathShare one = share_of(run, stretch);
    auto found = std::find_if(shares.begin(), shares.end(),
                              [&](const PathShare& share) { return alike(share, one); });
    if (found == shares.end()) found = shares.insert(shares.end(), one);
    found->seconds += (stretch.end - stretch.begin).value() / run.metrics.measured_steps;
  }
  return shares;
}

/// Adds the busy time of a device of which there are no spans.
void add_busy(const Metrics& metrics, int rank, Parts& parts) {
  const DeviceMetrics& device = metrics.devices[rank];
  parts.add(Part::Compute, rank, "",
            device.busy * metrics.step_time.value() * metrics.measured_steps);
}

template <class T>
void sort_longest_first(std::vector<T>& list) {
  std::stable_sort(list.begin(), list.end(),
                   [](const T& a, const T& b) { return a.seconds > b.seconds; });
}

/// Returns the path, and the transfers on it; without causes the exposed communication of the
/// device.
std::vector<PathShare> find_transfers(const Measurement& run, int rank, Parts& transfers) {
  const Metrics& metrics = run.metrics;
  const auto causes = metrics.explanation && !run.log.spans.empty()
                          ? find_causes(run.program, run.log)
                          : std::nullopt;
  if (!causes) {
    const double exposed = metrics.devices[rank].time[static_cast<std::size_t>(TimeUse::Exposed)];
    transfers.add(Part::Transfer, -1, "",
                  exposed * metrics.step_time.value() * metrics.measured_steps);
    return {};
  }
  const auto path = critical_path(run.log, *causes, metrics.window_begin, metrics.window_end);
  add_transfers(run, path, transfers);
  std::vector<PathShare> shares = shares_of(run, path);
  sort_longest_first(shares);
  return shares;
}

}  // namespace

StepLimits step_limits(const ScenarioResult& result) {
  const Measurement& run = result.measurement;
  const Metrics& metrics = run.metrics;
  const double step = metrics.step_time.value();
  StepLimits limits{.rank = metrics.limiting_device};
  if (metrics.devices.empty()) return limits;
  const double most = metrics.devices[limits.rank].busy;
  for (const DeviceMetrics& device : metrics.devices) {
    if (device.busy > most - kAsBusy) limits.as_busy.push_back(device.rank);
  }
  Parts kernels(metrics.measured_steps), transfers(metrics.measured_steps);
  limits.path = find_transfers(run, limits.rank, transfers);
  if (limits.path.empty()) {
    add_busy(metrics, limits.rank, kernels);
  } else {
    add_kernels(run, limits.rank, kernels);
  }
  const double idle = std::max(0.0, step - kernels.sum());
  const double moved = transfers.sum();
  limits.parts = kernels.all();
  for (StepPiece part : transfers.all()) {
    part.seconds *= std::min(1.0, moved > 0 ? idle / moved : 0);
    limits.parts.push_back(part);
  }
  const double bubble = idle - moved;
  if (bubble > kNothing * step) limits.parts.push_back({Part::Bubble, -1, "", bubble});
  std::erase_if(limits.parts,
                [&](const StepPiece& part) { return part.seconds <= kNothing * step; });
  sort_longest_first(limits.parts);
  return limits;
}

}  // namespace interlock
