// Gaps between the ops of a device, by cause.
// SPDX-License-Identifier: Apache-2.0
#include "sim/measure/bubbles.h"

#include <algorithm>
#include <limits>

namespace interlock {
namespace {

using Kind = TraceNode::Kind;

constexpr double kNever = std::numeric_limits<double>::infinity();

struct Stretch {
  double begin, end;
  double length() const { return std::max(0.0, end - begin); }
  Stretch cut(double from, double to) const { return {std::max(begin, from), std::min(end, to)}; }
};

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

/// Of each step, when it begins anywhere, and whether earlier ones are over by then.
struct StepBegins {
  std::vector<double> begin;
  std::vector<bool> flushed;
};

StepBegins step_begins(const Program& program, const TraceLog& log) {
  const auto steps = static_cast<std::size_t>(program.steps);
  StepBegins result{std::vector<double>(steps, kNever), std::vector<bool>(steps, true)};
  std::vector<double> last(steps, -1);  // start of the last op but for updates
  for (const Span& span : log.spans) {
    const auto step = static_cast<std::size_t>(span.micro_batch / program.micro_batches);
    if (program.ops[span.op].kind == OpKind::U) continue;
    result.begin[step] = std::min(result.begin[step], span.start.value());
    last[step] = std::max(last[step], span.start.value());
  }
  double earlier = -1;
  for (std::size_t step = 0; step < steps; ++step) {
    result.flushed[step] = earlier < result.begin[step] && program.pattern >= program.micro_batches;
    earlier = std::max(earlier, last[step]);
  }
  return result;
}

class Ledger {
 public:
  Ledger(const Program& program, const TraceLog& log, const Causes& causes, Stretch window)
      : program_(program),
        log_(log),
        causes_(causes),
        window_(window),
        steps_(step_begins(program, log)),
        ranks_(program.ranks.size()),
        free_(program.ranks.size(), 0),
        step_(program.ranks.size(), -1) {}

  void add(std::size_t index) {
    const Span& span = log_.spans[index];
    const Stretch gap = {free_[span.rank], span.start.value()};
    if (gap.length() > 0) add_gap(span, causes_.spans[index], gap);
    free_[span.rank] = std::max(free_[span.rank], span.end.value());
    step_[span.rank] = std::max(step_[span.rank], step_of(span));
  }

  std::vector<Bubbles> finish() {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      bubble(static_cast<int>(r), BubbleCause::Drain) += inside({free_[r], kNever});
    }
    return std::move(ranks_);
  }

 private:
  int step_of(const Span& span) const { return span.micro_batch / program_.micro_batches; }
  double& bubble(int rank, BubbleCause cause) {
    return ranks_[rank][static_cast<std::size_t>(cause)];
  }

  void add_gap(const Span& span, const Cause& cause, const Stretch& gap) {
    // What the op waited for was on its way in the last part of the gap.
    double sent = gap.end;
    if (cause.node.kind == Kind::Transfer) {
      sent = log_.transfers[cause.node.index].sent.value();
    } else if (cause.node.kind == Kind::Collective) {
      sent = log_.collectives[cause.node.index].joined.value();
    }
    const double known = std::min(gap.end, cause.at.value());  // later: nobody knows why
    const Stretch on_its_way = Stretch{sent, known}.cut(gap.begin, gap.end);
    const Stretch before = {gap.begin, std::max(gap.begin, std::min(sent, known))};
    bubble(span.rank, BubbleCause::Message) += inside(on_its_way);
    bubble(span.rank, BubbleCause::Unknown) += inside({std::max(gap.begin, known), gap.end});
    const auto step = static_cast<std::size_t>(step_of(span));
    if (step_of(span) > step_[span.rank] && steps_.flushed[step]) {
      const double begin = steps_.begin[step];
      bubble(span.rank, BubbleCause::Drain) += inside(before.cut(before.begin, begin));
      bubble(span.rank, BubbleCause::Fill) += inside(before.cut(begin, before.end));
    } else {
      bubble(span.rank, bubble_cause(cause.wait)) += inside(before);
    }
  }

  double inside(const Stretch& stretch) const {
    return window_.cut(stretch.begin, stretch.end).length();
  }

  const Program& program_;
  const TraceLog& log_;
  const Causes& causes_;
  Stretch window_;
  StepBegins steps_;
  std::vector<Bubbles> ranks_;
  std::vector<double> free_;  // by rank
  std::vector<int> step_;     // by rank: the last one of an op
};

}  // namespace

const char* name_of(BubbleCause cause) {
  static constexpr std::array kNames = {"fill",  "drain", "activation", "gradient",
                                        "peers", "room",  "message",    "unknown"};
  static_assert(kNames.size() == kBubbleCauses, "a name for each");
  return kNames[static_cast<std::size_t>(cause)];
}

std::vector<Bubbles> find_bubbles(const Program& program, const TraceLog& log, const Causes& causes,
                                  Seconds begin, Seconds end) {
  Ledger ledger(program, log, causes, {begin.value(), end.value()});
  for (std::size_t i = 0; i < log.spans.size(); ++i) ledger.add(i);
  return ledger.finish();
}

}  // namespace interlock
