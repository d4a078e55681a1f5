// Threads of a block as fibers: each runs until it waits for the others.
// SPDX-License-Identifier: Apache-2.0
//
// Fibers are begun by makecontext() and left by the compiler's own jumps, which save three words: a
// training has millions of them.
#include "tests/cuda/emulator/kernel_launch.h"

#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#undef threadIdx
#undef blockIdx
#undef blockDim
#undef gridDim

namespace emulated {

uint3 thread_index, block_index;
dim3 block_size, grid_size;

namespace {

constexpr std::size_t kStack = 64 << 10, kWarp = 32;
constexpr std::size_t kColours = 61, kColour = 320;  // no two stacks near begin in one cache set

enum class State : std::uint8_t { Runs, AtBarrier, Exchanges, Done };

using Jump = void* [5];  // as __builtin_setjmp() wants it

struct Fiber {
  Jump here = {};
  State state = State::Done;
  bool begun = false;
  float value = 0, partner = 0;
  int mask = 0;
};

constexpr std::size_t kMostThreads = 1024;  // of a block
std::vector<Fiber> fibers(kMostThreads);
std::vector<std::unique_ptr<char[]>> stacks(kMostThreads);
Jump scheduler = {};
Fiber* own = nullptr;  // that runs; null: the kernel runs without fibers
const std::function<void()>* body = nullptr;
bool waited = false;  // any thread of this grid, for another

[[noreturn]] void give_up(const char* why) {
  std::fprintf(stderr, "emulated kernel: %s\n", why);
  std::abort();
}

// The address sanitizer knows one stack of a thread, and would take a jump for the end of all that
// is on it: so it does not see the functions that jump.

/// Goes to where `to` was set: never in the function that sets it, which the compiler forbids.
[[noreturn, gnu::noinline, gnu::no_sanitize_address]] void go_to(Jump& to) {
  __builtin_longjmp(to, 1);
}

[[gnu::noinline, gnu::no_sanitize_address]] void leave(State state) {
  own->state = state;
  if (__builtin_setjmp(own->here) == 0) go_to(scheduler);
}

/// Runs one thread after the other.
void live() {
  for (;;) {
    (*body)();
    leave(State::Done);
  }
}

[[noreturn, gnu::noinline, gnu::no_sanitize_address]] void begin_fiber(std::size_t thread) {
  fibers[thread].begun = true;
  stacks[thread] = std::make_unique_for_overwrite<char[]>(kStack);
  ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = stacks[thread].get();
  context.uc_stack.ss_size = kStack - thread % kColours * kColour;
  context.uc_link = nullptr;
  makecontext(&context, live, 0);
  setcontext(&context);
  give_up("no fiber can be made");
}

[[gnu::noinline, gnu::no_sanitize_address]] void enter(std::size_t thread) {
  own = &fibers[thread];
  if (__builtin_setjmp(scheduler) != 0) return;
  if (own->begun) go_to(own->here);
  begin_fiber(thread);
}

void stop_as(State state) {
  if (own == nullptr) give_up("a thread waits in a kernel whose first block never did");
  waited = true;
  leave(state);
}

/// A warp of the block that runs.
struct Warp {
  std::size_t first = 0, end = 0;

  bool all(State state) const {
    for (std::size_t i = first; i < end; ++i) {
      if (fibers[i].state != state) return false;
    }
    return true;
  }
  bool waits_or_is_done() const {
    for (std::size_t i = first; i < end; ++i) {
      if (fibers[i].state != State::AtBarrier && fibers[i].state != State::Done) return false;
    }
    return true;
  }
  void release() const {
    for (std::size_t i = first; i < end; ++i) {
      if (fibers[i].state != State::Done) fibers[i].state = State::Runs;
    }
  }
  /// All threads have come to an exchange: each gets its partner's number.
  void exchange() const {
    for (std::size_t i = first; i < end; ++i) {
      const std::size_t partner = first + ((i - first) ^ static_cast<std::size_t>(fibers[i].mask));
      if (partner >= end) give_up("a thread exchanges with one that is not there");
      fibers[i].partner = fibers[partner].value;
    }
  }
  /// Runs until all its threads wait for the block, or are done. Threads take turns backwards every
  /// other time.
  void run() const {
    static bool backwards = false;
    for (release(); !waits_or_is_done(); release()) {
      backwards = !backwards;
      for (std::size_t n = 0; n < end - first; ++n) {
        const std::size_t i = backwards ? end - 1 - n : first + n;
        if (fibers[i].state != State::Runs) continue;
        thread_index = {static_cast<unsigned>(i), 0, 0};
        enter(i);
      }
      if (all(State::Exchanges)) {
        exchange();
      } else if (!waits_or_is_done()) {
        give_up("threads of a warp wait for each other in different places");
      } else {
        return;
      }
    }
  }
};

/// Between two barriers, warps run one after the other in an order drawn each time: what one does
/// too early, another sees.
void run_threads(std::size_t threads) {
  static std::mt19937 random(1);
  std::vector<Warp> warps;
  for (std::size_t first = 0; first < threads; first += kWarp) {
    warps.push_back({first, std::min(threads, first + kWarp)});
  }
  for (std::size_t i = 0; i < threads; ++i) fibers[i].state = State::Runs;
  while (!warps.empty()) {
    std::shuffle(warps.begin(), warps.end(), random);
    for (const Warp& warp : warps) warp.run();
    const auto done = [](const Warp& warp) { return warp.all(State::Done); };
    warps.erase(std::remove_if(warps.begin(), warps.end(), done), warps.end());
  }
  own = nullptr;
}

}  // namespace

void run_grid(dim3 grid, dim3 block, Manner& manner, const std::function<void()>& thread) {
  if (block.y * block.z * grid.y * grid.z != 1) give_up("grids are of one dimension");
  block_size = block;
  grid_size = grid;
  body = &thread;
  waited = false;
  for (unsigned b = 0; b < grid.x; ++b) {
    block_index = {b, 0, 0};
    if (manner == Manner::Plain) {
      for (unsigned t = 0; t < block.x; ++t) {
        thread_index = {b % 2 == 0 ? t : block.x - 1 - t, 0, 0};  // in no order to rely on
        thread();
      }
      continue;
    }
    run_threads(block.x);
    if (manner == Manner::Unknown) manner = waited ? Manner::Waits : Manner::Plain;
  }
}

void wait_for_block() { stop_as(State::AtBarrier); }

float exchange(float value, int mask) {
  Fiber* const fiber = own;
  if (fiber != nullptr) {
    fiber->value = value;
    fiber->mask = mask;
  }
  stop_as(State::Exchanges);
  return fiber->partner;
}

unsigned multiprocessor() {
  const Stream* const stream = EmulatedGpus::instance().running;
  const unsigned first = static_cast<unsigned>(stream->first_sm);
  return first + block_index.x % static_cast<unsigned>(stream->sms);
}

}  // namespace emulated
