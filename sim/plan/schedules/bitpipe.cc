// BitPipe: two copies of the model in opposite directions, each laid as a V of two stages a rank.
// SPDX-License-Identifier: Apache-2.0
//
// A step is cut into units of p micro-batches, half of each for either copy, as Chimera's is. Rank
// r is d = min(r, p - 1 - r) stages from the near end of a copy and p - 1 - d from that of the
// other; h = p/2 and i = h - d. Forwards of a unit come in the order
//   i x { near down }, d x { far down, near down }, i x { far down, far up },
//   d x { near up, far up }, i x { near up },
// and backwards likewise, from the way up to the way down: each way of each copy has h of both. The
// first 2p - i forwards of a step come first. Then, in each unit, i backwards stand between
// forwards, p + 2d + 1 in a row, i - 1 between the forwards of the next unit, whose other forwards
// follow in a row: while gradients of one unit come back, activations of the next go out (direct
// concatenation).
//
// With F and B of a stage, a half of a device's share of the model, a step of m micro-batches takes
//   2m (F + B) + (p - 2) (max(F, B) + (m/p - 1) |B - F|).
// It was found by listing the events of this order.
// Source: Wu et al., arXiv 2410.19367, and github.com/wuhouming/BitPipe
// (megatron/core/pipeline_parallel/bitpipe_schedule.py).
#include <string>

#include "sim/plan/schedules/families.h"
#include "sim/plan/schedules/stage_ops.h"

namespace interlock {
namespace {

class BitOrder {
 public:
  BitOrder(const ScheduleInputs& inputs, const std::vector<int>& stages, int rank, int ranks)
      : inputs_(inputs),
        stages_(stages),
        ranks_(ranks),
        near_(rank < ranks / 2 ? 0 : 1),
        depth_(near_ == 0 ? rank : ranks - 1 - rank),
        alone_(ranks / 2 - depth_) {
    list_unit();
  }

  Sequence make() {
    const int ranks = ranks_, units = inputs_.micro_batches / ranks;
    const int ahead = 2 * ranks - alone_, row = ranks + 2 * depth_ + 1;
    std::vector<Op> body;
    for (int k = 0; k < ahead; ++k) add_forward(body, k);
    order_.append(body);
    for (int unit = 0; unit < units; ++unit) {
      const int first = 2 * ranks * unit;
      body.clear();
      for (int k = 0; k < alone_; ++k) add_pair(body, first + ahead + k, first + k);
      for (int k = 0; k < row; ++k) add_backward(body, first + alone_ + k);
      for (int k = 0; k < alone_ - 1; ++k) {
        add_pair(body, first + 2 * ranks + k, first + alone_ + row + k);
      }
      for (int k = 0; k < row; ++k) add_forward(body, first + 2 * ranks + alone_ - 1 + k);
      order_.append(body);
    }
    order_.append_updates(inputs_, stages_);
    return {order_.take(), inputs_.steps, inputs_.micro_batches};
  }

 private:
  /// A pass of a unit: down (0) or up (1) the V of a copy, for one of its p/2 micro-batches.
  struct Pass {
    int copy, way, number;
  };

  void list_unit() {
    const int far = 1 - near_;
    // Ways are those of forwards; a backward comes back the other way.
    const auto add = [&](int count, Pass first, Pass second) {
      for (int k = 0; k < count; ++k) {
        unit_.push_back({first.copy, first.way, first.number + k});
        unit_.push_back({second.copy, second.way, second.number + k});
      }
    };
    const auto add_alone = [&](Pass first) {
      for (int k = 0; k < alone_; ++k) unit_.push_back({first.copy, first.way, first.number + k});
    };
    add_alone({near_, 0, 0});
    add(depth_, {far, 0, 0}, {near_, 0, alone_});
    add(alone_, {far, 0, depth_}, {far, 1, 0});
    add(depth_, {near_, 1, 0}, {far, 1, alone_});
    add_alone({near_, 1, depth_});
  }

  /// Adds forward `k` of the rank in a step, if there is one.
  void add_forward(std::vector<Op>& body, int k) const {
    if (k >= 2 * inputs_.micro_batches) return;
    const Pass pass = unit_[k % (2 * ranks_)];
    body.push_back(
        global_op(inputs_, OpKind::F, stage_of(pass.copy, pass.way), number_of(k, pass)));
  }
  void add_backward(std::vector<Op>& body, int k) const {
    if (k >= 2 * inputs_.micro_batches) return;
    const Pass pass = unit_[k % (2 * ranks_)];
    append_backward(body, inputs_, stage_of(pass.copy, 1 - pass.way), number_of(k, pass));
  }
  void add_pair(std::vector<Op>& body, int forward, int backward) const {
    add_forward(body, forward);
    add_backward(body, backward);
  }
  int number_of(int k, const Pass& pass) const {
    return k / (2 * ranks_) * ranks_ + pass.copy * (ranks_ / 2) + pass.number;
  }
  /// Returns the rank's stage of a copy on a way; its stages are those of copy 0, then of copy 1.
  int stage_of(int copy, int way) const { return stages_[2 * copy + way]; }

  const ScheduleInputs& inputs_;
  const std::vector<int>& stages_;
  int ranks_;
  int near_, depth_;  // the copy whose end is near, and how far it is
  int alone_;         // passes of the near copy before the far one comes by
  std::vector<Pass> unit_;
  RunWriter order_;
};

Schedule make_bitpipe(const ScheduleInputs& inputs) {
  Schedule schedule = empty_schedule(inputs);
  const auto stages = stages_of_ranks(inputs);
  const int ranks = static_cast<int>(stages.size());
  for (int rank = 0; rank < ranks; ++rank) {
    schedule.ranks[rank] = {BitOrder(inputs, stages[rank], rank, ranks).make()};
  }
  return schedule;
}

std::string bitpipe_problem(const ScheduleShape& shape) {
  if (std::string wrong = one_v_problem(shape); !wrong.empty()) return wrong;
  ScheduleShape of_copies = shape;
  of_copies.stages = shape.ranks;
  if (std::string wrong = mirrored_problem(of_copies); !wrong.empty()) return wrong;
  return whole_units_problem(shape);
}

}  // namespace

ScheduleEntry schedules::bitpipe() {
  return {.name = "bitpipe",
          .flushes = true,
          .layout = StageLayout::MirroredV,
          .chunks = 2,
          .summary = "chimera over two copies that are each laid as a V: less idle, more messages",
          .source = "Wu et al., arXiv 2410.19367",
          .make = make_bitpipe,
          .problem = bitpipe_problem,
          .period = every_rank,
          .bubble = {"(p - 2)(m + p) / (6pm + (p - 2)(m + p))",
                     [](const PipelineShape& s) {
                       const double p = s.devices, m = s.micro_batches;
                       return formulas::share((p - 2) * (m + p), 6 * p * m);
                     }},
          .stashed = formulas::kDevices};
}

}  // namespace interlock
