// Jobs run together for as long as a shared window needs, then each alone.
// SPDX-License-Identifier: Apache-2.0
#include "sim/jobs/measure_jobs.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "sim/jobs/joined_program.h"
#include "sim/measure/collect.h"
#include "sim/measure/self_check.h"
#include "sim/program/ticks.h"

namespace interlock {
namespace {

constexpr std::int64_t kMostTasks = 40'000'000;  // of a run
constexpr std::int64_t kFewTasks = 4'000'000;    // up to which a window is made longer
constexpr std::int64_t kMostTasksLogged = 4'000'000;
constexpr int kMostSteps = 1'000'000'000;  // of a job
constexpr int kMostTimes = 16;  // a window that does not settle is longer than what was asked for

/// The programs of jobs, each of its number of steps, and of all of them.
struct Together {
  std::vector<Program> jobs;
  JoinedProgram joined;
  double ticks() const { return joined.program.ticks_per_second; }
};

/// Lowers `jobs` in ticks that serve all of them, and no finer than `most`.
Together lower_together(const std::vector<JobToRun>& jobs, const std::vector<int>& steps,
                        double most) {
  std::vector<Seconds> starts;
  for (const JobToRun& job : jobs) starts.push_back(job.start);
  for (;;) {
    Together made;
    double least = most;
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      made.jobs.push_back(jobs[j].programs(steps[j], most));
      least = std::min(least, made.jobs.back().ticks_per_second);
    }
    const bool equal = std::all_of(made.jobs.begin(), made.jobs.end(), [&](const Program& job) {
      return job.ticks_per_second == least;
    });
    if (equal) {
      made.joined = join(made.jobs, starts);
      const double needed = finest_ticks(made.joined.program, least);
      if (needed == least) return made;
      least = needed;
    }
    most = least;
  }
}

/// Runs `together` for the ends of steps.
std::vector<JobSteps> ends_of(const Together& together, const std::vector<int>& fills,
                              EngineKind engine) {
  std::vector<StepLog> logs;
  logs.reserve(together.jobs.size());
  std::vector<TraceSink> sinks;
  for (const Program& job : together.jobs) {
    StepLog& log = logs.emplace_back(job);
    sinks.push_back({.span = [&log](const Span& span) { log.add(span); }});
  }
  run_program(together.joined.program, engine, parted(together.joined, sinks));
  std::vector<JobSteps> all;
  for (std::size_t j = 0; j < logs.size(); ++j) {
    JobSteps steps{.fill = fills[j],
                   .dry = std::max(logs[j].overlap() + 1, drain_steps(together.jobs[j], logs[j]))};
    for (int step = 0; step < logs[j].steps(); ++step) steps.ends.push_back(logs[j].end(step));
    all.push_back(std::move(steps));
  }
  return all;
}

/// Returns by how many steps each job must go on so that the window holds `wanted` ones of each.
std::vector<int> further_steps(const std::vector<JobSteps>& jobs, const std::vector<int>& wanted) {
  const auto usable = [](const JobSteps& job) {
    return static_cast<std::size_t>(std::max(1, static_cast<int>(job.ends.size()) - job.dry));
  };
  std::vector<Seconds> step;  // on average, of each
  Seconds begin(0), end(0);
  for (const JobSteps& job : jobs) {
    const std::size_t count = usable(job);
    step.push_back(job.ends[count - 1] / static_cast<double>(count));
    const auto fill = static_cast<std::size_t>(job.fill);
    const bool filled = fill <= job.ends.size();
    begin = std::max(begin, filled && fill > 0 ? job.ends[fill - 1] : step.back() * job.fill);
  }
  for (std::size_t j = 0; j < jobs.size(); ++j) {  // two steps may be cut by its ends
    end = std::max(end, begin + step[j] * (wanted[j] + 2));
  }
  std::vector<int> further;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const double missing = (end - jobs[j].ends[usable(jobs[j]) - 1]) / step[j];
    const int least = jobs[j].fill + jobs[j].dry + 1 - static_cast<int>(jobs[j].ends.size());
    const double steps = std::min(std::ceil(missing), double{kMostSteps});
    further.push_back(std::max({0, least, static_cast<int>(steps)}));
  }
  return further;
}

/// A run whose window is long enough.
struct Found {
  std::vector<int> steps;
  std::vector<JobSteps> ran;
  SharedWindow window;
  double drift = 0, ticks = kAnyTicks;
};

bool holds(const SharedWindow& window, const std::vector<int>& wanted) {
  for (std::size_t j = 0; j < wanted.size(); ++j) {
    if (window.steps[j].steps < wanted[j]) return false;
  }
  return true;
}

/// Finds how many steps each job takes. `steps`: to begin with.
Found find_run(const std::vector<JobToRun>& jobs, std::vector<int> steps,
               const std::vector<int>& fills, EngineKind engine) {
  std::vector<int> wanted;
  for (const JobToRun& job : jobs) wanted.push_back(job.inputs.steps);
  Found found;
  for (int times = 1;;) {
    const Together together = lower_together(jobs, steps, found.ticks);
    const std::int64_t tasks = count_tasks(together.joined.program);
    if (tasks > kMostTasks) {
      if (!found.steps.empty()) return found;
      throw Error(
          "a window that holds the steps of each job which are to be measured has more than " +
          std::to_string(kMostTasks / 1'000'000) +
          " million tasks; expected fewer steps of each (\"training.steps\"), or jobs "
          "whose steps are more alike in length, or begin sooner (\"start\")");
    }
    const std::vector<JobSteps> ran = ends_of(together, fills, engine);
    const auto too_few = [](const JobSteps& job) {
      return static_cast<int>(job.ends.size()) < job.fill + job.dry + 1;
    };
    if (std::none_of(ran.begin(), ran.end(), too_few)) {
      const SharedWindow window = shared_window(ran);
      if (holds(window, wanted)) {
        found = {steps, ran, window, drift(ran, window), together.ticks()};
        if (found.drift <= kMostDrift || times >= kMostTimes || 2 * tasks > kFewTasks) return found;
        times *= 2;
        for (int& count : wanted) count *= 2;
      }
    }
    const std::vector<int> further = further_steps(ran, wanted);
    for (std::size_t j = 0; j < jobs.size(); ++j) steps[j] += further[j];
    if (std::all_of(further.begin(), further.end(), [](int more) { return more == 0; })) {
      for (int& count : steps) ++count;  // an edge was cut that was not expected
    }
  }
}

/// Measures one job of a run: a sink for its part of the trace.
class JobMeter {
 public:
  JobMeter(const Program& program, const SharedWindow& window, const StepWindow& steps,
           const JobSteps& ran, bool keeps_log)
      : window_(steps),
        times_{ran.ends[static_cast<std::size_t>(steps.first_step) - 1],
               ran.ends[static_cast<std::size_t>(steps.first_step + steps.steps) - 1]},
        keeps_log_(keeps_log),
        collector_(program, window_, times_),
        audit_(program),
        program_(program) {
    CHECK(times_.begin >= window.begin && times_.end <= window.end, "steps inside the window");
  }

  TraceSink sink() {
    const auto to_all = [this](const auto& entry) {
      collector_.add(entry);
      audit_.add(entry);
    };
    const TraceSink meter = {
        .span =
            [this, to_all](const Span& span) {
              makespan_ = std::max(makespan_, span.end);
              to_all(span);
            },
        .transfer = to_all,
        .memory = to_all,
        .collective = [this](const CollectiveSpan& span) { collector_.add(span); }};
    return keeps_log_ ? tee(meter, log_sink(log_)) : meter;
  }

  Measurement finish(const MeasureInputs& inputs, const std::string& engine) {
    const std::string fault = audit_.fault();
    CHECK(fault.empty(), "a trace that does what its program says: " + fault);
    Measurement result{.metrics = collector_.finish(inputs)};
    result.metrics.engine = engine;
    result.metrics.makespan = makespan_;
    result.metrics.tasks = count_tasks(program_);
    set_rates(inputs, result.metrics);
    const std::string sums = sum_fault(result.metrics);
    CHECK(sums.empty(), "figures that add up: " + sums);
    result.program = program_;
    result.log = std::move(log_);
    return result;
  }

 private:
  StepWindow window_;
  TimeWindow times_;
  bool keeps_log_;
  Collector collector_;
  TraceAudit audit_;
  TraceLog log_;
  const Program& program_;
  Seconds makespan_;
};

using Clock = std::chrono::steady_clock;

/// How runs are run.
struct RunWay {
  EngineKind engine = EngineKind::Native;
  bool keeps_logs = false;
};

/// Runs `together` once more, and measures the steps of `window` of each job. `ran`: the ends of
/// all steps.
std::vector<Measurement> measure_steps(const Together& together, const std::vector<JobToRun>& jobs,
                                       const std::vector<JobSteps>& ran, const SharedWindow& window,
                                       const RunWay& way) {
  const auto began = Clock::now();
  std::vector<std::unique_ptr<JobMeter>> meters;
  std::vector<TraceSink> sinks;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    meters.push_back(std::make_unique<JobMeter>(together.jobs[j], window, window.steps[j], ran[j],
                                                way.keeps_logs));
    sinks.push_back(meters.back()->sink());
  }
  const RunSummary summary =
      run_program(together.joined.program, way.engine, parted(together.joined, sinks));
  std::vector<Measurement> measured;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    measured.push_back(meters[j]->finish(jobs[j].inputs, summary.engine));
    measured.back().metrics.wall_time =
        Seconds(std::chrono::duration<double>(Clock::now() - began).count());
  }
  return measured;
}

/// Returns the loads of all links that carry anything.
std::vector<JobsLink> loads_of(const std::vector<MeasuredJob>& jobs) {
  std::map<std::string, JobsLink> by_name;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    for (const LinkMetrics& link : jobs[j].together.metrics.links) {
      if (link.bytes <= Bytes(0)) continue;
      JobsLink& load = by_name[link.name];
      load.name = link.name;
      load.utilisation.resize(jobs.size(), 0);
      load.utilisation[j] += link.utilisation;
      load.total += link.utilisation;
      ++load.jobs;
    }
  }
  std::vector<JobsLink> loads;
  for (auto& [name, load] : by_name) loads.push_back(std::move(load));
  std::stable_sort(loads.begin(), loads.end(),
                   [](const JobsLink& a, const JobsLink& b) { return a.total > b.total; });
  return loads;
}

/// Measures each job by itself, in as few steps as show it.
std::vector<Metrics> measure_alone(const std::vector<JobToRun>& jobs, EngineKind engine) {
  std::vector<Metrics> alone;
  for (const JobToRun& job : jobs) {
    MeasureInputs inputs = job.inputs;
    inputs.engine = engine;
    try {
      alone.push_back(measure(job.programs, inputs, false).metrics);
    } catch (const Error& error) {
      throw Error("job " + in_quotes(job.name) + ": " + error.what());
    }
  }
  return alone;
}

/// Returns the first steps of a job that are not measured. One that does not settle was run for
/// long in search of that, and has no more of a fill than of anything else that repeats.
int fill_of(const JobToRun& job, const Metrics& alone) {
  return std::max(1,
                  alone.steady ? alone.fill_steps : std::min(alone.fill_steps, job.inputs.steps));
}

/// Returns the steps of each job with which the window is looked for: as many as take the time that
/// the job with the longest ones needs for its own, were each alone.
std::vector<int> first_steps(const std::vector<JobToRun>& jobs, const std::vector<Metrics>& alone) {
  constexpr double kMost = 1e9;
  const auto wanted = [&](std::size_t j) {
    return fill_of(jobs[j], alone[j]) + jobs[j].inputs.steps + 2;
  };
  Seconds longest(0);
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    longest = std::max(longest, alone[j].step_time * wanted(j));
  }
  std::vector<int> steps;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const Seconds own = alone[j].step_time;
    const double count = own > Seconds(0) ? std::min(longest / own, kMost) : 0;
    steps.push_back(std::max(wanted(j), static_cast<int>(std::ceil(count))));
  }
  return steps;
}

}  // namespace

MeasuredJobs measure_jobs(const std::vector<JobToRun>& jobs, EngineKind engine, bool keep_logs) {
  engine = engine_of_many(engine);
  const std::vector<Metrics> alone = measure_alone(jobs, engine);
  std::vector<int> fills;
  for (std::size_t j = 0; j < jobs.size(); ++j) fills.push_back(fill_of(jobs[j], alone[j]));
  const Found found = find_run(jobs, first_steps(jobs, alone), fills, engine);
  MeasuredJobs result{.window = found.window,
                      .drift = found.drift,
                      .steady = found.drift <= kMostDrift,
                      .jobs = {},
                      .links = {}};
  for (StepWindow& window : result.window.steps) window.steady = result.steady;
  const Together together = lower_together(jobs, found.steps, found.ticks);
  if (keep_logs && count_tasks(together.joined.program) > kMostTasksLogged) {
    throw Error("the jobs have more than " + std::to_string(kMostTasksLogged / 1'000'000) +
                " million tasks, too many to draw; expected fewer steps, or no picture");
  }
  const RunWay way = {engine, keep_logs};
  std::vector<Measurement> beside = measure_steps(together, jobs, found.ran, result.window, way);
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    SharedWindow steps{
        .begin = Seconds(0), .end = Seconds(kInfinity), .steps = {result.window.steps[j]}};
    steps.steps.front().steady = alone[j].steady;
    JobToRun by_itself = jobs[j];
    by_itself.start = Seconds(0);
    const Together one = lower_together({by_itself}, {found.steps[j]}, together.ticks());
    const std::vector<JobSteps> ran = ends_of(one, {fills[j]}, engine);
    std::vector<Measurement> alone_again = measure_steps(one, {by_itself}, ran, steps, way);
    result.jobs.push_back({std::move(alone_again.front()), std::move(beside[j])});
  }
  result.links = loads_of(result.jobs);
  return result;
}

}  // namespace interlock
