// Faster links that make a step longer, as updates come last of what a stage could do: by hand.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/scenarios/plan/small_run.h"

namespace interlock::late_update_test {
namespace {

constexpr int kMicroBatches = 6, kInFlight = 3, kSteps = 24;
constexpr int kTick = 10;  // of a millisecond: all times are whole ticks

/// An op of a stage: its letter and micro-batch.
using Step = std::pair<char, int>;
using Order = std::vector<std::vector<Step>>;

/// Two stages of pairwise training, tick by tick. F, I and W take 1 ms, the lower stage's B both
/// halves, a head and an update 1 ms; a message fills its wire for `wire` ticks and is 1 ms on its
/// way. A stage does the first letter of `letters` that it can, of the oldest micro-batch; or what
/// `given` has next.
class TwoStages {
 public:
  TwoStages(std::string letters, int wire, const Order* given = nullptr)
      : letters_(std::move(letters)), wire_(wire), given_(given) {
    for (auto& chains : chains_) {
      for (int c = 0; c < kInFlight; ++c) chains.push_back({c, 0});
    }
    for (int now = 0; static_cast<int>(ends_.size()) < 2 * kSteps; ++now) {
      for (int stage : {0, 1}) end(stage, now);
      for (int stage : {0, 1}) begin(stage, now);
    }
  }

  const Order& order() const { return order_; }
  /// Returns the length of a step, in ms, over the twelve steps from the ninth on.
  double step() const { return (end_of(20) - end_of(8)) / 12.0 / kTick; }

 private:
  struct Chain {
    int micro_batch, place;
  };
  struct Running {
    Step op;
    std::size_t chain = 0;
    int end = 0;
  };

  static std::string ops(int stage, int micro_batch) {
    const std::string all = stage == 0 ? "FB" : "FIW";
    return (micro_batch + 1) % kMicroBatches == 0 ? all + "U" : all;
  }
  int end_of(int step) const { return std::max(ends_.at({0, step}), ends_.at({1, step})); }

  void end(int stage, int now) {
    std::optional<Running>& running = running_[stage];
    if (!running || running->end > now) return;
    const auto [letter, micro_batch] = running->op;
    Chain& chain = chains_[stage][running->chain];
    if (letter == 'U') ends_[{stage, micro_batch / kMicroBatches}] = now;
    if (letter == (stage == 0 ? 'F' : 'I')) {
      free_[stage] = std::max(free_[stage], now) + wire_;
      arrives_[{1 - stage, micro_batch}] = free_[stage] + kTick;
    }
    if (++chain.place == static_cast<int>(ops(stage, micro_batch).size())) {
      chain = {micro_batch + kInFlight, 0};
    }
    running.reset();
  }

  bool ready(int stage, std::size_t c, char letter, int now) const {
    const int micro_batch = chains_[stage][c].micro_batch;
    if (letter == (stage == 0 ? 'B' : 'F')) {
      const auto message = arrives_.find({stage, micro_batch});
      if (message == arrives_.end() || message->second > now) return false;
    }
    if (letter == 'F') {  // as many micro-batches may lie before an update
      const int updates = (micro_batch - kInFlight + 1) / kMicroBatches;
      return micro_batch < kInFlight || updates == 0 || ends_.contains({stage, updates - 1});
    }
    return letter != 'U' || std::ranges::all_of(chains_[stage], [&](const Chain& chain) {
             return chain.micro_batch >= micro_batch;
           });
  }

  void begin(int stage, int now) {
    if (running_[stage]) return;
    std::optional<Running> chosen;
    const auto place = [&](const Step& op) {
      return std::pair(letters_.find(op.first), op.second);
    };
    for (std::size_t c = 0; c < kInFlight; ++c) {
      const Chain& chain = chains_[stage][c];
      const Step op = {ops(stage, chain.micro_batch)[chain.place], chain.micro_batch};
      if (!ready(stage, c, op.first, now)) continue;
      const std::size_t turn = order_[stage].size();
      if (given_ && (turn >= (*given_)[stage].size() || (*given_)[stage][turn] != op)) continue;
      if (chosen && place(chosen->op) < place(op)) continue;
      chosen = Running{op, c, now + (op.first == 'B' ? 2 : 1) * kTick};
    }
    if (!chosen) return;
    order_[stage].push_back(chosen->op);
    running_[stage] = chosen;
  }

  std::string letters_;
  int wire_;
  const Order* given_;
  std::vector<Chain> chains_[2];
  std::optional<Running> running_[2];
  int free_[2] = {0, 0};
  std::map<std::pair<int, int>, int> arrives_, ends_;
  Order order_ = Order(2);
};

double simulated(int wire) {
  return step_of(
             run({R"(model={"kind": "profile", "modules": [{"repeat": 2, "forward": "1 ms",
                          "backward_input": "1 ms", "backward_weight": "1 ms", "update": "1 ms",
                          "output": "1 MB"}]})",
                  R"(cluster={"kind": "uniform", "devices": 2, "link": {"latency": "1 ms",
                          "bandwidth": "1 GB/s"}, "device": "a100-80g"})",
                  "cluster.link.bandwidth=\"" + std::to_string(1e10 / wire) + " B/s\"",
                  "parallel.pipeline=2", "training.strategy=pairwise", "training.micro_batches=6",
                  "training.steps=24", R"(training.schedule={"kind": "eager", "in_flight": 3})"})) /
         1e-3;
}

TEST_CASE(
    "faster links can lengthen a step: an update comes last, behind backwards that they bring") {
  const auto in_turn = [](int wire) { return TwoStages("FIBWU", wire); };
  for (const int wire : {1, 2, 3, 5, 8, 10, 12, 15, 20, 30, 40}) {
    INFO("a message fills its wire for " << wire << " tenths of a millisecond");
    CHECK(simulated(wire) == doctest::Approx(in_turn(wire).step()).epsilon(1e-6));
  }
  const int fast = 5, slow = 10;
  const double work = 3 * kMicroBatches + 1;
  const TwoStages of_slow = in_turn(slow);
  CHECK(of_slow.step() == doctest::Approx(work));
  CHECK(in_turn(fast).step() > 1.1 * work);
  INFO("in the order of the slow links fast ones wait no longer, nor if updates come first");
  CHECK(TwoStages("FIBWU", fast, &of_slow.order()).step() == doctest::Approx(work));
  CHECK(TwoStages("UFIBW", fast).step() == doctest::Approx(work));
}

}  // namespace
}  // namespace interlock::late_update_test
