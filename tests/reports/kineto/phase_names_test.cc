// Names of ranges: which op of which part of a model they say.
// SPDX-License-Identifier: Apache-2.0
#include "reports/kineto/phase_names.h"

#include <doctest/doctest.h>

#include "reports/kineto/range_index.h"

namespace interlock::phase_names_test {
namespace {

/// "phase|part", or "none".
std::string read(const std::string& name) {
  const auto read = read_phase_name(name);
  return read ? std::string(name_of(read->phase)) + "|" + read->part : "none";
}

}  // namespace

TEST_CASE("a phase and a part are read, however their words are joined") {
  CHECK(read("forward stage 0") == "forward|stage 0");
  CHECK(read("backward stage 12") == "backward|stage 12");
  CHECK(read("Backward Input: layer_3") == "backward_input|layer 3");
  CHECK(read("backward_weight of stage 1") == "backward_weight|stage 1");
  CHECK(read("forward/encoder.block-2") == "forward|encoder.block 2");
  CHECK(read("head stage 0") == "head|stage 0");
  CHECK(read("recompute layer 7") == "recompute|layer 7");
  CHECK(read("update") == "update|");
  CHECK(read("forward pass") == "forward|");
  CHECK(read("forward stage 0 micro-batch 5") == "forward|stage 0");
  CHECK(read("forward stage 0 microbatch 5") == "forward|stage 0");
  CHECK(read("forward micro_batch 5") == "forward|");
}

TEST_CASE("names of PyTorch's pipelines and optimisers are known") {
  CHECK(read("PP:2F5") == "forward|stage 2");
  CHECK(read("PP:10B0") == "backward|stage 10");
  CHECK(read("PP:0I3") == "backward_input|stage 0");
  CHECK(read("PP:0W") == "backward_weight|stage 0");
  CHECK(read("Optimizer.step#AdamW.step") == "update|");
}

TEST_CASE("other names are none, whatever they begin with") {
  for (const std::string name :
       {"", " ", "aten::addmm", "ProfilerStep#3", "Optimizer.zero_grad#SGD.zero_grad", "forwards",
        "forward-backward", "forward_and_loss", "PP:0SEND_F1", "PP:", "PP:F", "PP:12", "PP:1F2x",
        "DataParallel.forward", "header", "updates"}) {
    CAPTURE(name);
    CHECK(read(name) == "none");
  }
}

TEST_CASE("the innermost of nested ranges is found, both ends included") {
  // 0: [0, 100], 1: [10, 40], 2: [20, 30], 3: [50, 60], 4: [60, 60], 5: [200, 210]
  const RangeIndex index(
      {{200, 210, 5}, {0, 100, 0}, {50, 60, 3}, {10, 40, 1}, {20, 30, 2}, {60, 60, 4}});
  const auto at = [&](std::int64_t instant) { return index.at(instant).value_or(-1); };
  CHECK(at(-1) == -1);
  CHECK(at(0) == 0);
  CHECK(at(25) == 2);
  CHECK(at(30) == 2);
  CHECK(at(31) == 1);
  CHECK(at(45) == 0);
  CHECK(at(55) == 3);
  CHECK(at(60) == 4);
  CHECK(at(61) == 0);
  CHECK(at(150) == -1);
  CHECK(at(205) == 5);
}

}  // namespace interlock::phase_names_test
