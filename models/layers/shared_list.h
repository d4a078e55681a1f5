// SharedList: a list whose copies share their items until one of them is changed.
// SPDX-License-Identifier: Apache-2.0
//
// For lists that are long, made once, and then handed on by value. Items are changed through
// edit() alone, so that no copy is made, and no other list changed, without its being said.
//
// Example:
//   SharedList<int> primes = std::vector{2, 3, 5}, more = primes;   // one list of three items
//   more.push_back(7);                                              // two lists
//   primes.size();                                                  // 3
#pragma once

#include <memory>
#include <utility>
#include <vector>

namespace interlock {

template <class Item>
class SharedList {
 public:
  using value_type = Item;
  using const_iterator = typename std::vector<Item>::const_iterator;

  SharedList() = default;
  SharedList(std::vector<Item> items)  // NOLINT(google-explicit-constructor)
      : items_(std::make_shared<std::vector<Item>>(std::move(items))) {}
  operator const std::vector<Item>&() const {
    return all();
  }  // NOLINT(google-explicit-constructor)

  const std::vector<Item>& all() const {
    static const std::vector<Item> none;
    return items_ ? *items_ : none;
  }
  const_iterator begin() const { return all().begin(); }
  const_iterator end() const { return all().end(); }
  std::size_t size() const { return all().size(); }
  bool empty() const { return all().empty(); }
  const Item& operator[](std::size_t index) const { return all()[index]; }
  const Item& at(std::size_t index) const { return all().at(index); }
  const Item& front() const { return all().front(); }
  const Item& back() const { return all().back(); }

  /// Returns the items for changes that no other list sees. Later copies share them again: what
  /// this returned is then used no more.
  std::vector<Item>& edit() {
    if (!items_) items_ = std::make_shared<std::vector<Item>>();
    if (items_.use_count() > 1) items_ = std::make_shared<std::vector<Item>>(*items_);
    return *items_;
  }
  void push_back(Item item) { edit().push_back(std::move(item)); }

  /// Returns whether both are one list, which says that they are equal; equal lists may be two.
  bool shares(const SharedList& other) const { return items_ == other.items_; }

 private:
  std::shared_ptr<std::vector<Item>> items_;
};

}  // namespace interlock
