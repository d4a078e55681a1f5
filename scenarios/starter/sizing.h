// Sizing: the best plan for each machine and number of devices, and what a whole training takes.
// SPDX-License-Identifier: Apache-2.0
//
// A row is what `interlock search` finds first for the scenario of `interlock init`, with the batch
// and the length of training that all rows share. For example, llama-3-8b over 1e12 tokens on
// dgx-h100 in sizes 8 and 64 gives two rows:
//   {machine 0, devices 8, fits, plan "tensor 1, ...", time 126 d}
//   {machine 0, devices 64, fits, plan "tensor 1, ...", time 16 d}
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "hardware/devices/device.h"
#include "hardware/devices/money.h"
#include "scenarios/search/plan_search.h"
#include "scenarios/starter/sizing_choice.h"

namespace interlock {

struct SizedMachine {
  std::string name;   // of the catalogue, or a path
  std::string price;  // "2.50 USD/h" of a device; empty: as the machine says, if it does
};

struct SizingQuestion {
  std::string model;
  std::vector<SizedMachine> machines;
  std::vector<int> devices;
  int sequence_length = 0;      // tokens; 0: as the model says
  double length = 0;            // of the training: tokens, or samples of models without
  bool in_samples = false;      // `length` counts samples
  std::optional<double> batch;  // of a step, counted as `length`; none: a usual one
  bool weak = false;            // the batch is that of the fewest devices, and grows with them
  std::string device_mtbf;      // "6334 h" between failures of a device; empty: none fails
  std::vector<std::string> overrides;  // "path=VALUE" of all scenarios
  SizingAims aims;
};

struct SizedPlan {
  std::size_t machine = 0;  // of the question
  int devices = 1;
  int global_batch_size = 0;      // samples
  std::optional<FoundPlan> plan;  // the best; if none fits, the one that takes least memory
  bool fits = false;
  bool searched = true;        // else it was interrupted, or has too many plans
  int share = 0, of_node = 0;  // devices used of each node, of all that it has; 0: all
  std::string left_out;        // values of the search, in words
  bool proven = true;          // else plans that may be better, or fit, cost too much to look at
  bool devices_alone = false;  // `energy` has no host's, whose power is unknown
  std::string problem;         // if there is no plan: why
  Bytes memory_limit;          // that tensors may take of a device; 0: unknown
  std::optional<BorrowedEfficiency> borrowed;  // from whom its devices have their efficiencies
  Confidence confidence;                       // in the step time of a plan that fits

  // Numbers of the whole training, failures included, of a plan that fits.
  Seconds time;
  std::optional<double> goodput;  // share of the time that counts; none: no run is asked for
  double device_hours = 0;
  std::optional<Joules> energy;
  std::optional<Money> cost;
  bool on_front = false;  // every other row takes more time or costs more
};

struct Sizing {
  SizingQuestion question;
  std::vector<SizedPlan> rows;  // machines as asked for, each with its sizes ascending
  std::optional<double> tokens_per_sample;
  std::vector<std::string> notes;  // what was assumed of the model
  PlanLimits limits;               // of every plan
  bool safer = false;  // the recommended is first as the range of the second goes beyond the aims
  bool by_money = false;             // else device-hours are what rows cost: some price is unknown
  std::vector<std::size_t> ranking;  // rows whose plan fits, the recommended first
  bool stopped = false;              // rows are missing, as `stop` said so
};

/// Returns what `row` costs, as `sizing` compares rows: money, or device-hours.
double cost_of(const Sizing& sizing, const SizedPlan& row);

/// Returns time and cost of `row` at the upper end of its range; nothing where that is unknown.
std::optional<SizePrice> most_of(const Sizing& sizing, const SizedPlan& row);
/// Returns whether the whole range of `row` is within what was asked for; nothing where nothing was
/// asked, or the range is unknown.
std::optional<bool> wholly_within(const Sizing& sizing, const SizedPlan& row);
/// Returns the row, first in order, whose whole range is within what was asked for.
std::optional<std::size_t> first_wholly_within(const Sizing& sizing);

/// Two sizes whose order predictions do not tell.
struct NearTie {
  double share = 0;      // by which steps of the second would have to be shorter for it to be first
  double typical = 0;    // error of predictions of such steps; not below `share`
  bool between = false;  // it is that of one run's time over another's, on machines of one kind
};
/// Returns whether the recommended size and the next best are one.
std::optional<NearTie> near_tie(const Sizing& sizing);

/// Says how far a sizing is: row `row`, from 0, has decided on `done` of `of` plans.
struct SizingProgress {
  std::size_t row = 0, rows = 1, done = 0, of = 0;
};

struct SizingListener {
  std::function<void(const SizingProgress&)> told;
  std::function<bool()> stop;  // asked between rounds of a search
};

/// Returns `sizes` in rising order, each once.
std::vector<int> ascending(std::vector<int> sizes);

/// Sizes up `question`, whose sizes ascend, by `workers`. Throws: Error, in words of the options of
/// `interlock plan`, if model, a machine, a price or an override is wrong, or says what the
/// question says; if a budget is asked for where a price is unknown or in another currency; or if
/// no row can be searched.
Sizing size_up(const SizingQuestion& question, const Workers& workers,
               const SizingListener& listener = {});

}  // namespace interlock
