// Compares modules, kernel by kernel.
// SPDX-License-Identifier: Apache-2.0
#include "models/equal_modules.h"

#include <algorithm>

namespace interlock {

namespace {

bool equal(const Work& a, const Work& b) {
  return a.op_class == b.op_class && a.flops == b.flops && a.counted == b.counted &&
         a.bytes == b.bytes && a.launches == b.launches && a.measured == b.measured &&
         a.role == b.role && a.variant == b.variant && a.shape == b.shape && a.place == b.place &&
         a.replayed == b.replayed && a.awaited == b.awaited && a.more_issues == b.more_issues &&
         a.wide == b.wide;
}

bool equal(const Exchange& a, const Exchange& b) { return alike(a, b) && a.count == b.count; }

template <class Item>
bool equal(const std::vector<Item>& a, const std::vector<Item>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Item& left, const Item& right) { return equal(left, right); });
}

bool equal(const Head& a, const Head& b) {
  return equal(a.work, b.work) && equal(a.update, b.update) && equal(a.exchanges, b.exchanges) &&
         a.parameters == b.parameters && a.trainable == b.trainable && a.memory == b.memory;
}

}  // namespace

bool equal_work(const Module& a, const Module& b) {
  return equal(a.forward, b.forward) && equal(a.backward_input, b.backward_input) &&
         equal(a.first_backward_input, b.first_backward_input) &&
         equal(a.backward_weight, b.backward_weight) && equal(a.recompute, b.recompute) &&
         equal(a.update, b.update) && equal(a.forward_exchanges, b.forward_exchanges) &&
         equal(a.backward_input_exchanges, b.backward_input_exchanges) &&
         equal(a.first_backward_input_exchanges, b.first_backward_input_exchanges) &&
         equal(a.backward_weight_exchanges, b.backward_weight_exchanges) &&
         equal(a.recompute_exchanges, b.recompute_exchanges) && a.parameters == b.parameters &&
         a.expert_parameters == b.expert_parameters && a.tied_parameters == b.tied_parameters &&
         a.tied_to == b.tied_to && a.output == b.output && a.stash == b.stash &&
         a.carried == b.carried && a.workspace == b.workspace && a.remade == b.remade &&
         a.relaid == b.relaid && a.matrices == b.matrices && a.tied_matrices == b.tied_matrices &&
         a.frozen == b.frozen && a.frozen_experts == b.frozen_experts &&
         a.tied_frozen == b.tied_frozen && a.layout == b.layout && a.context == b.context &&
         equal(a.head, b.head);
}

}  // namespace interlock
