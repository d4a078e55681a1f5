// Factors by what an op or transfer is.
// SPDX-License-Identifier: Apache-2.0
#include "sim/engines/varied_times.h"

#include <algorithm>
#include <initializer_list>

#include "base/random.h"
#include "sim/program/ticks.h"

namespace interlock {

namespace {

// Which kind of thing a stream of random numbers is for.
constexpr std::uint64_t kOp = 0, kRank = 1, kMessage = 2, kWay = 3, kCollective = 4,
                        kCommunicator = 5;

std::uint64_t mixed(std::initializer_list<std::uint64_t> values) {
  std::uint64_t key = 0;
  for (const std::uint64_t value : values) key = mix64(key ^ value);
  return key;
}

std::uint64_t number(int value) { return static_cast<std::uint32_t>(value); }

/// Returns the number, below the micro-batch or step, of what has a factor of its own.
std::uint64_t part_of_run(const Program& program, JitterScope scope, int micro_batch) {
  switch (scope) {
    case JitterScope::Op:
      return number(micro_batch);
    case JitterScope::Step:
      return number(micro_batch / program.micro_batches);
    case JitterScope::Device:
      break;
  }
  return 0;
}

}  // namespace

VariedTimes::VariedTimes(const Program& program)
    : program_(program),
      ops_vary_(program.variation.of_compute() || program.packed),
      transfers_vary_(program.variation.of_transfers()) {
  durations_.reserve(program.ops.size());
  for (const OpInfo& op : program.ops) durations_.push_back(in_ticks(program, op.duration));
  if (!ops_vary_) return;
  std::vector<int> rank_of_stage(program.stages, 0);
  for (std::size_t r = 0; r < program.ranks.size(); ++r) {
    for (const int stage : program.ranks[r].stages) rank_of_stage[stage] = static_cast<int>(r);
  }
  for (const OpInfo& op : program.ops) {
    const int rank = rank_of_stage[op.stage];
    const bool by_op = program.variation.compute.scope == JitterScope::Op;
    identities_.push_back({by_op ? mixed({kOp, number(static_cast<int>(op.kind)), number(op.stage),
                                          number(op.loss), number(op.replay ? 1 : 0)})
                                 : mixed({kRank, number(rank)}),
                           rank, in_ticks(program, op.communication)});
    if (!program.packed) continue;
    const int replica = op.stage / (program.stages / program.replicas);
    identities_.back().group = program.packed->group_of_replica[replica];
  }
  if (program.packed) place_packed();
}

void VariedTimes::place_packed() {
  const PackedTimes& packed = *program_.packed;
  const std::vector<double>& work = packed.work;
  const int groups =
      1 + *std::max_element(packed.group_of_replica.begin(), packed.group_of_replica.end());
  places_.resize(groups);
  for (int group = 0; group < groups; ++group) {
    for (int number = 0; number < program_.micro_batches * program_.steps; ++number) {
      const double own = packed.work_of(program_.variation.seed, group, number);
      const auto above = std::upper_bound(work.begin() + 1, work.end() - 1, own);
      const auto below = above - 1;
      places_[group].push_back(
          {static_cast<std::uint32_t>(below - work.begin()), (own - *below) / (*above - *below)});
    }
  }
}

/// Returns the ticks of an op between the cases that its micro-batch lies between; beyond the last
/// one they grow on.
double VariedTimes::packed_op(int index, int micro_batch) const {
  if (!program_.packed) return durations_[index];
  const PackedPlace& place = places_[identities_[index].group][micro_batch];
  const auto& cases = program_.packed->durations;
  const double below = cases[place.below][index], above = cases[place.below + 1][index];
  return in_ticks(program_, Seconds(std::max(0.0, below + place.share * (above - below))));
}

/// Pieces of an op, between its exchanges, have one factor. What an op waits for inside does not
/// take longer because its kernels do.
double VariedTimes::varied_op(int index, int micro_batch) const {
  if (program_.variation.measured) return measured_op(index, micro_batch);
  const OpIdentity& op = identities_[index];
  const Variation& variation = program_.variation;
  double factor = 1;
  if (variation.compute.spread > 0) {
    const std::uint64_t part = part_of_run(program_, variation.compute.scope, micro_batch);
    factor = jitter_factor(variation.compute, variation.seed, mixed({op.key, part}));
  }
  const int step = micro_batch / program_.micro_batches;
  for (const SlowSteps& slow : variation.slow) {
    if (slow.rank == op.rank && slow.first <= step && step < slow.end) factor *= slow.slowdown;
  }
  return op.waiting + scaled(packed_op(index, micro_batch) - op.waiting, factor);
}

double VariedTimes::measured_op(int index, int micro_batch) const {
  const auto& ops = program_.variation.measured->ops;
  const auto op = static_cast<std::size_t>(index), number = static_cast<std::size_t>(micro_batch);
  const bool known = op < ops.size() && number < ops[op].size() && ops[op][number] >= 0;
  return known ? in_ticks(program_, Seconds(ops[op][number])) : durations_[op];
}

double VariedTimes::transfer_factor(std::uint64_t transfer, std::uint64_t way,
                                    int micro_batch) const {
  const Variation& variation = program_.variation;
  const JitterScope scope = variation.transfers.scope;
  const std::uint64_t key = scope == JitterScope::Op ? transfer : way;
  return jitter_factor(variation.transfers, variation.seed,
                       mixed({key, part_of_run(program_, scope, micro_batch)}));
}

double VariedTimes::message_factor(int index, int micro_batch) const {
  const Channel& channel = program_.channels[index];
  const auto from = number(channel.from_stage), to = number(channel.to_stage);
  return transfer_factor(mixed({kMessage, from, to, number(channel.from_resident ? 1 : 0)}),
                         mixed({kWay, number(channel.from_rank), number(channel.to_rank)}),
                         micro_batch);
}

VariedTimes::Message VariedTimes::varied_message(int channel, int micro_batch,
                                                 Message planned) const {
  const double factor = message_factor(channel, micro_batch);
  return {scaled(planned.occupancy, factor), scaled(planned.latency, factor)};
}

double VariedTimes::collective_factor(int index, int micro_batch) const {
  const Event& event = program_.events[index];
  const int communicator = program_.collectives[event.collective].communicator;
  return transfer_factor(mixed({kCollective, number(index)}),
                         mixed({kCommunicator, number(communicator)}), micro_batch);
}

}  // namespace interlock
