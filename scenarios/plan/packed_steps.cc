// Prices of packed micro-batches.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/plan/packed_steps.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "scenarios/plan/lower_plan.h"

namespace interlock {
namespace {

constexpr int kDrawn = 256;             // micro-batches that cases are chosen from
constexpr std::size_t kCases = 17;      // that are priced
constexpr double kMostDocuments = 1e8;  // of all seeds: ten seconds

struct PackedCase {
  double work = 0;
  Documents documents;
};

/// Returns drawn micro-batches of different work, evenly spaced from the least to the most.
std::vector<PackedCase> drawn_cases(const Question& question, const DocumentDraws& draws) {
  std::vector<PackedCase> drawn;
  const int groups = question.layout.mesh.degree(Dimension::Data);
  for (int i = 0; i < kDrawn; ++i) {
    const auto seed = static_cast<std::uint64_t>(question.simulation.seed);
    Documents documents = draws.of(seed, {i % groups, i / groups});
    const double work = pairs_of(documents);
    drawn.push_back({work, std::move(documents)});
  }
  std::ranges::sort(drawn, {}, &PackedCase::work);
  const auto alike = [](const PackedCase& a, const PackedCase& b) { return a.work == b.work; };
  drawn.erase(std::unique(drawn.begin(), drawn.end(), alike), drawn.end());
  if (drawn.size() <= kCases) return drawn;
  std::vector<PackedCase> cases;
  for (std::size_t i = 0; i < kCases; ++i) {
    cases.push_back(std::move(drawn[i * (drawn.size() - 1) / (kCases - 1)]));
  }
  return cases;
}

void check_draws(const Question& question, const DocumentDraws& draws) {
  double each = 0;  // documents of a sample
  for (const Document& one : draws.of(static_cast<std::uint64_t>(question.simulation.seed), {})) {
    each += one.count;
  }
  const Training& training = question.training();
  const double batches = kDrawn + static_cast<double>(training.micro_batches) * training.steps *
                                      question.layout.mesh.degree(Dimension::Data) *
                                      question.variation->seeds;
  const double all = each * *training.graph.samples_per_micro_batch * batches;
  if (all <= kMostDocuments) return;
  throw Error("/variation/documents: " + format_number(all) + " documents of all seeds; expected " +
              format_number(kMostDocuments) + " or fewer, by fewer seeds or steps");
}

/// Returns the seconds of the ops of `like`, in `priced`, a program that differs in times alone.
std::vector<double> durations_in(const Program& like, const Program& priced) {
  CHECK(like.instructions.size() == priced.instructions.size(), "programs differ in times alone");
  std::vector<double> durations(like.ops.size());
  for (std::size_t i = 0; i < like.instructions.size(); ++i) {
    if (like.instructions[i].code != Opcode::Compute) continue;
    const auto other = static_cast<std::size_t>(priced.instructions[i].index);
    durations[static_cast<std::size_t>(like.instructions[i].index)] =
        priced.ops[other].duration.value();
  }
  return durations;
}

/// Returns the data coordinate of each simulated replica.
std::vector<int> groups_of(const Plan& plan) {
  const auto ranks = simulated_ranks(simulated_mesh(plan), plan.unfolded);
  std::vector<int> groups;
  for (std::size_t i = 0; i < ranks.size();
       i += static_cast<std::size_t>(plan.question.layout.ranks())) {
    groups.push_back(ranks[i][static_cast<std::size_t>(Dimension::Data)]);
  }
  return groups;
}

}  // namespace

ProgramOfSteps packed_programs(const Plan& plan, ProgramOfSteps programs) {
  const Question& question = plan.question;
  if (!question.variation || !question.variation->documents) return programs;
  const DocumentDraws draws = draws_of(question, question.training().graph);
  check_draws(question, draws);
  const std::vector<PackedCase> cases = drawn_cases(question, draws);
  if (cases.size() < 2) return programs;
  PackedTimes times = {.group_of_replica = groups_of(plan),
                       .work_of = [draws](std::uint64_t seed, int group, int micro_batch) {
                         return pairs_of(draws.of(seed, {group, micro_batch}));
                       }};
  std::vector<LowerInputs> inputs;
  for (const PackedCase& one : cases) {
    Plan priced = plan;
    priced.question.training().graph = packed_graph(question.training().graph, one.documents);
    times.work.push_back(one.work);
    inputs.push_back(lower_inputs(priced));
  }
  return [=](int steps, double most_ticks_per_second) {
    Program program = programs(steps, most_ticks_per_second);
    PackedTimes own = times;
    for (LowerInputs like : inputs) {
      like.most_ticks_per_second = most_ticks_per_second;
      own.durations.push_back(durations_in(program, lower_plan(plan, std::move(like), steps)));
    }
    program.packed = std::make_shared<const PackedTimes>(std::move(own));
    return program;
  };
}

}  // namespace interlock
