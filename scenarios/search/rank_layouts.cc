// Searches the layout of each rank: a descent by looks, and a simulation of its end.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/search/rank_layouts.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "base/error.h"
#include "scenarios/contract/set_key.h"
#include "scenarios/load/loader.h"
#include "scenarios/search/best_cut.h"
#include "scenarios/sweep/sweep_plan.h"

namespace interlock {
namespace {

using Tensors = std::vector<int>;  // by rank

/// Returns whether modules differ between the first, which embeds, and the last two, which may be a
/// norm and a head.
bool has_unequal_modules(const ModelGraph& graph) {
  const std::vector<Module>& modules = graph.modules;
  constexpr std::size_t kEnds = 3;
  if (modules.size() <= kEnds) return false;
  const auto same = [&](const Module& module) {
    return module.stash == modules[1].stash && module.output == modules[1].output;
  };
  return !std::all_of(modules.begin() + 1, modules.end() - 2, same);
}

/// Returns whether the best plan is one that "stage_layouts" can say.
bool can_differ(const SearchResult& result) {
  const SearchRequest& request = result.request;
  const bool asked =
      !request.tensor.empty() || !request.data.empty() || !request.partitions.empty();
  if (asked) return false;
  const FoundPlan& best = result.plans.front();
  const PlanLayout& layout = best.layout;
  const bool shards = std::any_of(layout.options.begin(), layout.options.end(),
                                  [](const auto& o) { return o.path == "parallel.shard"; });
  return layout.pipeline > 1 && layout.context == 1 && layout.expert == 1 && !shards &&
         layout.expert_tensor == layout.tensor && layout.tensor * layout.data > 1 &&
         !best.estimate.too_large;
}

class RankLayouts {
 public:
  RankLayouts(const SearchResult& result, const std::function<void()>& looked)
      : best_(result.plans.front()), request_(result.request), looked_(looked) {}

  /// Returns the fastest plan that was found.
  std::optional<FoundPlan> run() {
    Tensors now(static_cast<std::size_t>(best_.layout.pipeline), best_.layout.tensor);
    for (bool down = true; down;) {
      down = false;
      const Tensors start = now;
      for (const Tensors& next : neighbours(start)) {
        if (value_of(next) >= value_of(now)) continue;
        now = next;
        down = true;
      }
    }
    const bool alike = std::all_of(now.begin(), now.end(), [&](int t) { return t == now.front(); });
    if (alike || !(value_of(now) < kInfinity)) return std::nullopt;
    return judged(now);
  }

 private:
  int devices_of_rank() const { return best_.layout.tensor * best_.layout.data; }

  /// Returns other degrees of the first ranks, of the last ones, and of single ones.
  std::vector<Tensors> neighbours(const Tensors& tensors) const {
    std::vector<Tensors> all;
    const std::size_t ranks = tensors.size();
    for (int tensor = 1; tensor <= devices_of_rank(); ++tensor) {
      if (devices_of_rank() % tensor != 0) continue;
      for (std::size_t first = 0; first < ranks; ++first) {
        for (const std::size_t end : {first + 1, ranks}) {
          all.push_back(tensors);
          for (std::size_t rank = first; rank < end; ++rank) all.back()[rank] = tensor;
        }
        all.push_back(tensors);
        for (std::size_t rank = 0; rank < first; ++rank) all.back()[rank] = tensor;
      }
    }
    return all;
  }

  /// Returns the settings that lay ranks out by `tensors`.
  std::vector<Setting> settings_of(const Tensors& tensors) const {
    std::vector<JsonValue> layouts;
    for (const int tensor : tensors) {
      const auto data = devices_of_rank() / tensor;  // without a rest
      layouts.push_back(json_object(
          {{"tensor", json_number(tensor)}, {"data", json_number(static_cast<double>(data))}}));
    }
    std::vector<Setting> settings;
    for (Setting setting : best_.settings) {
      const bool degrees = setting.path == "parallel.tensor" || setting.path == "parallel.data";
      if (setting.path == "parallel.expert_tensor" || setting.path == "parallel.context") continue;
      if (degrees) setting.value = {};
      if (setting.path == "partition") setting.value = json_text("balanced");
      if (setting.path == "training.micro_batch_size") {
        // Devices of a rank divide the samples that were one micro-batch of each replica.
        setting.value = json_number(best_.layout.micro_batch_size * best_.layout.data);
      }
      settings.push_back(std::move(setting));
    }
    settings.push_back({"parallel.stage_layouts", json_list(std::move(layouts))});
    return settings;
  }

  JsonValue document_of(const std::vector<Setting>& settings) const {
    JsonValue document = best_.document;
    for (const char* key : {"parallel.expert_tensor", "parallel.context"}) {
      set_key(document, key, {}, "search");
    }
    for (const Setting& setting : settings) {
      set_key(document, setting.path, setting.value, "search");
    }
    return document;
  }

  std::optional<LaidOut> plan_of(const Tensors& tensors) const {
    try {
      LaidOut laid =
          lay_out(load_point(std::make_shared<const JsonValue>(document_of(settings_of(tensors)))));
      if (request_.check_use) request_.check_use(laid.draft);
      return laid;
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  /// Returns what a look says of the aim; infinite where memory lacks or the loader refuses.
  double value_of(const Tensors& tensors) {
    const auto [known, fresh] = known_.try_emplace(tensors, kInfinity);
    if (!fresh) return known->second;
    looked_();
    const std::optional<LaidOut> plan = plan_of(tensors);
    if (!plan) return kInfinity;
    PlanEstimate look = estimate_by_look(plan->ordered());
    look.usable_share = best_.estimate.usable_share;
    if (!limit_met(request_.limits, look, Grade::Look)) {
      known->second = look.values[static_cast<std::size_t>(request_.aim)];
    }
    return known->second;
  }

  FoundPlan judged(const Tensors& tensors) const {
    const LaidOut plan = *plan_of(tensors);
    FoundPlan found = best_;
    found.estimate = estimate_by_simulation(plan, estimate_by_look(plan.ordered()));
    found.estimate.usable_share = best_.estimate.usable_share;
    found.settings = settings_of(tensors);
    found.document = document_of(found.settings);
    found.order.partition = json_text("balanced");
    found.layout.tensors = tensors;
    found.alike.clear();
    return found;
  }

  const FoundPlan& best_;
  const SearchRequest& request_;
  const std::function<void()>& looked_;
  std::map<Tensors, double> known_;
};

}  // namespace

void lay_ranks_apart(SearchResult& result, const std::function<void()>& looked) {
  if (!can_differ(result)) return;
  const auto document = std::make_shared<const JsonValue>(result.plans.front().document);
  if (!has_unequal_modules(load_point(document).training().graph)) return;
  std::optional<FoundPlan> found = RankLayouts(result, looked).run();
  if (found) take_if_better(*std::move(found), result);
}

}  // namespace interlock
