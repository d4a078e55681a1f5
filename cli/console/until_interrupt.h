// made_until_interrupt(): things made one by one; an interrupt leaves those that are there.
// SPDX-License-Identifier: Apache-2.0
//
// Example: of five scenarios two are simulated and the third is under way. Ctrl-C returns the two,
// at once: a thread simulates, and is left alone with the third until the process ends.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/console/interrupt.h"
#include "cli/console/progress.h"

namespace interlock {

/// Ends this process as an interrupt does, without waiting for its threads; `line` is told.
[[noreturn]] void end_interrupted(const std::string& line);

/// Calls `keep`, tells how many of `all` things called `noun` are missing, and ends as
/// end_interrupted(), also if `keep` throws, which is told.
[[noreturn]] void end_without_rest(const std::function<void()>& keep, std::size_t made,
                                   std::size_t all, const std::string& noun);

/// Things on their way from the thread that makes them.
template <class Thing>
struct ThingsMade {
  std::mutex guard;  // of all that follows
  std::condition_variable changed;
  std::vector<Thing> things;
  bool over = false, abandoned = false;
  std::exception_ptr failure;
};

/// Calls `make` for 0 to `count` - 1 and returns what it gives, `line` advanced by each. Fewer come
/// back after an interrupt: then `make` may still be at work, and the caller has to end the process
/// by end_without_rest(), with all that `make` uses in place. Nothing is kept of a single thing: an
/// interrupt ends the process. Throws: what `make` throws.
template <class Thing>
std::vector<Thing> made_until_interrupt(std::size_t count, std::function<Thing(std::size_t)> make,
                                        Progress& line) {
  if (count <= 1) {
    const EndOnInterrupt until_made(kNothingWritten);
    std::vector<Thing> made;
    if (count > 0) made.push_back(make(0));
    return made;
  }
  const StopOnInterrupt until_made;
  const auto state = std::make_shared<ThingsMade<Thing>>();
  std::thread maker([state, count, make = std::move(make)] {
    std::exception_ptr failure;
    try {
      for (std::size_t i = 0; i < count; ++i) {
        Thing thing = make(i);
        const std::lock_guard lock(state->guard);
        if (state->abandoned) return;
        state->things.push_back(std::move(thing));
        state->changed.notify_one();
      }
    } catch (...) {
      failure = std::current_exception();
    }
    const std::lock_guard lock(state->guard);
    state->failure = failure;
    state->over = true;
    state->changed.notify_one();
  });
  constexpr auto kLook = std::chrono::milliseconds(50);  // a signal does not wake it
  std::size_t shown = 0;
  std::unique_lock lock(state->guard);
  while (true) {
    state->changed.wait_for(lock, kLook,
                            [&] { return state->over || state->things.size() > shown; });
    for (; shown < state->things.size(); ++shown) line.advance("");
    const bool whole = state->over && !state->failure;
    if (state->over && (whole || !StopOnInterrupt::asked())) break;
    if (!StopOnInterrupt::asked()) continue;
    state->abandoned = true;
    maker.detach();
    if (state->things.empty()) end_interrupted(kNothingWritten);
    return std::move(state->things);
  }
  lock.unlock();
  maker.join();
  if (state->failure) std::rethrow_exception(state->failure);
  return std::move(state->things);
}

}  // namespace interlock
