// Lists whose copies share their items until one is changed.
// SPDX-License-Identifier: Apache-2.0
#include "models/layers/shared_list.h"

#include <doctest/doctest.h>

namespace interlock::shared_list_test {
namespace {

using Numbers = std::vector<int>;

TEST_CASE("copies share their items until one of them is changed") {
  SharedList<int> list = Numbers{2, 3, 5};
  const SharedList<int> copy = list;
  CHECK(copy.shares(list));
  CHECK(&copy.front() == &list.front());
  list.push_back(7);
  CHECK(!copy.shares(list));
  CHECK(copy.all() == Numbers{2, 3, 5});
  CHECK(list.all() == Numbers{2, 3, 5, 7});
  const int* place = &list.front();
  list.edit()[1] = 30;  // shared with no list: in place
  CHECK(&list.front() == place);
  CHECK(list.all() == Numbers{2, 30, 5, 7});
}

TEST_CASE("a list that holds nothing is one, and becomes another") {
  SharedList<int> empty;
  CHECK(empty.empty());
  CHECK(empty.begin() == empty.end());
  const SharedList<int> copy = empty;
  empty.push_back(1);
  CHECK(copy.empty());
  CHECK(empty.size() == 1);
  const SharedList<int> equal = Numbers{1};
  CHECK(!equal.shares(empty));
}

}  // namespace
}  // namespace interlock::shared_list_test
