// Visits the kernels of a scenario.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/ranges/scenario_kernels.h"

#include <algorithm>

namespace interlock {
namespace {

using Visit = std::function<void(const Work&)>;

}  // namespace

void visit_kernels(const Plan& plan, const Visit& visit_one) {
  const Question& question = plan.question;
  const Training& training = question.training();
  const bool heads = training.strategy.kind != StrategyKind::Global &&
                     training.strategy.kind != StrategyKind::Inference;
  const Visit visit = [&](const Work& work) {
    if (work.op_class != OpClass::Measured) visit_one(work);
  };
  const auto visit_graph = [&](const ModelGraph& graph, const Visit& each) {
    for (const Module& module : graph.modules) {
      const Head& head = module.head;
      for (const auto* works :
           {&module.forward, &module.backward_input, &module.first_backward_input,
            &module.backward_weight, &module.recompute, &module.update}) {
        std::for_each(works->begin(), works->end(), each);
      }
      if (!heads) continue;
      std::for_each(head.work.begin(), head.work.end(), each);
      std::for_each(head.update.begin(), head.update.end(), each);
    }
  };
  visit_graph(training.graph, visit);
  for (const TokenSlice& slice : plan.slices) visit_graph(training.graph.slice(slice), visit);
  for (const SizedBatch& batch : plan.sized_batches) {
    visit_graph(*batch.graph, visit);
    for (const TokenSlice& slice : batch.slices) visit_graph(batch.graph->slice(slice), visit);
  }
  for (const RankLayout& layout : question.layout.rank_layouts) visit_graph(*layout.graph, visit);
}

std::string class_list(const std::array<bool, kOpClasses>& classes) {
  std::string list;
  for (std::size_t i = 0; i < op_class_names().size(); ++i) {
    if (classes[i]) list += (list.empty() ? "" : ", ") + op_class_names()[i];
  }
  return list;
}

}  // namespace interlock
