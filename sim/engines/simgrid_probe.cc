// Tests at configuration that the installed SimGrid shares links as the engine expects.
// SPDX-License-Identifier: Apache-2.0
//
// Two flows of 1 and 3 MB leave two hosts at 0 s and share one link of 1 GB/s; a third of 3 MB has
// a link of 2 GB/s to itself.
//   each of the first two gets 0.5 GB/s: the smaller ends at 1 MB / 0.5 GB/s = 2 ms
//   the other has 2 MB left and all of the link:          2 ms + 2 MB / 1 GB/s = 4 ms
//   the third has a link to itself:                              3 MB / 2 GB/s = 1.5 ms
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "sim/engines/simgrid_network.h"

[[noreturn]] void interlock::check_failed(const char* /*file*/, int /*line*/,
                                          const char* /*condition*/, const std::string& message) {
  std::printf("%s\n", message.c_str());
  std::fflush(stdout);
  std::_Exit(1);
}

int main() {
  using namespace interlock;
  auto* engine = make_engine();
  Star star;
  auto* shared = star.add_link("shared", 1e9);
  auto* own = star.add_link("own", 2e9);
  auto* destination = star.add_host("destination");
  star.set_way_in(destination, {});
  simgrid::s4u::Host* origins[3];
  for (int i = 0; i < 3; ++i) {
    origins[i] = star.add_host("origin" + std::to_string(i));
    star.set_way_out(origins[i], {simgrid::s4u::LinkInRoute(i < 2 ? shared : own)});
  }
  star.seal();

  NetworkModel& network = network_model();
  const double bytes[] = {1e6, 3e6, 3e6};
  std::map<simgrid::kernel::resource::Action*, int> flows;
  for (int i = 0; i < 3; ++i) flows[communicate(network, origins[i], destination, bytes[i])] = i;
  double ends[] = {0, 0, 0};
  simgrid::s4u::Engine::on_time_advance_cb([&](double) {
    while (auto* action = network.extract_done_action()) {
      ends[flows.at(action)] = simgrid::s4u::Engine::get_clock();
      action->unref();
    }
  });
  engine->run();

  const double expected[] = {2e-3, 4e-3, 1.5e-3};
  for (int i = 0; i < 3; ++i) {
    const bool met = std::abs(ends[i] - expected[i]) <= 1e-9 * expected[i];
    CHECK(met, "a flow ended at " + std::to_string(ends[i]) + " s where " +
                   std::to_string(expected[i]) + " s was expected");
  }
  std::_Exit(0);  // SimGrid's own end is not ours to try
}
