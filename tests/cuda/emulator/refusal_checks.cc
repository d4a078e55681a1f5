// Machines that refuse: a run comes to its numbers all the same, or ends in a sentence.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>
#include <doctest/doctest.h>

#include <array>
#include <map>
#include <string>

#include "base/error.h"
#include "tests/cuda/emulator/refusals.h"
#include "tests/harness/support/training.h"
#include "tests/support/cases.h"
#include "validate/cuda/stage/gpu_run.h"

namespace interlock::refusal_test {
namespace {

using emulated::Refusal;

/// Refuses nothing again, however the test ends.
struct Obliging {
  ~Obliging() { emulated::refuse_by(0); }
};

CudaRun run_on_partitions(const SmallTraining& training) {
  CudaOptions options;
  options.partitions = static_cast<int>(training.program.ranks.size());
  options.planned_sms = 8;
  CudaRun run;
  cuda::run_job(job_of(training), options, {}, run);
  return run;
}

SmallTraining training_of(const std::string& model, const std::string& precision) {
  return make_training({.model = model,
                        .devices = 2,
                        .samples = 3,
                        .steps = 2,
                        .optimizer = "adam",
                        .precision = precision});
}

std::size_t free_bytes() {
  std::size_t free = 0, all = 0;
  REQUIRE(cudaMemGetInfo(&free, &all) == cudaSuccess);
  return free;
}

}  // namespace

TEST_CASE("whatever a machine refuses, a run has its numbers or ends in a sentence") {
  const Obliging afterwards;
  std::array<int, emulated::kRefusals> refused{};
  std::map<std::string, int> ended;  // by the first words that were said
  int complete = 0, failed = 0;
  std::uint64_t seed = 0;
  for (const std::string& model : {kResidualMlp, kTransformer}) {
    for (const std::string precision : {"fp32", "bf16"}) {
      const SmallTraining training = training_of(model, precision);
      emulated::refuse_by(0);
      const std::size_t free_before = free_bytes();
      const Losses exact = run_on_partitions(training).outcome.losses;
      REQUIRE(free_bytes() == free_before);
      for (int i = 0; i < cases(16); ++i) {
        emulated::refuse_by(++seed);
        CAPTURE(seed);
        CAPTURE(precision);
        try {
          const CudaRun run = run_on_partitions(training);
          REQUIRE(run.outcome.losses.size() == exact.size());
          for (std::size_t stage = 0; stage < exact.size(); ++stage) {
            for (const auto& [batch, loss] : exact[stage]) {
              // A bias beside its product is rounded once more.
              CHECK(run.outcome.losses[stage].at(batch) ==
                    doctest::Approx(loss).epsilon(precision == "fp32" ? 1e-5 : 0.02));
            }
          }
          ++complete;
        } catch (const Error& error) {
          const std::string said = error.what();
          CHECK(said.size() > 20);
          ++ended[said.substr(0, 30)];
          ++failed;
        }
        INFO("what was taken is given back");
        CHECK(free_bytes() == free_before);
        for (std::size_t kind = 0; kind < refused.size(); ++kind) {
          refused[kind] += emulated::refused(static_cast<Refusal>(kind));
        }
      }
    }
  }
  for (const auto& [words, times] : ended) MESSAGE(times, " ended: ", words, "...");
  MESSAGE(complete, " runs complete, ", failed, " ended; refused: ", refused[0], " epilogues, ",
          refused[1], " alignments, ", refused[2], " splits, ", refused[3], " blocks");
  for (const int times : refused) CHECK(times >= met_by_cases(2));
  CHECK(complete >= met_by_cases(8));
  CHECK(failed >= met_by_cases(8));
}

}  // namespace interlock::refusal_test
