// Recomputation that counts the layers of stages: bytes and times of small stages, by hand.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/stage_recompute.h"

#include <doctest/doctest.h>

#include "sim/plan/stage_times.h"

namespace interlock::stage_recompute_test {
namespace {

/// An embedding, `layers` layers that all compute again (1 byte of input is kept, 10 in all, 2 more
/// are needed to work, and a forward takes 3 s), and a readout.
std::vector<StageCost> model(int layers) {
  StageCost embedding;
  embedding.stash = Bytes(5);
  embedding.workspace = Bytes(4);
  StageCost layer;
  layer.forward.time = layer.recompute.time = Seconds(3);
  layer.stash = Bytes(1);
  layer.workspace = Bytes(2 + 9);
  layer.remade = Bytes(9);
  std::vector<StageCost> modules = {embedding};
  modules.insert(modules.end(), static_cast<std::size_t>(layers), layer);
  modules.emplace_back();
  return modules;
}

struct Held {
  double stash, workspace, again;
  bool operator==(const Held&) const = default;
};

/// `boundaries`: of stages, but for the readout, which the last of them has too.
std::vector<Held> held(const std::vector<int>& boundaries, const StageRecompute& rule) {
  Partition partition{.boundaries = boundaries};
  ++partition.boundaries.back();
  const auto modules = recomputed_in_stages(model(boundaries.back() - 1), partition, rule);
  const auto roles = make_roles({}, partition.stages(), false);
  std::vector<Held> all;
  for (const StageCost& stage : price_stages(modules, partition, {}, roles)) {
    all.push_back({stage.stash.value(), stage.workspace.value(), stage.recompute.time.value()});
  }
  return all;
}

TEST_CASE("without a rule every layer is computed again by itself") {
  CHECK(held({0, 6}, {}) == std::vector<Held>{{5 + 5 * 1, 2 + 9, 5 * 3}});
}

TEST_CASE("the first layers of each stage are computed again, the others keep everything") {
  CHECK(held({0, 6}, {.layers = 2}) == std::vector<Held>{{5 + 2 * 1 + 3 * 10, 2 + 9, 2 * 3}});
  CHECK(held({0, 3, 6, 7}, {.layers = 2}) ==
        std::vector<Held>{{5 + 2, 11, 6}, {2 + 10, 11, 6}, {1, 11, 3}});
  CHECK(held({0, 6}, {.layers = 0}) == std::vector<Held>{{5 + 50, 4, 0}});
  CHECK(held({0, 6}, {.layers = 9}) == held({0, 6}, {}));
}

TEST_CASE("a group of layers keeps the input of its first, and comes back at once") {
  const double three = 2 + 3 * 9 + 2 * 1;
  CHECK(held({0, 6}, {.group = 3}) == std::vector<Held>{{5 + 2, three, 15}});
  CHECK(held({0, 4, 8}, {.group = 3}) == std::vector<Held>{{5 + 1, three, 9}, {2, three, 12}});
}

TEST_CASE("a layer for later tokens, part of the last module, is computed again by itself") {
  std::vector<StageCost> modules = model(2);
  modules.back() = modules[1];
  modules.back().stash = Bytes(100);  // with what the readout keeps
  const Partition partition{.boundaries = {0, 4}};
  for (const StageRecompute& rule : {StageRecompute{.layers = 0}, StageRecompute{.group = 4}}) {
    const StageCost last = recomputed_in_stages(modules, partition, rule).back();
    CHECK(last.stash == Bytes(100));
    CHECK(last.workspace == Bytes(2 + 9));
    CHECK(last.recompute.time == Seconds(3));
  }
  const auto roles = make_roles({}, 1, false);
  const StageTime time = busy_with({.layers = 0}, modules, busy_time(modules, {}, roles, 1));
  CHECK(time(0, 0, 4) == Seconds(3 * 3 + 3));  // three forwards, and that of the last again
}

TEST_CASE("a wider group never keeps more, nor a narrower rule less") {
  for (int n = 1; n < 8; ++n) {
    CHECK(held({0, 8}, {.group = n + 1})[0].stash <= held({0, 8}, {.group = n})[0].stash);
    CHECK(held({0, 8}, {.group = n + 1})[0].workspace >= held({0, 8}, {.group = n})[0].workspace);
    CHECK(held({0, 8}, {.layers = n})[0].stash <= held({0, 8}, {.layers = n - 1})[0].stash);
    CHECK(held({0, 8}, {.layers = n})[0].again >= held({0, 8}, {.layers = n - 1})[0].again);
  }
}

TEST_CASE("the time that a partition is balanced by is that of the stage's own layers") {
  const std::vector<StageCost> modules = model(7);
  for (int most = 0; most < 9; ++most) {
    const StageRecompute rule{.layers = most};
    const auto roles = make_roles({}, 3, false);
    const StageTime time = busy_with(rule, modules, busy_time(modules, {}, roles, 1));
    for (const int cut : {1, 3, 6}) {
      const Partition partition{.boundaries = {0, cut, 7, 9}};
      const auto stages =
          price_stages(recomputed_in_stages(modules, partition, rule), partition, {}, roles);
      for (int s = 0; s < 3; ++s) {
        INFO(most << " layers of each stage, the first cut at " << cut << ", stage " << s);
        CHECK(time(s, partition.boundaries[s], partition.boundaries[s + 1]) ==
              stages[s].forward.time + stages[s].recompute.time);
      }
    }
  }
}

}  // namespace
}  // namespace interlock::stage_recompute_test
