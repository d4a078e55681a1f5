// Draws residuals for the kernels of a scenario, and simulates its step with them.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/simulate/calibrated_range.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "base/random.h"
#include "base/text.h"
#include "scenarios/plan/step_time.h"
#include "scenarios/ranges/scenario_kernels.h"

namespace interlock {
namespace {

constexpr double kLevel = 0.8;
constexpr double kParameters = 3;  // of a fit: launch, and the two roofs
constexpr double kBeyond = 1.001;  // times the largest measured, for rounding

/// A kernel and what the model says of it, in the table's form.
struct Priced {
  MeasuredKernel row;
  PricedBy by = PricedBy::Roofline;
};

bool same(const MeasuredKernel& a, const Work& b) {
  return a.work.op_class == b.op_class && a.work.role == b.role && a.work.variant == b.variant &&
         a.work.launches == b.launches && a.work.flops == b.flops && a.work.bytes == b.bytes &&
         a.work.shape == b.shape;
}

/// Returns the distinct kernels that a fitted model prices, in order of their first appearance.
std::vector<Priced> priced_kernels(const Plan& plan) {
  const Question& question = plan.question;
  std::vector<Priced> kernels;
  const CalibratedModel& model = *front_device(question.cluster).calibrated;
  visit_kernels(plan, [&](const Work& work) {
    if (std::any_of(kernels.begin(), kernels.end(),
                    [&](const Priced& known) { return same(known.row, work); })) {
      return;
    }
    const auto time = calibrated_time(model, work, question.training().precision);
    if (!time || time->priced_by == PricedBy::Table || time->whole() <= Seconds(0)) return;
    kernels.push_back({{question.training().precision, work, time->whole(), -1}, time->priced_by});
  });
  return kernels;
}

/// Moves ratios away from 1 by what the parameters of a fit take off its residuals.
void widen(std::vector<double>& ratios) {
  const auto count = static_cast<double>(ratios.size());
  if (count <= kParameters) return;
  const double factor = std::sqrt(count / (count - kParameters));
  for (double& ratio : ratios) ratio = std::pow(ratio, factor);
}

double quantile(const std::vector<Seconds>& sorted, double part) {
  const auto count = static_cast<double>(sorted.size());
  const auto at =
      static_cast<std::size_t>(std::clamp(std::ceil(part * (count + 1)) - 1, 0.0, count - 1));
  return sorted[at].value();
}

/// The sizes of what was measured of a class.
struct Measured {
  double flops = 0, bytes = 0;
};

Measured largest_of(const CalibratedModel& model, const Work& like, Precision precision) {
  Measured most;
  for (const MeasuredKernel& row : model.table) {
    if (row.work.op_class != like.op_class || row.precision != precision) continue;
    most.flops = std::max(most.flops, row.work.flops.value() / std::max(1, row.work.launches));
    most.bytes = std::max(most.bytes, row.work.bytes.value() / std::max(1, row.work.launches));
  }
  return most;
}

}  // namespace

KernelRatios ratios_of(const CalibratedModel& model, OpClass op_class, Precision precision) {
  KernelRatios ratios;
  const auto& roofline =
      model.rooflines[static_cast<std::size_t>(precision)][static_cast<std::size_t>(op_class)];
  for (const MeasuredKernel& row : model.table) {
    if (!roofline || row.work.op_class != op_class || row.precision != precision) continue;
    const auto add = [&](const SmoothRoofline& by, std::vector<double>& to) {
      const Seconds time = smooth_time(row.work, by, model.stream).whole();
      if (time > Seconds(0)) to.push_back(row.time / time);
    };
    add(*roofline, ratios.roofline);
    if (row.kernel >= 0) {
      add(model.kernels[static_cast<std::size_t>(row.kernel)].roofline, ratios.kernel);
    }
  }
  widen(ratios.roofline);
  widen(ratios.kernel);
  return ratios;
}

std::vector<Seconds> drawn_steps(const Plan& plan, int draws) {
  const Question& question = plan.question;
  const CalibratedModel& model = *front_device(question.cluster).calibrated;
  const std::vector<Priced> kernels = priced_kernels(plan);
  std::array<KernelRatios, kOpClasses> ratios;
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    ratios[i] = ratios_of(model, static_cast<OpClass>(i), question.training().precision);
  }
  Plan drawn = plan;
  std::vector<Seconds> steps;
  for (int draw = 0; draw < draws; ++draw) {
    Random random(static_cast<std::uint64_t>(question.simulation.seed),
                  static_cast<std::uint64_t>(draw));
    auto changed = std::make_shared<CalibratedModel>(model);
    for (const Priced& kernel : kernels) {
      const KernelRatios& own = ratios[static_cast<std::size_t>(kernel.row.work.op_class)];
      const std::vector<double>& from = kernel.by == PricedBy::Kernel ? own.kernel : own.roofline;
      if (from.empty()) continue;
      const int pick = random.integer(0, static_cast<int>(from.size()) - 1);
      changed->table.push_back(kernel.row);
      changed->table.back().time *= from[static_cast<std::size_t>(pick)];
    }
    sort_table(*changed);
    drawn.question.cluster.machines.front().device.calibrated = std::move(changed);
    steps.push_back(estimate_step(drawn, Grade::Simulation).time);
  }
  return steps;
}

Confidence calibrated_range(const Plan& plan, int draws) {
  CHECK(draws >= kFewestDraws, "enough draws for a range");
  std::vector<Seconds> steps = drawn_steps(plan, draws);
  std::sort(steps.begin(), steps.end());
  const double outside = (1 - kLevel) / 2;
  return {.range = TimeRange{.low = Seconds(quantile(steps, outside)),
                             .high = Seconds(quantile(steps, 1 - outside)),
                             .level = kLevel,
                             .basis = std::to_string(draws) + " draws of the residuals of " +
                                      front_device(plan.question.cluster).name},
          .extrapolates = calibration_limits(plan)};
}

std::vector<std::string> calibration_limits(const Plan& plan) {
  const Question& question = plan.question;
  const Device& device = front_device(question.cluster);
  const CalibratedModel& model = *device.calibrated;
  std::array<bool, kOpClasses> unknown{}, larger{};
  Seconds all, of_unknown, of_larger;
  visit_kernels(plan, [&](const Work& work) {
    const KernelTime time = kernel_time(work, device, question.training().precision);
    const auto op_class = static_cast<std::size_t>(work.op_class);
    all += time.whole();
    if (time.priced_by == PricedBy::Datasheet) {
      unknown[op_class] = true;
      of_unknown += time.whole();
    } else if (time.priced_by != PricedBy::Table) {
      const Measured most = largest_of(model, work, question.training().precision);
      const double launches = std::max(1, work.launches);
      if (work.flops.value() <= kBeyond * launches * most.flops &&
          work.bytes.value() <= kBeyond * launches * most.bytes) {
        return;
      }
      larger[op_class] = true;
      of_larger += time.whole();
    }
  });
  std::vector<std::string> reasons;
  if (of_unknown > all * kWorthTelling) {
    reasons.push_back(format_percent(of_unknown / all) +
                      " of the kernels' time is of classes that were not calibrated (" +
                      class_list(unknown) + ")");
  }
  if (of_larger > all * kWorthTelling) {
    reasons.push_back(format_percent(of_larger / all) +
                      " of the kernels' time is of sizes beyond the largest that was calibrated (" +
                      class_list(larger) + ")");
  }
  return reasons;
}

}  // namespace interlock
