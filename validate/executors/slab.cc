// Slab: best fit over gaps that are kept by offset and by size.
// SPDX-License-Identifier: Apache-2.0
#include "validate/executors/slab.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"

namespace interlock {

Slab::Slab(std::int64_t capacity) : capacity_(capacity / kBlock * kBlock) {
  if (capacity_ > 0) add_gap(0, capacity_);
}

std::int64_t Slab::allocate(std::int64_t bytes, MemoryClass memory_class) {
  CHECK(bytes >= 0, "a size");
  // Every block has an offset of its own, also where nothing is asked for.
  const std::int64_t size = std::max(kBlock, (bytes + kBlock - 1) / kBlock * kBlock);
  const auto fits = sizes_.lower_bound({size, 0});
  if (fits == sizes_.end()) return -1;
  const auto [gap, offset] = *fits;
  drop_gap(offset, gap);
  if (gap > size) add_gap(offset + size, gap - size);
  blocks_[offset] = {size, bytes, memory_class};
  bytes_[static_cast<int>(memory_class)] += bytes;
  live_ += bytes;
  if (bytes > 0) allocated_ += size;
  reach_ = std::max(reach_, offset + size);
  note_peak();
  return offset;
}

void Slab::release(std::int64_t offset) {
  const auto block = blocks_.find(offset);
  CHECK(block != blocks_.end(), "a block that was handed out");
  std::int64_t begin = offset, size = block->second.size;
  bytes_[static_cast<int>(block->second.memory_class)] -= block->second.bytes;
  live_ -= block->second.bytes;
  if (block->second.bytes > 0) allocated_ -= size;
  blocks_.erase(block);
  const auto after = gaps_.lower_bound(offset);
  if (after != gaps_.begin()) {
    const auto [before, length] = *std::prev(after);
    if (before + length == offset) {
      begin = before;
      size += length;
      drop_gap(before, length);
    }
  }
  if (const auto next = gaps_.find(begin + size); next != gaps_.end()) {
    const std::int64_t length = next->second;
    drop_gap(begin + size, length);
    size += length;
  }
  add_gap(begin, size);
}

void Slab::retag(std::int64_t offset, MemoryClass memory_class) {
  const auto block = blocks_.find(offset);
  CHECK(block != blocks_.end(), "a block that was handed out");
  bytes_[static_cast<int>(block->second.memory_class)] -= block->second.bytes;
  block->second.memory_class = memory_class;
  bytes_[static_cast<int>(memory_class)] += block->second.bytes;
}

void Slab::add_gap(std::int64_t offset, std::int64_t size) {
  gaps_[offset] = size;
  sizes_.insert({size, offset});
}

void Slab::drop_gap(std::int64_t offset, std::int64_t size) {
  gaps_.erase(offset);
  sizes_.erase({size, offset});
}

void Slab::note_peak() {
  allocated_peak_ = std::max(allocated_peak_, allocated_);
  if (live_ <= peak_) return;
  peak_ = live_;
  at_peak_ = bytes_;
}

}  // namespace interlock
