// The SimGrid engine: an EventLoop driven by its clock, with contention from its max-min solver.
// SPDX-License-Identifier: Apache-2.0
//
// SimGrid polls its models for their next date; ours is one of them. When polled it runs every
// event of the loop that comes before the network's next date, and stops early if a flow must
// start, because flows may be started only after the clock has moved. Which transfers are flows is
// for Contention to say. SimGrid weighs flows by latency, so its links have none.
#include <algorithm>
#include <memory>
#include <unordered_map>

#include "base/error.h"
#include "sim/engines/contention.h"
#include "sim/engines/event_loop.h"
#include "sim/engines/simgrid_network.h"

namespace interlock {

namespace {

namespace s4u = simgrid::s4u;
namespace resource = simgrid::kernel::resource;

/// Flows of SimGrid's, each named by its wire.
class NetworkFlows {
 public:
  NetworkFlows(const Program& program, const std::vector<std::vector<int>>& ways);

  /// Starts a flow, or lets it wait for the clock to move.
  void launch(int wire, double bytes);
  /// Returns true if flows wait for the clock to move before they can start.
  bool wait() const { return !waiting_.empty(); }
  double next_date(double now) const;
  /// Starts what waited; returns the flows that have ended, in the order of their wires.
  std::vector<int> clock_moved();
  bool polled = false;  // inside next_occurring_event: no flow may start now

 private:
  struct Start {
    int wire;
    double bytes;
  };

  void start(const Start& flow);

  NetworkModel* network_ = nullptr;  // there is none before the platform
  std::vector<s4u::Host*> origins_;  // of each wire
  s4u::Host* destination_ = nullptr;
  std::vector<Start> waiting_;
  std::unordered_map<resource::Action*, int> flows_;  // the wire of each flow under way
};

/// Makes a flat star: each shared wire is a host whose way out is the wire's links. SimGrid then
/// needs no routes of its own, whatever the topology. Links that cannot hold a flow back are left
/// out, the way in has none: all flows that some link joins, however fast, would be solved
/// together.
NetworkFlows::NetworkFlows(const Program& program, const std::vector<std::vector<int>>& ways)
    : origins_(program.wires.size()) {
  Star star;
  std::vector<s4u::Link*> links(program.links.size(), nullptr);
  destination_ = star.add_host("destination");
  star.set_way_in(destination_, {});
  for (std::size_t w = 0; w < program.wires.size(); ++w) {
    if (!program.wires[w].shared) continue;
    Star::Links way;
    for (const int index : ways[w]) {
      const ProgramLink& link = program.links[index];
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

double NetworkFlows::next_date(double now) const {
  const double wait = network_->next_occurring_event(now);
  return wait < 0 ? kInfinity : now + wait;
}

void NetworkFlows::launch(int wire, double bytes) {
  if (polled) {
    waiting_.push_back({wire, bytes});
  } else {
    start({wire, bytes});
  }
}

void NetworkFlows::start(const Start& flow) {
  auto* action = communicate(*network_, origins_[flow.wire], destination_, flow.bytes);
  flows_.emplace(action, flow.wire);
}

std::vector<int> NetworkFlows::clock_moved() {
  for (const Start& flow : waiting_) start(flow);
  waiting_.clear();
  std::vector<int> ended;
  while (auto* action = network_->extract_done_action()) {
    const auto flow = flows_.find(action);
    ended.push_back(flow->second);
    flows_.erase(flow);
    action->unref();
  }
  std::sort(ended.begin(), ended.end());
  return ended;
}

/// Our place among SimGrid's models.
class TaskModel : public resource::Model {
 public:
  TaskModel(const Program& program, EventLoop& loop, NetworkFlows& flows)
      : Model("interlock"), program_(program), loop_(loop), flows_(flows) {}

  /// Returns when flows must start, -1 if none must before the network's next date. What the loop
  /// has for the tick of that date comes with the flows that end then.
  double next_occurring_event(double now) override {
    const double limit = in_ticks(program_, Seconds(flows_.next_date(now)));
    flows_.polled = true;
    while (!flows_.wait() && loop_.next_time() < std::min(EventLoop::kForever, limit)) {
      loop_.run_instant();
    }
    flows_.polled = false;
    if (!flows_.wait()) return -1.0;
    return std::max(0.0, in_seconds(program_, loop_.now()).value() - now);
  }
  void update_actions_state(double /*now*/, double /*delta*/) override {}

 private:
  const Program& program_;
  EventLoop& loop_;
  NetworkFlows& flows_;
};

}  // namespace

extern "C" void interlock_run_simgrid(const Program& program, const TraceSink& sink,
                                      RunSummary& summary) {
  s4u::Engine* engine = make_engine();
  CHECK(s4u::Engine::get_clock() == 0, "SimGrid has run in this process before");
  EventLoop loop(program, sink);
  Contention contention(program, loop);
  NetworkFlows flows(program, contention.ways());
  contention.launch = [&](int wire, double bytes) { flows.launch(wire, bytes); };
  engine->add_model(std::make_shared<TaskModel>(program, loop, flows));
  s4u::Engine::on_time_advance_cb([&](double) {
    contention.end_flows(flows.clock_moved(), Seconds(s4u::Engine::get_clock()));
  });
  flows.polled = true;
  loop.start();
  flows.polled = false;
  engine->run();
  summary = loop.finish("simgrid");
}

}  // namespace interlock
