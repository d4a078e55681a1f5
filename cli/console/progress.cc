// Draws the line of progress, ten times a second at most, and once a second at least.
// SPDX-License-Identifier: Apache-2.0
#include "cli/console/progress.h"

#include <unistd.h>

#include <cstdio>
#include <system_error>
#include <utility>

#include "base/text.h"

namespace interlock {

Progress::Progress(std::string noun, std::size_t total, std::size_t done, bool wanted, Rest rest)
    : noun_(std::move(noun)),
      shown_(wanted && ::isatty(STDERR_FILENO) != 0),
      rest_(rest),
      start_(std::chrono::steady_clock::now()),
      total_(total),
      done_(done),
      at_start_(done) {
  if (!shown_) return;
  try {
    each_second_ = std::thread([this] { draw_each_second(); });
  } catch (const std::system_error&) {  // there are too few: what gets done draws the line alone
  }
}

Progress::~Progress() {
  if (!shown_) return;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  over_.notify_one();
  if (each_second_.joinable()) each_second_.join();
  std::fputs("\r\033[K", stderr);
}

double Progress::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void Progress::advance(const std::string& note) {
  const std::lock_guard lock(mutex_);
  ++done_;
  part_ = 0;
  draw_now_and_then(note);
}

void Progress::reach(std::size_t done, std::size_t total, const std::string& note) {
  const std::lock_guard lock(mutex_);
  done_ = done;
  total_ = total;
  draw_now_and_then(note);
}

void Progress::reach_part(std::size_t done, double share, const std::string& part) {
  const std::lock_guard lock(mutex_);
  done_ = done;
  part_ = share;
  draw_now_and_then(", " + part);
}

void Progress::draw_each_second() {
  constexpr auto kSecond = std::chrono::seconds(1);
  std::unique_lock lock(mutex_);
  while (!over_.wait_for(lock, kSecond, [&] { return is_over_; })) {
    if (seconds() >= 2 && std::chrono::steady_clock::now() - drawn_ >= kSecond) draw();
  }
}

void Progress::draw_now_and_then(const std::string& note) {
  constexpr auto kOften = std::chrono::milliseconds(100);
  const bool first_note = note_.empty() && !note.empty();
  note_ = note;
  if (!shown_) return;
  if (first_note || std::chrono::steady_clock::now() - drawn_ >= kOften) draw();
}

void Progress::draw() {
  drawn_ = std::chrono::steady_clock::now();
  const double made = static_cast<double>(done_ - at_start_) + part_;
  const bool known = total_ > 0;
  std::string line = known ? std::to_string(done_) + " of " + std::to_string(total_) + " " : "";
  line += noun_ + ", ";
  if (made > 0 && rest_ == Rest::Told) {
    const double rate = made / seconds();
    const double left = (static_cast<double>(total_ - done_) - part_) / rate;
    line += format_number(rate) + "/s, " + format(Seconds(left)) + " left" + note_;
  } else {
    line += std::to_string(static_cast<int>(seconds())) + " s so far" + note_;
  }
  std::fprintf(stderr, "\r\033[K%s", line.c_str());
  std::fflush(stderr);
}

}  // namespace interlock
