// ExecutionRecord: readings of clocks in short, and how late a host was, by hand.
// SPDX-License-Identifier: Apache-2.0
#include "reports/result/execution_record.h"

#include <doctest/doctest.h>

#include "reports/result/execution_report.h"

namespace interlock::execution_record_test {

TEST_CASE("readings of each GPU come to least, median and most, and to shares of reasons") {
  ExecutionRecord record;
  for (const auto& [gpu, clock, reasons] : {std::tuple(0, 1980, 0),
                                            {1, 1000, 1},
                                            {0, 1500, 4},
                                            {0, 1400, 4 + 0x20},
                                            {1, 1100, 0x200}}) {
    record.clocks.push_back({.gpu = gpu, .sm_clock = clock, .reasons = std::uint64_t(reasons)});
  }
  const std::vector<ClockSummary> summaries = clock_summaries(record);
  REQUIRE(summaries.size() == 2);
  CHECK(summaries[0].readings == 3);
  CHECK(summaries[0].sm_clock.least == 1400);
  CHECK(summaries[0].sm_clock.median == 1500);
  CHECK(summaries[0].sm_clock.most == 1980);
  using Slowed = std::vector<std::pair<std::string, double>>;
  CHECK(summaries[0].slowed == Slowed{{"power cap", 2.0 / 3}, {"heat, by software", 1.0 / 3}});
  CHECK(summaries[1].slowed == Slowed{{"reason 0x200", 0.5}});  // and idle, which is no reason
  CHECK(clock_grid(record).rows.size() == 2);
}

TEST_CASE("an op that began before all of it was issued may have waited for the host") {
  const auto span = [](double start, double end, double issued) {
    return IssuedSpan{Seconds(start), Seconds(end), Seconds(issued)};
  };
  // In time; late by 0.5 of its 2 s; late for the whole of its 1 s.
  const HostLateness late = lateness_of({span(1, 2, 0.5), span(2, 4, 2.5), span(4, 5, 7)});
  CHECK(late.ops == 3);
  CHECK(late.late == 2);
  CHECK(late.lost.value() == doctest::Approx(1.5));
  CHECK(late.busy.value() == doctest::Approx(4));
  CHECK(lateness_words(late).find("2 of 3 ops") != std::string::npos);
  CHECK(lateness_words(lateness_of({span(1, 2, 0.5), span(2, 100, 2.5)})).empty());  // 0.5 of 99 s
}

}  // namespace interlock::execution_record_test
