// The engines' own containers against those of the standard library.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <queue>
#include <vector>

#include "base/random.h"
#include "sim/engines/fifo.h"
#include "sim/sharing/event_heap.h"

namespace interlock::queues_test {
namespace {

TEST_CASE("an event heap gives times back in the order of a priority queue") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(71, seed);
    EventHeap heap;
    std::priority_queue<double, std::vector<double>, std::greater<>> expected;
    const int pushes_of_ten = random.integer(3, 8);
    const bool ties = random.integer(0, 1) == 0;
    INFO("seed " << seed);
    for (int i = 0; i < 2000; ++i) {
      REQUIRE(heap.empty() == expected.empty());
      if (expected.empty() || random.integer(0, 9) < pushes_of_ten) {
        const double time = ties ? random.integer(0, 20) : random.uniform();
        heap.push({time, i, 0});
        expected.push(time);
      } else {
        heap.pop();
        expected.pop();
      }
      if (!expected.empty()) REQUIRE(heap.top().time == expected.top());
    }
    for (; !expected.empty(); heap.pop(), expected.pop()) {
      REQUIRE(heap.top().time == expected.top());
    }
    CHECK(heap.empty());
  }
}

TEST_CASE("an event heap loses no event and changes none") {
  Random random(71, 1000);
  std::vector<TimedEvent> pushed;
  EventHeap heap;
  for (int i = 0; i < 1000; ++i) {
    pushed.push_back({static_cast<double>(random.integer(0, 50)), i - 500,
                      static_cast<std::uint32_t>(random.bits())});
    heap.push(pushed.back());
  }
  std::vector<bool> seen(pushed.size(), false);
  for (; !heap.empty(); heap.pop()) {
    const TimedEvent& event = heap.top();
    const TimedEvent& original = pushed[event.id + 500];
    CHECK(event.time == original.time);
    CHECK(event.generation == original.generation);
    CHECK_FALSE(seen[event.id + 500]);
    seen[event.id + 500] = true;
  }
  CHECK(std::count(seen.begin(), seen.end(), true) == 1000);
}

TEST_CASE("a fifo gives back what a deque does, however it grows and empties") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Random random(72, seed);
    Fifo<int> fifo;
    std::deque<int> expected;
    int pushes_of_ten = 5;
    INFO("seed " << seed);
    for (int i = 0; i < 3000; ++i) {
      if (i % 100 == 0) pushes_of_ten = random.integer(2, 8);
      if (random.integer(0, 9) < pushes_of_ten) {
        fifo.push(i);
        expected.push_back(i);
      } else if (!expected.empty()) {
        fifo.pop();
        expected.pop_front();
      }
      REQUIRE(fifo.empty() == expected.empty());
      REQUIRE(fifo.size() == expected.size());
      if (!expected.empty()) REQUIRE(fifo.front() == expected.front());
    }
  }
}

TEST_CASE("a fifo can be filled with its own front") {
  Fifo<int> fifo;
  for (int i = 0; i < 5; ++i) fifo.push(i);
  for (int turn = 0; turn < 1000; ++turn) {
    const int front = fifo.front();
    fifo.pop();
    fifo.push(front);
    REQUIRE(fifo.size() == 5);
  }
  CHECK(fifo.front() == 0);
}

TEST_CASE("an item of a Fifo may be let out first, wherever the block has it") {
  Random random(73, 1);
  Fifo<int> fifo;
  std::deque<int> expected;
  for (int i = 0; i < 5000; ++i) {
    if (expected.size() < 7 && random.integer(0, 1) == 0) {
      fifo.push(i);
      expected.push_back(i);
    } else if (!expected.empty()) {
      const int place = random.integer(0, static_cast<int>(expected.size()) - 1);
      REQUIRE(fifo.at(static_cast<std::uint32_t>(place)) == expected[place]);
      fifo.move_to_front(static_cast<std::uint32_t>(place));
      std::rotate(expected.begin(), expected.begin() + place, expected.begin() + place + 1);
      REQUIRE(fifo.front() == expected.front());
      fifo.pop();
      expected.pop_front();
    }
    REQUIRE(fifo.size() == expected.size());
  }
}

}  // namespace
}  // namespace interlock::queues_test
