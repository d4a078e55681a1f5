// Replicas on GPUs, by NCCL and inside one GPU, against one copy that trains all of their samples.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>

#include "sim/engines/engines.h"
#include "tests/cuda/device_numbers.h"
#include "tests/harness/support/training.h"
#include "tests/support/cases.h"
#include "validate/cuda/device/nccl.h"
#include "validate/cuda/kernels/cuda_call.h"
#include "validate/cuda/stage/gpu_run.h"

using namespace interlock;

namespace interlock::replica_checks {
namespace {

SmallTraining make(const TrainingText& text) {
  SmallTraining training = make_training(text);
  training.descent.rate = 1e-2;
  training.dump_step = text.steps - 1;
  if (chooses_order(training.program)) {
    training.program = freeze(training.program, EngineKind::Native);
  }
  return training;
}

CudaRun run_on_gpu(const SmallTraining& training, CudaOptions options, TraceLog* log = nullptr) {
  options.planned_sms = 16;
  options.memory = 1 << 20;
  CudaRun run;
  cuda::run_job(job_of(training), options, log != nullptr ? log_sink(*log) : TraceSink(), run);
  return run;
}

/// One GPU in parts, or a GPU for each rank; the latter only where there are as many.
enum class Place : std::uint8_t { Parts, Gpus };
CudaOptions on(Place place, const SmallTraining& training) {
  return {.partitions =
              place == Place::Parts ? static_cast<int>(training.program.ranks.size()) : 0};
}
bool has(int gpus) {
  int devices = 0;
  cuda::require(cudaGetDeviceCount(&devices), "count devices");
  return devices >= gpus && !cuda::nccl_version().empty();
}

/// A strategy with a schedule, in the words of a scenario.
struct Way {
  std::string strategy, schedule;
  bool divides = true;  // replicas may divide updates: one micro-batch of a stage is in flight
  int stages = 0;       // of two devices; 0: two
};
const std::vector<Way> kWays = {{R"("global")", R"("1f1b")"},
                                {R"("global")", R"("gpipe")"},
                                {R"("global")", R"("zb-h1")"},
                                {R"("global")", R"("pipedream-2bw")"},
                                {R"("global")", R"("pipedream")"},
                                {R"("local")", R"("eager")"},
                                {R"("global")", R"("interleaved")", true, 4},
                                {R"("pairwise")", R"({"kind": "eager", "in_flight": 2})", false},
                                {R"({"kind": "interlocking", "n_wise": 3})", ""},
                                {R"({"kind": "chunked", "chunks": 2})", ""},
                                {R"("greedy")", ""}};
const std::vector<std::pair<int, int>> kDivisions = {{2, 0}, {3, 0}, {2, 1}, {3, 1}};

TrainingText text_of(const std::string& model, const Way& way) {
  return {.model = model,
          .strategy = way.strategy,
          .schedule = way.schedule,
          .devices = 2,
          .stages = way.stages,
          .samples = 2,
          .micro_batches = 4,
          .steps = 3,
          .optimizer = "sgd-momentum"};
}

TrainingText replicated(TrainingText text, int replicas, int zero_stage) {
  text.devices *= replicas;
  text.replicas = replicas;
  text.zero_stage = zero_stage;
  return text;
}

TrainingText whole(TrainingText text, int replicas) {
  text.samples *= replicas;
  return text;
}

using Distances = std::map<std::string, double>;  // by array of a dump

double worst_of(const Distances& distances) {
  double worst = 0;
  for (const auto& [name, off] : distances) worst = std::max(worst, off);
  return worst;
}

/// Holds the losses of replicas against those of one copy, all of whose micro-batches hold the
/// samples of `replicas`. Returns how far apart the arrays of their dumps are.
Distances compare(const Outcome& all, const Outcome& one, int replicas, double loss_off) {
  CHECK(worst_mean_loss(all.losses, one.losses, replicas) <= loss_off);
  const auto made = by_name(all);
  Distances distances;
  REQUIRE(made.size() == by_name(one).size());
  for (const auto& [name, values] : by_name(one)) {
    distances[name] = distance(made.at(name), values);
  }
  return distances;
}

}  // namespace

TEST_CASE(
    "the mean of replicas' numbers is all of theirs, or is kept by one and the others are "
    "cleared") {
  using cuda::Numbers;
  for (const std::size_t count : {2, 3, 5}) {
    for (const std::size_t size : {4, 17, 20003}) {
      for (const int keeper : {-1, 1}) {
        cuda::check_kernel([&](cuda::OnDevice& on) {
          // A part that begins anywhere, and ends before the last number.
          const std::size_t first = 3, end = size - 1;
          std::vector<Numbers> given;
          std::vector<void*> at;
          for (std::size_t c = 0; c < count; ++c) {
            given.push_back(cuda::random_numbers(size, c + 1));
            at.push_back(on.put(given.back()));
          }
          cuda::average_replicas(
              on.stream(), at,
              {static_cast<std::int64_t>(first), static_cast<std::int64_t>(end - first)}, keeper);
          std::vector<cuda::Compared> all;
          for (std::size_t c = 0; c < count; ++c) {
            Numbers expected = given[c];
            for (std::size_t i = first; i < end; ++i) {
              double sum = 0;
              for (const Numbers& one : given) sum += one[i];
              const bool keeps = keeper < 0 || static_cast<std::size_t>(keeper) == c;
              expected[i] = keeps ? sum / static_cast<double>(count) : 0;
            }
            all.push_back({"replica " + std::to_string(c), on.get(at[c], size), expected});
          }
          return all;
        });
      }
    }
  }
}

namespace {

struct Trial {
  std::string model;
  std::size_t way = 0;
  int replicas = 2, zero_stage = 0;
  Place place = Place::Parts;
};

/// Which (way, place) and (division, place) trials have, by index.
struct Met {
  std::set<std::pair<std::size_t, Place>> ways, divisions;

  /// Returns how many of the two are new.
  int add(const Trial& trial) {
    const auto division = std::find(kDivisions.begin(), kDivisions.end(),
                                    std::pair(trial.replicas, trial.zero_stage));
    const bool way = ways.insert({trial.way, trial.place}).second;
    const auto at = static_cast<std::size_t>(division - kDivisions.begin());
    return (way ? 1 : 0) + (divisions.insert({at, trial.place}).second ? 1 : 0);
  }
};

/// Returns trials of every way and of every division in every place, and a few more; in a soak all.
std::vector<Trial> drawn_trials() {
  std::vector<Trial> all;
  for (const std::string& model : {kResidualMlp, kTransformer}) {
    for (std::size_t way = 0; way < kWays.size(); ++way) {
      for (const auto& [replicas, zero_stage] : kDivisions) {
        if (zero_stage > 0 && !kWays[way].divides) continue;
        all.push_back({model, way, replicas, zero_stage, Place::Parts});
        if (has(2 * replicas)) all.push_back({model, way, replicas, zero_stage, Place::Gpus});
      }
    }
  }
  std::shuffle(all.begin(), all.end(), std::mt19937(5));
  if (is_soak()) return all;
  // Those that add two, then those that add one, come before the others.
  auto rest = all.begin();
  Met met;
  for (const int wanted : {2, 1}) {
    for (auto one = rest; one != all.end(); ++one) {
      Met with = met;
      if (with.add(*one) < wanted) continue;
      met = with;
      std::iter_swap(rest++, one);
    }
  }
  all.resize(std::min(all.size(), static_cast<std::size_t>(cases(24))));
  return all;
}

}  // namespace

TEST_CASE("replicas on GPUs come to what one copy comes to whose micro-batches hold all samples") {
  double worst = 0;
  const std::vector<Trial> trials = drawn_trials();
  Met met;
  for (const Trial& trial : trials) {
    const Way& way = kWays[trial.way];
    met.add(trial);
    INFO(trial.model, way.strategy, way.schedule, ", replicas ", trial.replicas, ", ZeRO ",
         trial.zero_stage, trial.place == Place::Gpus ? ", GPUs" : ", parts of one");
    const TrainingText text = text_of(trial.model, way);
    const Outcome exact =
        train(make(whole(text, trial.replicas)), RunMode::Sequential, {.doubles = true});
    const SmallTraining training = make(replicated(text, trial.replicas, trial.zero_stage));
    CudaOptions options = on(trial.place, training);
    options.poison = true;
    const Outcome made = run_on_gpu(training, options).outcome;
    const Outcome on_cpu = train(training, RunMode::Sequential, {});
    // fp32 rounds a number by 6e-8 of it at most, and sums differ in order; three steps add up.
    const double off = worst_of(compare(made, exact, trial.replicas, 1e-5));
    CHECK(off <= 2e-4);
    CHECK(worst_of(compare(made, on_cpu, 1, 1e-5)) <= 2e-4);
    worst = std::max(worst, off);
  }
  if (cases(24) >= 24) {
    const std::size_t gpus = has(4) ? 1 : 0, more = has(6) ? 1 : 0;
    CHECK(met.ways.size() == kWays.size() * (1 + gpus));
    CHECK(met.divisions.size() == kDivisions.size() + 2 * gpus + 2 * more);
  }
  MESSAGE(trials.size(), " trainings; weights, gradients and batches are at most ", worst, " off");
}

TEST_CASE("replicas of images, whose norms are each replica's own, come to what they do on a CPU") {
  for (const auto& [replicas, zero_stage] : kDivisions) {
    const SmallTraining training =
        make(replicated(text_of(kResNet, kWays.front()), replicas, zero_stage));
    const Outcome on_cpu = train(training, RunMode::Sequential, {.doubles = true});
    const Outcome made = run_on_gpu(training, on(Place::Parts, training)).outcome;
    CHECK(worst_of(compare(made, on_cpu, 1, 1e-4)) <= 1e-3);
  }
}

TEST_CASE("replicas in bf16 come to what one copy in doubles comes to, but for their rounding") {
  double worst = 0;
  for (const auto& [replicas, zero_stage] : {std::pair(2, 0), std::pair(3, 1)}) {
    TrainingText text = text_of(kTransformer, kWays.front());
    const Outcome exact =
        train(make(whole(text, replicas)), RunMode::Sequential, {.doubles = true});
    text.precision = "bf16";
    const SmallTraining one = make(whole(text, replicas));
    Distances alone = compare(run_on_gpu(one, on(Place::Parts, one)).outcome, exact, 1, 2e-2);
    const SmallTraining training = make(replicated(text, replicas, zero_stage));
    for (const Place place : {Place::Parts, Place::Gpus}) {
      if (place == Place::Gpus && !has(2 * replicas)) continue;
      const Outcome made = run_on_gpu(training, on(place, training)).outcome;
      // NCCL's sum of three is rounded twice, and their mean again.
      const double times = place == Place::Gpus && replicas > 2 ? 2 : 1.5;
      for (const auto& array : compare(made, exact, replicas, 2e-2)) {
        // bf16 rounds a number by 2e-3 of it at most. Gradients that nearly cancel out, as those of
        // keys' biases, are all rounding, of one copy too.
        CAPTURE(array.first);
        CHECK(array.second <= times * alone[array.first] + 1e-2);
        worst = std::max(worst, array.second - alone[array.first]);
      }
    }
  }
  MESSAGE("replicas are at most ", worst, " further off than one copy in bf16");
}

TEST_CASE("where replicas are, who updates, links, a graph and repeats change no bit") {
  struct Case {
    std::string model, precision;
    std::size_t way = 0;
    int replicas = 2;
    std::vector<int> zero_stages = {0, 1};
    bool untraced = false;
  };
  const std::vector<Case> all_cases = {{kResidualMlp, "fp32", 0, 2, {0, 1}, true},
                                       {kResidualMlp, "bf16", 0, 3},
                                       {kResidualMlp, "fp32", 5, 3},
                                       {kTransformer, "bf16", 1, 2, {1}}};
  for (const Case& trial : all_cases) {
    TrainingText text = text_of(trial.model, kWays[trial.way]);
    text.optimizer = "adam";
    text.precision = trial.precision;
    text.steps = trial.model == kTransformer ? 2 : 3;
    INFO(trial.model, trial.precision, trial.way);
    const SmallTraining training = make(replicated(text, trial.replicas, 0));
    const Outcome expected = run_on_gpu(training, on(Place::Parts, training)).outcome;
    for (const int zero_stage : trial.zero_stages) {
      const SmallTraining one = make(replicated(text, trial.replicas, zero_stage));
      std::vector<CudaOptions> all(4, on(Place::Parts, one));
      all[0].split = CudaSplit::Streams;
      all[0].link = CudaLink::Zero;
      all[1].graph = all[1].poison = true;
      all[2].link = CudaLink::Paced;
      all[2].graph = true;
      all[2].untraced = trial.untraced;
      all[3].alone = true;
      // NCCL rounds in between to bf16, and a real one adds up in an order of its own.
      const bool same = trial.precision == "fp32" || trial.replicas == 2;
      if (same && has(2 * trial.replicas) && std::getenv("EMULATED_GPUS") != nullptr) {
        all.resize(6, on(Place::Gpus, one));
        all[4].poison = all[5].nccl = true;
      }
      for (const CudaOptions& options : all) {
        INFO("ZeRO ", zero_stage, ", options ", &options - all.data());
        const Outcome made = run_on_gpu(one, options).outcome;
        CHECK(by_name(made) == by_name(expected));
        CHECK(made.losses == expected.losses);
      }
    }
  }
}

TEST_CASE("replicas on GPUs hold what each would hold alone, and shards of states") {
  std::vector<std::pair<std::string, Way>> all_cases = {{kTransformer, kWays.front()}};
  for (const Way& way : kWays) all_cases.emplace_back(kResidualMlp, way);
  for (const auto& trial : all_cases) {
    const Way& way = trial.second;
    TrainingText text = text_of(trial.first, way);
    text.optimizer = "adam";
    const SmallTraining alone = make(text);
    const auto one = run_on_gpu(alone, on(Place::Parts, alone)).outcome.memory;
    const SmallTraining training = make(replicated(text, 2, 0));
    const auto two = run_on_gpu(training, on(Place::Parts, training)).outcome.memory;
    INFO(text.model, way.strategy, way.schedule);
    REQUIRE(two.size() == 4);
    for (std::size_t rank = 0; rank < 4; ++rank) CHECK(two[rank].peak == one[rank % 2].peak);
    if (!way.divides) continue;
    const SmallTraining divided = make(replicated(text, 2, 1));
    const auto half = run_on_gpu(divided, on(Place::Parts, divided)).outcome.memory;
    const auto states = static_cast<std::size_t>(MemoryClass::Optimizer);
    for (std::size_t rank = 0; rank < 4; ++rank) {
      const std::int64_t all = one[rank % 2].at_peak[states], own = half[rank].at_peak[states];
      CHECK(2 * own >= all);
      CHECK(2 * own <= all + 2 * 8);  // of one number more, for each of two stages at most
    }
  }
}

TEST_CASE("a trace has every exchange once, as long as paced links say, and updates behind it") {
  const TrainingText text = text_of(kResidualMlp, kWays.front());
  for (const int zero_stage : {0, 1}) {
    for (const bool graph : {false, true}) {
      SmallTraining training = make(replicated(text, 2, zero_stage));
      for (Collective& one : training.program.collectives) one.latency = Seconds(2e-3);
      const Program& program = training.program;
      CudaOptions options = on(Place::Parts, training);
      options.link = CudaLink::Paced;
      options.graph = graph;
      TraceLog log;
      const CudaRun run = run_on_gpu(training, options, &log);
      const std::size_t kinds = zero_stage == 0 ? 1 : 2;
      REQUIRE(log.collectives.size() == kinds * 2 * 3);  // of each stage, each step
      for (const CollectiveSpan& span : log.collectives) {
        const auto number = static_cast<std::size_t>(span.collective);
        const Collective& collective = program.collectives[number];
        const Seconds least = collective.occupancy + collective.latency;
        CHECK((span.end - span.start).value() >= least.value() - 2e-6);  // times are of floats
        CHECK(span.joined <= span.start);
        int updates = 0;
        for (const Span& op : log.spans) {
          const OpInfo& info = program.ops[static_cast<std::size_t>(op.op)];
          const bool waits = collective.kind != CollectiveKind::AllGather &&
                             info.kind == OpKind::U && op.micro_batch == span.micro_batch &&
                             model_stage(program, info.stage) == collective.stage;
          if (!waits) continue;
          ++updates;
          CHECK(op.start >= span.end);
          CHECK(op.exposed.value() >= 1.9e-3);
        }
        CHECK(updates == (collective.kind == CollectiveKind::AllGather ? 0 : 2));
      }
      double left = 0;
      for (const MemoryChange& change : log.memory) left += change.bytes;
      CHECK(left == doctest::Approx(0));
      CHECK(run.summary.tasks == count_tasks(program));
      CHECK(run.record.replicas.find("2 groups of 2 devices") != std::string::npos);
    }
  }
}

}  // namespace interlock::replica_checks
