// Plans of stages: where gradients lie in the workspace.
// SPDX-License-Identifier: Apache-2.0
//
// A backward takes tensors and gives them back while its steps are listed; offsets are chosen when
// all lifetimes are known, so that no hole between tensors that stay is lost. Two that live at one
// time must not overlap. Tensors are laid down one after the other, in several orders, each as low
// as it can lie or beside one of the ends, until no more room is needed than is alive at one time;
// the way that needs the least counts.
//
//   lives through steps   0 1 2 3      as taken             largest first
//   a, 2 numbers          #            a at 0               c at 0
//   b, 2 numbers          # # #        b at 2               b at 4
//   c, 4 numbers            # # #      c at 4: 8 numbers    a at 0: 6 numbers
#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/random.h"
#include "validate/network/stage_planner.h"

namespace interlock {

Tensor StagePlanner::take(std::int64_t rows, int columns) {
  const Tensor tensor = {Place::Workspace, next_offset_, rows, columns};
  const std::int64_t bytes = tensor.size() * inputs_.element;
  taken_.push_back({next_offset_, bytes, steps_->size(), 0});
  next_offset_ += bytes;
  return tensor;
}

/// Ends the lifetime of a tensor with the last step that is listed so far.
void StagePlanner::give_back(const Tensor& tensor) {
  if (tensor.place != Place::Workspace) return;
  for (Taken& one : taken_) {
    if (one.offset == tensor.offset) one.end = steps_->size();
  }
}

/// Returns the most bytes at the end of the workspace that `tensor` may not reach while it lives.
std::int64_t StagePlanner::end_taken(const Taken& tensor) const {
  std::int64_t most = 0;
  for (std::size_t i = 0; i < end_taken_.size(); ++i) {
    const bool follows = i + 1 < end_taken_.size();
    const bool before = follows && end_taken_[i + 1].begin <= tensor.begin;
    if (!before && end_taken_[i].begin < tensor.end) most = std::max(most, end_taken_[i].bytes);
  }
  return most;
}

/// Returns the most bytes that are taken at one time: no way to lay them out needs less.
std::int64_t StagePlanner::most_alive() const {
  std::int64_t most = 0;
  for (const Taken& now : taken_) {
    std::int64_t alive = end_taken({.begin = now.begin, .end = now.begin + 1});
    for (const Taken& one : taken_) {
      if (one.begin <= now.begin && now.begin < one.end) alive += one.bytes;
    }
    most = std::max(most, alive);
  }
  return most;
}

/// Fills in `offsets` of what is taken, tensor by tensor in `order`. `ends`: beside one of the ends
/// of the first `*ends` bytes, rather than as low as it can lie. Returns the bytes needed.
std::int64_t StagePlanner::lay_out(const std::vector<std::size_t>& order,
                                   std::optional<std::int64_t> ends,
                                   std::vector<std::int64_t>& offsets) const {
  constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max() / 2;
  std::int64_t needed = 0;
  std::vector<std::size_t> laid;  // by offset
  const auto below = [&](std::size_t a, std::size_t b) { return offsets[a] < offsets[b]; };
  for (const std::size_t i : order) {
    const Taken& tensor = taken_[i];
    std::int64_t gap = 0, lowest = -1, highest = -1;
    const auto look = [&](std::int64_t end) {
      if (end - gap < tensor.bytes) return;
      if (lowest < 0) lowest = gap;
      if (ends && end >= *ends && *ends - gap >= tensor.bytes) highest = *ends - tensor.bytes;
    };
    for (const std::size_t other : laid) {
      const Taken& there = taken_[other];
      if (there.begin >= tensor.end || tensor.begin >= there.end) continue;
      look(offsets[other]);
      gap = std::max(gap, offsets[other] + there.bytes);
    }
    look(kFar);
    offsets[i] = lowest > 0 && highest >= 0 ? highest : lowest;
    laid.insert(std::upper_bound(laid.begin(), laid.end(), i, below), i);
    needed = std::max(needed, offsets[i] + tensor.bytes + end_taken(tensor));
  }
  return needed;
}

/// Returns the offsets of everything that is taken; `needed` becomes the bytes that they reach.
std::vector<std::int64_t> StagePlanner::best_offsets(std::int64_t& needed) const {
  constexpr int kTries = 200;
  std::vector<std::size_t> order(taken_.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::int64_t> offsets(taken_.size()), best;
  const std::int64_t least = most_alive();
  const auto attempt = [&] {
    for (const std::optional<std::int64_t> ends : {std::optional<std::int64_t>(), {least}}) {
      const std::int64_t reach = lay_out(order, ends, offsets);
      if (best.empty() || reach < needed) {
        needed = reach;
        best = offsets;
      }
    }
  };
  attempt();
  std::reverse(order.begin(), order.end());
  attempt();
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return taken_[a].bytes > taken_[b].bytes; });
  attempt();
  Random random(1, 0);
  for (int n = 0; n < kTries && needed > least; ++n) {
    for (std::size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1], order[random.bits() % i]);
    }
    attempt();
  }
  return best;
}

/// Chooses where everything lies that the steps at hand have taken.
void StagePlanner::settle_room() {
  for (Taken& one : taken_) {
    if (one.end == 0) one.end = steps_->size() + 1;
  }
  if (!taken_.empty()) {
    std::int64_t needed = 0;
    const std::vector<std::int64_t> offsets = best_offsets(needed);
    plan_.workspace = std::max(plan_.workspace, needed);
    const auto settle = [&](Tensor& tensor) {
      if (tensor.place != Place::Workspace) return;
      const auto found = std::find_if(taken_.begin(), taken_.end(), [&](const Taken& one) {
        return one.offset == tensor.offset;
      });
      CHECK(found != taken_.end(), "a tensor of the workspace is taken");
      tensor.offset = offsets[static_cast<std::size_t>(found - taken_.begin())];
    };
    for (Step& step : *steps_) {
      for (Tensor* tensor : {&step.x, &step.y, &step.dx, &step.scratch}) settle(*tensor);
    }
  }
  taken_.clear();
  end_taken_.clear();
  next_offset_ = 0;
}

}  // namespace interlock
