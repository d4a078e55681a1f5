// Runs that cannot end: one sentence and exit code 2 from the program itself.
// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/child_program.h"

namespace interlock::failing_runs_test {
namespace {

Outcome run_with(const std::string& run) {
  return run_program({"simulate", "-"}, ".", R"({
    "name": "two replicas",
    "model": {"kind": "profile", "modules": [{"forward": "1 s", "backward_weight": "2 s"}]},
    "cluster": {"kind": "uniform", "devices": 2, "memory": "80 GiB",
                "link": {"bandwidth": "1 GB/s"}},
    "parallel": {"pipeline": 1, "data": 2},
    "training": {"strategy": "global", "global_batch_size": 4, "micro_batch_size": 1},
    "run": )" + run + "}");
}

void check_refused(const std::string& run, const std::string& said) {
  const Outcome outcome = run_with(run);
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.out == "");
  CHECK(outcome.err.starts_with("standard input: two replicas: after "));
  CHECK(outcome.err.find(said) != std::string::npos);
}

TEST_CASE("a failure of the last replica is one sentence") {
  check_refused(R"({"steps": 100000, "on_failure": "drop_replica",
                    "failures": {"device_mtbf": "1 h", "replacement": "never"}})",
                "the last replica has failed: only 0 of the 1 devices that training needs are "
                "left, and no other comes back; expected more \"spares\", a time for "
                "\"replacement\" or an \"up\" in the trace\n");
}

TEST_CASE("a failure of a device that all need is one sentence") {
  check_refused(R"({"steps": 100000, "failures": {"device_mtbf": "1 h", "replacement": "never"}})",
                "only 1 of the 2 devices that training needs are left, and no other comes back; "
                "expected more \"spares\", a time for \"replacement\", an \"up\" in the trace or "
                "\"on_failure\": \"drop_replica\"\n");
}

TEST_CASE("a run that makes no headway is one sentence") {
  check_refused(R"({"steps": 1000, "failures": {"device_mtbf": "1 min"}, "reload": "10 s"})",
                "failures have let training get to step 0 of 1000 only; expected checkpoints, "
                "restarts and steps that are short beside the time between failures\n");
}

/// Two rings of four devices on a dragonfly of two groups; of the second, other links are crossed.
Outcome run_folded(const std::string& fold) {
  return run_program({"simulate", "-", "--set", "simulate.fold=" + fold}, ".", R"({
    "model": {"kind": "transformer", "layers": 2, "hidden_size": 64, "attention_heads": 4,
              "vocab_size": 64, "sequence_length": 64},
    "cluster": {"kind": "machine", "device": "a100-40g", "devices_per_node": 2, "nodes": 4,
                "port": {"bandwidth": "64 GB/s"}, "cards": {"bandwidth": "16 GB/s"},
                "network": {"kind": "dragonfly", "groups": 2, "routers_per_group": 2,
                            "nodes_per_router": 1, "local": {"bandwidth": "10 GB/s"},
                            "global": {"bandwidth": "5 GB/s"}}},
    "parallel": {"pipeline": 1, "context": 4, "tensor": 2,
                 "order": ["context", "tensor", "data", "pipeline"]},
    "training": {"strategy": "global", "global_batch_size": 4}})");
}

TEST_CASE("a folding of groups that lie differently is one sentence, and auto has none") {
  const Outcome asked = run_folded(R"(["context"])");
  CAPTURE(asked.err);
  CHECK(asked.exit_code == 2);
  CHECK(asked.err.find("/simulate/fold: ranks that stand for others") != std::string::npos);
  CHECK(run_folded("auto").exit_code == 0);
}

}  // namespace
}  // namespace interlock::failing_runs_test
