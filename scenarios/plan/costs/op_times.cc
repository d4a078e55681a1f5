// Adds up the kernels of an op and the messages for which they wait.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/plan/costs/op_times.h"

#include <cmath>

#include "scenarios/plan/lower_plan.h"

namespace interlock {
namespace {

/// Groups of layers of several layouts may take their turns beside each other: those of the run's
/// own alone are counted where kernels do not wait.
bool counts(int layout) { return layout == 0; }

/// Returns the part of a way of tokens that takes longer than what may stand beside it.
Seconds exposed(const GroupTimes& way, const OpCost& cost, KernelPlace place, Seconds waits) {
  const Seconds kernels = cost.at[static_cast<std::size_t>(place)];
  return kernels > Seconds(0) ? std::max(Seconds(0), longest(way) - kernels - waits) : longest(way);
}

}  // namespace

OpTimes::OpTimes(const Question& question) {
  const int places = is_mixed(question.cluster) ? question.layout.ranks() : 1;
  for (int rank = 0; rank < places; ++rank) {
    exchange_times_.push_back(price_inputs(question, {0, 0, 0, rank}).exchange_time);
  }
}

GroupTimes OpTimes::of(const std::vector<Exchange>& exchanges, int rank) const {
  GroupTimes times = {};
  for (const Exchange& exchange : exchanges) {
    if (!counts(exchange.layout)) continue;
    Exchange less = exchange;
    less.bytes = Bytes(std::exp2(std::floor(std::log2(exchange.bytes.value()))));
    Exchange more = less;
    more.bytes = 2 * less.bytes;
    const Seconds least = time_of(less, rank);
    times[static_cast<std::size_t>(exchange.axis)] +=
        least + (time_of(more, rank) - least) * (exchange.bytes / less.bytes - 1);
  }
  return times;
}

OpTime OpTimes::of(const OpCost& cost, int rank) const {
  OpTime time = {.standing = cost.time};
  GroupTimes there = {}, back = {};
  for (const Exchange& exchange : cost.exchanges) {
    const auto axis = static_cast<std::size_t>(exchange.axis);
    const Seconds all = time_of(exchange, rank);
    if (exchange.way == TokenWay::There) there[axis] += all;
    if (exchange.way == TokenWay::Back) back[axis] += all;
    const bool hides = exchange.overlapped || exchange.way != TokenWay::None;
    if (hides && !counts(exchange.layout)) continue;
    (hides ? time.beside[axis] : time.standing) += all;
  }
  // Other messages, for which kernels stand still, may stand beside them too.
  const Seconds waits = time.standing - cost.time;
  time.passing = exposed(there, cost, KernelPlace::BesideThere, waits) +
                 exposed(back, cost, KernelPlace::BesideBack, waits);
  return time;
}

OpTime OpTimes::of_gathers(const DataParallel& policy, const MeshOfLayout& mesh_of,
                           const StageCost& stage, int rank) const {
  OpTime time;
  if (policy.zero_stage < 3) return time;
  for (const StageCost& part : parts_of(stage)) {
    for (Exchange gather : weight_exchanges(policy, mesh_of(part.layout), part)) {
      gather.count = std::max(1, part.modules);
      gather.bytes = gather.bytes / gather.count;
      time.beside[static_cast<std::size_t>(gather.axis)] += time_of(gather, rank);
    }
  }
  return time;
}

}  // namespace interlock
