// The bench of this machine's processors: thread time and wall time, copies, and neighbours.
// SPDX-License-Identifier: Apache-2.0
#include <time.h>
#include <unistd.h>

#include <Eigen/Core>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <thread>

#include "validate/calibration/bench.h"
#include "validate/calibration/cpu_kernels.h"
#include "validate/calibration/cpu_movers.h"

namespace interlock {
namespace {

constexpr double kShortest = 1e-4;  // of a reading, in seconds: beside it a clock costs nothing
constexpr double kMostCalls = 1000;

double now(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

Readings readings_of(const std::function<void()>& run, int count) {
  run();  // touches all data
  const double begin = now(CLOCK_THREAD_CPUTIME_ID);
  run();
  const double once = now(CLOCK_THREAD_CPUTIME_ID) - begin;
  const int calls = static_cast<int>(std::clamp(std::ceil(kShortest / once), 1.0, kMostCalls));
  Readings readings;
  for (int i = 0; i < count; ++i) {
    const double wall = now(CLOCK_MONOTONIC), busy = now(CLOCK_THREAD_CPUTIME_ID);
    for (int call = 0; call < calls; ++call) run();
    readings.busy.push_back((now(CLOCK_THREAD_CPUTIME_ID) - busy) / calls);
    readings.wall.push_back((now(CLOCK_MONOTONIC) - wall) / calls);
  }
  return readings;
}

/// Other threads that keep all other processors busy as long as it lives.
class Neighbours {
 public:
  explicit Neighbours(Beside beside) {
    if (beside == Beside::Nothing) return;
    const unsigned all = std::max(2U, std::thread::hardware_concurrency());
    for (unsigned i = 1; i < all; ++i) {
      threads_.emplace_back([this, beside] { keep_busy(beside); });
    }
  }
  ~Neighbours() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  Neighbours(const Neighbours&) = delete;
  Neighbours& operator=(const Neighbours&) = delete;

 private:
  void keep_busy(Beside beside) const {
    const Eigen::Index side = beside == Beside::Products ? 256 : 2048;  // 16 MiB leave the caches
    const Operand a = normal_operand(side, side, 1), b = normal_operand(side, side, 2);
    const Operand made = normal_operand(side, side, 3);
    while (!stop_) {
      if (beside == Beside::Products) {
        made->noalias() = *a * *b;
      } else {
        *made = *b;
      }
    }
  }
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

Readings time_probe(const Probe& probe, int count, Beside beside) {
  const CpuKernel kernel = cpu_kernel(probe);
  const Neighbours neighbours(beside);
  Readings readings = readings_of(kernel.run, count);
  readings.kernel = kernel.name;
  return readings;
}

/// A ball between two threads: each waits for its turn, copies the bytes and hands on.
class ThreadExchange {
 public:
  explicit ThreadExchange(std::size_t bytes) : here_(bytes, 'a'), there_(bytes, 'b') {}

  void play(bool first, int rounds) {
    std::vector<char>&from = first ? here_ : there_, &to = first ? there_ : here_;
    for (int round = 0; round < rounds; ++round) {
      while (turn_.load(std::memory_order_acquire) != first) std::this_thread::yield();
      std::memcpy(to.data(), from.data(), from.size());
      turn_.store(!first, std::memory_order_release);
    }
  }

 private:
  std::vector<char> here_, there_;
  std::atomic<bool> turn_{true};
};

Readings time_copy(Bytes bytes, int count) {
  constexpr int kRounds = 4;
  ThreadExchange exchange(static_cast<std::size_t>(bytes.value()));
  Readings readings;
  std::thread other([&] { exchange.play(false, kRounds * count); });
  for (int i = 0; i < count; ++i) {
    const double begin = now(CLOCK_MONOTONIC);
    exchange.play(true, kRounds);
    // The last copy back is waited for by the next reading.
    readings.wall.push_back((now(CLOCK_MONOTONIC) - begin) / (2 * kRounds));
  }
  other.join();
  readings.busy = readings.wall;
  return readings;
}

/// Returns the value of the first line of /proc/cpuinfo that begins with `key`; empty if there is
/// none.
std::string processor_says(const std::string& key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (line.rfind(key, 0) != 0 || colon == std::string::npos) continue;
    return line.substr(std::min(line.size(), colon + 2));
  }
  return "";
}

BenchFacts facts() {
  const std::string model = processor_says("model name");
  const std::string clock = processor_says("cpu MHz");
  const double pages = static_cast<double>(sysconf(_SC_PHYS_PAGES));
  return {.kind = "cpu",
          .name = model.empty() ? "CPU" : model,
          .processor = (model.empty() ? "unknown processor" : model) + ", " +
                       std::to_string(std::thread::hardware_concurrency()) +
                       " threads; one thread measured",
          .driver = std::string("Eigen ") + std::to_string(EIGEN_WORLD_VERSION) + "." +
                    std::to_string(EIGEN_MAJOR_VERSION) + "." +
                    std::to_string(EIGEN_MINOR_VERSION) + ", " + Eigen::SimdInstructionSetsInUse() +
                    ", compiler " + __VERSION__,
          .clocks = clock.empty() ? "unknown" : clock + " MHz",
          .memory = Bytes(pages * static_cast<double>(sysconf(_SC_PAGESIZE)))};
}

}  // namespace

Bench cpu_bench() {
  Bench bench = {.facts = facts(),
                 .precisions = {Precision::Fp32},
                 .most_flops = {Flops(1.5e8)},
                 .most_bytes = Bytes(128e6),
                 .time = time_probe};
  bench.launch = [](int count) { return readings_of([] { asm volatile(""); }, count); };
  if (std::thread::hardware_concurrency() > 1) bench.copy = time_copy;
  return bench;
}

}  // namespace interlock
