// Fifo: a queue in one block of memory that grows when it must.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace interlock {

/// First in, first out; nothing moves except when the block doubles, or by move_to_front().
/// Example: 5, 6, 7 are pushed; at(2) is 7. After move_to_front(2) they come out as 7, 5, 6.
template <class T>
class Fifo {
 public:
  bool empty() const { return head_ == tail_; }
  std::uint32_t size() const { return tail_ - head_; }
  const T& front() const { return items_[head_ & mask()]; }
  /// Returns the item that comes out after `index` others.
  const T& at(std::uint32_t index) const { return items_[(head_ + index) & mask()]; }
  /// Lets the item at `index` come out first; the others keep their order.
  void move_to_front(std::uint32_t index) {
    const T first = at(index);
    for (; index > 0; --index) items_[(head_ + index) & mask()] = at(index - 1);
    items_[head_ & mask()] = first;
  }
  void pop() { ++head_; }
  void push(const T& item) {
    if (size() == items_.size()) grow();
    items_[tail_++ & mask()] = item;
  }

 private:
  std::uint32_t mask() const { return static_cast<std::uint32_t>(items_.size()) - 1; }
  void grow() {
    std::vector<T> larger(items_.empty() ? 2 : items_.size() * 2);
    const std::uint32_t count = size();
    for (std::uint32_t i = 0; i < count; ++i) larger[i] = items_[(head_ + i) & mask()];
    items_.swap(larger);
    head_ = 0;
    tail_ = count;
  }

  std::vector<T> items_;
  std::uint32_t head_ = 0, tail_ = 0;
};

}  // namespace interlock
