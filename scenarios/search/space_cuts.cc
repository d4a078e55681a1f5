// Cuts a space of plans, the mildest cut first.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/search/space_cuts.h"

#include <algorithm>
#include <bit>
#include <iterator>

namespace interlock {
namespace {

bool is_power(int number) { return std::has_single_bit(static_cast<unsigned>(number)); }

/// Sets `list`, if the request leaves it open, to those of its `usual` values that stay. Returns
/// whether any was left out.
template <class Stays>
bool narrow(std::vector<int>& list, const std::vector<int>& usual, const Stays& stays) {
  if (!list.empty()) return false;
  std::ranges::copy_if(usual, std::back_inserter(list), stays);
  return list.size() < usual.size();
}

/// Returns the numbers up to `most` that divide any of `devices`.
std::vector<int> degrees_up_to(int most, const std::vector<int>& devices) {
  std::vector<int> degrees;
  for (int degree = 1; degree <= most; ++degree) {
    const auto divides = [&](int one) { return one % degree == 0; };
    if (std::ranges::any_of(devices, divides)) degrees.push_back(degree);
  }
  return degrees;
}

}  // namespace

void refuse_space(const std::string& file, std::size_t most) {
  throw SpaceTooLarge(file + (file.empty() ? "" : ": ") + "/search: more than " +
                      std::to_string(most) +
                      " ways to divide the work; expected fewer values, e.g. --set "
                      "'search={\"tensor\": [1, 8], \"pipeline\": [1, 8]}'");
}

std::string cut_space(int cut, const SpaceSize& size, SearchRequest& request, bool& any) {
  any = false;
  const int widest = size.has_tokens ? size.devices_of_node : 1;
  const std::vector<int> tensors = degrees_up_to(widest, size.devices);
  if (cut == 0) {
    any = narrow(request.tensor, tensors, is_power);
    return "tensor degrees that are no power of two";
  }
  if (cut == 1) {
    const std::vector<int> wide = request.tensor.empty() ? tensors : request.tensor;
    const bool divides = std::ranges::any_of(wide, [](int degree) { return degree > 1; });
    if (size.has_experts && request.expert_tensor.empty()) {
      request.expert_tensor = {1};
      any = divides;
    }
    return "experts that tensor devices divide";
  }
  if (cut == 2) {
    any = narrow(request.pipeline, degrees_up_to(size.modules, size.devices), is_power);
    return "pipeline degrees that are no power of two";
  }
  if (cut == 3) {
    any = narrow(request.zero_stages, {0, 1, 2, 3}, [](int stage) { return stage != 2; }) &&
          std::ranges::max(size.devices) > 1;
    return "ZeRO 2";
  }
  if (cut == 4) {
    if (request.context_layouts.empty()) {
      request.context_layouts = {json_text("ring")};
      const std::vector<int>& degrees = request.context.empty() ? size.contexts : request.context;
      any = std::ranges::any_of(degrees, [](int degree) { return degree > 1; });
    }
    return "sequences divided by all-to-alls";
  }
  if (cut == 5) {
    any = narrow(request.context, size.contexts,
                 [](int degree) { return is_power(degree) && degree <= 64; });
    return "context degrees that are no power of two or above 64";
  }
  return "";
}

}  // namespace interlock
