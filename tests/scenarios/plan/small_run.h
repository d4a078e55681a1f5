// A small training whose framework is what a test is about.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "scenarios/simulate/run_scenario.h"
#include "tests/scenarios/documents.h"

namespace interlock {

/// Returns the settings of both, those of `more` behind the others.
inline Overrides joined(Overrides all, const Overrides& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// Returns two blocks on one device, one micro-batch of two samples, one step; and `more`.
inline Overrides small_run(const Overrides& more) {
  return joined({R"(model={"kind": "transformer", "layers": 2, "hidden_size": 256,
                    "attention_heads": 4, "attention": "materialised", "sequence_length": 128,
                    "vocab_size": 1024})",
                 "cluster=dgx-a100-80g", "parallel.pipeline=1", "training.strategy=global",
                 "training.global_batch_size=2", "training.steps=1"},
                more);
}

/// A device that does nothing but move bytes, at 1 GB/s.
inline const std::string kBare = R"(cluster={
    "kind": "uniform", "devices": 1, "link": {"bandwidth": "1 GB/s"},
    "device": {"memory": "80 GB", "memory_bandwidth": "1 GB/s", "peak": {"bf16": "1 EFLOP/s"},
               "efficiency": "peak"}})";

inline ScenarioResult run(const Overrides& overrides) {
  return run_scenario(loaded(overrides), false);
}

inline double step_of(const ScenarioResult& result) {
  return result.measurement.metrics.step_time.value();
}

}  // namespace interlock
