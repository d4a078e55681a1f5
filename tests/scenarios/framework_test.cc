// Times that a framework adds to a step, against launches, bytes and exchanges of the model.
// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"
#include "scenarios/contract/read_framework.h"
#include "tests/scenarios/plan/small_run.h"

namespace interlock::framework_test {
namespace {

int launches_of(const std::vector<Work>& works) {
  int launches = 0;
  for (const Work& work : works) launches += work.launches;
  return launches;
}

}  // namespace

TEST_CASE("a step of small kernels takes as long as the host needs to issue them") {
  const ScenarioResult slow = run(small_run({R"(training.framework={"kernel_issue": "1 ms"})"}));
  int launches = 0;
  for (const Module& module : slow.plan.question.training().graph.modules) {
    for (const auto* works :
         {&module.forward, &module.backward_input, &module.backward_weight, &module.update}) {
      launches += launches_of(*works);
    }
  }
  MESSAGE(launches << " launches of 1 ms; got " << step_of(slow) << " s");
  CHECK(step_of(slow) == doctest::Approx(launches * 1e-3).epsilon(1e-9));
}

TEST_CASE("gradients may be issued at a pace of their own") {
  const auto step = [](const std::string& framework) {
    return step_of(run(small_run({"training.framework=" + framework})));
  };
  const double all = step(R"({"kernel_issue": "1 ms"})");
  int gradients = 0;
  const ScenarioResult result = run(small_run({}));
  for (const Module& module : result.plan.question.training().graph.modules) {
    gradients += launches_of(module.backward_input) + launches_of(module.backward_weight);
  }
  CHECK(all - step(R"({"kernel_issue": "1 ms", "backward_issue": "0.4 ms"})") ==
        doctest::Approx(gradients * 0.6e-3).epsilon(1e-9));
  CHECK(step(R"({"kernel_issue": "1 ms", "backward_issue": "1 ms"})") == all);
}

TEST_CASE("collectives take the multiprocessors that the framework or the device says") {
  const auto share = [](const Overrides& overrides) {
    return run(small_run(overrides)).plan.question.cluster.machines.front().device.collective_sms;
  };
  const std::string library = R"(training.framework={"collective_sms": 0.2})";
  CHECK(share({}) == 0);
  CHECK(share({library}) == 0.2);
  const std::string device = R"({"memory": "80 GiB", "memory_bandwidth": "2 TB/s",
      "peak": {"bf16": "300 TFLOP/s"}, "collective_sms": 0.1})";
  const std::string cluster =
      R"(cluster={"kind": "uniform", "devices": 1, "link": {"bandwidth": "1 GB/s"}, "device": )";
  CHECK(share({library, cluster + device + "}"}) == 0.1);
}

TEST_CASE("a host that runs ahead does not show") {
  const double alone = step_of(run(small_run({})));
  CHECK(step_of(run(small_run({R"(training.framework={"kernel_issue": "1 ns"})"}))) == alone);
}

TEST_CASE("collectives are issued too") {
  const Overrides two = {R"(cluster={"machine": "dgx-a100-80g", "devices": 2})",
                         "parallel.tensor=2"};
  Overrides issued = two;
  issued.push_back(R"(training.framework={"exchange_issue": "1 s"})");
  const ScenarioResult slow = run(small_run(issued));
  int exchanges = 0;
  for (const Module& module : slow.plan.question.training().graph.modules) {
    for (const auto* list : {&module.forward_exchanges, &module.backward_input_exchanges,
                             &module.backward_weight_exchanges}) {
      for (const Exchange& exchange : *list) exchanges += exchange.count;
    }
  }
  MESSAGE(exchanges << " collectives of 1 s; got " << step_of(slow) << " s");
  CHECK(exchanges > 0);
  CHECK(step_of(slow) == doctest::Approx(exchanges).epsilon(1e-3));
}

TEST_CASE("the loss moves as many bytes more as the framework says") {
  const Overrides bare = {
      "cluster={\"kind\": \"uniform\", \"devices\": 1, \"link\": {\"bandwidth\": "
      "\"1 GB/s\"}, \"device\": {\"memory\": \"80 GB\", \"memory_bandwidth\": "
      "\"1 GB/s\", \"peak\": {\"bf16\": \"1 EFLOP/s\"}, \"efficiency\": \"peak\"}}"};
  Overrides moved = bare;
  moved.push_back(R"(training.framework={"loss_traffic": 3})");
  const double logits = 2.0 * 128 * 1024;
  const double expected = 2 * (2 * logits * (2 + 4)) / 1e9;
  const double got = step_of(run(small_run(moved))) - step_of(run(small_run(bare)));
  MESSAGE("twice more, forward and back, 6 bytes for each of "
          << logits << " logits at 1 GB/s: " << expected << " s; got " << got);
  CHECK(got == doctest::Approx(expected).epsilon(1e-9));
}

/// A device on which nothing but 1 GB/s of memory takes time.
TEST_CASE("the softmax moves as many bytes more as the framework says") {
  const double scores = 2.0 * 4 * 128 * 128;  // samples, heads, tokens, tokens
  const double expected = 2 * (2 + 3) * scores * 2 / 1e9;
  const double got =
      step_of(run(small_run({kBare, R"(training.framework={"softmax_traffic": 2})"}))) -
      step_of(run(small_run({kBare})));
  MESSAGE("once more in two blocks: two passes forward and three back over "
          << scores << " scores of two bytes at 1 GB/s: " << expected << " s; got " << got);
  CHECK(got == doctest::Approx(expected).epsilon(1e-9));
}

TEST_CASE("gradients of several micro-batches are added up in as many passes as are named") {
  const std::string passes = R"(training.framework={"gradient_passes": 3})";
  const std::string two = "training.micro_batches=2";
  const ScenarioResult plain = run(small_run({kBare, two}));
  double parameters = 0;
  for (const Module& module : plain.plan.question.training().graph.modules) {
    parameters += static_cast<double>(module.parameters);
  }
  const double expected = 2 * 3 * parameters * 2 / 1e9;
  const double got = step_of(run(small_run({kBare, two, passes}))) - step_of(plain);
  MESSAGE("3 passes over " << parameters << " weights of two bytes for each of 2 micro-batches: "
                           << expected << " s; got " << got);
  CHECK(got == doctest::Approx(expected).epsilon(1e-9));
  // One micro-batch has nothing to be added to.
  CHECK(step_of(run(small_run({kBare, passes}))) == step_of(run(small_run({kBare}))));
}

TEST_CASE("an update's passes take no time on a device without rates") {
  const auto step = [](const std::string& framework) {
    return step_of(run({R"(model={"kind": "profile", "modules": [
                            {"repeat": 2, "forward": "1 ms", "backward_input": "1 ms",
                             "backward_weight": "1 ms", "parameters": "1 MB"}]})",
                        R"(cluster={"kind": "uniform", "devices": 2, "memory": "1 GB",
                                    "link": {"bandwidth": "1 GB/s"}})",
                        "parallel.pipeline=2", "training.strategy=local", "training.steps=1",
                        "training.micro_batches=2", "training.framework=" + framework}));
  };
  CHECK(step(R"({"gradient_sweeps": 3, "update_bytes": 32, "gradient_passes": 2})") == step("{}"));
}

TEST_CASE("a slow host takes its time over every kernel") {
  const auto step = [](const std::string& pace) {
    const std::string cluster = R"(cluster={"kind": "uniform", "devices": 1, "device": "a100-80g",
        "link": {"bandwidth": "1 GB/s"}, "host": {"bandwidth": "1 GB/s", "pace": )";
    return step_of(
        run(small_run({cluster + pace + "}}", R"(training.framework={"kernel_issue": "1 ms"})"})));
  };
  CHECK(step("2.5") == doctest::Approx(2.5 * step("1")).epsilon(1e-9));
}

TEST_CASE("slower products and attention take their flops over the slower rate") {
  const auto device = [](double gemm, double attention) {
    return "cluster={\"kind\": \"uniform\", \"devices\": 1, \"link\": {\"bandwidth\": \"1 GB/s\"}, "
           "\"device\": {\"memory\": \"80 GB\", \"memory_bandwidth\": \"100 TB/s\", \"peak\": "
           "{\"bf16\": \"1 TFLOP/s\"}, \"efficiency\": {\"gemm\": {\"compute\": " +
           std::to_string(gemm) + "}, \"attention\": {\"compute\": " + std::to_string(attention) +
           "}}}}";
  };
  const double expected = step_of(run(small_run({device(0.25, 0.125)})));
  const double got = step_of(
      run(small_run({device(0.5, 0.5),
                     R"(training.framework={"product_speed": 0.5, "attention_speed": 0.25})"})));
  MESSAGE("0.5 x 0.5 and 0.5 x 0.25 of the peak: " << expected << " s; got " << got);
  CHECK(got == doctest::Approx(expected).epsilon(1e-9));
}

TEST_CASE("attention may have a speed of its own on an architecture") {
  const auto step = [](const std::string& keys) {
    return step_of(run(small_run({"model.attention=fused", "model.sequence_length=8192",
                                  "training.framework={" + keys + "}"})));
  };
  const double half = step(R"("attention_speed": 0.5)"), whole = step("");
  MESSAGE("an A100 is an Ampere: " << whole << " s, and at half the speed " << half << " s");
  CHECK(half > 1.1 * whole);
  CHECK(step(R"("attention_speeds": {"NVIDIA Ampere": 0.5})") == half);
  CHECK(step(R"("attention_speed": 0.25, "attention_speeds": {"NVIDIA Ampere": 0.5})") == half);
  CHECK(step(R"("attention_speed": 0.5, "attention_speeds": {"NVIDIA Hopper": 0.25})") == half);
}

TEST_CASE("gradients in fp32 take two bytes a parameter more") {
  const ScenarioResult plain = run(small_run({}));
  const ScenarioResult wide = run(small_run({R"(training.framework={"gradients": "fp32"})"}));
  double parameters = 0;
  for (const Module& module : plain.plan.question.training().graph.modules) {
    parameters += static_cast<double>(module.parameters);
  }
  const auto gradients = [](const ScenarioResult& result) {
    return result.measurement.metrics.devices.front()
        .memory[static_cast<std::size_t>(MemoryClass::Gradients)]
        .value();
  };
  CHECK(gradients(wide) - gradients(plain) == doctest::Approx(2 * parameters));
}

Bytes peak_of(const ScenarioResult& result) {
  return result.measurement.metrics.devices.front().peak_memory;
}

TEST_CASE("a loss holds as many bytes of each logit as the framework says") {
  // A vocabulary so large that the peak is where the loss goes back.
  const auto peak = [](const std::string& framework) {
    return peak_of(run(small_run({"model.vocab_size=65536", "training.framework=" + framework})))
        .value();
  };
  const double logits = 2.0 * 128 * 65536, own = peak("{}");
  INFO("4 bytes kept and 2 of gradients where nothing is said");
  CHECK(peak(R"({"loss_stash": 4, "loss_gradients": 2})") == own);
  CHECK(peak(R"({"loss_stash": 2})") - own == doctest::Approx(-2 * logits));
  INFO("that of the readout's product has the gradient of its input beside the logits'");
  const double input = 2.0 * 128 * 256 * 2;
  CHECK(peak(R"({"loss_gradients": 8})") - own == doctest::Approx(6 * logits - input));
}

TEST_CASE("a peak has what the allocator reserves") {
  const ScenarioResult plain = run(small_run({}));
  const ScenarioResult more = run(small_run({R"(training.framework={"reserve": 0.25})"}));
  CHECK(peak_of(more).value() == doctest::Approx(1.25 * peak_of(plain).value()));
  Bytes sum;
  for (const Bytes bytes : more.measurement.metrics.devices.front().memory) sum += bytes;
  CHECK(sum.value() == doctest::Approx(peak_of(more).value()));
  const DeviceMetrics& lean = plain.measurement.metrics.devices.front();
  const DeviceMetrics& held = more.measurement.metrics.devices.front();
  CHECK(held.peak_stash.value() == doctest::Approx(1.25 * lean.peak_stash.value()));
  CHECK(held.allocated_peak.value() == doctest::Approx(1.25 * lean.allocated_peak.value()));
}

TEST_CASE("libraries keep memory beside all tensors, by the device's architecture") {
  const auto peak = [](const std::string& memory) {
    return peak_of(run(small_run({"training.framework={" + memory + "}"}))).value();
  };
  const double none = peak(""), gib = 1024.0 * 1024 * 1024;
  CHECK(peak(R"("library_memory": "1 GiB")") - none == gib);
  INFO("an A100 is an Ampere");
  CHECK(peak(R"("library_memory": {"NVIDIA Ampere": "2 GiB", "other": "1 GiB"})") - none ==
        2 * gib);
  CHECK(peak(R"("library_memory": {"NVIDIA Hopper": "2 GiB", "other": "1 GiB"})") - none == gib);
  CHECK(peak(R"("library_memory": {"NVIDIA Hopper": "2 GiB"})") == none);
  INFO("an allocator's reserve is over them, too");
  CHECK(peak(R"("library_memory": "1 GiB", "reserve": 0.5)") ==
        doctest::Approx(1.5 * (none + gib)));
}

TEST_CASE("each norm and each other part of a layer takes small kernels more to run again") {
  const auto launches = [](const std::string& recompute, const std::string& framework) {
    int all = 0;
    const ScenarioResult result =
        run(small_run({"training.recompute=" + recompute, "training.framework=" + framework}));
    for (const Module& module : result.plan.question.training().graph.modules) {
      all += launches_of(module.recompute);
    }
    return all;
  };
  const auto more = [&](const std::string& recompute) {
    return launches(recompute, R"({"recompute_steps": 5})") - launches(recompute, "{}");
  };
  constexpr int kLayers = 2;
  CHECK(more(R"({"modules": ["core_attn"]})") == 5 * kLayers);
  CHECK(more(R"({"modules": ["layernorm"]})") == 5 * 2 * kLayers);
  CHECK(more(R"({"modules": ["core_attn", "mlp"]})") == 5 * 2 * kLayers);
  CHECK(more("full") == 5 * kLayers);
  CHECK(more("none") == 0);
  INFO("of a layer that keeps every second product, too");
  CHECK(more("alternate") == 5 * kLayers);
}

TEST_CASE("routing in small steps takes 49 kernels more in a forward and 27 in a backward") {
  const auto launches = [](const std::string& framework, const Overrides& more = {}) {
    Overrides all = {"model.experts=4", "model.experts_per_token=2", "model.mlp_bias=false",
                     framework};
    all.insert(all.end(), more.begin(), more.end());
    const ScenarioResult result = run(small_run(all));
    const std::vector<Module>& modules = result.plan.question.training().graph.modules;
    int forward = 0, backward = 0;
    for (const Module& module : modules) {
      forward += launches_of(module.forward);
      backward += launches_of(module.backward_input);
    }
    return std::pair(forward, backward);
  };
  const auto fused = launches("training.framework={}");
  const auto steps = launches(R"(training.framework={"routing": "steps"})");
  CHECK(steps.first - fused.first == 2 * 49);
  CHECK(steps.second - fused.second == 2 * 27);
  INFO("what Transformer Engine fuses of it takes fewer");
  const auto with = [&](const std::string& parts) {
    return launches(R"(training.framework={"routing": "steps"})",
                    {"training.fused_routing=" + parts});
  };
  CHECK(steps.first - with(R"(["router"])").first == 2 * (22 - 7));
  CHECK(steps.second - with(R"(["router"])").second == 2 * (16 - 5));
  CHECK(steps.first - with(R"(["permutation"])").first == 2 * (9 + 6 - 7 - 3));
  CHECK(steps.second - with(R"(["permutation"])").second == 2 * (6 + 5 - 2 - 3));
  const auto both = with(R"(["permutation", "router"])");
  CHECK(fused.first < both.first);
  CHECK(both.first < with(R"(["router"])").first);
  CHECK_THROWS_WITH_AS(with(R"(["router", "router"])"),
                       doctest::Contains("stands in the list twice"), Error);
  for (const char* wrong : {"\"router\"", "5", "[]", R"({"router": true})"}) {
    CAPTURE(wrong);
    CHECK_THROWS_WITH_AS(with(wrong), doctest::Contains("expected a list of"), Error);
  }
}

TEST_CASE("scores of experts that multiply activations keep nothing of what experts make") {
  const auto stash = [](const std::string& framework, const std::string& gated,
                        const std::string& recompute = "training.recompute=none") {
    const ScenarioResult result = run(
        small_run({"model.experts=4", "model.experts_per_token=2", framework, gated, recompute}));
    return result.plan.question.training().graph.modules[1].stash.value();
  };
  INFO(
      "two experts for each of 256 tokens keep what their activation makes, 1024 wide, twice, and "
      "not what they made of it, 256 wide");
  const double made = 2 * 256 * 256 * 2;
  const std::string scored = R"(training.framework={"expert_scores": "activations"})";
  const std::string plain = "model.gated_mlp=false", gated = "model.gated_mlp=true";
  CHECK(stash(scored, plain) - stash("training.framework={}", plain) == 2 * 256 * 1024 * 2 - made);
  CHECK(stash(scored, gated) == stash("training.framework={}", gated) - made);
  const std::string again = R"(training.recompute={"modules": ["moe"]})";
  for (const std::string& form : {plain, gated}) {
    CHECK(stash(scored, form, again) == stash("training.framework={}", form, again));
  }
  INFO("an activation that runs again makes what scores multiply, too");
  const std::string activation = R"(training.recompute={"modules": ["moe_act"]})";
  CHECK(stash(scored, plain, activation) ==
        stash("training.framework={}", plain, activation) - made);
}

TEST_CASE("tensor devices may hold the whole embedding, and gather all logits") {
  Overrides two = {R"(cluster={"machine": "dgx-a100-80g", "devices": 2})", "parallel.tensor=2",
                   "parallel.sequence_parallel=true", "model.tied_embeddings=false"};
  const ScenarioResult parts = run(small_run(two));
  two.push_back(R"(training.framework={"vocabulary": "gathered"})");
  const ScenarioResult whole = run(small_run(two));
  const auto module = [](const ScenarioResult& result, bool last) {
    const std::vector<Module>& modules = result.plan.question.training().graph.modules;
    return last ? modules.back() : modules.front();
  };
  const double tokens = 2 * 128;
  CHECK(module(whole, false).parameters - module(parts, false).parameters == 1024 / 2 * 256);
  CHECK(module(whole, true).parameters == module(parts, true).parameters);
  INFO("fp32 logits of both halves, where each kept its own");
  CHECK((module(whole, true).stash - module(parts, true).stash).value() == tokens * 512 * 4);
  double gathered = 0;
  for (const Exchange& exchange : module(whole, true).forward_exchanges) {
    if (exchange.kind == CollectiveKind::AllGather) {
      gathered = std::max(gathered, exchange.bytes.value());
    }
  }
  CHECK(gathered == tokens * 1024 * 2);
}

TEST_CASE("sums of input gradients hide behind weight gradients if the framework says so") {
  const Overrides two = {R"(cluster={"machine": "dgx-a100-80g", "devices": 2})",
                         "parallel.tensor=2", "model.hidden_size=1024",
                         "model.sequence_length=1024"};
  Overrides hidden = two;
  hidden.push_back(R"(training.framework={"overlaps_sums": true})");
  const ScenarioResult apart = run(small_run(two)), beside = run(small_run(hidden));
  CHECK(step_of(beside) < 0.99 * step_of(apart));
  const auto exchanges = [](const ScenarioResult& result) {
    std::pair<double, double> bytes = {0, 0};  // in turn, beside
    for (const Module& module : result.plan.question.training().graph.modules) {
      for (const Exchange& exchange : module.backward_input_exchanges) {
        (exchange.overlapped ? bytes.second : bytes.first) +=
            exchange.count * exchange.bytes.value();
      }
    }
    return bytes;
  };
  const auto [turns, none] = exchanges(apart);
  const auto [rest, moved] = exchanges(beside);
  CHECK(none == 0);
  CHECK(moved > 0);
  CHECK(rest + moved == turns);
}

TEST_CASE("mistakes in a framework are told") {
  CHECK(mistakes({R"(training.framework="megatron")"}).find("megatron-lm") != std::string::npos);
  CHECK(mistakes({R"(training.framework={"kernel_issues": "1 us"})"}).find("kernel_issue") !=
        std::string::npos);
  CHECK(mistakes({R"(training.framework={"loss_traffic": 0.5})"}).find("expected") !=
        std::string::npos);
}

}  // namespace interlock::framework_test
