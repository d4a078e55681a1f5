// Limits that several sections of a scenario share: beyond what anybody means.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace interlock {

inline constexpr int kMostRunSteps = 1'000'000'000;  // steps of a whole training run
inline constexpr int kMostSeeds = 10'000;            // runs that a distribution is drawn from
inline constexpr int kMostPeers = 100'000;           // of a swarm
inline constexpr double kMostLoad = 1e15;            // of an expert; sums of them stay exact
inline constexpr double kMostAmount = 1e18;  // samples or tokens of a training, and what it costs
inline constexpr double kLeastRelativeSpeed = 1e-3, kMostRelativeSpeed = 1e3;  // of a device
inline constexpr double kMostReserve = 0.9;  // of a device, that plans leave free

}  // namespace interlock
