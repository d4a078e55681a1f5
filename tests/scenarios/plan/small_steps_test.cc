// Kernels of their own that a framework takes where others fuse: bytes and numbers, by hand.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/scenarios/plan/small_run.h"

namespace interlock::small_steps_test {
namespace {

/// Holds what the layers of a model with 4 experts take: 512 rows of 256 elements, 1024 inside.
struct Taken {
  int forward = 0, backward = 0;  // kernels
  double forward_bytes = 0, backward_bytes = 0, stash = 0;
};

int launches_of(const std::vector<Work>& works) {
  int launches = 0;
  for (const Work& work : works) launches += work.launches;
  return launches;
}

Taken taken(Overrides overrides, const std::string& routing) {
  overrides.push_back(R"(training.framework={"routing": ")" + routing + "\"}");
  for (const char* one : {"model.experts=4", "model.experts_per_token=2", "model.gated_mlp=true",
                          "model.positions=rotary"}) {
    overrides.push_back(one);
  }
  const ScenarioResult result = run(small_run(overrides));
  Taken sum;
  for (const Module& module : result.plan.question.training().graph.modules) {
    sum.forward += launches_of(module.forward);
    sum.backward += launches_of(module.backward_input);
    for (const Work& work : module.forward) sum.forward_bytes += work.bytes.value();
    for (const Work& work : module.backward_input) sum.backward_bytes += work.bytes.value();
    sum.stash += module.stash.value();
  }
  return sum;
}

/// Returns what small steps take beyond fused kernels.
Taken steps_of(const Overrides& overrides) {
  const Taken steps = taken(overrides, "steps"), fused = taken(overrides, "fused");
  return {steps.forward - fused.forward, steps.backward - fused.backward,
          steps.forward_bytes - fused.forward_bytes, steps.backward_bytes - fused.backward_bytes,
          steps.stash - fused.stash};
}

/// Checks what `key` brings to the small steps of both layers, a layer's `expected`.
void check_brought(const std::string& key, const Taken& expected, Overrides overrides = {}) {
  overrides.push_back("model.mlp_bias=false");
  const Taken without = steps_of(overrides);
  overrides.push_back(key);
  const Taken with = steps_of(overrides);
  CAPTURE(key);
  CHECK(with.forward - without.forward == 2 * expected.forward);
  CHECK(with.backward - without.backward == 2 * expected.backward);
  CHECK(with.forward_bytes - without.forward_bytes == doctest::Approx(2 * expected.forward_bytes));
  CHECK(with.backward_bytes - without.backward_bytes ==
        doctest::Approx(2 * expected.backward_bytes));
  CHECK(with.stash - without.stash == doctest::Approx(2 * expected.stash));
}

}  // namespace

TEST_CASE("what Megatron-LM fuses with nothing takes kernels of its own") {
  const double rows = 512, inner = 1024, hidden = 256, tokens = 256;
  MESSAGE("biases in 16 bits, forward: b p written; that, t and their sum; a copy: 6 passes");
  MESSAGE("backward: g p and its sum over rows, g b and its sum over columns: 6; a copy: 2");
  check_brought("model.mlp_bias=true", {2, 2, rows * hidden * 2 * 6, rows * hidden * 2 * 8, 0});
  MESSAGE("clamps: 2 x (read, write) of half the width, one copy of it all; masks read twice");
  const Taken clamps = {3, 3, rows * inner * 2 * 8, rows * inner * 2 * 10, rows * inner * 2 * 2};
  check_brought("model.clamped_mlp=true", clamps);
  Taken again = clamps;
  again.stash = 0;
  check_brought("model.clamped_mlp=true", again,
                {R"(training.recompute={"modules": ["moe_act"]})"});
  MESSAGE("rotation: 12 passes forward and 17 backward in place of 2 and 2, of queries and keys");
  check_brought("model.scaled_rotation=true",
                {11, 17, 2 * tokens * hidden * 2 * 10, 2 * tokens * hidden * 2 * 15, 0});
}

TEST_CASE("biases of experts are weighed in fp32 where tokens pass once to each node") {
  const double rows = 512, hidden = 256;
  check_brought(
      "model.mlp_bias=true", {3, 3, rows * hidden * 28, rows * hidden * 40, 0},
      {R"(cluster={"machine": "dgx-a100-80g", "devices": 2})", "parallel.data=2",
       "parallel.expert=2", "parallel.expert_dispatch=deepep", "training.global_batch_size=4"});
}

TEST_CASE(
    "rows of experts are padded for products in 8 bits, but by kernels that send tokens once") {
  const auto steps = [](const char* dispatch, const char* precision) {
    return steps_of({R"(cluster={"machine": "dgx-h100", "devices": 2})", "parallel.data=2",
                     "parallel.expert=2", "training.global_batch_size=4",
                     "parallel.expert_dispatch=" + std::string(dispatch),
                     "training.precision=" + std::string(precision)});
  };
  const Taken eight = steps("all_to_all", "fp8"), sixteen = steps("all_to_all", "bf16");
  const double rows = 512, hidden = 256;
  MESSAGE("what experts read and made, each way: read and written, two layers");
  const double copied = 2 * 2 * (rows * hidden * 2 * 2);
  CHECK(eight.forward_bytes - sixteen.forward_bytes == doctest::Approx(copied));
  CHECK(eight.backward_bytes - sixteen.backward_bytes == doctest::Approx(copied));
  CHECK(eight.forward - sixteen.forward == 2 * 3);
  CHECK(eight.backward - sixteen.backward == 2 * 3);
  CHECK(steps("deepep", "fp8").forward_bytes ==
        doctest::Approx(steps("deepep", "bf16").forward_bytes));
}

TEST_CASE("a router whose scores are in fp32 casts its input and the gradient of that") {
  const auto steps = [](const char* dispatch) {
    return steps_of({R"(cluster={"machine": "dgx-a100-80g", "devices": 2})", "parallel.data=2",
                     "parallel.expert=2", "training.global_batch_size=4", "model.mlp_bias=false",
                     "parallel.expert_dispatch=" + std::string(dispatch)});
  };
  const Taken whole = steps("deepep"), apart = steps("all_to_all");
  const double tokens = 256, hidden = 256;
  MESSAGE("2 + 4 to cast and 4 to read it for 2; 4 to make for 2, and 4 + 2 to cast: 16 bytes");
  CHECK(whole.backward_bytes - apart.backward_bytes ==
        doctest::Approx(2 * tokens * hidden * ((2 + 4 + 4 - 2) + (4 - 2 + 4 + 2))));
  CHECK(whole.backward - apart.backward == 2 * 2);
  CHECK(whole.forward == apart.forward);
  CHECK(whole.forward_bytes == doctest::Approx(apart.forward_bytes));
  CHECK(whole.stash == doctest::Approx(apart.stash));
}

TEST_CASE("the host issues no kernel of a CUDA graph") {
  const std::string experts = "model.experts=4";
  const std::string slow = R"(training.framework={"kernel_issue": "1 ms"})";
  const auto replayed = [&](const std::string& graphs) {
    const ScenarioResult result = run(small_run({experts, slow, graphs}));
    int kernels = 0, forward = 0;
    for (const Module& module : result.plan.question.training().graph.modules) {
      for (const auto* works : {&module.forward, &module.backward_input, &module.backward_weight}) {
        for (const Work& work : *works) {
          if (!work.replayed) continue;
          kernels += work.launches;
          if (works == &module.forward) forward += work.launches;
        }
      }
    }
    return std::pair(std::pair(kernels, forward), step_of(result));
  };
  const auto [none, whole] = replayed("training.cuda_graphs=none");
  CHECK(none.first == 0);
  MESSAGE("attention: norm, queries to values, scores, softmax, values, projection, sum");
  const auto [attention, without] = replayed(R"(training.cuda_graphs=["attention"])");
  CHECK(attention.second == 2 * 7);
  CHECK(whole - without == doctest::Approx(attention.first * 1e-3).epsilon(1e-6));
  MESSAGE("router: norm, product, choices");
  const auto [router, left] = replayed(R"(training.cuda_graphs=["router"])");
  CHECK(router.second == 2 * 3);
  CHECK(whole - left == doctest::Approx(router.first * 1e-3).epsilon(1e-6));
  const auto [both, least] = replayed(R"(training.cuda_graphs=["router", "attention"])");
  CHECK(both.first == attention.first + router.first);
  CHECK(replayed("training.cuda_graphs=step").second <
        step_of(run(small_run({experts, R"(training.framework={"kernel_issue": "1 ns"})"}))) *
            1.01);
}

TEST_CASE("a host that waits for each kernel adds its time to theirs") {
  // Kernels of these sizes take longer than 1 us: a host that runs ahead does not show.
  const auto step = [](const std::string& framework, const std::string& blocking) {
    return step_of(run(
        small_run({"model.sequence_length=1024", "model.hidden_size=1024",
                   "training.framework=" + framework, "training.blocking_launches=" + blocking})));
  };
  const std::string fast = R"({"kernel_issue": "1 us", "backward_issue": "2 us"})";
  const double hidden = step(fast, "false");
  CHECK(hidden == doctest::Approx(step("{}", "true")).epsilon(1e-6));
  const ScenarioResult result = run(small_run({}));
  const Training& training = result.plan.question.training();
  int forward = 0, backward = 0;
  for (const Module& module : training.graph.modules) {
    forward += launches_of(module.forward) + launches_of(module.update);
    backward += launches_of(module.backward_input) + launches_of(module.backward_weight);
  }
  const Module& last = training.graph.modules.back();
  forward += launches_of(last.head.update);
  CAPTURE(forward);
  CAPTURE(backward);
  for (const Work& work : last.head.work) {
    const bool gradient = work.role == OpRole::InputGradient || work.role == OpRole::WeightGradient;
    (gradient ? backward : forward) += work.launches;
  }
  CHECK(step(fast, "true") - hidden ==
        doctest::Approx((forward + 2 * backward) * 1e-6).epsilon(1e-6));
}

TEST_CASE("products of experts, and their casts, are issued one by one") {
  const auto step = [](const std::string& experts, const std::string& precision,
                       const std::string& issue) {
    return step_of(
        run(small_run({"model.experts=" + experts, "cluster=dgx-h100",
                       "training.precision=" + precision, "training.blocking_launches=true",
                       R"(training.framework={"expert_issue": ")" + issue + "\"}"})));
  };
  // Two layers with two products of experts each, forward and for both gradients; in 8 bits also
  // a cast ahead of each product forward and of each output's gradient. Of all experts but one.
  for (const auto& [precision, kernels] : {std::pair("bf16", 6), std::pair("fp8", 6 + 4)}) {
    CAPTURE(precision);
    const double more = step("8", precision, "4 us") - step("8", precision, "1 us");
    CHECK(more == doctest::Approx(2 * 7 * kernels * 3e-6).epsilon(1e-6));
  }
  CHECK(step("1", "bf16", "3 us") == step("1", "bf16", "0 s"));
}

TEST_CASE("products of experts hide their traffic unless a host issues them") {
  const auto step = [](const std::string& overlap, const std::string& framework) {
    return step_of(run(small_run({"model.experts=8",
                                  R"(cluster={"kind": "uniform", "devices": 1,
        "link": {"bandwidth": "1 GB/s"}, "device": {"base": "h100", "grouped_overlap": )" +
                                      overlap + "}}",
                                  "training.framework=" + framework})));
  };
  const std::string issued = R"({"expert_issue": "1 ns"})", graphs = "{}";
  CHECK(step("0", issued) > step("1", issued));
  CHECK(step("0", graphs) == step("1", graphs));
}

TEST_CASE("adapters of captured products are in the graph, too") {
  const auto issued = [](const Overrides& overrides) {
    int kernels = 0;
    const ScenarioResult result = run(small_run(overrides));
    const std::vector<Module>& modules = result.plan.question.training().graph.modules;
    for (const Work& work : modules[1].forward) {
      if (!work.replayed) kernels += work.launches;
    }
    return kernels;
  };
  const std::string lora = R"(training.lora={"rank": 4, "modules": ["linear_qkv"]})";
  const std::string graphs = R"(training.cuda_graphs=["attention"])";
  CHECK(issued({lora}) > issued({}));
  CHECK(issued({lora, graphs}) == issued({graphs}));
}

TEST_CASE("the host waits for counts of tokens, and then issues what comes behind them") {
  // Gradients are issued in no time, so that forwards and the update alone may wait.
  const auto inputs = [](const std::string& issue) {
    return Overrides{"model.experts=4", "model.mlp_bias=false", "model.sequence_length=4096",
                     "model.expert_ffn_hidden_size=64",
                     R"(training.framework={"routing": "steps", "backward_issue": "0 s",
                        "kernel_issue": ")" +
                         issue + "\"}"};
  };
  const ScenarioResult fast = run(small_run(inputs("0 s")));
  const Device& device = fast.plan.question.cluster.machines.front().device;
  const Precision precision = fast.plan.question.training().precision;
  const double issue = 20e-6;
  double late = 0;
  int counted = 0;
  for (const Module& module : fast.plan.question.training().graph.modules) {
    double device_time = 0, host_time = 0, ahead = 0;
    for (const Work& work : module.forward) {
      device_time += time_of(work, device, precision).value();
      host_time += work.launches * issue;
      if (!work.awaited) continue;
      ++counted;
      ahead = device_time - host_time;
      MESSAGE("before the count: kernels " << device_time << " s, issued in " << host_time);
      REQUIRE(ahead > 0);
      device_time = host_time = 0;
    }
    MESSAGE("then: kernels " << device_time << " s, issued in " << host_time);
    late += std::max(0.0, host_time - device_time);
    double update_time = 0, update_issue = 0;
    for (const Work& work : module.update) {
      update_time += time_of(work, device, precision).value();
      update_issue += work.launches * issue;
    }
    late += std::max(0.0, update_issue - update_time);
  }
  CHECK(counted == 2);
  CHECK(late > 100e-6);
  CHECK(step_of(run(small_run(inputs("20 us")))) - step_of(fast) ==
        doctest::Approx(late).epsilon(1e-6));
  MESSAGE("buffers of a fixed size need no counts");
  Overrides sized = inputs("0 s");
  sized.push_back("model.capacity_factor=1");
  for (const Module& module : run(small_run(sized)).plan.question.training().graph.modules) {
    for (const Work& work : module.forward) CHECK_FALSE(work.awaited);
  }
}

}  // namespace interlock::small_steps_test
