// Sizes: equal costs, ranges beyond what is asked for, and sizes that cannot be divided.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "base/error.h"
#include "scenarios/starter/sizing.h"

namespace interlock::sizing_answers_test {
namespace {

SizingQuestion small_question() {
  return {.model = "gpt2",
          .machines = {{"dgx-a100-40g", ""}},
          .devices = {2, 4},
          .length = 1e9,
          .batch = 65536};
}

std::string refusal(const SizingQuestion& question) {
  try {
    size_up(question, 2);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a size that is twice as slow and a thousandth cheaper is no trade-off") {
  const auto front = [](double cost) {
    return pareto_front({{Seconds(20), 1000}, {Seconds(10), cost}, {Seconds(5), 1100}});
  };
  CHECK(front(1000.5) == std::vector<bool>{false, true, true});
  CHECK(front(1002) == std::vector<bool>{true, true, true});
  CHECK(pareto_front({{Seconds(10), 5}, {Seconds(10.001), 5}}) == std::vector<bool>{true, true});
}

TEST_CASE(
    "of two sizes that predictions do not tell apart the one whose range is within is first") {
  SizingQuestion question = small_question();
  const Sizing free = size_up(question, 2);
  const SizedPlan &slow = free.rows[0], &fast = free.rows[1];
  REQUIRE(slow.confidence.range);
  CHECK_FALSE(wholly_within(free, slow));
  const double most = slow.confidence.range->high.value() / slow.plan->estimate.step_time;
  CHECK(most_of(free, slow)->time.value() == doctest::Approx(most * slow.time.value()));
  const double tie = slow.confidence.range->between;
  REQUIRE(slow.device_hours < fast.device_hours);
  REQUIRE(1 - slow.device_hours / fast.device_hours < tie);

  INFO("all of the range: the cheaper one");
  question.aims.time = most * slow.time * 1.01;
  const Sizing wide = size_up(question, 2);
  CHECK(wide.ranking == std::vector<std::size_t>{0, 1});
  CHECK(wholly_within(wide, wide.rows[0]) == true);
  CHECK_FALSE(wide.safer);

  INFO("its prediction alone: the one that is safely in time, and costs hardly more");
  question.aims.time = slow.time * 1.01;
  const Sizing narrow = size_up(question, 2);
  CHECK(wholly_within(narrow, narrow.rows[0]) == false);
  CHECK(narrow.ranking == std::vector<std::size_t>{1, 0});
  CHECK(narrow.safer);
  CHECK(narrow.rows[1].on_front);
  CHECK_FALSE(near_tie(narrow));
}

TEST_CASE("a number of devices that nothing divides is told in one sentence, with another one") {
  SizingQuestion question = small_question();
  question.batch = 63 * 1024;
  question.devices = {1, 63};
  question.overrides = {R"(search={"data": [1]})"};
  const SizedPlan row = size_up(question, 2).rows[1];
  CHECK_FALSE(row.plan);
  CHECK(row.problem.find('\n') == std::string::npos);
  CHECK(row.problem.find("interlock plan:") == std::string::npos);
  CHECK(row.problem.starts_with("no way to divide the work among 63 devices is possible ("));
  CHECK(row.problem.ends_with("; expected another number of devices, such as 32 or 64"));
}

TEST_CASE("a reserve that leaves tensors nothing is refused before any search") {
  SizingQuestion question = small_question();
  question.overrides = {"search.limits.reserve=\"100 GiB\""};
  CHECK(refusal(question).find("/search/limits/reserve: 100 GiB leaves nothing of the 3") !=
        std::string::npos);
  question.overrides = {"search.limits.reserve=\"10 GiB\""};
  CHECK(refusal(question).empty());
}

TEST_CASE("a size that a limit of memory leaves without a plan says what that limit is") {
  SizingQuestion question = small_question();
  question.overrides = {"search.limits.memory=\"1 MB\""};
  CHECK(size_up(question, 2).rows[0].memory_limit == Bytes(1e6));
}

}  // namespace
}  // namespace interlock::sizing_answers_test
