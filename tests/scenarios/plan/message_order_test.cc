// Messages in line as scenarios ask for them: what is refused, and that they change the step alone.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/contract/set_key.h"
#include "scenarios/load/question.h"
#include "tests/scenarios/plan/small_run.h"

namespace interlock::message_order_test {
namespace {

/// Returns eight micro-batches on four ranks, and `more`.
Overrides on_four_ranks(const Overrides& more) {
  return small_run(
      joined({R"(cluster={"machine": "dgx-a100-80g", "devices": 4})", "model.layers=16",
              "parallel.pipeline=4", "training.global_batch_size=8", "training.micro_batch_size=1"},
             more));
}

std::string refused(const std::string& members) {
  return mistakes(on_four_ranks({"training.schedule={" + members + "}"}));
}

TEST_CASE("an early receive holds sends up in one line a rank, not in lines of pairs") {
  const auto step = [](const std::string& members) {
    return step_of(
        run(on_four_ranks({"training.schedule={\"kind\": \"interleaved\"" + members + "}"})));
  };
  const double free = step(""), pair = step(R"(, "message_order": "pair")"),
               rank = step(R"(, "message_order": "rank")");
  CHECK(free <= pair);
  CHECK(pair < rank * 0.95);
}

// One micro-batch: no line holds anything up. Eight replicas share the cards of their machines, so
// that messages take longer than each would alone.
TEST_CASE("messages in line that share links are exposed for as long as free ones") {
  const auto exposed = [](const std::string& members) {
    JsonValue value = parse_json(R"({
      "model": {"kind": "profile", "modules": [
        {"repeat": 2, "forward": "1 ms", "backward_input": "1 ms", "backward_weight": "1 ms",
         "output": "10 MB", "parameters": "1 MiB"}]},
      "cluster": {"machine": "a3-highgpu-8g", "nodes": 2},
      "parallel": {"pipeline": 2, "data": 8},
      "training": {"strategy": "global", "micro_batches": 1, "steps": 3}})",
                                 "test.json");
    apply_overrides(value, {"training.schedule={\"kind\": \"1f1b\"" + members + "}"});
    const ScenarioResult result = run_scenario(load_questions(value).front(), true);
    return result.measurement.metrics.exposed_communication.value();
  };
  const double free = exposed("");
  CHECK(free > 0);
  CHECK(exposed(R"(, "message_order": "rank")") == doctest::Approx(free).epsilon(1e-9));
  CHECK(exposed(R"(, "message_order": "pair", "batched_messages": true)") ==
        doctest::Approx(free).epsilon(1e-9));
}

TEST_CASE("messages that cannot stand in line are refused in one sentence") {
  const std::string place = "set: /training/schedule/message_order: ";
  const std::string order = R"(, "message_order": "rank")";
  CHECK(refused(R"("kind": "pipedream")" + order) ==
        place +
            "\"pipedream\" does not update once a step, after all messages; expected it with "
            "e.g. \"1f1b\" or \"interleaved\"");
  CHECK(refused(R"("kind": "terapipe")" + order) ==
        place +
            "\"terapipe\" has messages of slices; expected it with e.g. \"1f1b\" or "
            "\"interleaved\"");
  CHECK(refused(R"("kind": "auto")" + order) ==
        place +
            "\"auto\" looks for an order whose messages are free; expected \"free\", or the "
            "order that it finds in a file");
  CHECK(refused(R"("kind": "1f1b", "queue": {"buffered": 2})" + order) ==
        place +
            "messages wait for both of their ranks, in no queue; expected \"queue\" "
            "\"unlimited\" beside it");
  CHECK(refused(R"("kind": "1f1b", "copies": "compute_stream")" + order) ==
        place +
            "lines of messages stand beside compute; expected \"copies\" \"overlapped\" "
            "beside it");
  CHECK(refused(R"("kind": "1f1b", "execution": "bulk_synchronous")" + order) ==
        place + "a phase has no messages in turn; expected \"execution\" \"futures\" beside it");
  CHECK(refused(R"("kind": "1f1b", "batched_messages": true)") ==
        "set: /training/schedule/batched_messages: messages are free to leave; expected "
        "\"message_order\" \"rank\" or \"pair\" beside it");
  CHECK(
      mistakes(on_four_ranks({"parallel.stages=8",
                              R"(training.schedule={"kind": "1f1b", "message_order": "pair"})"})) ==
      place +
          "a rank with several stages chooses their order while it runs; expected one stage "
          "a rank, or a schedule that lays out several");
  for (const char* kind : {"1f1b", "gpipe"}) {
    CHECK(refused("\"kind\": \"" + std::string(kind) +
                  R"(", "receives": "late", "batched_messages": true)" + order) == "");
  }
  CHECK(refused(R"("kind": "interleaved", "receives": "late", "batched_messages": true)" + order) ==
        "set: /training/schedule/receives: \"interleaved\" has early receives only; expected "
        "\"early\", or \"late\" with \"1f1b\", as in Megatron-LM, or \"gpipe\"");
  CHECK(refused(R"("kind": "1f1b", "receives": "early", "batched_messages": false)") == "");
}

}  // namespace
}  // namespace interlock::message_order_test
