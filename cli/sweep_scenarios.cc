// interlock sweep: every scenario of a file, by all processors, into a file that survives.
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "cli/console/interrupt.h"
#include "cli/console/outputs.h"
#include "cli/console/progress.h"
#include "cli/console/swept_overrides.h"
#include "cli/console/terminal.h"
#include "cli/parser/sweep_commands.h"
#include "reports/sweeps/sweep_store.h"
#include "scenarios/load/loader.h"
#include "scenarios/sweep/rank_pool.h"
#include "scenarios/sweep/told_failure.h"
#include "scenarios/sweep/worker_pool.h"

namespace interlock {
namespace {

/// Part `part` of `parts`, from 1: every `parts`-th scenario.
struct Shard {
  std::size_t part = 1, parts = 1;
  bool has(std::size_t id) const { return id % parts == part % parts; }
};

Shard read_shard(const std::string& text) {
  if (text.empty()) return {};
  const std::size_t slash = text.find('/');
  const auto number = [](const std::string& digits) -> std::size_t {
    const bool right = !digits.empty() && digits.size() < 8 &&
                       digits.find_first_not_of("0123456789") == std::string::npos;
    return right ? std::stoul(digits) : 0;
  };
  const Shard shard = {number(text.substr(0, slash)),
                       slash == std::string::npos ? 0 : number(text.substr(slash + 1))};
  if (shard.part >= 1 && shard.part <= shard.parts) return shard;
  throw Error("--shard " + in_quotes(text) + ": expected PART/PARTS, e.g. 1/8 to 8/8");
}

SweepPlan plan_of(const SweptDocument& swept, const std::string& file) {
  if (!swept.document.find("sweep")) {
    throw Error(file +
                ": nothing is swept; expected a \"sweep\" in it, or --set with several "
                "values: --set parallel.pipeline=2,4,8");
  }
  Diagnostics diagnostics;
  SweepPlan plan(swept.document, kMostInTurn, diagnostics);
  diagnostics.throw_if_any();
  return plan;
}

/// Throws: Error if not one of the scenarios is right, as where a path has a slip: such a sweep is
/// not begun. Of very many it is not known so soon.
void check_any_is_right(const SweepPlan& plan) {
  constexpr std::size_t kMost = 1000;
  std::string first;
  for (std::size_t i = 0; i < plan.size() && i < kMost; ++i) {
    try {
      Diagnostics diagnostics;
      SweepPoint point = plan.point(i, diagnostics);
      diagnostics.throw_if_any();
      load_point(std::make_shared<const JsonValue>(std::move(point.document)));
      return;
    } catch (const Error& error) {
      if (first.empty()) first = error.what();
    }
  }
  if (plan.size() <= kMost) throw Error("no scenario of the sweep is right; the first: " + first);
}

/// Returns the ids that are still to be run.
std::vector<std::size_t> missing_ids(const std::vector<bool>& done, const Shard& shard) {
  std::vector<std::size_t> ids;
  for (std::size_t i = 0; i < done.size(); ++i) {
    if (!done[i] && shard.has(i + 1)) ids.push_back(i + 1);
  }
  return ids;
}

/// A sweep under way, and the one who writes it down.
class SweepRun {
 public:
  SweepRun(const SweepOptions& options, const SweptDocument& swept)
      : options_(options),
        source_{options.file, swept.overrides},
        plan_(plan_of(swept, options.file)),
        identity_(identity_of(swept.document, plan_)) {}

  std::function<std::string(std::size_t)> work() const {
    return [this](std::size_t id) { return packed(run_sweep_row(plan_, id, source_)); };
  }

  /// Returns whether no row is left.
  bool go(RankPool* ranks) {
    if (!std::filesystem::exists(options_.rank.database)) check_any_is_right(plan_);
    SweepStore store(options_.rank.database, identity_);
    const std::vector<std::size_t> ids =
        missing_ids(store.done(options_.retry), read_shard(options_.shard));
    Progress progress("scenarios", ids.size(), 0, !options_.rank.quiet);
    std::size_t next = 0;
    Jobs jobs;
    jobs.next = [&]() -> std::optional<std::size_t> {
      return next < ids.size() ? std::optional(ids[next++]) : std::nullopt;
    };
    jobs.work = work();
    jobs.done = [&](const JobResult& result) {
      const SweepRow row = result.problem.empty()
                               ? unpacked(result.bytes)
                               : failed_row(plan_, result.job, source_, result.problem);
      store.add(row);
      ++added_;
      progress.advance("");
    };
    jobs.stop = [] { return StopOnInterrupt::asked().load(); };
    const StopOnInterrupt stop;
    const int processes = options_.jobs > 0 ? options_.jobs : usable_processors();
    const bool all = ranks ? ranks->run(jobs) : run_jobs(jobs, processes);
    store.close();
    tell_end(all, ids.size(), progress.seconds());
    return all;
  }

 private:
  void tell_end(bool all, std::size_t wanted, double seconds) const {
    if (options_.rank.quiet && all) return;
    const std::string where = options_.rank.database;
    if (!all) {
      tell("interrupted: " + std::to_string(added_) + " of " + std::to_string(wanted) + " are in " +
           where + "; the same command goes on from there");
    } else if (wanted == 0) {
      tell(where + ": all rows are there");
    } else {
      tell(where + ": " + std::to_string(added_) + " rows in " + format(Seconds(seconds)) + ", " +
           format_number(static_cast<double>(added_) / seconds) + "/s");
    }
  }

  const SweepOptions& options_;
  SweepSource source_;
  SweepPlan plan_;
  SweepIdentity identity_;
  std::size_t added_ = 0;
};

/// Does what rank 0 says. What is wrong with the sweep rank 0 tells, once; where it alone can read
/// the sweep, each row that this rank is given tells why there is none.
void serve(const SweepOptions& options, RankPool& ranks) {
  std::optional<SweepRun> run;
  std::string problem;
  try {
    run.emplace(options, read_swept_document(options.file, options.overrides));
  } catch (const std::exception& failure) {
    problem = told_failure(failure).words;
  }
  if (run) return ranks.serve(run->work());
  ranks.serve([&](std::size_t) -> std::string { throw Error(problem); });
}

}  // namespace

void add_sweep(Command& command, SweepOptions& options) {
  command.add_words("SCENARIO", &options.file, "scenario file", {.required = true});
  command.add("--set", &options.overrides, "override a key, or sweep it: PATH=1,2,4, PATH=8..64..8",
              "PATH=VALUES");
  command.add("--db", &options.rank.database, "where rows go; else the scenario's name.db",
              "FILE.db");
  command.add("--jobs,-j", &options.jobs, "processes; else as many as processors", "N",
              {.least = 1, .most = 4096});
  command.add("--shard", &options.shard, "only part I of N, for merge to put together", "I/N");
  command.add("--retry", &options.retry, "run again what failed before");
  command.add("--by", &options.rank.by, "column to rank by, see interlock rank", "COLUMN");
  command.add("--top", &options.rank.top, "rows to print; 0: all", "N",
              {.shows_default = true, .least = 0, .most = 1'000'000'000});
  command.add("--csv", &options.rank.csv, "write all rows and columns; - for standard output",
              "FILE.csv");
  command.add("--json", &options.rank.json, "write the ranked rows; - for standard output", "FILE");
  command.add("--quiet,-q", &options.rank.quiet, "print only what is asked for by name");
}

bool sweep(SweepOptions options) {
  if (options.file == "-") {
    throw Error(
        "standard input cannot be swept: rows say which file to run again; expected a file");
  }
  const std::unique_ptr<RankPool> ranks = RankPool::open();
  if (ranks && ranks->rank() > 0) {
    serve(options, *ranks);
    return true;
  }
  read_shard(options.shard);
  const SweptDocument swept = read_swept_document(options.file, options.overrides);
  if (options.rank.database.empty()) {
    options.rank.database = default_name(swept.document) + ".db";
  }
  check_output("--db", options.rank.database);
  check_rank(options.rank, {options.file});
  SweepRun run(options, swept);
  if (!run.go(ranks.get())) return false;
  rank(options.rank);
  return true;
}

}  // namespace interlock
