// The SimGrid engine: a Machine driven by SimGrid's clock, with contention from its max-min solver.
// SPDX-License-Identifier: Apache-2.0
//
// SimGrid polls its models for their next date; ours is one of them. When polled it runs every
// event of the machine that comes before the network's next date, and stops early if a flow must
// start, because flows may be started only after the clock has moved. A transfer that is alone on
// all its links ends at a date known at once; when a second one touches one of its links, what is
// left of the first and the whole second become flows of SimGrid's. Latency stays with the
// machine: SimGrid weighs flows by latency, so its links have none.
#include <simgrid/kernel/resource/Action.hpp>
#include <simgrid/kernel/resource/Model.hpp>
#include <simgrid/s4u.hpp>
// clang-format off
#include <simgrid/version.h>  // needs a SimGrid header before it
#include <xbt/config.h>
// clang-format on

#include <algorithm>
#include <cmath>
#include <memory>
#include <unordered_map>

#include "base/error.h"
#include "sim/run/binding_links.h"
#include "sim/run/machine.h"

namespace interlock {

/// The virtual functions of SimGrid 3.32's network model behind those of Model; its own header is
/// not installed. It has external linkage, or the compiler would conclude that nothing implements
/// it. Starting a flow here costs a fraction of an s4u::Comm and gives the same dates.
struct NetworkModel : simgrid::kernel::resource::Model {
  using simgrid::kernel::resource::Model::Model;
  virtual void* create_link(const std::string&, const std::vector<double>&) = 0;
  virtual void* create_wifi_link(const std::string&, const std::vector<double>&) = 0;
  virtual simgrid::kernel::resource::Action* communicate(simgrid::s4u::Host*, simgrid::s4u::Host*,
                                                         double size, double rate) = 0;
};

namespace {

namespace s4u = simgrid::s4u;
namespace resource = simgrid::kernel::resource;

#if SIMGRID_VERSION_MAJOR != 3 || SIMGRID_VERSION_MINOR != 32
#error "this engine is written against SimGrid 3.32 (Debian 12: libsimgrid-dev)"
#endif

/// The one place where SimGrid is configured: plain bandwidth sharing, nothing hidden.
s4u::Engine* make_engine() {
  static char options[][48] = {"interlock",
                               "--cfg=network/model:CM02",      // alpha-beta, no factors
                               "--cfg=network/crosstraffic:0",  // full duplex is full
                               "--cfg=network/TCP-gamma:1e18",  // no window limit
                               "--cfg=surf/precision:1e-12",    // kernels last microseconds
                               "--log=root.thres:critical"};
  static char* arguments[std::size(options)];
  std::transform(std::begin(options), std::end(options), arguments, [](auto& o) { return o; });
  int count = static_cast<int>(std::size(options));
  auto* engine = new s4u::Engine(&count, arguments);  // never destroyed: the process ends after it
  CHECK(sg_cfg_get_boolean("network/crosstraffic") == 0, "no cross-traffic");
  CHECK(sg_cfg_get_double("network/TCP-gamma") == 1e18, "no window limit");
  CHECK(sg_cfg_get_double("surf/precision") == 1e-12, "precision as pinned");
  return engine;
}

/// Transfers on wires that share links: alone and timed by us, or flows of SimGrid's.
class Contention {
 public:
  Contention(const Program& program, Machine& machine);

  /// Whether flows wait for the clock to move before they can start.
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
  Machine& machine_;
  NetworkModel* network_ = nullptr;
  std::vector<s4u::Host*> origins_;  // of each wire
  s4u::Host* destination_ = nullptr;
  std::vector<std::vector<int>> ways_;  // links of each wire that can hold it back
  std::vector<WireState> wires_;
  std::vector<LinkState> links_;
  std::vector<Start> waiting_;
  std::unordered_map<resource::Action*, int> flows_;  // the wire of each flow under way
};

Contention::Contention(const Program& program, Machine& machine)
    : program_(program),
      machine_(machine),
      origins_(program.wires.size()),
      ways_(binding_links(program)),
      wires_(program.wires.size()),
      links_(program.links.size()) {
  make_platform();
  machine.start_shared = [this](int wire, Bytes bytes, double occupancy) {
    start(wire, bytes, occupancy);
  };
  machine.on_timer = [this](int wire, std::uint32_t g) { alone_ended(wire, g); };
}

/// A flat star: each shared wire is a host whose way out is the wire's links. SimGrid then needs no
/// routes of its own, whatever the topology. Links that cannot hold a flow back are left out, the
/// way in has none: all flows that some link joins, however fast, would be solved together.
void Contention::make_platform() {
  auto* zone = s4u::create_star_zone("cluster");
  std::vector<s4u::Link*> links(program_.links.size(), nullptr);
  destination_ = zone->create_host("destination", 1.0);
  zone->add_route(nullptr, destination_->get_netpoint(), nullptr, nullptr,
                  std::vector<s4u::LinkInRoute>(), false);
  for (std::size_t w = 0; w < program_.wires.size(); ++w) {
    if (!program_.wires[w].shared) continue;
    std::vector<s4u::LinkInRoute> way;
    for (const int index : ways_[w]) {
      const ProgramLink& link = program_.links[index];
      if (links[index] == nullptr) {
        links[index] = zone->create_link("link" + std::to_string(index), link.bandwidth.value())
                           ->set_latency(0.0);
        links[index]->seal();
      }
      way.emplace_back(links[index]);
    }
    origins_[w] = zone->create_host("wire" + std::to_string(w), 1.0);
    zone->add_route(origins_[w]->get_netpoint(), nullptr, nullptr, nullptr, way, false);
  }
  zone->seal();
  for (auto* model : s4u::Engine::get_instance()->get_all_models()) {
    if (model->get_name() == "Network_CM02") network_ = static_cast<NetworkModel*>(model);
  }
  CHECK(network_ != nullptr, "SimGrid runs another network model than the one asked for");
}

double Contention::next_network_date(double now) const {
  const double wait = network_->next_occurring_event(now);
  return wait < 0 ? Machine::kForever : now + wait;
}

void Contention::start(int index, Bytes bytes, double occupancy) {
  const auto& ways = ways_[index];
  WireState& wire = wires_[index];
  wire.started = machine_.now();
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
    machine_.set_timer(wire.started + wire.occupancy, index, wire.generation);
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
  if (index < 0 || wires_[index].started + wires_[index].occupancy > machine_.now()) return;
  for (const int used : ways_[index]) links_[used].alone = -1;
}

/// Makes a flow of what is left of a transfer that was alone.
void Contention::promote(int index) {
  WireState& wire = wires_[index];
  for (const int link : ways_[index]) links_[link].alone = -1;
  ++wire.generation;
  wire.alone = false;
  const double done = (machine_.now() - wire.started) / wire.occupancy;
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
  auto* action = network_->communicate(origins_[start.wire], destination_, start.bytes, -1.0);
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
  machine_.end_shared(index, machine_.now());
}

void Contention::end_flow(int index) {
  for (const int link : ways_[index]) --links_[link].flows;
  ++wires_[index].generation;
  const double clock = in_ticks(program_, Seconds(s4u::Engine::get_clock()));
  machine_.end_shared(index, std::max(machine_.now(), clock));
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
  if (!ended.empty()) machine_.settle();
}

/// Our place among SimGrid's models.
class TaskModel : public resource::Model {
 public:
  TaskModel(const Program& program, Machine& machine, Contention& contention)
      : Model("interlock"), program_(program), machine_(machine), contention_(contention) {}

  double next_occurring_event(double now) override {
    const double limit = contention_.next_network_date(now);
    contention_.polled = true;
    while (!contention_.flows_wait() && machine_.next_time() < Machine::kForever &&
           seconds(machine_.next_time()) < limit) {
      machine_.run_instant();
    }
    contention_.polled = false;
    if (contention_.flows_wait()) return std::max(0.0, seconds(machine_.now()) - now);
    if (machine_.next_time() >= Machine::kForever) return -1.0;
    return std::max(0.0, seconds(machine_.next_time()) - now);
  }
  void update_actions_state(double /*now*/, double /*delta*/) override {}

 private:
  double seconds(double ticks) const { return in_seconds(program_, ticks).value(); }

  const Program& program_;
  Machine& machine_;
  Contention& contention_;
};

}  // namespace

extern "C" void interlock_run_simgrid(const Program& program, const TraceSink& sink,
                                      RunSummary& summary) {
  s4u::Engine* engine = make_engine();
  CHECK(s4u::Engine::get_clock() == 0, "SimGrid has run in this process before");
  Machine machine(program, sink);
  Contention contention(program, machine);
  engine->add_model(std::make_shared<TaskModel>(program, machine, contention));
  s4u::Engine::on_time_advance_cb([&](double) { contention.clock_moved(); });
  contention.polled = true;
  machine.start();
  contention.polled = false;
  engine->run();
  summary = machine.finish("simgrid");
}

}  // namespace interlock
