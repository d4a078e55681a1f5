// HelixPipe in scenarios: what devices hold and send, bounds, both engines, and what is refused.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "scenarios/plan/step_time.h"
#include "tests/scenarios/plan/small_run.h"

namespace interlock::helix_scenario_test {
namespace {

/// Returns sixteen micro-batches of a sample on four ranks of a machine, of two layers each; and
/// `more`.
Overrides in_a_helix(const Overrides& more) {
  return small_run(
      joined({R"(cluster={"machine": "dgx-a100-80g", "devices": 4})", "model.layers=8",
              "model.attention=fused", "model.tied_embeddings=false", "parallel.pipeline=4",
              "training.schedule=helixpipe", "training.global_batch_size=16",
              "training.micro_batch_size=1", "training.optimizer=adam"},
             more));
}

double bytes_on_links(const ScenarioResult& result) {
  double bytes = 0;
  for (const LinkMetrics& link : result.measurement.metrics.links) bytes += link.bytes.value();
  return bytes;
}

double of_class(const DeviceMetrics& device, MemoryClass memory_class) {
  return device.memory[static_cast<std::size_t>(memory_class)].value();
}

double held(const ScenarioResult& result, MemoryClass memory_class) {
  double bytes = 0;
  for (const DeviceMetrics& device : result.measurement.metrics.devices) {
    bytes += of_class(device, memory_class);
  }
  return bytes;
}

TEST_CASE("on one rank a step takes what GPipe's does") {
  const Overrides one =
      in_a_helix({R"(cluster={"machine": "dgx-a100-80g", "devices": 1})", "parallel.pipeline=1"});
  const Overrides stays = {R"(training.schedule={"kind": "helixpipe", "transfer_weights": false})"};
  const double helix = step_of(run(joined(one, stays)));
  CHECK(helix == doctest::Approx(step_of(run(joined(one, {"training.schedule=gpipe"})))));
  CHECK(step_of(run(one)) > helix);  // gradients of products are added up beside these
}

TEST_CASE("all devices together hold the model once") {
  for (const char* data : {"1", "2"}) {
    const Overrides more = {
        std::string("parallel.data=") + data,
        std::string(R"(cluster={"machine": "dgx-a100-80g", "devices": )") +
            (*data == '1' ? "4}" : "8}"),
        *data == '1' ? "training.global_batch_size=16" : "training.global_batch_size=32"};
    const ScenarioResult helix = run(in_a_helix(more));
    const ScenarioResult line = run(in_a_helix(joined(more, {"training.schedule=1f1b"})));
    for (const auto one : {MemoryClass::Weights, MemoryClass::Gradients, MemoryClass::Optimizer}) {
      INFO("class " << static_cast<int>(one) << ", data " << data);
      CHECK(held(helix, one) > 0);
      CHECK(held(helix, one) == doctest::Approx(held(line, one)));
    }
  }
}

TEST_CASE("replicas add up the gradients of each weight once") {
  const auto between = [&](const std::string& schedule) {
    const Overrides all = in_a_helix({"training.schedule=" + schedule});
    const double alone = bytes_on_links(run(all));
    const double both =
        bytes_on_links(run(joined(all, {R"(cluster={"machine": "dgx-a100-80g", "devices": 8})",
                                        "parallel.data=2", "training.global_batch_size=32"})));
    return both - alone;  // those of one replica, which stands for both
  };
  CHECK(between("helixpipe") > 0);
  CHECK(between("helixpipe") == doctest::Approx(between("1f1b")));
}

// Attention: of p places one has it beside what comes before it, and one beside what follows: of L
// layers each direction has (p - 1) / p of M messages. Those of a pipeline cross p - 1 boundaries.
TEST_CASE("on links there are the residual, what attention reads, and what it makes") {
  const double p = 4, layers = 8, tokens = 128, hidden = 256, residual = tokens * hidden * 2;
  const double weights = (3 * hidden * hidden + 3 * hidden) * 2;
  const double line = bytes_on_links(run(in_a_helix({"training.schedule=1f1b"})));
  const auto ratio = [&](const char* transfer) {
    return bytes_on_links(run(in_a_helix(
               {std::string(R"(training.schedule={"kind": "helixpipe", "transfer_weights": )") +
                transfer + "}"}))) /
           line;
  };
  CHECK(ratio("true") ==
        doctest::Approx(layers * (2 * residual + weights + 2 * residual) / (p * residual)));
  CHECK(ratio("false") == doctest::Approx(layers * (4 + 2) / p));
}

TEST_CASE("a checkpoint holds each weight once: it takes as long as the fullest device's") {
  const auto seconds_a_byte = [&](const std::string& schedule) {
    const ScenarioResult result = run(
        in_a_helix({"training.schedule=" + schedule,
                    R"(run={"steps": 10, "checkpoint": {"interval": 5, "bandwidth": "1 GB/s"}})"}));
    REQUIRE(result.run);
    double most = 0;
    for (const DeviceMetrics& device : result.measurement.metrics.devices) {
      most = std::max(
          most, of_class(device, MemoryClass::Weights) + of_class(device, MemoryClass::Optimizer));
    }
    return result.run->plan.checkpoint.write.value() / most;
  };
  CHECK(seconds_a_byte("helixpipe") == doctest::Approx(seconds_a_byte("1f1b")));
}

TEST_CASE("bounds are met: a step is no shorter, and takes no less memory") {
  for (const char* count : {"8", "16", "32"}) {
    const ScenarioResult result =
        run(in_a_helix({std::string("training.global_batch_size=") + count}));
    const StepEstimate bound = estimate_step(result.plan, Grade::PlanBound);
    double peak = 0;
    for (const DeviceMetrics& device : result.measurement.metrics.devices) {
      peak = std::max(peak, device.peak_memory.value());
    }
    INFO(count << " micro-batches");
    CHECK(bound.time.value() <= step_of(result) * (1 + 1e-9));
    CHECK(bound.memory.value() <= peak * (1 + 1e-9));
    CHECK(bound.memory.value() > 0);
  }
}

TEST_CASE("both engines agree where messages to all ranks share ports and cards") {
  for (const char* cluster : {R"({"machine": "dgx-a100-80g", "devices": 4})",
                              R"({"machine": "pcie-a100-80g", "nodes": 2, "devices": 8})"}) {
    const std::string ranks = cluster[13] == 'd' ? "4" : "8";
    Overrides all = in_a_helix(
        {std::string("cluster=") + cluster, "parallel.pipeline=" + ranks, "training.steps=2"});
    INFO(cluster);
    const double native = step_of(run(all));
    all.push_back("simulate.engine=simgrid");
    CHECK(step_of(run(all)) == doctest::Approx(native).epsilon(1e-9));
  }
}

TEST_CASE("what does not fit HelixPipe is refused, with what to write instead") {
  const auto refused = [](const Overrides& more) { return mistakes(in_a_helix(more)); };
  const std::string place = "set: /training/schedule: ";
  CHECK(refused({"training.global_batch_size=12"}) ==
        place +
            "helixpipe takes micro-batches in rounds of 2 for each rank; expected a multiple of 8 "
            "micro-batches, or other \"folds\", got 12");
  CHECK(refused({"model.layers=6"}) ==
        place +
            "helixpipe gives each rank equally many layers; expected a multiple of 4 layers, got "
            "6");
  CHECK(refused({"parallel.stages=4"}).find("cuts the model itself; expected 17 stages, got 4") !=
        std::string::npos);
  CHECK(refused({R"(model.parallel_residual=true)"})
            .find("expected a decoder whose layers all attend") != std::string::npos);
  CHECK(refused({"parallel.zero_stage=2"}).find("expected \"zero_stage\" 0 or 1, got 2") !=
        std::string::npos);
  CHECK(refused({"training.strategy=local"}).find("is no schedule for local training") !=
        std::string::npos);
  CHECK(refused({"partition=uniform"}).find("expected no partition") != std::string::npos);
  CHECK(refused({"training.offload={\"activations\": 0.5}"}).find("expected no \"offload\"") !=
        std::string::npos);
  CHECK(refused({"training.lora.rank=4"}).find("expected \"transfer_weights\" false") !=
        std::string::npos);
  CHECK(refused({"training.recompute=alternate"}).find("modules other than") != std::string::npos);
  CHECK(refused({R"(training.recompute={"stage_layers": 1})"}).find("expected \"recompute\"") !=
        std::string::npos);
  const auto keyed = [&](const std::string& key, const std::string& kind = "helixpipe") {
    return refused({R"(training.schedule={"kind": ")" + kind + "\", " + key + "}"});
  };
  CHECK(keyed(R"("chunks": 2)").find("cuts the model around attention; expected no \"chunks\"") !=
        std::string::npos);
  CHECK(keyed(R"("backward": "split")").find("expected \"backward\" \"fused\"") !=
        std::string::npos);
  CHECK(keyed(R"("queue": {"buffered": 2})").find("expected \"queue\" \"unlimited\"") !=
        std::string::npos);
  CHECK(keyed(R"("message_order": "rank")").find("sends to all ranks at a time") !=
        std::string::npos);
  CHECK(keyed(R"("vocabulary": "vocab-1")").find("expected \"1f1b\"") != std::string::npos);
  CHECK(keyed(R"("folds": 2)", "1f1b").find("leaves layers whole") != std::string::npos);
  CHECK(keyed(R"("transfer_weights": false)", "1f1b").find("expected it with \"helixpipe\"") !=
        std::string::npos);
}

TEST_CASE("adapters train beside queries, keys and values that travel") {
  const ScenarioResult result =
      run(in_a_helix({"training.lora.rank=4",
                      R"(training.schedule={"kind": "helixpipe", "transfer_weights": false})"}));
  CHECK(held(result, MemoryClass::Weights) > held(result, MemoryClass::Gradients));
}

TEST_CASE("the scenario of every schedule has every schedule that trains a whole model") {
  const JsonValue all = read_json_file(EXAMPLES_FOLDER "/every-schedule.json");
  std::set<std::string> swept;
  for (const JsonValue& one : all.find("sweep")->find("training")->items) {
    const JsonValue* const schedule = one.find("schedule");
    const JsonValue* const kind = schedule->find("kind");
    swept.insert(kind != nullptr ? kind->text : schedule->text);
  }
  for (const ScheduleEntry& entry : schedule_catalogue()) {
    if (!entry.global() || entry.order == OrderSource::File) continue;
    INFO(entry.name);
    CHECK(swept.contains(entry.name));
  }
}

}  // namespace
}  // namespace interlock::helix_scenario_test
