// SimGridNetwork: what differs between the SimGrids that the engine runs on (3.32, 3.34 to 4.1).
// SPDX-License-Identifier: Apache-2.0
//
// All that is private to SimGrid, or written otherwise in another version, is here. A wrong guess
// of what is private would not be told by the compiler: cmake/simgrid.cmake runs simgrid_probe.cc
// before it builds the engine, and refuses versions that were never tried.
#pragma once

#include <simgrid/kernel/resource/Action.hpp>
#include <simgrid/kernel/resource/Model.hpp>
#include <simgrid/s4u.hpp>
// clang-format off
#include <simgrid/version.h>  // needs a SimGrid header before it
#include <xbt/config.h>
// clang-format on

#include <string>
#include <vector>

#include "base/error.h"

namespace interlock {

/// The virtual functions of SimGrid's network model behind those of Model, in the order of its own
/// header (src/kernel/resource/NetworkModel.hpp), which is not installed. It has external linkage,
/// or the compiler would conclude that nothing implements it. Starting a flow here costs a fraction
/// of an s4u::Comm and gives the same dates.
struct NetworkModel : simgrid::kernel::resource::Model {
  using simgrid::kernel::resource::Model::Model;
  // Only their places count. 4.1 added a zone to both.
  virtual void* create_link(const std::string&, const std::vector<double>&) = 0;
  virtual void* create_wifi_link(const std::string&, const std::vector<double>&) = 0;
#if SIMGRID_VERSION < 33400
  virtual simgrid::kernel::resource::Action* communicate(simgrid::s4u::Host*, simgrid::s4u::Host*,
                                                         double size, double rate) = 0;
#else
  virtual simgrid::kernel::resource::Action* communicate(simgrid::s4u::Host*, simgrid::s4u::Host*,
                                                         double size, double rate,
                                                         bool streamed) = 0;
#endif
};

/// Starts a flow that nothing but links holds back.
inline simgrid::kernel::resource::Action* communicate(NetworkModel& network,
                                                      simgrid::s4u::Host* from,
                                                      simgrid::s4u::Host* to, double bytes) {
#if SIMGRID_VERSION < 33400
  return network.communicate(from, to, bytes, -1.0);
#else
  return network.communicate(from, to, bytes, -1.0, false);
#endif
}

/// Makes SimGrid's engine, configured here and nowhere else: plain bandwidth sharing, nothing
/// hidden. REQUIRES: the first of this process.
inline simgrid::s4u::Engine* make_engine() {
#if SIMGRID_VERSION < 33400
#define INTERLOCK_PRECISION "surf/precision"
#else
#define INTERLOCK_PRECISION "precision/timing"
#endif
  static char options[][48] = {
      "interlock",
      "--cfg=network/model:CM02",      // alpha-beta, no factors
      "--cfg=network/crosstraffic:0",  // full duplex is full
      "--cfg=network/TCP-gamma:1e18",  // no window limit
      // Kernels last microseconds. NOLINTNEXTLINE(bugprone-suspicious-missing-comma)
      "--cfg=" INTERLOCK_PRECISION ":1e-12", "--log=root.thres:critical"};
  static char* arguments[std::size(options)];
  for (std::size_t i = 0; i < std::size(options); ++i) arguments[i] = options[i];
  int count = static_cast<int>(std::size(options));
  auto* engine = new simgrid::s4u::Engine(&count, arguments);  // ends with its process
  CHECK(sg_cfg_get_boolean("network/crosstraffic") == 0, "no cross-traffic");
  CHECK(sg_cfg_get_double("network/TCP-gamma") == 1e18, "no window limit");
  CHECK(sg_cfg_get_double(INTERLOCK_PRECISION) == 1e-12, "precision as pinned");
  int major = 0, minor = 0, patch = 0;
  sg_version_get(&major, &minor, &patch);
  CHECK(major == SIMGRID_VERSION_MAJOR && minor == SIMGRID_VERSION_MINOR,
        "SimGrid is another version than the one that the engine was compiled for");
  return engine;
#undef INTERLOCK_PRECISION
}

/// Finds the network model that was asked for. REQUIRES: a platform, as there is none before.
inline NetworkModel& network_model() {
  for (auto* model : simgrid::s4u::Engine::get_instance()->get_all_models()) {
    if (model->get_name() == "Network_CM02") return *static_cast<NetworkModel*>(model);
  }
  CHECK(false, "SimGrid runs another network model than the one asked for");
}

/// A flat star: a message takes the way out of its origin, then the way in of its destination.
class Star {
 public:
  using Links = std::vector<simgrid::s4u::LinkInRoute>;

#if SIMGRID_VERSION < 40000
  Star() : zone_(simgrid::s4u::create_star_zone("cluster")) {}
  simgrid::s4u::Host* add_host(const std::string& name) { return zone_->create_host(name, 1.0); }
  simgrid::s4u::Link* add_link(const std::string& name, double bandwidth) {
    return ready(zone_->create_link(name, bandwidth));
  }
#else
  Star() : zone_(simgrid::s4u::Engine::get_instance()->get_netzone_root()) {
    zone_ = zone_->add_netzone_star("cluster");
  }
  simgrid::s4u::Host* add_host(const std::string& name) { return zone_->add_host(name, 1.0); }
  simgrid::s4u::Link* add_link(const std::string& name, double bandwidth) {
    return ready(zone_->add_link(name, bandwidth));
  }
#endif

#if SIMGRID_VERSION < 33500
  void set_way_out(simgrid::s4u::Host* host, const Links& links) {
    zone_->add_route(host->get_netpoint(), nullptr, nullptr, nullptr, links, false);
  }
  void set_way_in(simgrid::s4u::Host* host, const Links& links) {
    zone_->add_route(nullptr, host->get_netpoint(), nullptr, nullptr, links, false);
  }
#else
  void set_way_out(const simgrid::s4u::Host* host, const Links& links) {
    zone_->add_route(host, static_cast<const simgrid::s4u::Host*>(nullptr), links, false);
  }
  void set_way_in(const simgrid::s4u::Host* host, const Links& links) {
    zone_->add_route(static_cast<const simgrid::s4u::Host*>(nullptr), host, links, false);
  }
#endif
  void seal() { zone_->seal(); }

 private:
  /// Makes `link` ready, without latency, as SimGrid would weigh flows by it.
  static simgrid::s4u::Link* ready(simgrid::s4u::Link* link) {
    link->set_latency(0.0);
    link->seal();
    return link;
  }
  simgrid::s4u::NetZone* zone_;
};

}  // namespace interlock
