// Notes the signals that ask the program to stop.
// SPDX-License-Identifier: Apache-2.0
#include "cli/interrupt.h"

namespace interlock {
namespace {

std::atomic<bool> stopped = false;

}  // namespace

StopOnInterrupt::StopOnInterrupt() {
  struct sigaction action = {};
  action.sa_handler = [](int) { stopped = true; };
  action.sa_flags = SA_RESETHAND;
  sigaction(SIGINT, &action, &on_interrupt_);
  sigaction(SIGTERM, &action, &on_end_);
}

StopOnInterrupt::~StopOnInterrupt() {
  sigaction(SIGINT, &on_interrupt_, nullptr);
  sigaction(SIGTERM, &on_end_, nullptr);
}

const std::atomic<bool>& StopOnInterrupt::asked() { return stopped; }

}  // namespace interlock
