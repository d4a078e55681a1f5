// The cases, and measuring each from its text to its metrics.
// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/cluster_bench.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "scenarios/simulate/run_scenario.h"
#include "tests/bench/heap_loop.h"
#include "tests/bench/in_child.h"
#include "tests/bench/timing.h"

namespace interlock {

namespace {

struct ClusterCase {
  std::string name;
  std::string fold;
  std::string scenario;  // without its closing brace
};

/// Table 1 of arXiv 2205.05198: 128 layers of 25,600, here one micro-batch a sample.
const char* const kTrillion = R"({
  "model": {"kind": "transformer", "layers": 128, "hidden_size": 25600, "attention_heads": 160,
            "ffn_hidden_size": 102400, "vocab_size": 51200, "sequence_length": 2048},
  "cluster": {"machine": "dgx-a100-80g", "nodes": 64},
  "parallel": {"pipeline": 64, "tensor": 8, "sequence_parallel": true},
  "training": {"strategy": "global", "schedule": "1f1b", "global_batch_size": 512,
               "micro_batch_size": 1, "optimizer": "adam", "recompute": "selective", "steps": 1})";

/// The shape of Llama 3 405B (arXiv 2407.21783, table 3).
const char* const kManyDevices = R"({
  "model": {"kind": "transformer", "layers": 126, "hidden_size": 16384, "attention_heads": 128,
            "kv_heads": 8, "ffn_hidden_size": 53248, "vocab_size": 128256,
            "sequence_length": 8192, "gated_mlp": true, "norm": "rmsnorm", "bias": false,
            "tied_embeddings": false, "positions": "rotary", "attention": "fused"},
  "cluster": {"machine": "dgx-h100", "nodes": 2048},
  "parallel": {"pipeline": 16, "tensor": 8, "data": 128, "sequence_parallel": true,
               "zero_stage": 1},
  "training": {"strategy": "global", "schedule": "1f1b", "global_batch_size": 2048,
               "micro_batch_size": 1, "optimizer": "adam", "steps": 1})";

std::array<double, 3> measure_case(const ClusterCase& one) {
  std::int64_t tasks = 0;
  const double seconds = seconds_of([&] {
    const std::string text =
        one.scenario + R"(, "simulate": {"skip_periods": false, "fold": )" + one.fold + "}}";
    const Question scenario = load_questions(parse_json(text, "bench")).front();
    tasks = run_scenario(scenario, false).measurement.metrics.tasks;
  });
  rusage own{}, children{};
  getrusage(RUSAGE_SELF, &own);
  getrusage(RUSAGE_CHILDREN, &children);
  const double peak = static_cast<double>(std::max(own.ru_maxrss, children.ru_maxrss)) * 1024;
  return {seconds, peak, static_cast<double>(tasks)};
}

void run_case(const ClusterCase& one, int rounds) {
  std::vector<double> seconds, peaks, ratios;
  double tasks = 0;
  for (int round = 0; round < rounds; ++round) {
    const double heap = seconds_of([&] { run_heap_loop({.stages = 512, .micro_batches = 1024}); });
    const auto [time, peak, count] = in_child<3>([&] { return measure_case(one); });
    seconds.push_back(time);
    peaks.push_back(peak);
    ratios.push_back(time / heap);
    tasks = count;
  }
  std::printf("%-34s %10.0f  %8.2f  %8.0f  %10.1f\n", one.name.c_str(), tasks, median(seconds),
              median(peaks) / 1e6, median(ratios));
  std::fflush(stdout);
}

}  // namespace

void run_clusters(int rounds) {
  std::printf(
      "\nClusters, one step, from text to metrics, median of %d rounds\n"
      "case                                    tasks   seconds        MB  heap loops\n",
      rounds);
  for (const ClusterCase& one : {
           ClusterCase{"1T on 512, tensor folded", R"("auto")", kTrillion},
           ClusterCase{"1T on 512, tensor as flows", R"(["data"])", kTrillion},
           ClusterCase{"16,384 devices, folded", R"("auto")", kManyDevices},
           ClusterCase{"16,384 devices, replicas unfolded", R"(["tensor"])", kManyDevices},
           ClusterCase{"16,384 devices, unfolded", R"("none")", kManyDevices},
       }) {
    run_case(one, rounds);
  }
}

}  // namespace interlock
