// JobsQuestion: several jobs on one cluster, read and placed. A scenario of scenarios.
// SPDX-License-Identifier: Apache-2.0
//
// Each job is a scenario that could stand alone. Of its own cluster two things count: the machine,
// which must be that of the shared cluster, and the number of devices. The network is the shared
// one.
//
// Example: {"cluster": {"machine": "dgx-h100", "nodes": 4}, "jobs": [{"scenario": "a.json"},
// {"scenario": "b.json", "placement": {"nodes": [2, 3]}}]}, both on two nodes of dgx-h100, has two
// questions of 16 devices each on a cluster of 32: those of a are 0 to 15, those of b 16 to 31.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "scenarios/load/question.h"

namespace interlock {

struct JobsQuestion {
  std::string name, file;
  std::shared_ptr<const JsonValue> document;  // of this one alone, "sweep" carried out
  std::vector<SweptValue> swept;              // by it
  Cluster cluster;
  EngineKind engine = EngineKind::Auto;
  std::vector<Question> jobs;   // on that cluster; mesh.placed says which devices
  std::vector<Seconds> starts;  // when each begins
};

/// Tells whether `document` asks about several jobs.
bool holds_jobs(const JsonValue& document);

/// Returns the questions of such a document: one, or the product of its "sweep". Throws: Error with
/// every mistake of the document.
std::vector<JobsQuestion> load_jobs(const JsonValue& document);

}  // namespace interlock
