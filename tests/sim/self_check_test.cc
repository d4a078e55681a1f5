// Self-checks: each finds the figure that was put wrong, and none finds fault with a right one.
// SPDX-License-Identifier: Apache-2.0
#include "sim/measure/self_check.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "tests/sim/support/test_chain.h"

namespace interlock::self_check_test {
namespace {

double& at(DeviceMetrics& device, TimeUse use) {
  return device.time[static_cast<std::size_t>(use)];
}
double& at(Metrics& metrics, BubbleCause cause) {
  return metrics.explanation->devices[0][static_cast<std::size_t>(cause)];
}

/// One device, half busy, in steps of 2 s: 0.2 s of exchanges, 0.2 s of messages, 0.6 s of drain.
Metrics right_metrics() {
  Metrics metrics;
  metrics.step_time = Seconds(2);
  DeviceMetrics device{.busy = 0.5};
  at(device, TimeUse::Forward) = 0.5;
  at(device, TimeUse::Exposed) = 0.2;
  at(device, TimeUse::Bubble) = 0.3;
  device.memory = {Bytes(300), Bytes(0), Bytes(700)};
  device.peak_memory = Bytes(1000);
  metrics.devices = {device};
  metrics.explanation = Explanation{.devices = {Bubbles{}}};
  at(metrics, BubbleCause::Exchange) = 0.2;
  at(metrics, BubbleCause::Message) = 0.2;
  at(metrics, BubbleCause::Drain) = 0.6;
  return metrics;
}

bool names(const Metrics& metrics, const std::string& words) {
  const std::string fault = sum_fault(metrics);
  INFO(fault);
  return fault.find(words) != std::string::npos;
}

/// A run of `program`, told to an audit.
TraceAudit audit_of(const Program& program) {
  TraceAudit audit(program);
  const auto add = [&](const auto& entry) { audit.add(entry); };
  run_native(program, {.span = add, .transfer = add, .memory = add});
  return audit;
}

}  // namespace

TEST_CASE("figures that add up have no fault") { CHECK(sum_fault(right_metrics()) == ""); }

TEST_CASE("whatever does not add up is named") {
  Metrics wrong = right_metrics();
  at(wrong.devices[0], TimeUse::Bubble) += 0.01;
  CHECK(names(wrong, "the sum of time shares of rank 0 is 1.01; expected 1"));
  wrong = right_metrics();
  at(wrong.devices[0], TimeUse::Forward) = 1.0062;
  CHECK(names(wrong, "the share forward of rank 0 is 1.0062; expected 1"));
  wrong = right_metrics();
  wrong.devices[0].busy = 0.6;
  CHECK(names(wrong, "the busy share of rank 0 is 0.6; expected 0.5"));
  wrong = right_metrics();
  at(wrong, BubbleCause::Drain) = 0.8;
  CHECK(names(wrong, "causes of idling of rank 0 in seconds is 1.2; expected 1"));
  wrong = right_metrics();
  at(wrong, BubbleCause::Room) = at(wrong, BubbleCause::Message);
  at(wrong, BubbleCause::Message) = 0;
  CHECK(names(wrong, "waiting for messages and exchanges of rank 0 in seconds is 0.2"));
  wrong = right_metrics();
  wrong.devices[0].memory[0] = Bytes(200);
  CHECK(names(wrong, "memory by class of rank 0 in bytes is 900; expected 1000"));
}

TEST_CASE("a trace that lacks an op, a message, or a byte given back is found out") {
  TestChain chain = make_chain(std::vector<ChainStage>(2, {.output = 100, .stash = 50}), "1f1b");
  chain.micro_batches = 3;
  chain.steps = 2;
  const Program program = program_of(chain);
  TraceAudit audit = audit_of(program);
  CHECK(audit.fault() == "");
  TraceAudit twice = audit_of(program);
  twice.add(Span{.op = 0});
  INFO(twice.fault());
  CHECK(twice.fault().find("runs of op 0 is 7; expected 6") != std::string::npos);
  TraceAudit message = audit_of(program);
  message.add(Transfer{.channel = 1});
  CHECK(message.fault().find("messages carried on channel 1 is 7; expected 6") !=
        std::string::npos);
  TraceAudit memory = audit_of(program);
  memory.add(MemoryChange{.bytes = 64, .rank = 1, .memory_class = MemoryClass::Boundary});
  CHECK(memory.fault().find("what rank 1 holds of boundary at the end") != std::string::npos);
}

TEST_CASE("a program whose messages are not received is found out") {
  Program program = program_of(make_chain(2, "1f1b"));
  const TraceAudit audit = audit_of(program);
  for (Instruction& instruction : program.instructions) {
    if (instruction.code == Opcode::Receive) instruction.code = Opcode::Free;
  }
  CHECK(audit.fault().find("messages received on channel 0 is 0") != std::string::npos);
}

TEST_CASE("random programs of every kind take no more than they give back") {
  int runs = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    Random random(171, seed);
    const TestChain chain = seed % 3 == 0   ? random_choosing_chain(random)
                            : seed % 5 == 1 ? random_chain_in_line(random)
                                            : random_chain(random);
    const Program program = program_of(chain);
    INFO("seed " << seed << ": " << describe(chain));
    try {
      const std::string fault = audit_of(program).fault();
      CHECK(fault == "");
      ++runs;
    } catch (const Error&) {  // a deadlock
    }
  }
  CHECK(runs > 400);
}

}  // namespace interlock::self_check_test
