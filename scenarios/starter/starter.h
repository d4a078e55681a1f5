// Starter: a scenario made of nothing more than a model, a machine and a number of devices.
// SPDX-License-Identifier: Apache-2.0
//
// Example: llama-3-8b on 8 devices of dgx-h100. Of 342 plans the fastest is {pipeline 1, context 2,
// data 4, micro_batch_size 1}, with 128 samples a step: 11.6 s and 61.2 GiB.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/search/plan_search.h"

namespace interlock {

struct StarterQuestion {
  std::string model, machine;  // names, or paths from where the user stands
  int devices = 1;
  int sequence_length = 0;                  // tokens of a sample; 0: as the model says
  int global_batch_size = 0;                // samples of a step; 0: chosen
  std::vector<std::string> overrides = {};  // "path=VALUE" of what the search reads
};

/// The plan that is chosen for the user.
struct StarterPlan {
  int tensor = 1, pipeline = 1, data = 1, context = 1;
  int expert = 1, expert_tensor = 1;
  int global_batch_size = 1, micro_batch_size = 1;
  std::string recompute = "none";  // "none", "selective", "full"
};

struct Starter {
  StarterQuestion question;
  StarterPlan plan;
  std::string precision, optimizer;
  std::vector<std::string> notes;  // about the model
  std::optional<double> tokens_per_sample;
  int nodes = 0;             // 0: the machine says it
  int devices_per_node = 0;  // that are used; 0: all
  int of_node = 0;           // that each has, if not all are used
  std::string share;         // why not all, in words
  std::string lender;        // the device whose efficiencies are borrowed; empty: none are
  std::string borrowed;      // the same in words
  std::size_t plans = 0;     // that it was chosen of; 0: it is yet to be
  Seconds step_time;
  Bytes peak_memory, memory;               // of the fullest device, and what it has
  bool fits = true, fits_well = true;      // at all; and beside the reserve
  std::string reserve;                     // what that is, in words; empty: the memory is unknown
  bool too_large = false;                  // to be simulated: see PlanEstimate
  std::size_t unproven = 0;                // plans that may be better, see unproven()
  std::string left_out;                    // values that were not tried, in words
  bool cut_off = false, simulated = true;  // see SearchResult and FoundPlan
};

/// Returns all of a starter but its plan. Throws: Error if model or machine are wrong, or have too
/// few devices.
Starter begin_starter(const StarterQuestion& question);
/// Returns the scenario of a starter without a plan, which a search adds: tensors are divided with
/// their sequences.
JsonValue planless_document(const Starter& starter, const char* command);

/// Returns the fastest plan that leaves the reserve free (reserve.h), of all degrees, micro-batches
/// and levels of recomputation under 1F1B and ZeRO 1, tensors divided inside a node, long sequences
/// in rings and experts among any number of devices; if there is none, the one that takes least
/// memory. Throws: Error as begin_starter().
Starter make_starter(const StarterQuestion& question, int processes,
                     const SearchProgress& told = {});

/// Returns the scenario as a file with comments. `folder` is where it will lie ("": here).
std::string starter_text(const Starter& starter, const std::string& folder);

}  // namespace interlock
