// Progress: one line on a terminal's standard error, with rate and time left.
// SPDX-License-Identifier: Apache-2.0
//
// Something that takes long is seen to go on: a thread draws the line once a second, too, from the
// second one on. Example, of one long scenario: "0 of 1 scenarios, 5 s so far"; of many: "3 of 40
// scenarios, 0.6/s, 1.03 min left"; of a search: "198608 of 274275 layouts and plans, 64 s so far".
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>

namespace interlock {

/// Says whether the time that is left can be told from the things that are: not where some take
/// thousands of times as long as others.
enum class Rest { Told, Unknown };

class Progress {
 public:
  /// Counts `total` things called `noun`, of which `done` are there already. Silent where standard
  /// error is not a terminal, or if not `wanted`.
  Progress(std::string noun, std::size_t total, std::size_t done, bool wanted,
           Rest rest = Rest::Told);
  /// Takes the line away.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Counts one more; `note` stands behind the line.
  void advance(const std::string& note);
  /// Notes `done` of `total`, both of which may have been unknown before; `note` stands behind the
  /// line.
  void reach(std::size_t done, std::size_t total, const std::string& note = "");
  /// Notes `done` of the total, with a part of the next one: a share of it, and in words.
  void reach_part(std::size_t done, double share, const std::string& part);
  double seconds() const;

 private:
  void draw_each_second();
  void draw_now_and_then(const std::string& note);
  void draw();
  const std::string noun_;
  const bool shown_;
  const Rest rest_;
  const std::chrono::steady_clock::time_point start_;
  std::mutex mutex_;  // of all that follows but the thread
  std::condition_variable over_;
  bool is_over_ = false;
  std::size_t total_, done_;
  const std::size_t at_start_;
  double part_ = 0;  // of the next one
  std::string note_;
  std::chrono::steady_clock::time_point drawn_;
  std::thread each_second_;
};

}  // namespace interlock
