// Jobs as JSON: the contract "interlock-jobs/1"; docs/result.md says what keys mean.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>
#include <set>

#include "reports/jobs_report.h"
#include "reports/result/result_json.h"
#include "reports/result/scenario_json.h"
#include "reports/words/encode.h"

namespace interlock {
namespace {

using Json = nlohmann::ordered_json;

Json job_json(const Question& asked, Seconds start, const PricedJob& job) {
  std::set<int> used;
  for (const int device : asked.layout.mesh.placed) used.insert(node_of(asked.cluster, device));
  const Metrics &alone = job.alone.measurement.metrics,
                &together = job.together.measurement.metrics;
  return {{"name", clean_utf8(asked.name)},
          {"devices", asked.layout.mesh.placed},
          {"nodes", used},
          {"start_s", start.value()},
          {"steps", together.measured_steps},
          {"step_time_alone_s", alone.step_time.value()},
          {"step_time_s", together.step_time.value()},
          {"loss", job.loss()},
          {"alone", result_document(job.alone)},
          {"together", result_document(job.together)}};
}

Json jobs_document(const JobsResult& result) {
  const JobsQuestion& question = result.question;
  Json json{{"format", "interlock-jobs/1"},
            {"program_version", INTERLOCK_VERSION},
            {"name", clean_utf8(question.name)},
            {"cluster", clean_utf8(question.cluster.name)},
            {"devices_total", question.cluster.devices},
            {"engine", result.jobs.front().together.measurement.metrics.engine},
            {"window_begin_s", result.begin.value()},
            {"window_end_s", result.end.value()},
            {"steady", result.steady},
            {"drift", result.drift}};
  json["jobs"] = Json::array();
  for (std::size_t j = 0; j < result.jobs.size(); ++j) {
    json["jobs"].push_back(job_json(question.jobs[j], question.starts[j], result.jobs[j]));
  }
  json["links"] = Json::array();
  for (const JobsLink& link : result.links) {
    json["links"].push_back({{"name", clean_utf8(link.name)},
                             {"utilisation", link.total},
                             {"utilisation_by_job", link.utilisation}});
  }
  Question swept;
  swept.swept = question.swept;
  json["sweep"] = sweep_json(swept);
  json["scenario"] = nullptr;
  if (question.document) {
    Question asked;
    asked.document = question.document;
    asked.name = question.name;
    json["scenario"] = scenario_json(asked);
  }
  return json;
}

}  // namespace

std::string jobs_json(const std::vector<JobsResult>& results) {
  if (results.size() == 1) return jobs_document(results.front()).dump(2) + "\n";
  Json all = Json::array();
  for (const JobsResult& result : results) all.push_back(jobs_document(result));
  return all.dump(2) + "\n";
}

}  // namespace interlock
