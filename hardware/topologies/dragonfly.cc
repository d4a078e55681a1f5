// Minimal routes of dragonflies: to the router that holds a cable, over it, and on.
// SPDX-License-Identifier: Apache-2.0
//
// Numbering: even numbers are 2 * (router * routers_per_group + other router of the group), odd
// ones 2 * ((group * groups + other group) * cables + cable) + 1.
#include "hardware/topologies/dragonfly.h"

namespace interlock {
namespace {

/// Returns the router of `group`, counted within it, that holds `cable` to the group `other`.
int router_at(const Dragonfly& fly, int group, int other, int cable) {
  const std::int64_t turn = other > group ? other - 1 : other;
  return static_cast<int>((turn * fly.cables + cable) % fly.routers_per_group);
}

void cross_group(const Dragonfly& fly, int from_router, int to, LinkId first, Route& route) {
  if (from_router % fly.routers_per_group == to) return;
  const LinkId id = 2 * (LinkId{from_router} * fly.routers_per_group + to);
  cross(route, first + id, fly.local.bandwidth);
  route.latency += fly.local.latency;
}

}  // namespace

void cross(const Dragonfly& fly, int from_node, int to_node, LinkId first, Route& route) {
  int router = from_node / fly.nodes_per_router;
  const int target = to_node / fly.nodes_per_router;
  const int group = router / fly.routers_per_group;
  const int other = target / fly.routers_per_group;
  if (group != other) {
    const auto cable = static_cast<int>((std::int64_t{from_node} + to_node) % fly.cables);
    cross_group(fly, router, router_at(fly, group, other, cable), first, route);
    const LinkId id = (LinkId{group} * fly.groups + other) * fly.cables + cable;
    cross(route, first + 2 * id + 1, fly.global.bandwidth);
    route.latency += fly.global.latency;
    router = other * fly.routers_per_group + router_at(fly, other, group, cable);
  }
  cross_group(fly, router, target % fly.routers_per_group, first, route);
}

Link link(const Dragonfly& fly, LinkId id) {
  if (id % 2 == 0) {
    const LinkId router = id / 2 / fly.routers_per_group;
    const LinkId group = router / fly.routers_per_group;
    const LinkId to = group * fly.routers_per_group + id / 2 % fly.routers_per_group;
    return {"router" + std::to_string(router) + "->router" + std::to_string(to),
            fly.local.bandwidth};
  }
  const auto cable = static_cast<int>(id / 2 % fly.cables);
  const auto group = static_cast<int>(id / 2 / fly.cables / fly.groups);
  const auto other = static_cast<int>(id / 2 / fly.cables % fly.groups);
  const auto router = [&](int at, int to) {
    return "router" + std::to_string(at * fly.routers_per_group + router_at(fly, at, to, cable));
  };
  return {router(group, other) + "->" + router(other, group) + " cable" + std::to_string(cable),
          fly.global.bandwidth};
}

}  // namespace interlock
