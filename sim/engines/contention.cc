// Who is alone on a link, who meets whom, and the native engine's clock of flows.
// SPDX-License-Identifier: Apache-2.0
#include "sim/engines/contention.h"

#include <algorithm>

#include "base/error.h"
#include "sim/sharing/binding_links.h"
#include "sim/sharing/fair_share.h"

namespace interlock {

Contention::Contention(const Program& program, EventLoop& loop)
    : program_(program),
      loop_(loop),
      ways_(binding_links(program)),
      wires_(program.wires.size()),
      links_(program.links.size()) {
  loop.start_shared = [this](int wire, Bytes bytes, double occupancy) {
    start(wire, bytes, occupancy);
  };
  loop.on_timer = [this](int wire, std::uint32_t g) { alone_ended(wire, g); };
}

void Contention::start(int index, Bytes bytes, double occupancy) {
  const auto& ways = ways_[index];
  WireState& wire = wires_[index];
  wire.started = loop_.now();
  wire.occupancy = occupancy;
  wire.bytes = bytes.value();
  for (const int link : ways) forget_ended(link);
  const bool idle = std::all_of(ways.begin(), ways.end(), [&](int link) {
    return links_[link].alone < 0 && links_[link].flows == 0;
  });
  if (idle || wire.bytes == 0) {
    if (idle) {
      for (const int link : ways) links_[link].alone = index;
    }
    loop_.set_timer(wire.started + wire.occupancy, index, wire.generation);
    return;
  }
  for (const int link : ways) {
    if (links_[link].alone >= 0) promote(links_[link].alone);
  }
  start_flow(index, wire.bytes);
}

/// A transfer that was alone and ends at this very instant no longer holds its links.
void Contention::forget_ended(int link) {
  const int index = links_[link].alone;
  if (index < 0 || wires_[index].started + wires_[index].occupancy > loop_.now()) return;
  for (const int used : ways_[index]) links_[used].alone = -1;
}

/// Makes a flow of what is left of a transfer that was alone.
void Contention::promote(int index) {
  WireState& wire = wires_[index];
  for (const int link : ways_[index]) links_[link].alone = -1;
  ++wire.generation;
  const double done = (loop_.now() - wire.started) / wire.occupancy;
  start_flow(index, wire.bytes * (1 - done));
}

void Contention::start_flow(int index, double bytes) {
  CHECK(bytes > 0, "a flow of nothing would never end");
  for (const int link : ways_[index]) ++links_[link].flows;
  launch(index, bytes);
}

void Contention::alone_ended(int index, std::uint32_t generation) {
  WireState& wire = wires_[index];
  if (generation != wire.generation) return;  // promoted since
  ++wire.generation;
  for (const int link : ways_[index]) {
    if (links_[link].alone == index) links_[link].alone = -1;
  }
  loop_.end_shared(index, loop_.now());
}

void Contention::end_flows(const std::vector<int>& wires, Seconds clock) {
  const double now = std::max(loop_.now(), in_ticks(program_, clock));
  for (const int wire : wires) {
    for (const int link : ways_[wire]) --links_[link].flows;
    loop_.end_shared(wire, now);
  }
  if (!wires.empty()) loop_.settle();
}

namespace {

FairShare flows_of(const Program& program, const Contention& contention) {
  std::vector<double> bandwidths;
  for (const ProgramLink& link : program.links) bandwidths.push_back(link.bandwidth.value());
  return {bandwidths, contention.ways()};
}

}  // namespace

/// The clock of the flows is not rounded to ticks, and moves by differences, as SimGrid's does. It
/// stands still while the loop runs by itself. What the loop has for the tick in which flows end
/// comes with these ends.
void run_with_contention(const Program& program, EventLoop& loop) {
  Contention contention(program, loop);
  FairShare flows = flows_of(program, contention);
  double clock = 0;
  bool begun = false;  // some flow, at the loop's now
  contention.launch = [&](int wire, double bytes) {
    flows.add(wire, bytes);
    begun = true;
  };
  const auto later = [&](double date) { return clock + std::max(0.0, date - clock); };
  const auto move_clock = [&](double date) {
    clock = date;
    contention.end_flows(flows.take_ended(clock), Seconds(clock));
    begun = false;
  };
  loop.start();
  for (;;) {
    const double end = later(flows.next_end(clock));
    if (loop.next_time() < std::min(EventLoop::kForever, in_ticks(program, Seconds(end)))) {
      loop.run_instant();
      if (begun) move_clock(later(in_seconds(program, loop.now()).value()));
    } else if (end < kInfinity) {
      move_clock(end);
    } else {
      return;
    }
  }
}

}  // namespace interlock
