// Gaps between the ops of a device, by cause.
// SPDX-License-Identifier: Apache-2.0
#include "sim/causes/bubbles.h"

#include <algorithm>

namespace interlock {
namespace {

BubbleCause bubble_cause(Wait wait) {
  switch (wait) {
    case Wait::Activation:
      return BubbleCause::Activation;
    case Wait::Gradient:
      return BubbleCause::Gradient;
    case Wait::Exchange:
    case Wait::Sign:
      return BubbleCause::Peers;
    case Wait::Room:
      return BubbleCause::Room;
    default:
      return BubbleCause::Unknown;
  }
}

/// The start of each step on any device, and whether earlier steps are over by then.
struct StepBegins {
  std::vector<double> begin;
  bool flushed = false;
};

/// When the ops of a step start, but for updates, and whether the window shows the step.
struct StepStarts {
  double first = kInfinity, last = -1;
  bool shown = false;
};

std::vector<StepStarts> step_starts(const Program& program, const TraceLog& log,
                                    const TimeWindow& window) {
  std::vector<StepStarts> steps(static_cast<std::size_t>(program.steps));
  for (const Span& span : log.spans) {
    if (program.ops[span.op].kind == OpKind::U) continue;
    StepStarts& step = steps[static_cast<std::size_t>(span.micro_batch / program.micro_batches)];
    step.first = std::min(step.first, span.start.value());
    step.last = std::max(step.last, span.start.value());
    step.shown = step.shown || (window.begin <= span.start && span.start <= window.end);
  }
  if (window.by_clock()) return steps;
  for (int step = 0; step < program.steps; ++step) {  // the next one, too
    steps[step].shown = window.first_step <= step && step <= window.first_step + window.steps;
  }
  return steps;
}

/// Steps of a window repeat, so all of them are flushed or none is: the first may begin late only
/// because the pipeline was filled before it.
StepBegins step_begins(const Program& program, const TraceLog& log, const TimeWindow& window) {
  StepBegins result{.begin = {}, .flushed = program.pattern >= program.micro_batches};
  double earlier = -1;
  for (const StepStarts& step : step_starts(program, log, window)) {
    result.begin.push_back(step.first);
    if (step.shown && earlier >= step.first) result.flushed = false;
    earlier = std::max(earlier, step.last);
  }
  return result;
}

class Ledger {
 public:
  Ledger(const Program& program, const TraceLog& log, const Causes& causes,
         const TimeWindow& window)
      : program_(program),
        log_(log),
        causes_(causes),
        window_(window),
        idle_(program, window),
        steps_(step_begins(program, log, window)),
        ranks_(program.ranks.size()),
        step_(program.ranks.size(), -1),
        first_of_step_(log.spans.size(), false) {}

  void add(std::size_t index) {
    const Span& span = log_.spans[index];
    const double counted = window_.share(program_, span);
    bubble(span.rank, BubbleCause::Exchange) +=
        counted * waiting_inside(program_.ops[span.op], span).value();
    first_of_step_[index] = step_of(span) > step_[span.rank];
    step_[span.rank] = std::max(step_[span.rank], step_of(span));
    if (const auto idle = idle_.add(span, static_cast<std::int64_t>(index))) divide(*idle);
  }

  std::vector<Bubbles> finish() {
    for (const IdleStretch& idle : idle_.finish()) divide(idle);
    return std::move(ranks_);
  }

 private:
  int step_of(const Span& span) const { return span.micro_batch / program_.micro_batches; }
  double& bubble(int rank, BubbleCause cause) {
    return ranks_[rank][static_cast<std::size_t>(cause)];
  }

  /// Adds `idle` to the causes, in order of time: what was waited for last, unknown causes,
  /// messages on their way.
  void divide(const IdleStretch& idle) {
    if (idle.number == IdleStretch::kNoOp) {  // no op comes after it
      bubble(idle.rank, BubbleCause::Drain) += idle_.length(idle);
      return;
    }
    const auto index = static_cast<std::size_t>(idle.number);
    const Cause& cause = causes_.spans[index];
    const double on_its_way = std::max(idle.begin, idle.end - idle.exposed);  // but for rounding
    const double late = std::clamp(idle.end - cause.at.value(), 0.0, on_its_way - idle.begin);
    bubble(idle.rank, BubbleCause::Message) += idle_.exposed(idle);
    bubble(idle.rank, BubbleCause::Unknown) += idle_.inside(on_its_way - late, on_its_way);
    divide_by_step(index, idle, on_its_way - late);
  }

  /// Adds the part of `idle` up to `end`: to Fill and Drain at the first op of a step.
  void divide_by_step(std::size_t index, const IdleStretch& idle, double end) {
    const auto step = static_cast<std::size_t>(step_of(log_.spans[index]));
    if (!first_of_step_[index] || !steps_.flushed) {
      bubble(idle.rank, bubble_cause(causes_.spans[index].wait)) += idle_.inside(idle.begin, end);
      return;
    }
    const double begin = std::clamp(steps_.begin[step], idle.begin, std::max(idle.begin, end));
    bubble(idle.rank, BubbleCause::Drain) += idle_.inside(idle.begin, begin);
    bubble(idle.rank, BubbleCause::Fill) += idle_.inside(begin, end);
  }

  const Program& program_;
  const TraceLog& log_;
  const Causes& causes_;
  TimeWindow window_;
  IdleTimes idle_;
  StepBegins steps_;
  std::vector<Bubbles> ranks_;
  std::vector<int> step_;            // by rank: the last one of an op
  std::vector<bool> first_of_step_;  // by span: the first of its step on its rank
};

}  // namespace

const char* name_of(BubbleCause cause) {
  static constexpr std::array kNames = {"fill", "drain",   "activation", "gradient", "peers",
                                        "room", "message", "unknown",    "exchange"};
  static_assert(kNames.size() == kBubbleCauses, "a name for each");
  return kNames[static_cast<std::size_t>(cause)];
}

std::vector<Bubbles> find_bubbles(const Program& program, const TraceLog& log, const Causes& causes,
                                  const TimeWindow& window) {
  Ledger ledger(program, log, causes, window);
  for (std::size_t i = 0; i < log.spans.size(); ++i) ledger.add(i);
  return ledger.finish();
}

}  // namespace interlock
