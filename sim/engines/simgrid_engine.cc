// The SimGrid engine: an EventLoop driven by its clock, with contention from its max-min solver.
// SPDX-License-Identifier: Apache-2.0
//
// SimGrid polls its models for their next date; ours is one of them. When polled it runs every
// event of the loop that comes before the network's next date, and stops early if a flow must
// start, because flows may be started only after the clock has moved. A transfer that is alone on
// all its links ends at a date known at once; when a second one touches one of its links, what is
// left of the first and the whole second become flows of SimGrid's. Latency stays with the
// loop: SimGrid weighs flows by latency, so its links have none.
#include <algorithm>
#include <cmath>
#include <memory>
#include <unordered_map>

#include "base/error.h"
#include "sim/engines/binding_links.h"
#include "sim/engines/event_loop.h"
#include "sim/engines/simgrid_network.h"

namespace interlock {

namespace {

namespace s4u = simgrid::s4u;
namespace resource = simgrid::kernel::resource;

/// Transfers on wires that share links: alone and timed by us, or flows of SimGrid's.
class Contention {
 public:
  Contention(const Program& program, EventLoop& loop);

  /// Returns true if flows wait for the clock to move before they can start.
  bool flows_wait() const { return !waiting_.empty(); }
  double next_network_date(double now) const;
  void clock_moved();
  bool polled = false;  // inside next_occurring_event: no flow may start now

 private:
  struct WireState {
    double started = 0, occupancy = 0, bytes = 0;
    std::uint32_t generation = 0;
    bool alone = false;
  };
  struct LinkState {
    int alone = -1;  // the wire that is alone on it
    int flows = 0;
  };
  struct Start {
    int wire;
    double bytes;
  };

  void make_platform();
  void start(int wire, Bytes bytes, double occupancy);
  void forget_ended(int link);
  void promote(int wire);
  void start_flow(int wire, double bytes);
  void launch(const Start& start);
  void alone_ended(int wire, std::uint32_t generation);
  void end_flow(int wire);

  const Program& program_;
  EventLoop& loop_;
  NetworkModel* network_ = nullptr;  // there is none before the platform
  std::vector<s4u::Host*> origins_;  // of each wire
  s4u::Host* destination_ = nullptr;
  std::vector<std::vector<int>> ways_;  // links of each wire that can hold it back
  std::vector<WireState> wires_;
  std::vector<LinkState> links_;
  std::vector<Start> waiting_;
  std::unordered_map<resource::Action*, int> flows_;  // the wire of each flow under way
};

Contention::Contention(const Program& program, EventLoop& loop)
    : program_(program),
      loop_(loop),
      origins_(program.wires.size()),
      ways_(binding_links(program)),
      wires_(program.wires.size()),
      links_(program.links.size()) {
  make_platform();
  loop.start_shared = [this](int wire, Bytes bytes, double occupancy) {
    start(wire, bytes, occupancy);
  };
  loop.on_timer = [this](int wire, std::uint32_t g) { alone_ended(wire, g); };
}

/// A flat star: each shared wire is a host whose way out is the wire's links. SimGrid then needs no
/// routes of its own, whatever the topology. Links that cannot hold a flow back are left out, the
/// way in has none: all flows that some link joins, however fast, would be solved together.
void Contention::make_platform() {
  Star star;
  std::vector<s4u::Link*> links(program_.links.size(), nullptr);
  destination_ = star.add_host("destination");
  star.set_way_in(destination_, {});
  for (std::size_t w = 0; w < program_.wires.size(); ++w) {
    if (!program_.wires[w].shared) continue;
    Star::Links way;
    for (const int index : ways_[w]) {
      const ProgramLink& link = program_.links[index];
      if (links[index] == nullptr) {
        links[index] = star.add_link("link" + std::to_string(index), link.bandwidth.value());
      }
      way.emplace_back(links[index]);
    }
    origins_[w] = star.add_host("wire" + std::to_string(w));
    star.set_way_out(origins_[w], way);
  }
  star.seal();
  network_ = &network_model();
}

double Contention::next_network_date(double now) const {
  const double wait = network_->next_occurring_event(now);
  return wait < 0 ? EventLoop::kForever : now + wait;
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
    wire.alone = true;
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
  wire.alone = false;
  const double done = (loop_.now() - wire.started) / wire.occupancy;
  start_flow(index, wire.bytes * (1 - done));
}

void Contention::start_flow(int index, double bytes) {
  for (const int link : ways_[index]) ++links_[link].flows;
  if (polled) {
    waiting_.push_back({index, bytes});
  } else {
    launch({index, bytes});
  }
}

void Contention::launch(const Start& start) {
  CHECK(start.bytes > 0, "a flow of nothing would never end");
  auto* action = communicate(*network_, origins_[start.wire], destination_, start.bytes);
  flows_.emplace(action, start.wire);
}

void Contention::alone_ended(int index, std::uint32_t generation) {
  WireState& wire = wires_[index];
  if (generation != wire.generation) return;  // promoted since
  ++wire.generation;
  wire.alone = false;
  for (const int link : ways_[index]) {
    if (links_[link].alone == index) links_[link].alone = -1;
  }
  loop_.end_shared(index, loop_.now());
}

void Contention::end_flow(int index) {
  for (const int link : ways_[index]) --links_[link].flows;
  ++wires_[index].generation;
  const double clock = in_ticks(program_, Seconds(s4u::Engine::get_clock()));
  loop_.end_shared(index, std::max(loop_.now(), clock));
}

void Contention::clock_moved() {
  const std::vector<Start> starts = std::move(waiting_);
  waiting_.clear();
  for (const Start& start : starts) launch(start);
  std::vector<int> ended;
  while (auto* action = network_->extract_done_action()) {
    const auto flow = flows_.find(action);
    ended.push_back(flow->second);
    flows_.erase(flow);
    action->unref();
  }
  for (const int wire : ended) end_flow(wire);
  if (!ended.empty()) loop_.settle();
}

/// Our place among SimGrid's models.
class TaskModel : public resource::Model {
 public:
  TaskModel(const Program& program, EventLoop& loop, Contention& contention)
      : Model("interlock"), program_(program), loop_(loop), contention_(contention) {}

  double next_occurring_event(double now) override {
    const double limit = contention_.next_network_date(now);
    contention_.polled = true;
    while (!contention_.flows_wait() && loop_.next_time() < EventLoop::kForever &&
           seconds(loop_.next_time()) < limit) {
      loop_.run_instant();
    }
    contention_.polled = false;
    if (contention_.flows_wait()) return std::max(0.0, seconds(loop_.now()) - now);
    if (loop_.next_time() >= EventLoop::kForever) return -1.0;
    return std::max(0.0, seconds(loop_.next_time()) - now);
  }
  void update_actions_state(double /*now*/, double /*delta*/) override {}

 private:
  double seconds(double ticks) const { return in_seconds(program_, ticks).value(); }

  const Program& program_;
  EventLoop& loop_;
  Contention& contention_;
};

}  // namespace

extern "C" void interlock_run_simgrid(const Program& program, const TraceSink& sink,
                                      RunSummary& summary) {
  s4u::Engine* engine = make_engine();
  CHECK(s4u::Engine::get_clock() == 0, "SimGrid has run in this process before");
  EventLoop loop(program, sink);
  Contention contention(program, loop);
  engine->add_model(std::make_shared<TaskModel>(program, loop, contention));
  s4u::Engine::on_time_advance_cb([&](double) { contention.clock_moved(); });
  contention.polled = true;
  loop.start();
  contention.polled = false;
  engine->run();
  summary = loop.finish("simgrid");
}

}  // namespace interlock
