// Slab: the memory of one device, handed out in blocks: best fit, with a high-water mark.
// SPDX-License-Identifier: Apache-2.0
//
// It deals in offsets, so that it serves host memory, device memory and no memory at all alike.
//
// Example: in a Slab of 1,024 bytes 300 bytes get offset 0 and 100 bytes offset 512. When the first
// is released, gaps are 512 bytes at 0 and 256 bytes at 768: 200 bytes go to the smaller one.
// live() is then 300, peak() 400, allocated_peak() 768 and reach() 1,024.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "sim/program/instruction.h"

namespace interlock {

class Slab {
 public:
  static constexpr std::int64_t kBlock = 256;  // bytes; every size is rounded up to a multiple

  /// Makes one gap of `capacity` bytes.
  explicit Slab(std::int64_t capacity);

  /// Allocates `bytes` of a class in the smallest gap that has room. Returns their offset; -1 if no
  /// gap has room. 0 bytes take a block that the peak does not count.
  std::int64_t allocate(std::int64_t bytes, MemoryClass memory_class);
  /// Frees a block. REQUIRES: `offset` came from allocate() and was not released since.
  void release(std::int64_t offset);
  /// Gives what lies at `offset` to another class.
  void retag(std::int64_t offset, MemoryClass memory_class);

  std::int64_t capacity() const { return capacity_; }
  std::int64_t live() const { return live_; }  // bytes as asked for
  /// Returns the most bytes that were asked for at once; at_peak() has their classes then.
  std::int64_t peak() const { return peak_; }
  const std::array<std::int64_t, kMemoryClasses>& at_peak() const { return at_peak_; }
  /// Returns the most bytes that were taken, in whole blocks; reach() the furthest end of a block:
  /// what lies between the two was lost to gaps.
  std::int64_t allocated_peak() const { return allocated_peak_; }
  std::int64_t reach() const { return reach_; }

 private:
  struct Block {
    std::int64_t size = 0, bytes = 0;
    MemoryClass memory_class = MemoryClass::Stash;
  };
  void add_gap(std::int64_t offset, std::int64_t size);
  void drop_gap(std::int64_t offset, std::int64_t size);
  void note_peak();

  std::int64_t capacity_;
  std::map<std::int64_t, Block> blocks_;                   // by offset
  std::map<std::int64_t, std::int64_t> gaps_;              // size by offset
  std::set<std::pair<std::int64_t, std::int64_t>> sizes_;  // (size, offset) of gaps
  std::array<std::int64_t, kMemoryClasses> bytes_{}, at_peak_{};
  std::int64_t live_ = 0, allocated_ = 0, peak_ = 0, allocated_peak_ = 0, reach_ = 0;
};

}  // namespace interlock
