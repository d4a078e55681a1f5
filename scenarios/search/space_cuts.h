// SpaceCuts: values that a search leaves out by itself where there would be too many plans.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "scenarios/search/search_request.h"

namespace interlock {

/// Thrown for a document that proposes too many plans.
struct SpaceTooLarge : Error {
  using Error::Error;
};
/// Throws: SpaceTooLarge for the document in `file`, of more than `most` layouts.
[[noreturn]] void refuse_space(const std::string& file, std::size_t most);

/// Facts that cuts depend on.
struct SpaceSize {
  int devices_of_node = 1;
  int modules = 1;           // of the model
  std::vector<int> devices;  // that are asked for
  bool has_tokens = false, has_experts = false;
  std::vector<int> contexts;  // degrees, if none are named
};

/// Leaves out the values that are the least likely to be of use among keys that `request` does not
/// name: the first cut is `cut` 0. Returns what was left out, in words; empty: there is nothing
/// more. Sets `any` to whether such a key was open, and had one of these values.
std::string cut_space(int cut, const SpaceSize& size, SearchRequest& request, bool& any);

}  // namespace interlock
