// interlock: predicts step time, memory and utilisation of model-parallel training. C++17.
// SPDX-License-Identifier: Apache-2.0
//
//   const interlock::Result step = interlock::simulate(R"({
//       "model": "gpt2-xl", "cluster": {"machine": "dgx-a100-80g", "devices": 4},
//       "parallel": {"pipeline": 4},
//       "training": {"strategy": "global", "global_batch_size": 32}})");
//   std::cout << step.step_time_s() << " s, " << step.peak_memory_bytes() / 1e9 << " GB\n";
//
// A scenario is a text in JSON; docs/reference.md lists its keys, docs/result.md those of results.
// Units stand in the names: _s seconds, _bytes bytes; shares are numbers from 0 to 1. Indices,
// ranks and stages count from 0.
//
// Every function may be called from several threads at once. None prints, ends the process, forks
// it, or touches signals, locale and current folder. What fails throws Error (the text is wrong, or
// the system refuses a thread or a name), InternalError (interlock is wrong) or std::bad_alloc.
// Links that are shared are simulated by interlock's own engine, whose times are those of SimGrid;
// a scenario's simulate.engine and Options::engine ask for SimGrid itself, which runs in a program
// of its own, interlock-simgrid.
//
// Structs may grow at their end with each 0.x; programs are then compiled again.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#define INTERLOCK_API __attribute__((visibility("default")))

namespace interlock {
#ifdef INTERLOCK_INSIDE  // the sources of interlock have names of their own beside these
namespace v0 {
#else
inline namespace v0 {
#endif

/// Returns "0.2.0".
INTERLOCK_API std::string version();

// --- What goes wrong ---------------------------------------------------------------------------

/// One mistake in a text. What is not known is empty; `line` is then 0.
struct Diagnostic {
  std::string file;
  int line = 0;         // from 1
  std::string path;     // JSON pointer: "/training/schedule"
  std::string message;  // "unknown schedule "1f1b-x""
  std::string hint;     // what to write instead: "did you mean "1f1b"?"
};

/// Tells every mistake of a text at once; what() has one line for each.
class INTERLOCK_API Error : public std::runtime_error {
 public:
  Error(const std::string& what, std::vector<Diagnostic> diagnostics);
  ~Error() override;
  const std::vector<Diagnostic>& diagnostics() const noexcept { return *diagnostics_; }

 private:
  std::shared_ptr<const std::vector<Diagnostic>> diagnostics_;
};

/// Tells a mistake of interlock itself, which should be reported.
class INTERLOCK_API InternalError : public std::logic_error {
 public:
  explicit InternalError(const std::string& what);
  ~InternalError() override;
};

// --- Questions ---------------------------------------------------------------------------------

/// Says how a text is read and answered.
struct Options {
  /// Name of the text in messages. Relative paths in the text start at its folder; if empty, in the
  /// current one.
  std::string file;
  /// Changes of the text, "path=VALUE": "parallel.pipeline=8", "cluster.port.bandwidth=462 GB/s".
  std::vector<std::string> set;
  /// Keeps what timeline(), memory(), svg() and report_html() need.
  bool timeline = true;
  /// Simulations that the range of a step on a calibrated device is drawn from, at least 20; 0: it
  /// has none.
  int range_draws = 0;
  /// Threads of simulate_all, search, plan, explain and sweep; 0: as many as processors.
  int threads = 0;
  /// Told, in the calling thread, how much of simulate_all, search, plan, explain and sweep is
  /// done. What it throws ends the call, and reaches the caller.
  std::function<void(std::size_t done, std::size_t of)> progress;
  /// Called likewise some ten times a second, e.g. to end a call that is no longer wanted; what is
  /// under way is simulated to its end.
  std::function<void()> poll;
  /// Engine in the place of the scenario's "simulate.engine": "native", "simgrid", or "auto",
  /// SimGrid where links are shared in what simulate and simulate_all run. Empty: the scenario's,
  /// whose "auto" is native. SimGrid runs once in a process: for each run the program
  /// interlock-simgrid, which is installed with the library, is started, and has ended when the
  /// call returns. This process is not forked.
  std::string engine;
};

/// Reads a scenario without running it. Returns how many scenarios its "sweep" makes; 1 without.
INTERLOCK_API std::size_t check(std::string_view text, const Options& options = {});

// --- simulate ----------------------------------------------------------------------------------

/// Describes one of the numbers that results have.
struct Metric {
  enum class Better { Less, More, Neither };
  std::string key;   // with its unit: "step_time_s"
  std::string unit;  // "s", "bytes", "J", "W", "1/s", "money", "share", "count", "truth" (0 or 1)
  Better better = Better::Neither;
  std::string meaning;  // one sentence, may be empty
};

/// Returns all metrics that are numbers, in the order of docs/result.md.
INTERLOCK_API const std::vector<Metric>& metrics();

/// One simulated device.
struct Device {
  int rank = 0;
  int number = 0;           // in the machine
  std::vector<int> stages;  // of the model, that it holds
  double busy = 0;          // share of the time in which it executes anything
  double useful = 0;        // share for the main network's own forward and backward
  std::map<std::string, double> time_shares;   // "forward", ..., "bubble"; they add up to 1
  std::map<std::string, double> bubble_s;      // idle seconds of a step by cause, if explained
  std::map<std::string, double> memory_bytes;  // at its peak: "weights", "stash", ...
  double peak_memory_bytes = 0, peak_stash_bytes = 0;
  double used_memory_bytes = 0;      // with all that its process holds; 0: unknown
  double memory_capacity_bytes = 0;  // 0: unknown
  double peak_time_s = 0;            // when the peak is reached
};

/// One link, or several equal ones.
struct Link {
  std::string name;
  double bytes_per_step = 0;
  double utilisation = 0;  // share of the time in which it carries anything
  int stands_for = 1;      // links that carry as much
};

/// One op of a device. Letters: F forward, B backward (I and W its halves for the input and for the
/// weights), R recompute, H auxiliary head, U update.
struct Span {
  double start_s = 0, end_s = 0;
  double exposed_s = 0;  // idle before it while its message was on the way
  int rank = 0;
  char op = 'F';
  int stage = 0;
  int micro_batch = 0;  // counted through the run
  int slice = 0;        // of the micro-batch's tokens
};

/// Bytes that a device holds from an instant on.
struct MemoryPoint {
  double time_s = 0;
  int rank = 0;
  double bytes = 0;
};

/// The outcome of one scenario. Copies are cheap and share it.
class INTERLOCK_API Result {
 public:
  std::string name() const;

  /// Returns the metric with this key (see metrics()), nothing where it is unknown.
  /// Throws: Error if there is no such metric.
  std::optional<double> metric(std::string_view key) const;

  double step_time_s() const { return metric("step_time_s").value(); }
  std::optional<double> samples_per_s() const { return metric("samples_per_s"); }
  std::optional<double> tokens_per_s() const { return metric("tokens_per_s"); }
  std::optional<double> mfu() const { return metric("mfu"); }
  double busy() const { return metric("busy").value(); }
  double useful() const { return metric("useful").value(); }
  double bubble_fraction() const { return metric("bubble_fraction").value(); }
  double exposed_communication_s() const { return metric("exposed_communication_s").value(); }
  double peak_memory_bytes() const { return metric("peak_memory_bytes").value(); }
  bool fits_in_memory() const { return metric("fits_in_memory").value() != 0; }

  std::vector<Device> devices() const;
  std::vector<Link> links() const;

  /// Returns "interlock-result/1", all that is known. The text is valid as long as the result.
  const std::string& json() const;
  /// Returns the table that the program prints, `width` columns wide.
  std::string table(int width = 100) const;

  /// Return what every device did and held, in order of rank and time, and a picture of a few
  /// steps. Throws: Error if Options::timeline was off.
  std::vector<Span> timeline() const;
  std::vector<MemoryPoint> memory() const;
  std::string svg() const;

  struct Data;

 private:
  friend struct Inside;  // of the library
  explicit Result(std::shared_ptr<const Data> data);
  std::shared_ptr<const Data> data_;
};

/// Simulates one scenario. Throws: Error also for a text with a "sweep".
INTERLOCK_API Result simulate(std::string_view text, const Options& options = {});
/// Simulates every scenario of a text with a "sweep", on all threads. Throws: what the first that
/// is wrong throws.
INTERLOCK_API std::vector<Result> simulate_all(std::string_view text, const Options& options = {});

/// Returns one self-contained page that compares `results`, and draws the 48 that tell most.
/// Throws: Error if there is none, or one that is drawn has no timeline.
INTERLOCK_API std::string report_html(const std::vector<Result>& results);

// --- sweep -------------------------------------------------------------------------------------

/// One scenario of a sweep.
struct SweepRow {
  std::vector<std::string> values;             // that it has at SweepResult::paths, as JSON
  std::string error;                           // why there is no result; empty: there is one
  std::vector<std::optional<double>> metrics;  // as metrics() lists them; nothing: unknown
  std::string json;                            // "interlock-result/1" on one line

  /// Returns the metric with this key. Throws: Error if there is no such metric.
  INTERLOCK_API std::optional<double> metric(std::string_view key) const;
};

struct SweepResult {
  std::vector<std::string> paths;  // that are swept
  std::vector<SweepRow> rows;      // the last path varies fastest
};

/// Simulates every scenario of a text with a "sweep", on all threads, and keeps numbers only. What
/// goes wrong with one scenario is in its row.
INTERLOCK_API SweepResult sweep(std::string_view text, const Options& options = {});

// --- search, plan, explain ---------------------------------------------------------------------

/// A plan that was found.
struct FoundPlan {
  std::string words;     // "tensor 4, pipeline 2, data 8, ZeRO 1, micro-batch 1, 1f1b"
  std::string scenario;  // its text, for simulate()
  double step_time_s = 0, peak_memory_bytes = 0;
  std::optional<double> tokens_per_s_per_device, mfu;
  std::optional<double> energy_j;  // of a step
  bool worth_having = true;        // else an earlier plan is no worse in anything that counts
};

struct SearchResult {
  std::vector<FoundPlan> plans;  // the best first; empty: none is within the limits
  std::string json;              // "interlock-search/1"
};

/// Searches the plans that the scenario may be trained by, as its "search" says.
INTERLOCK_API SearchResult search(std::string_view text, const Options& options = {});

/// Asks how many devices, of which machine, a training should have.
struct PlanQuestion {
  std::string model;                          // a name, or the path of a description
  std::vector<std::string> machines;          // names, or paths
  std::vector<int> devices;                   // sizes to compare
  double tokens = 0, samples = 0;             // length of the training: one of them
  double batch = 0;                           // of a step, in tokens or samples; 0: a usual one
  int sequence_length = 0;                    // 0: the model's
  bool weak = false;                          // the batch grows with the devices
  double days = 0;                            // that it may take; 0: any
  std::string budget;                         // "2e6 USD"; empty: any
  std::map<std::string, std::string> prices;  // of a device, by machine: "2.50 USD/h"
  std::string mtbf;                           // of a device: "6334 h"; empty: none fails
};

/// The best plan of one machine and size.
struct PlanRow {
  std::string machine;
  int devices = 1;
  bool fits = false;
  std::string problem;                   // why there is no plan; empty: there is one
  std::string words;                     // of the plan
  std::string scenario;                  // of the plan, for simulate()
  double time_s = 0, device_hours = 0;   // of the whole training, if it fits
  double goodput = 1;                    // share of that time that counts
  std::optional<double> cost, energy_j;  // of the whole training
  bool on_front = false;                 // no other row is both faster and cheaper
};

struct PlanResult {
  std::vector<PlanRow> rows;
  std::vector<std::size_t> ranking;         // rows that fit, the recommended first
  std::vector<std::string> recommendation;  // in sentences
  std::string json;                         // "interlock-plan/1"
};

/// Plans a training: the best plan of each machine and size, priced.
INTERLOCK_API PlanResult plan(const PlanQuestion& question, const Options& options = {});

/// One change of a scenario, simulated.
struct Change {
  std::string words;
  std::vector<std::string> set;  // for Options::set
  double step_time_s = 0;
  double gain_s = 0;  // of the scenario's step, for equal work; below 0: a loss
  double peak_memory_bytes = 0;
  bool fits = true;
};

struct Explanation {
  Result result;                // of the scenario as it is
  std::string limited_by;       // what limits the step, in a sentence
  std::vector<Change> changes;  // what gains most first
  std::string json;             // "interlock-explanation/1"
};

/// Explains what limits the step of a scenario, and tries what would make it shorter.
INTERLOCK_API Explanation explain(std::string_view text, const Options& options = {});

// --- A schedule of your own --------------------------------------------------------------------

/// One op of a schedule. Letters as in Span, without R, H and U: updates end the step.
struct Op {
  char op = 'F';
  int stage = 0;
  int micro_batch = 0;
};

/// The costs of a stage for one micro-batch.
struct StageCost {
  double forward_s = 0;
  double backward_input_s = 0, backward_weight_s = 0;  // B takes both
  double update_s = 0;                                 // once a step
  double output_bytes = 0;  // sent to the next stage; its gradient comes back
  double stash_bytes = 0;   // kept from forward to backward
  double weight_bytes = 0;  // gradients and optimiser state come on top
};

/// Ranks that compute ops in a fixed order, on equal devices with private links. For example, two
/// stages and one micro-batch:
///   Schedule schedule;
///   schedule.ranks = {{{'F', 0, 0}, {'B', 0, 0}}, {{'F', 1, 0}, {'B', 1, 0}}};
///   schedule.stages = {{1e-3, 1e-3, 1e-3}, {1e-3, 1e-3, 1e-3}};
///   simulate(schedule).step_time_s();  // 0.006
struct INTERLOCK_API Schedule {
  std::string name = "schedule";
  std::vector<std::vector<Op>> ranks;  // the ops of each rank in order
  std::vector<StageCost> stages;
  double link_bandwidth_bytes_per_s = 100e9;
  double link_latency_s = 0;
  double memory_bytes = 80e9;  // of each device
  int steps = 1;               // to measure

  /// Returns a schedule of the catalogue ("1f1b", "zb-h1", "interleaved", ...) for as many
  /// micro-batches, with stages of no cost. Throws: Error if it does not fit.
  static Schedule named(const std::string& schedule, int ranks, int stages, int micro_batches);

  /// Returns the order in the text form of torch.distributed.pipelining, a line for each rank:
  /// "0F0,0F1,0B0,0B1".
  std::string text() const;
  /// Returns the scenario that simulate() runs. Throws: Error if it cannot be written.
  std::string scenario() const;
};

/// Simulates a schedule. Throws: Error, which names the op, if an op is missing, or ranks wait for
/// each other for ever.
INTERLOCK_API Result simulate(const Schedule& schedule, const Options& options = {});

}  // namespace v0
}  // namespace interlock
