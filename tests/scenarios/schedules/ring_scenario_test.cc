// Scenarios whose weights go round a ring: what they hold and send, bounds, and what is refused.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "scenarios/plan/step_time.h"
#include "tests/scenarios/plan/small_run.h"

namespace interlock::ring_scenario_test {
namespace {

/// Returns eight micro-batches of a sample on four ranks of a machine, and `more`.
Overrides on_a_ring(const Overrides& more) {
  return small_run(joined({R"(cluster={"machine": "dgx-a100-80g", "devices": 4})", "model.layers=6",
                           "parallel.pipeline=4", "training.schedule=weipipe",
                           "training.global_batch_size=8", "training.micro_batch_size=1"},
                          more));
}

double bytes_on_links(const ScenarioResult& result) {
  double bytes = 0;
  for (const LinkMetrics& link : result.measurement.metrics.links) bytes += link.bytes.value();
  return bytes;
}

double held(const DeviceMetrics& device, MemoryClass memory_class) {
  return device.memory[static_cast<std::size_t>(memory_class)].value();
}

TEST_CASE("longer sequences send nothing more, and twice the micro-batches less than twice") {
  const Overrides rotary = {R"(model.positions="rotary")"};
  const auto sent = [&](const Overrides& more) {
    return bytes_on_links(run(on_a_ring(joined(rotary, more))));
  };
  const double once = sent({});
  CHECK(once > 0);
  CHECK(sent({"model.sequence_length=1024"}) == once);
  const double twice = sent({"training.global_batch_size=16"});
  // Turns: m + p - 1 = 11 and 19, of which the forward's first of each round need no message.
  CHECK(twice > 1.5 * once);
  CHECK(twice < 2 * once);
  const double activations = sent({"training.schedule=1f1b"});
  CHECK(sent({"training.schedule=1f1b", "model.sequence_length=1024"}) > 7.9 * activations);
}

TEST_CASE("devices hold four of the largest chunk beside their own, and states of that alone") {
  const std::string times =
      R"("forward": "1 ms", "backward_input": "1 ms", "backward_weight": "1 ms", "stash": "1 MB",)";
  Overrides all = {R"(model={"kind": "profile", "modules": [{)" + times +
                       R"("parameters": "40 MB"}, {"repeat": 3, )" + times +
                       R"("parameters": "10 MB"}]})",
                   "training.micro_batches=8", "training.schedule=1f1b"};
  const ScenarioResult passed_on = run(all);
  all.back() = "training.schedule=weipipe";
  const ScenarioResult result = run(all);
  for (int rank = 0; rank < 4; ++rank) {
    const DeviceMetrics& device = result.measurement.metrics.devices[rank];
    const double own = rank == 0 ? 40e6 : 10e6;
    INFO("rank " << rank);
    CHECK(held(device, MemoryClass::Weights) == own);
    CHECK(held(device, MemoryClass::Gradients) == own);
    CHECK(held(device, MemoryClass::Communication) == 7 * 40e6);
    // Counts its own chunk, as in a pipeline: the first, then the last and so on.
    const DeviceMetrics& owner = passed_on.measurement.metrics.devices[(4 - rank) % 4];
    CHECK(held(device, MemoryClass::Optimizer) == held(owner, MemoryClass::Optimizer));
    CHECK(device.peak_stash.value() == 4e6);
  }
}

TEST_CASE("a checkpoint holds no chunks that pass by") {
  const std::string module =
      R"("forward": "1 ms", "backward_input": "1 ms", "backward_weight": "1 ms")";
  const auto write_of = [&](const std::string& schedule) {
    const ScenarioResult result =
        run({R"(model={"kind": "profile", "modules": [{"repeat": 4, "parameters": "40 MB", )" +
                 module + "}]}",
             R"(cluster={"kind": "uniform", "devices": 4, "memory": "80 GB",)"
             R"( "link": {"bandwidth": "100 GB/s"}})",
             "parallel.pipeline=4", "training.strategy=global", "training.micro_batches=8",
             "training.schedule=" + schedule,
             R"(run={"steps": 10, "checkpoint": {"interval": 5, "bandwidth": "1 GB/s"}})"});
    REQUIRE(result.run);
    return result.run->plan.checkpoint.write.value();
  };
  CHECK(write_of("weipipe") == doctest::Approx(write_of("1f1b")));
}

TEST_CASE("a balanced cut of a ring, all of whose ranks run each stage, knows no speeds of ranks") {
  const Overrides all = on_a_ring({"model.layers=14"});
  const ScenarioResult even = run(all);
  const ScenarioResult slow = run(joined(all, {R"(variation={"speeds": [1, 0.4, 1, 1]})"}));
  CHECK(slow.plan.partition.boundaries == even.plan.partition.boundaries);
  CHECK(step_of(slow) > 1.5 * step_of(even));
  const Overrides pipeline = joined(all, {"training.schedule=1f1b"});
  CHECK(run(joined(pipeline, {R"(variation={"speeds": [1, 0.4, 1, 1]})"}))
            .plan.partition.boundaries != run(pipeline).plan.partition.boundaries);
}

TEST_CASE("bounds are met: a step is no shorter, and takes no less memory") {
  for (const char* count : {"4", "8", "32"}) {
    const ScenarioResult result = run(
        on_a_ring({std::string("training.global_batch_size=") + count, "training.optimizer=adam"}));
    const StepEstimate bound = estimate_step(result.plan, Grade::PlanBound);
    double peak = 0;
    for (const DeviceMetrics& device : result.measurement.metrics.devices) {
      peak = std::max(peak, device.peak_memory.value());
    }
    INFO(count << " micro-batches");
    CHECK(bound.time.value() <= step_of(result) * (1 + 1e-9));
    CHECK(bound.memory.value() <= peak * (1 + 1e-9));
    CHECK(bound.memory.value() >= peak * 0.8);
  }
}

TEST_CASE("both engines agree where messages of a ring share ports and cards") {
  struct Case {
    const char *cluster, *pipeline;
  };
  for (const Case& at : {Case{R"({"machine": "dgx-a100-80g", "devices": 4})", "4"},
                         {R"({"machine": "pcie-a100-80g", "nodes": 2, "devices": 16})", "16"},
                         {R"({"machine": "dgx-h100", "nodes": 2, "devices": 16})", "16"}}) {
    Overrides all = on_a_ring({std::string("cluster=") + at.cluster, "model.layers=14",
                               std::string("parallel.pipeline=") + at.pipeline,
                               "training.global_batch_size=32", "training.steps=2"});
    INFO(at.cluster);
    const double native = step_of(run(all));
    all.push_back("simulate.engine=simgrid");
    CHECK(step_of(run(all)) == doctest::Approx(native).epsilon(1e-9));
  }
}

TEST_CASE("what does not fit a ring is refused, with what to write instead") {
  const auto refused = [](const Overrides& more) { return mistakes(on_a_ring(more)); };
  const std::string place = "set: /training/schedule: ";
  CHECK(refused({"training.global_batch_size=6"}) ==
        place +
            "weipipe takes a micro-batch for each rank at a time; expected a multiple of 4 "
            "micro-batches, such as 4 or 8, got 6");
  CHECK(refused({"parallel.stages=8", "model.layers=8"}).find("expected 4, got 8") !=
        std::string::npos);
  CHECK(refused({"parallel.pipeline=2", "parallel.tensor=2"}) ==
        "set: /parallel/tensor: \"weipipe\" sends whole chunks of the model to ranks of one device "
        "each; expected \"tensor\" 1, and more ranks (parallel.pipeline), got 2");
  CHECK(refused({"parallel.pipeline=2", "parallel.data=2"})
            .find("set: /parallel/data: \"weipipe\" sends whole chunks") == 0);
  CHECK(refused({"parallel.pipeline=2", "parallel.context=2"})
            .find("set: /parallel/context: \"weipipe\" sends whole chunks") == 0);
  CHECK(refused({"parallel.zero_stage=3"}).find("expected \"zero_stage\" 0, got 3") !=
        std::string::npos);
  CHECK(refused({"training.strategy=local"}).find("is no schedule for local training") !=
        std::string::npos);
  CHECK(refused({"training.offload={\"activations\": 0.5}"}) ==
        "set: /training/offload: \"weipipe\" has no room on hosts for what passes by; expected no "
        "\"offload\"");
  const auto keyed = [&](const std::string& key) {
    return refused({R"(training.schedule={"kind": "weipipe", )" + key + "}"});
  };
  CHECK(keyed(R"("chunks": 2)").find("gives each rank one stage; expected no \"chunks\"") !=
        std::string::npos);
  CHECK(keyed(R"("backward": "split")").find("expected \"backward\" \"fused\"") !=
        std::string::npos);
  CHECK(keyed(R"("queue": {"buffered": 2})").find("expected \"queue\" \"unlimited\"") !=
        std::string::npos);
  CHECK(keyed(R"("copies": "compute_stream")").find("expected \"copies\" \"overlapped\"") !=
        std::string::npos);
  CHECK(keyed(R"("execution": "bulk_synchronous")").find("expected \"execution\" \"futures\"") !=
        std::string::npos);
  CHECK(keyed(R"("message_order": "rank")")
            .find("has turns in which weights pass; expected it with e.g. \"1f1b\"") !=
        std::string::npos);
  CHECK(keyed(R"("deferred_readout": 1)").find("has a readout on several ranks") !=
        std::string::npos);
  CHECK(keyed(R"("vocabulary": "vocab-1")").find("expected \"1f1b\"") != std::string::npos);
}

}  // namespace
}  // namespace interlock::ring_scenario_test
