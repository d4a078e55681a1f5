// A swarm against what can be worked out by hand: rates, links, rebalancing, waiting and refusing.
// SPDX-License-Identifier: Apache-2.0
#include "sim/swarm/swarm.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "base/error.h"
#include "sim/plan/schedules/message_bytes.h"

namespace interlock::swarm_test {
namespace {

SwarmPeer peer_at(int stage, double speed = 1) {
  return {.stage = stage,
          .speed = speed,
          .up = BytesPerSecond(1e9),
          .down = BytesPerSecond(1e9),
          .latency = Seconds(0.001)};
}

/// Returns stages of 1 s forward and 2 s backward with `peers` equal peers each, over links that
/// matter little.
SwarmInputs swarm_of(const std::vector<int>& peers) {
  SwarmInputs inputs;
  for (int stage = 0; stage < static_cast<int>(peers.size()); ++stage) {
    inputs.stages.push_back({.forward = Seconds(1),
                             .backward = Seconds(2),
                             .input = Bytes(1e6),
                             .gradient_message = Bytes(1e6),
                             .gradients = Bytes(1e7),
                             .state = Bytes(1e8)});
    for (int i = 0; i < peers[stage]; ++i) inputs.peers.push_back(peer_at(stage));
  }
  inputs.micro_batches = 512;
  inputs.duration = Seconds(20'000);
  inputs.warm_up = Seconds(2'000);
  return inputs;
}

TEST_CASE("equal peers that never fail reach the slowest stage's peers times speed") {
  for (const std::vector<int>& peers :
       {std::vector<int>{1}, {2, 2}, {3, 3, 3}, {4, 2, 5, 1}, {2, 6, 2, 6, 2}}) {
    const SwarmInputs inputs = swarm_of(peers);
    // A stage runs forward, forward again and backward, 4 s; the last one runs its forward once.
    double rate = peers.back() / 3.0;
    for (std::size_t stage = 0; stage + 1 < peers.size(); ++stage) {
      rate = std::min(rate, peers[stage] / 4.0);
    }
    CHECK(swarm_rate(inputs.stages, peers) == doctest::Approx(rate).epsilon(1e-12));
    for (const SwarmRouting routing :
         {SwarmRouting::Weighted, SwarmRouting::RoundRobin, SwarmRouting::Random}) {
      SwarmInputs tried = inputs;
      tried.routing = routing;
      // Blind chance leaves peers idle unless many requests wait; its swarm is closed, and with n
      // requests around and p servers it reaches about n / (n + p) of the rate.
      if (routing == SwarmRouting::Random) tried.in_flight = 40 * enough_in_flight(inputs);
      const SwarmOutcome outcome = simulate_swarm(tried, 1);
      INFO("routing " << static_cast<int>(routing) << ": peers / seconds of the slowest stage = "
                      << rate << " /s; simulated " << outcome.micro_batches_per_s);
      // A window may begin and end between two that finish together, of as many as are in flight.
      const double edge = tried.in_flight.value_or(enough_in_flight(inputs)) / 18'000.0;
      CHECK(outcome.micro_batches_per_s <= rate + edge);
      CHECK(outcome.micro_batches_per_s >= 0.98 * rate - edge);
      CHECK(outcome.forwards_redone + outcome.backwards_redone + outcome.failures == 0);
    }
  }
}

TEST_CASE("one micro-batch at a time takes the sum of its ops and messages") {
  SwarmInputs inputs = swarm_of({1, 1});
  inputs.in_flight = 1;
  inputs.micro_batches = 1'000;
  inputs.stages[1].input = Bytes(20e6);
  inputs.stages[1].gradient_message = Bytes(10e6);
  inputs.peers[0].up = BytesPerSecond(10e6);
  inputs.peers[1].up = BytesPerSecond(5e6);
  inputs.peers[0].down = BytesPerSecond(20e6);
  inputs.peers[1].latency = Seconds(0.5);
  inputs.duration = Seconds(100 * 12.552 + 1);
  inputs.warm_up = Seconds(0.5);
  // Data: 1 ms + 1 MB at 20 MB/s = 0.051. Forward 1. Output: 0.501 latency, 20 MB at 10 MB/s = 2.
  // Turn 3. Gradient: 0.501 latency, 10 MB at 5 MB/s = 2. Backward with its forward 3.
  const double period = 0.051 + 1 + 0.501 + 2 + 3 + 0.501 + 2 + 3;
  const double rounds = std::floor(inputs.duration.value() / period);
  INFO("a way there and back: " << period << " s");
  const SwarmOutcome outcome = simulate_swarm(inputs, 1);
  CHECK(outcome.micro_batches_per_s * (inputs.duration - inputs.warm_up).value() ==
        doctest::Approx(rounds).epsilon(1e-12));
}

TEST_CASE("a slow link holds the swarm back, and int8 messages let twice as many through") {
  SwarmInputs inputs = swarm_of({2, 2, 2});
  for (SwarmPeer& peer : inputs.peers) peer.up = BytesPerSecond(1e6);
  inputs.micro_batches = 100'000;  // no averaging
  for (const bool compressed : {false, true}) {
    const Bytes message = compressed ? cast_bytes(SentFormat::Int8, Bytes(8e6), 2) : Bytes(8e6);
    for (SwarmStage& stage : inputs.stages) stage.input = stage.gradient_message = message;
    // A peer of the middle stage sends an output and a gradient: 16 MB at 1 MB/s.
    const double rate = 2 * 1e6 / (2 * message.value());
    INFO("two up links of 1 MB/s, two messages of " << message.value() << " B: " << rate);
    CHECK(simulate_swarm(inputs, 1).micro_batches_per_s == doctest::Approx(rate).epsilon(0.02));
  }
  INFO("4e6 elements: 4e6 bytes and ceil(4e6 / 4096) = 977 scales of 4 bytes");
  CHECK(cast_bytes(SentFormat::Int8, Bytes(8e6), 2) == Bytes(4e6 + 4 * 977));
}

TEST_CASE("weighted routing gives fast peers their share, and blind turns do not") {
  SwarmInputs inputs = swarm_of({0, 0});
  const std::vector<double> speeds = {2, 1, 0.5, 0.5};
  for (int stage = 0; stage < 2; ++stage) {
    for (const double speed : speeds) inputs.peers.push_back(peer_at(stage, speed));
  }
  INFO("weighted: (2 + 1 + 0.5 + 0.5) / 4 s = 1 /s; in turn: 4 x the slowest, 4 x 0.5 / 4 = 0.5");
  CHECK(simulate_swarm(inputs, 1).micro_batches_per_s == doctest::Approx(1).epsilon(0.03));
  inputs.routing = SwarmRouting::RoundRobin;
  CHECK(simulate_swarm(inputs, 1).micro_batches_per_s == doctest::Approx(0.5).epsilon(0.03));
}

/// The best rate of all ways to deal `peers` to the stages from `stage` on.
double brute_force(const std::vector<double>& seconds, std::size_t stage, int peers) {
  if (stage + 1 == seconds.size()) return peers / seconds[stage];
  double best = 0;
  for (int here = 1; here + static_cast<int>(seconds.size() - stage) - 1 <= peers; ++here) {
    const double rest = brute_force(seconds, stage + 1, peers - here);
    best = std::max(best, std::min(here / seconds[stage], rest));
  }
  return best;
}

TEST_CASE("with a slow stage, as many periods as peers that must move bring the balanced rate") {
  for (const std::vector<double>& slow :
       {std::vector<double>{1, 1, 1, 5}, {4, 1, 1, 1}, {1, 3, 1, 2}, {1, 1, 0.5, 6}}) {
    SwarmInputs inputs = swarm_of({4, 4, 4, 4});
    std::vector<double> seconds;
    for (std::size_t stage = 0; stage < slow.size(); ++stage) {
      inputs.stages[stage].forward *= slow[stage];
      inputs.stages[stage].backward *= slow[stage];
      seconds.push_back((stage == 3 ? 3 : 4) * slow[stage]);
    }
    const double best = brute_force(seconds, 0, 16);
    CHECK(best_swarm_rate(inputs.stages, 16) == doctest::Approx(best).epsilon(1e-12));
    int moves = 0;  // that any way to the best rate needs at least
    double before = 1e9;
    for (const double each : seconds) {
      before = std::min(before, 4 / each);
      moves += std::max(0, static_cast<int>(std::ceil(best * each - 1e-9)) - 4);
    }
    inputs.rebalance_every = Seconds(300);
    inputs.warm_up = Seconds(300.0 * moves + 700);  // and 400 s to drain and settle
    inputs.in_flight = 120;
    const SwarmOutcome outcome = simulate_swarm(inputs, 1);
    INFO("4 peers each: " << before << " /s; best of all ways: " << best << " /s, " << moves
                          << " moves away; simulated " << outcome.micro_batches_per_s << " after "
                          << outcome.moves << " moves");
    CHECK(outcome.moves >= moves);
    CHECK(outcome.micro_batches_per_s <= 1.001 * best + inputs.in_flight.value() / 15'000.0);
    CHECK(outcome.micro_batches_per_s >= 0.97 * best);
  }
}

TEST_CASE("a swarm in balance moves no peer") {
  SwarmInputs inputs = swarm_of({4, 4, 4, 3});
  inputs.rebalance_every = Seconds(100);
  CHECK(simulate_swarm(inputs, 1).moves == 0);
}

TEST_CASE("bytes that left have arrived, are on their way, or went to the dead") {
  SwarmInputs inputs = swarm_of({3, 3, 3});
  inputs.failures.kinds = {{.mean_life = Seconds(3000), .parts = 9}};
  inputs.failures.replacement = Seconds(200);
  inputs.rebalance_every = Seconds(300);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const SwarmOutcome outcome = simulate_swarm(inputs, seed);
    double in = outcome.from_source.value(), out = (outcome.lost + outcome.on_way).value();
    double traffic = 0;
    for (const Bytes bytes : outcome.traffic) traffic += bytes.value();
    for (const Bytes bytes : outcome.sent) in += bytes.value();
    for (const Bytes bytes : outcome.received) {
      out += bytes.value();
      CHECK(bytes.value() <= 1e9 * inputs.duration.value());
    }
    INFO("sent " << in << ", arrived, lost or on the way " << out);
    CHECK(in == doctest::Approx(out).epsilon(1e-12));
    CHECK(in == doctest::Approx(traffic).epsilon(1e-12));
    CHECK(outcome.lost > Bytes(0));
  }
}

TEST_CASE("without failures every message is one that a pass or an averaging needs") {
  SwarmInputs inputs = swarm_of({2, 3, 1});
  inputs.micro_batches = 10;
  inputs.delayed_update = false;
  inputs.duration = Seconds(5000);
  inputs.warm_up = Seconds(0);
  const SwarmOutcome outcome = simulate_swarm(inputs, 1);
  const auto steps = static_cast<double>(outcome.steps);
  // A step: 10 micro-batches, 3 inputs of 1 MB and 2 gradients of 1 MB each; n peers of a stage
  // send 2 (n - 1) / n of 10 MB each: 20 MB of two, 40 MB of three, none of one.
  const auto kind = [&](SwarmMessage one) {
    return outcome.traffic[static_cast<std::size_t>(one)].value();
  };
  INFO(steps << " steps");
  CHECK(steps > 50);
  CHECK(kind(SwarmMessage::Activation) >= steps * 30e6);
  CHECK(kind(SwarmMessage::Activation) <= (steps + 1) * 30e6);
  CHECK(kind(SwarmMessage::Gradient) >= steps * 20e6);
  CHECK(kind(SwarmMessage::Gradient) <= (steps + 1) * 20e6);
  CHECK(kind(SwarmMessage::Averaging) >= steps * 60e6 * (1 - 1e-9));
  CHECK(kind(SwarmMessage::Averaging) <= (steps + 1) * 60e6);
  CHECK(kind(SwarmMessage::State) == 0);
}

TEST_CASE("a delayed update hides the averaging that otherwise stands between steps") {
  SwarmInputs inputs = swarm_of({2, 2});
  inputs.micro_batches = 64;
  for (SwarmStage& stage : inputs.stages) stage.gradients = Bytes(40e9);
  // 2 (n - 1) / n = 1 times 40 GB at 1 GB/s: 40 s. Two peers of 4 s: 0.5 /s, so a step's own time
  // is 128 s, and without delay 40 s more, and the filling and draining of the pipeline.
  const double delayed = simulate_swarm(inputs, 1).micro_batches_per_s;
  inputs.delayed_update = false;
  const double waiting = simulate_swarm(inputs, 1).micro_batches_per_s;
  INFO("delayed " << delayed << ", waiting " << waiting << ", at most 64 / 168 = " << 64 / 168.0);
  CHECK(delayed == doctest::Approx(0.5).epsilon(0.02));
  CHECK(waiting <= 64 / 168.0);
  CHECK(waiting >= 64 / 190.0);
}

std::string refusal(const SwarmInputs& inputs) {
  try {
    simulate_swarm(inputs, 1);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a stage whose last peer is lost is refused, or waits for one that joins") {
  SwarmInputs inputs = swarm_of({2, 1, 1});
  inputs.failures.trace = {{.time = Seconds(5000), .first = 2}};
  INFO(refusal(inputs));
  CHECK(refusal(inputs) ==
        "stage 1 of the swarm lost its last peer after 1.39 h, no peer joins later, and none "
        "moves there without rebalancing; expected more peers, or failures with a "
        "\"replacement\"");
  inputs.failures.trace.push_back({.time = Seconds(9000), .first = 2, .up = true});
  const SwarmOutcome waited = simulate_swarm(inputs, 1);
  // Down from 5000 to 9000, and 0.1 s and 2 ms to load 100 MB from the source.
  INFO("without a peer " << waited.without_a_peer.value());
  CHECK(waited.without_a_peer.value() == doctest::Approx(4000.101).epsilon(1e-6));
  CHECK(waited.micro_batches_per_s == doctest::Approx(0.25 * 14'000 / 18'000).epsilon(0.02));
  inputs.failures.trace.pop_back();
  inputs.rebalance_every = Seconds(100);
  const SwarmOutcome moved = simulate_swarm(inputs, 1);
  CHECK(moved.moves == 1);
  CHECK(moved.without_a_peer < Seconds(250));
  inputs.failures.trace = {{.time = Seconds(10), .first = 0, .count = 3}};
  CHECK(refusal(inputs).find("too few are left to serve all 3 stages: 1") != std::string::npos);
}

TEST_CASE("the same seed gives the same swarm, another one another") {
  SwarmInputs inputs = swarm_of({3, 3});
  inputs.failures.kinds = {{.mean_life = Seconds(2000), .parts = 6}};
  inputs.failures.replacement = Seconds(500);
  const SwarmOutcome one = simulate_swarm(inputs, 7), same = simulate_swarm(inputs, 7);
  CHECK(one.micro_batches_per_s == same.micro_batches_per_s);
  CHECK(one.forwards == same.forwards);
  CHECK(one.lost == same.lost);
  CHECK(simulate_swarm(inputs, 8).forwards != one.forwards);
}

}  // namespace
}  // namespace interlock::swarm_test
