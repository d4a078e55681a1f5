// Progress: one line on a terminal's standard error, with rate and time left.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace interlock {

class Progress {
 public:
  /// Counts `total` things called `noun`, of which `done` are there already. Silent where standard
  /// error is not a terminal, or if not `wanted`.
  Progress(std::string noun, std::size_t total, std::size_t done, bool wanted);
  /// Takes the line away.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Counts one more; `note` stands behind the line.
  void advance(const std::string& note);
  /// `done` of `total`, both of which may have been unknown before.
  void reach(std::size_t done, std::size_t total);
  /// `done` of the total, with a part of the next one: a share of it, and in words.
  void reach_part(std::size_t done, double share, const std::string& part);
  double seconds() const;

 private:
  void draw_now_and_then(const std::string& note);
  void draw(const std::string& note);
  std::string noun_;
  std::size_t total_, done_, at_start_;
  double part_ = 0;  // of the next one
  bool shown_;
  std::chrono::steady_clock::time_point start_, drawn_;
};

}  // namespace interlock
