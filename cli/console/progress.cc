// Draws the line of progress, ten times a second at most.
// SPDX-License-Identifier: Apache-2.0
#include "cli/console/progress.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include "base/text.h"

namespace interlock {

Progress::Progress(std::string noun, std::size_t total, std::size_t done, bool wanted)
    : noun_(std::move(noun)),
      total_(total),
      done_(done),
      at_start_(done),
      shown_(wanted && ::isatty(STDERR_FILENO) != 0),
      start_(std::chrono::steady_clock::now()) {}

Progress::~Progress() {
  if (shown_) std::fputs("\r\033[K", stderr);
}

double Progress::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void Progress::advance(const std::string& note) {
  ++done_;
  draw_now_and_then(note);
}

void Progress::reach(std::size_t done, std::size_t total) {
  done_ = done;
  total_ = total;
  draw_now_and_then("");
}

void Progress::reach_part(std::size_t done, double share, const std::string& part) {
  done_ = done;
  part_ = share;
  draw_now_and_then(", " + part);
}

void Progress::draw_now_and_then(const std::string& note) {
  constexpr auto kOften = std::chrono::milliseconds(100);
  const auto now = std::chrono::steady_clock::now();
  if (!shown_ || now - drawn_ < kOften) return;
  drawn_ = now;
  draw(note);
}

void Progress::draw(const std::string& note) {
  const double rate = (static_cast<double>(done_ - at_start_) + part_) / seconds();
  const double left = (static_cast<double>(total_ - done_) - part_) / rate;
  const std::string line = std::to_string(done_) + " of " + std::to_string(total_) + " " + noun_ +
                           ", " + format_number(rate) + "/s, " + format(Seconds(left)) + " left" +
                           note;
  std::fprintf(stderr, "\r\033[K%s", line.c_str());
  std::fflush(stderr);
}

}  // namespace interlock
