// Commands that want one layout of all layers say so, in one sentence; explain takes several.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/cli/child_program.h"

namespace interlock::layers_commands_test {
namespace {

const std::string kBlocks = R"({
  "name": "blocks",
  "model": {"kind": "transformer", "hidden_size": 64, "attention_heads": 4, "vocab_size": 64,
            "sequence_length": 32, "layers": 4},
  "cluster": {"machine": "dgx-a100-80g", "devices": 4},
  "parallel": {"data": 4, "layer_layouts": [{"modules": [1, 3], "tensor": 2, "data": 2}]},
  "training": {"strategy": "global", "global_batch_size": 8}
})";

TEST_CASE("search, train and export refuse layers of several layouts") {
  const std::vector<std::pair<std::vector<std::string>, std::string>> all = {
      {{"search"},
       "a search lays all layers alike; expected none: --set parallel.layer_layouts=null"},
      {{"train"}, "layers of other degrees are simulated only; expected one layout of all layers"},
      {{"export", "--to", "megatron"}, "Megatron-LM lays all layers out alike"},
      {{"export", "--to", "torchtitan"}, "torchtitan lays all layers out alike"},
      {{"export", "--to", "deepspeed"}, "DeepSpeed lays all layers out alike"}};
  for (auto [command, message] : all) {
    command.emplace_back("-");
    const Outcome run = run_program(command, ".", kBlocks);
    INFO(command.front() << ": " << run.err);
    CHECK(run.exit_code == 2);
    CHECK(run.err.find("/parallel/layer_layouts: ") != std::string::npos);
    CHECK(run.err.find(message) != std::string::npos);
    CHECK(std::ranges::count(run.err, '\n') == 1);
  }
}

TEST_CASE("explain names what is exchanged between layers of different degrees") {
  const Outcome run = run_program({"explain", "-"}, ".", kBlocks);
  CHECK(run.err == "");
  CHECK(run.exit_code == 0);
  CHECK(run.out.find("devices between layers of different degrees") != std::string::npos);
}

}  // namespace
}  // namespace interlock::layers_commands_test
