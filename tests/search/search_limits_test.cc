// Limits, what is minimized, and what a search says of what it cannot search.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <set>

#include "base/error.h"
#include "scenarios/contract/set_key.h"
#include "scenarios/search/plan_search.h"
#include "scenarios/search/space_cuts.h"
#include "scenarios/simulate/run_scenario.h"
#include "scenarios/sweep/sweep_plan.h"

namespace interlock::search_limits_test {
namespace {

const std::string kSpace = R"({
  "name": "limits",
  "model": {"kind": "transformer", "layers": 6, "hidden_size": 512, "attention_heads": 8,
            "ffn_hidden_size": 2048, "vocab_size": 8192, "sequence_length": 512},
  "cluster": {"machine": "dgx-a100-40g", "devices": 4, "price": "2 USD/h"},
  "training": {"strategy": "global", "global_batch_size": 16, "optimizer": "adam", "steps": 2},
  "search": {"tensor": [1, 2], "micro_batch_size": [1, 4], "recompute": ["none", "full"]}
})";

SearchResult searched(const std::vector<std::string>& overrides) {
  JsonValue document = parse_json(kSpace, "space.json");
  apply_overrides(document, overrides);
  return search_plans(document, 2);
}

std::string refusal(const std::vector<std::string>& overrides) {
  try {
    searched(overrides);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

double value_of(const FoundPlan& plan, Aim aim) {
  return plan.estimate.values[static_cast<std::size_t>(aim)];
}

TEST_CASE("a price that is unknown is asked for where it would be written") {
  const auto told = [](const std::string& cluster, const std::string& where) {
    const std::string said =
        refusal({"cluster=null", "cluster=" + cluster, "search.minimize=cost"});
    CHECK_MESSAGE(said.find(where) != std::string::npos, said);
  };
  told(R"({"machine": "dgx-a100-40g", "devices": 4})", "e.g. --set cluster.price='2.50 USD/h'");
  told(R"({"machines": ["dgx-a100-40g", "dgx-h100"]})",
       R"(e.g. "price": "2.50 USD/h" in each of its "machines")");
}

TEST_CASE("contexts that leave a node turn heads in it, and go round rings between nodes") {
  // Two nodes of eight: 16 contexts are more than the eight heads, so that no all-to-all has them.
  const std::vector<FoundPlan> plans =
      searched({"cluster=null",
                "cluster={\"machine\": \"dgx-a100-40g\", \"nodes\": 2, \"price\": \"2 USD/h\"}",
                "search={\"tensor\": [1], \"pipeline\": [1], \"context\": [16], "
                "\"micro_batch_size\": [1], \"zero_stage\": [0], \"recompute\": [\"none\"]}"})
          .plans;
  const auto has = [&](const std::string& layout, int turning) {
    return std::any_of(plans.begin(), plans.end(), [&](const FoundPlan& plan) {
      return plan.layout.context_layout.text == layout && plan.layout.context_all_to_all == turning;
    });
  };
  CHECK(has("hybrid", 8));
  CHECK(has("hybrid", 2));
  CHECK_FALSE(has("all_to_all", 0));
}

TEST_CASE("a document whose contexts are a hybrid is searched like one whose contexts are a ring") {
  const auto best = [](const std::string& parallel) {
    return searched({"parallel={\"context\": 4, " + parallel + "}", "search.context=[1]"});
  };
  const SearchResult ring = best("\"context_layout\": \"ring\"");
  const SearchResult hybrid = best("\"context_layout\": \"hybrid\", \"context_all_to_all\": 2");
  REQUIRE(ring.plans.size() == hybrid.plans.size());
  for (std::size_t i = 0; i < ring.plans.size(); ++i) {
    CHECK(ring.plans[i].estimate.step_time == hybrid.plans[i].estimate.step_time);
  }
}

TEST_CASE("plans of no use are left out, and what is found is the best of the others") {
  const JsonValue document = parse_json(kSpace, "space.json");
  SearchRequest request = request_of(document);
  const int data = searched({}).plans.at(0).layout.data;
  request.check_use = [data](const Plan& plan) {
    if (plan.question.layout.mesh.degree(Dimension::Data) == data) throw Error("too many replicas");
  };
  const SearchResult useful = search_plans(document, request, 2);
  const SearchResult alone = searched({data == 1   ? "search.data=[2, 4]"
                                       : data == 2 ? "search.data=[1, 4]"
                                                   : "search.data=[1, 2]"});
  CHECK(useful.counts.useless > 0);
  CHECK(useful.counts.useless_because == "too many replicas");
  REQUIRE(!useful.plans.empty());
  CHECK(value_of(useful.plans[0], Aim::Time) <= value_of(alone.plans.at(0), Aim::Time));
  for (const FoundPlan& plan : useful.plans) CHECK(plan.layout.data != data);
  // ZeRO 2 and 3 are tried as a program may run them that reduces gradients as they come.
  const auto reduces_soon = [](const FoundPlan& plan) {
    return std::any_of(plan.settings.begin(), plan.settings.end(), [](const Setting& one) {
      return one.path == "parallel.gradient_reduction" && one.value.text == "micro_batch";
    });
  };
  request.check_use = [](const Plan& plan) {
    const DataParallel& replicas = plan.question.layout.data_parallel;
    if (replicas.gradient_reduction == GradientReduction::Step) throw Error("too late");
  };
  const SearchResult soon = search_plans(document, request, 2);
  REQUIRE(!soon.plans.empty());
  for (const FoundPlan& plan : soon.plans) CHECK(reduces_soon(plan));
}

TEST_CASE("each aim has its own best plan") {
  const SearchResult fast = searched({});
  const SearchResult small = searched({"search.minimize=memory"});
  REQUIRE(!fast.plans.empty());
  REQUIRE(!small.plans.empty());
  CHECK(value_of(fast.plans[0], Aim::Time) <= value_of(small.plans[0], Aim::Time));
  CHECK(value_of(small.plans[0], Aim::Memory) < value_of(fast.plans[0], Aim::Memory));
  // All use four devices at one price: what is fast is cheap.
  const SearchResult cheap = searched({"search.minimize=cost"});
  CHECK(value_of(cheap.plans[0], Aim::Time) == value_of(fast.plans[0], Aim::Time));
  CHECK(value_of(fast.plans[0], Aim::Cost) ==
        doctest::Approx(4 * 2.0 / 3600 * value_of(fast.plans[0], Aim::Time)));
}

TEST_CASE("fewer devices cost less, if they are asked for") {
  const SearchResult cheap = searched({"search.minimize=cost", "search.devices=[1, 2, 4]"});
  REQUIRE(!cheap.plans.empty());
  CHECK(cheap.plans[0].layout.devices == 1);
  const SearchResult fast = searched({"search.devices=[1, 2, 4]"});
  CHECK(fast.plans[0].layout.devices == 4);
}

/// The space with four experts in each layer, and tokens divided among tensor devices.
std::vector<std::string> with_experts(std::vector<std::string> more) {
  more.insert(more.begin(),
              {"model.experts=4", "model.experts_per_token=2", "parallel.sequence_parallel=true"});
  return more;
}

TEST_CASE("experts are divided by default, whole or as tensors are") {
  const SearchResult all = searched(with_experts({}));
  std::set<std::pair<int, int>> seen;  // degrees of experts, and of each
  for (const FoundPlan& plan : all.plans) {
    const PlanLayout& layout = plan.layout;
    seen.insert({layout.expert, layout.expert_tensor});
    CHECK(4 % layout.expert == 0);
    CHECK((layout.expert_tensor == 1 || layout.expert_tensor == layout.tensor));
  }
  CHECK(seen.size() > 2);
  // 4 devices: tensor 1 or 2 with pipelines of 1, 2, 4. By hand: room for 4, 2, 1 expert devices
  // beside tensor 1; beside tensor 2, divided experts have 2, 1, whole ones 4, 2.
  const auto degrees = [](int room) { return room == 4 ? 3 : room == 2 ? 2 : 1; };
  const std::size_t meshes =
      degrees(4) + degrees(2) + degrees(1) + degrees(2) + degrees(1) + degrees(4) + degrees(2);
  const SearchResult counted =
      searched(with_experts({"search.micro_batch_size=1", "search.recompute=none",
                             "search.zero_stage=1", "search.expert_overlap=none"}));
  CHECK(counted.counts.layouts == meshes);
  const SearchResult whole = searched(with_experts({"search.expert=[1]"}));
  for (const FoundPlan& plan : whole.plans) CHECK(plan.layout.expert == 1);
  CHECK(value_of(all.plans[0], Aim::Time) <= value_of(whole.plans[0], Aim::Time));
}

TEST_CASE("sequences are divided by default if they leave each device 4,096 tokens") {
  const auto contexts = [](const std::vector<std::string>& overrides) {
    std::set<int> degrees;
    for (const FoundPlan& plan : searched(overrides).plans) degrees.insert(plan.layout.context);
    return degrees;
  };
  const std::vector<std::string> one = {
      "search.micro_batch_size=1", "search.recompute=none", "search.zero_stage=0",
      "search.tensor=1",           "search.pipeline=1",     "training.global_batch_size=4"};
  auto of = [&](const std::string& more) {
    std::vector<std::string> all = one;
    all.push_back(more);
    return contexts(all);
  };
  CHECK(of("model.sequence_length=4096") == std::set{1});
  CHECK(of("model.sequence_length=8192") == std::set{1, 2});
  CHECK(of("search.context=[4]") == std::set{4});
}

TEST_CASE("a plan with too many devices to simulate keeps its quick estimate and says so") {
  const JsonValue document = parse_json(R"({"model": "deepseek-v3",
      "cluster": {"machine": "dgx-h100", "nodes": 64, "network": {"kind": "torus",
        "dimensions": [8, 8], "link": {"latency": "1 us", "bandwidth": "50 GB/s"}}},
      "parallel": {"pipeline": 8, "data": 64, "expert": 32, "zero_stage": 1},
      "training": {"strategy": "global", "global_batch_size": 512, "micro_batch_size": 1,
                   "optimizer": "adam", "recompute": "full", "steps": 2}})",
                                        "large.json");
  const LaidOut plan = lay_out(load_point(std::make_shared<const JsonValue>(document)));
  const PlanEstimate look = estimate_by_look(plan.ordered());
  const PlanEstimate estimate = estimate_by_simulation(plan, look);
  CHECK(!look.folds);
  CHECK(estimate.too_large);
  CHECK(estimate.step_time == look.step_time);
  CHECK(estimate.values[0] == doctest::Approx(look.step_time).epsilon(1e-12));
  CHECK(estimate.values[1] == doctest::Approx(look.peak_memory).epsilon(1e-12));
}

/// Experts of groups that straddle nodes: their devices cannot be folded as far as can be.
JsonValue straddling() {
  return parse_json(R"({"model": {"base": "gpt2", "layers": 4, "experts": 6,
                         "experts_per_token": 2},
      "cluster": {"machine": "dgx-h100", "nodes": 3, "devices": 24},
      "training": {"strategy": "global", "global_batch_size": 48, "precision": "bf16",
                   "optimizer": "adam", "steps": 2},
      "search": {"tensor": [1], "pipeline": [1, 2], "expert": [6], "zero_stage": [1],
                 "schedule": "1f1b",
                 "recompute": "none", "expert_overlap": "none"}})",
                    "straddling.json");
}

TEST_CASE(
    "plans that are too large to simulate at first are simulated before one of them is best") {
  SearchRequest all = request_of(straddling());
  all.only_best = true;
  all.most_flows = kInfinity;
  const SearchResult judged = search_plans(straddling(), all, 2);
  SearchRequest few = all;
  few.most_flows = 1;
  const SearchResult late = search_plans(straddling(), few, 2);
  REQUIRE(!judged.plans.empty());
  REQUIRE(!late.plans.empty());
  CHECK(!late.plans.front().estimate.too_large);
  CHECK(late.plans.front().estimate.step_time == judged.plans.front().estimate.step_time);

  INFO("none of those that stay too large comes before one that was simulated");
  few.most_flows_of_leader = 1;
  const SearchResult none = search_plans(straddling(), few, 2);
  REQUIRE(!none.plans.empty());
  CHECK(none.counts.judged == 0);  // so that the best above was simulated as it led
  CHECK(none.plans.front().estimate.too_large);
  CHECK(none.counts.too_large > 0);
}

TEST_CASE("a space is cut among keys that are not named, and grows by none") {
  const SpaceSize size = {8, 24, {48}, true, true, {1, 2, 3, 6, 128}};
  const auto cut_by = [&](SearchRequest request) {
    std::vector<std::string> words;
    for (int cut = 0;; ++cut) {
      bool any = false;
      const std::string left_out = cut_space(cut, size, request, any);
      if (left_out.empty()) return std::pair(request, words);
      if (any) words.push_back(left_out);
    }
  };
  const auto [open, all] = cut_by({});
  CHECK(all.size() == 6);
  CHECK(open.tensor == std::vector{1, 2, 4, 8});
  CHECK(open.pipeline == std::vector{1, 2, 4, 8, 16});
  CHECK(open.context == std::vector{1, 2});
  CHECK(open.expert_tensor == std::vector{1});

  SearchRequest named;
  named.tensor = {3, 6};
  named.context = {3};
  const auto [kept, fewer] = cut_by(named);
  CHECK(fewer.size() == 4);
  CHECK(kept.tensor == std::vector{3, 6});
  CHECK(kept.context == std::vector{3});
}

TEST_CASE("the reserve is a context, communicators and what the allocator keeps") {
  // By hand, GB: 0.4 of context; 688 MiB for a communicator of four, 544 MiB for one of two.
  constexpr double kTwo = 544.0 * 1024 * 1024, kFour = 688.0 * 1024 * 1024;
  const auto process_of = [](const std::vector<std::string>& more) {
    JsonValue document = parse_json(kSpace, "space.json");
    set_json(document, "search", {}, "test");
    apply_overrides(document, more);
    const Question question = load_point(std::make_shared<const JsonValue>(document));
    const MemoryReserve reserve =
        priced_reserve(question, question.cluster.machines.front().device);
    CHECK(reserve.held == (question.training().framework.reserve > 0 ? 0 : 0.1));
    const double capacity = question.cluster.machines.front().device.memory.value();
    CHECK(usable_share(question, {}) ==
          doctest::Approx((1 - reserve.process.value() / capacity) / (1 + reserve.held)));
    return reserve.process.value();
  };
  CHECK(process_of({"parallel.data=4"}) == doctest::Approx(0.4e9 + kFour));
  CHECK(process_of({"parallel.data=2", "parallel.tensor=2"}) == doctest::Approx(0.4e9 + 2 * kTwo));
  CHECK(process_of({"parallel.pipeline=4", "training.framework=torchtitan"}) ==
        doctest::Approx(0.4e9 + kFour));
  // Experts on four devices: their communicator, and buffers for three peers.
  CHECK(process_of({"parallel.data=4", "parallel.expert=4", "model.experts=4",
                    "model.experts_per_token=2"}) ==
        doctest::Approx(0.4e9 + 2 * kFour + 3 * 3.28e9 / 7));
}

TEST_CASE("no plan is beyond a limit") {
  const SearchResult all = searched({});
  const double memory = value_of(all.plans[0], Aim::Memory);
  const double capacity = all.plans[0].estimate.memory_capacity;
  INFO("without a limit contexts, communicators and allocators have room");
  CHECK(all.memory_limit.value() < capacity);
  for (const FoundPlan& plan : all.plans) {
    const PlanEstimate& estimate = plan.estimate;
    CHECK(estimate.usable_share < 1 / 1.1);
    CHECK(value_of(plan, Aim::Memory) <= estimate.usable_share * capacity);
  }
  CHECK(searched({"search.limits.reserve=0.25"}).memory_limit.value() ==
        doctest::Approx(0.75 * capacity));
  CHECK(searched({"search.limits.reserve=10 GB"}).memory_limit.value() ==
        doctest::Approx(capacity - 10e9));
  CHECK(refusal({"search.limits.reserve=10 GB", "search.limits.memory=20 GB"})
            .find("expected one of both") != std::string::npos);
  for (const std::string share : {"-1", "2"}) {
    CHECK(refusal({"search.limits.reserve=" + share}).find("a share of the device from 0 to 0.9") !=
          std::string::npos);
  }
  CHECK(searched({"search.limits.memory=3 GB"}).memory_limit == Bytes(3e9));
  const SearchResult tight =
      searched({"search.limits.memory=" + std::to_string(memory * 0.8) + " B"});
  for (const FoundPlan& plan : tight.plans) CHECK(value_of(plan, Aim::Memory) <= memory * 0.8);
  const SearchResult none = searched({"search.limits.memory=1 MB"});
  CHECK(none.plans.empty());
  const double time = value_of(all.plans[0], Aim::Time);
  const SearchResult late = searched({"search.limits.time=" + std::to_string(time / 2) + " s"});
  CHECK(late.plans.empty());
  CHECK(searched({"search.limits.power=1 W"}).plans.empty());
  CHECK(!searched({"search.limits.power=10 kW"}).plans.empty());
}

TEST_CASE("if nothing fits, the plan that lacks least is named") {
  const std::vector<std::string> tight = {"search.limits.memory=100 MB", "search.data=1"};
  const SearchResult none = searched({tight[0], tight[1], "search.offload={\"optimizer\": 0}"});
  CHECK(none.plans.empty());
  REQUIRE(!none.closest.empty());
  CHECK(value_of(none.closest[0], Aim::Memory) > 100e6);
  const double simulated = run_scenario(none.scenario, false).measurement.metrics.step_time.value();
  CHECK(value_of(none.closest[0], Aim::Time) <= simulated);
  CHECK(value_of(none.closest[0], Aim::Time) > simulated / 2);
  INFO("hosts make room, where the request does not say how they are used");
  const SearchResult offloaded = searched(tight);
  REQUIRE(!offloaded.plans.empty());
  CHECK(offloaded.plans[0].layout.options.back().path == "training.offload");
  CHECK(value_of(offloaded.plans[0], Aim::Memory) <= 100e6);
}

TEST_CASE("tensors are divided with their sequences, where the scenario does not say otherwise") {
  const auto peak = [](const std::vector<std::string>& more) {
    std::vector<std::string> one = {"search.tensor=2", "search.pipeline=1", "search.zero_stage=0",
                                    "search.recompute=none", "search.micro_batch_size=4"};
    one.insert(one.end(), more.begin(), more.end());
    const SearchResult found = searched(one);
    REQUIRE(!found.plans.empty());
    return value_of(found.plans[0], Aim::Memory);
  };
  CHECK(peak({}) == peak({"parallel.sequence_parallel=true"}));
  CHECK(peak({}) < peak({"parallel.sequence_parallel=false"}));
  CHECK(peak({"search.sequence_parallel=false"}) == peak({"parallel.sequence_parallel=false"}));
}

TEST_CASE("strategies are searched, too") {
  const SearchResult both = searched(
      {"search.strategy=[\"global\", {\"kind\": \"interlocking\", \"n_wise\": 2}, \"local\"]",
       "search.pipeline=[4]"});
  REQUIRE(!both.plans.empty());
  CHECK(both.counts.refused < both.counts.plans);
  bool other = false;
  for (const FoundPlan& plan : both.plans) other = other || plan.layout.strategy.text != "global";
  CHECK(other);
}

TEST_CASE("what cannot be searched is said in a sentence") {
  CHECK(refusal({"training.global_batch_size=null"}).find("/training/global_batch_size") !=
        std::string::npos);
  CHECK(refusal({"cluster.price=null", "search.minimize=cost"}).find("price") != std::string::npos);
  CHECK(refusal({"run={\"steps\": 100}"}).find("--set run=null") != std::string::npos);
  CHECK(refusal({"search.tensor=[3]"}).find("no plan") != std::string::npos);
  CHECK(refusal({"search.minimise=time"}).find("minimize") != std::string::npos);
  CHECK(refusal({"search.tensor=[]"}).find("empty list") != std::string::npos);
  CHECK(refusal({"search.schedule=auto"}).find("auto") != std::string::npos);
}

}  // namespace
}  // namespace interlock::search_limits_test
