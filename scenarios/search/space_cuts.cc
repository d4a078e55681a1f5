// Cuts a space of plans, the mildest cut first.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/search/space_cuts.h"

#include <bit>

namespace interlock {
namespace {

bool is_power(int number) { return std::has_single_bit(static_cast<unsigned>(number)); }

/// Sets `list`, which the request leaves open, to `values`. Returns whether it was open.
template <class T>
bool narrow(std::vector<T>& list, std::vector<T> values) {
  if (!list.empty()) return false;
  list = std::move(values);
  return true;
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
  if (cut == 0) {
    std::vector<int> tensor = {1};
    for (int t = 2; size.has_tokens && t <= size.devices_of_node; ++t) {
      if (size.devices % t == 0 && is_power(t)) tensor.push_back(t);
    }
    any = narrow(request.tensor, tensor);
    return "tensor degrees that are no power of two";
  }
  if (cut == 1) {
    any = size.has_experts && narrow(request.expert_tensor, {1});
    return "experts that tensor devices divide";
  }
  if (cut == 2) {
    std::vector<int> pipeline;
    for (int p = 1; p <= size.modules; p *= 2) pipeline.push_back(p);
    any = narrow(request.pipeline, pipeline);
    return "pipeline degrees that are no power of two";
  }
  if (cut == 3) {
    any = narrow(request.zero_stages, {0, 1, 3});
    return "ZeRO 2";
  }
  if (cut == 4) {
    any = narrow(request.context_layouts, {json_text("ring")});
    return "sequences divided by all-to-alls";
  }
  if (cut == 5) {
    std::vector<int> kept;
    for (const int degree : size.contexts) {
      if (is_power(degree) && degree <= 64) kept.push_back(degree);
    }
    any = kept.size() < size.contexts.size() && narrow(request.context, kept);
    return "context degrees that are no power of two or above 64";
  }
  return "";
}

}  // namespace interlock
