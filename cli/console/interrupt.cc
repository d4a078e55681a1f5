// Hears the signals that ask the program to stop.
// SPDX-License-Identifier: Apache-2.0
#include "cli/console/interrupt.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "cli/console/exit_code.h"
#include "cli/console/terminal.h"
#include "cli/console/until_interrupt.h"

namespace interlock {
namespace {

std::atomic<bool> stopped = false;

// For end_program, which may be called between any two instructions.
std::string last_words;
pid_t who_speaks = 0;

/// Calls nothing but what a signal handler may. A fork hears Ctrl-C, too, and is silent.
void end_program(int) {
  if (::getpid() == who_speaks) {
    const ssize_t ignored = ::write(STDERR_FILENO, last_words.data(), last_words.size());
    static_cast<void>(ignored);
  }
  ::_exit(kInterrupted);
}

/// Returns a handler that ends the program with `line`, before which a line of progress gives way.
auto handler_saying(const std::string& line) {
  last_words = (::isatty(STDERR_FILENO) != 0 ? "\r\033[K" : "") + line + "\n";
  who_speaks = ::getpid();
  return end_program;
}

}  // namespace

InterruptHandler::InterruptHandler(void (*handler)(int), int flags) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(SIGINT, &action, &on_interrupt_);
  sigaction(SIGTERM, &action, &on_end_);
  sigaction(SIGHUP, nullptr, &on_hangup_);
  if (on_hangup_.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);  // nohup stays so
}

InterruptHandler::~InterruptHandler() {
  sigaction(SIGINT, &on_interrupt_, nullptr);
  sigaction(SIGTERM, &on_end_, nullptr);
  sigaction(SIGHUP, &on_hangup_, nullptr);
}

StopOnInterrupt::StopOnInterrupt() : handler_([](int) { stopped = true; }, SA_RESETHAND) {}

EndOnInterrupt::EndOnInterrupt(const std::string& line) : handler_(handler_saying(line), 0) {}

const std::atomic<bool>& StopOnInterrupt::asked() { return stopped; }

void end_interrupted(const std::string& line) {
  if (::isatty(STDERR_FILENO) != 0) std::fputs("\r\033[K", stderr);  // a line of progress
  tell(line);
  std::fflush(nullptr);
  std::_Exit(kInterrupted);
}

void end_without_rest(const std::function<void()>& keep, std::size_t made, std::size_t all,
                      const std::string& noun) {
  try {
    keep();
  } catch (const std::exception& failure) {
    tell(failure.what());
  }
  end_interrupted("interrupted: " + std::to_string(all - made) + " of " + std::to_string(all) +
                  " " + noun + " are missing");
}

}  // namespace interlock
