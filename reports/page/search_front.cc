// Plans of a search over memory and time.
// SPDX-License-Identifier: Apache-2.0
#include "reports/page/search_front.h"

#include <vector>

#include "reports/answers/search_report.h"
#include "reports/words/scale.h"

namespace interlock {

LineChart search_front(const SearchResult& result) {
  std::vector<double> times = {0};
  for (const FoundPlan& plan : result.plans) times.push_back(plan.estimate.step_time);
  const Scale time = scale_of_seconds(times);
  constexpr double kGibibyte = 1024.0 * 1024 * 1024;
  ChartCurve having, others;
  for (std::size_t i = 0; i < result.plans.size(); ++i) {
    const FoundPlan& plan = result.plans[i];
    (plan.worth_having ? having : others)
        .push_back({.x = plan.estimate.peak_memory / kGibibyte,
                    .y = plan.estimate.step_time / time.size,
                    .name = plan_words(plan),
                    .word = i == 0 ? "best" : "",
                    .mark = plan.worth_having ? PointMark::Dot : PointMark::Pale,
                    .result = i});
  }
  LineChart chart{
      .title = "Plans", .names = {"worth having", "next best"}, .unjoined = {true, true}};
  chart.panels.push_back({.x_label = "memory of the fullest device (GiB)",
                          .y_label = "step time (" + time.unit + ")",
                          .curves = {having, others},
                          .dots = Dots::Drawn});
  return chart;
}

}  // namespace interlock
