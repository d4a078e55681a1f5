// Rings and lines of devices on shared links.
// SPDX-License-Identifier: Apache-2.0
#include "tests/jobs/support/fluid_jobs.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

#include "tests/validate/support/progressive_filling.h"

namespace interlock {
namespace {

constexpr double kForever = std::numeric_limits<double>::infinity();

class World {
 public:
  World(int nodes, double bandwidth)
      : bandwidths_(static_cast<std::size_t>(2 * nodes), bandwidth) {}

  double now() const { return now_; }
  void after(double seconds, std::function<void()> action) {
    timers_.push({now_ + seconds, count_++, std::move(action)});
  }
  void flow(int from_node, int to_node, double bytes, std::function<void()> action) {
    flows_.push_back({now_, bytes, {2 * from_node, 2 * to_node + 1}});
    actions_.push_back(std::move(action));
    fill_progressively(flows_, bandwidths_);
  }
  void run() {
    for (;;) {
      std::size_t first = flows_.size();
      double end = kForever;
      for (std::size_t f = 0; f < flows_.size(); ++f) {
        if (actions_[f] && flows_[f].end < end) end = flows_[first = f].end;
      }
      if (timers_.empty() && end == kForever) return;
      std::function<void()> action;
      if (!timers_.empty() && timers_.top().at <= end) {
        now_ = timers_.top().at;
        action = timers_.top().action;
        timers_.pop();
      } else {
        now_ = end;
        std::swap(action, actions_[first]);
        actions_[first] = nullptr;
      }
      action();
    }
  }

 private:
  struct Timer {
    double at;
    int order;
    std::function<void()> action;
    bool operator<(const Timer& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };
  double now_ = 0;
  int count_ = 0;
  std::vector<double> bandwidths_;
  std::priority_queue<Timer> timers_;
  std::vector<FluidFlow> flows_;                // all that ever began
  std::vector<std::function<void()>> actions_;  // at their ends; none once it is done
};

class Ring {
 public:
  Ring(const FluidJob& job, World& world, std::vector<double>& ends)
      : job_(job), world_(world), ends_(ends) {}
  void begin() {
    if (static_cast<int>(ends_.size()) == job_.steps) return;
    world_.after(job_.compute, [this] { send(); });
  }

 private:
  void send() {
    left_ = job_.nodes.size();
    for (std::size_t i = 0; i < job_.nodes.size(); ++i) {
      world_.flow(job_.nodes[i], job_.nodes[(i + 1) % job_.nodes.size()], job_.bytes, [this] {
        if (--left_ > 0) return;
        ends_.push_back(world_.now());
        begin();
      });
    }
  }
  const FluidJob& job_;
  World& world_;
  std::vector<double>& ends_;
  std::size_t left_ = 0;
};

class Line {
 public:
  Line(const FluidJob& job, World& world, std::vector<double>& ends)
      : job_(job), world_(world), ends_(ends), devices_(job.nodes.size()) {}
  void begin() {
    devices_[0].come = job_.micro_batches * job_.steps;
    for (std::size_t d = 0; d < devices_.size(); ++d) compute(d);
  }

 private:
  struct State {
    int come = 0, done = 0, sent = 0;
    bool computes = false, sends = false;
  };
  void compute(std::size_t d) {
    State& state = devices_[d];
    if (state.computes || state.done == state.come) return;
    state.computes = true;
    world_.after(job_.compute, [this, d] {
      State& done = devices_[d];
      done.computes = false;
      ++done.done;
      const bool last = d + 1 == devices_.size();
      if (last && done.done % job_.micro_batches == 0) ends_.push_back(world_.now());
      if (!last) send(d);
      compute(d);
    });
  }
  void send(std::size_t d) {
    State& state = devices_[d];
    if (state.sends || state.sent == state.done) return;
    state.sends = true;
    world_.flow(job_.nodes[d], job_.nodes[d + 1], job_.bytes, [this, d] {
      State& sent = devices_[d];
      sent.sends = false;
      ++sent.sent;
      ++devices_[d + 1].come;
      send(d);
      compute(d + 1);
    });
  }
  const FluidJob& job_;
  World& world_;
  std::vector<double>& ends_;
  std::vector<State> devices_;
};

}  // namespace

std::vector<std::vector<double>> ends_of_steps(const std::vector<FluidJob>& jobs,
                                               double bandwidth) {
  int nodes = 0;
  for (const FluidJob& job : jobs) {
    nodes = std::max(nodes, 1 + *std::max_element(job.nodes.begin(), job.nodes.end()));
  }
  World world(nodes, bandwidth);
  std::vector<std::vector<double>> ends(jobs.size());
  std::vector<Ring> rings;
  std::vector<Line> lines;
  rings.reserve(jobs.size());
  lines.reserve(jobs.size());
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    if (jobs[j].ring) {
      rings.emplace_back(jobs[j], world, ends[j]).begin();
    } else {
      lines.emplace_back(jobs[j], world, ends[j]).begin();
    }
  }
  world.run();
  return ends;
}

}  // namespace interlock
