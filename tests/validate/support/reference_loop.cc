// A second simulator of one-at-a-time training, small and slow, to compare the engines with.
// SPDX-License-Identifier: Apache-2.0
#include "tests/validate/support/reference_loop.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "base/error.h"

namespace interlock {
namespace {

struct Step {
  char what = 'F';  // an op letter; '<' take, '>' put, '=' begin
  int loss = 0;     // of the gradient; kForward: the activation
  int tensors = 1;
  int towards = 0;  // where a put goes, or a take looks: +1 the stage above, -1 the one below
};
constexpr int kForward = -1;

/// Returns whether the gradient of `loss` can come to stage `i`: it crosses N - 1 boundaries.
bool reaches(const ReferenceCase& c, int loss, int i) {
  const int boundaries = (c.n_of_losses.empty() ? c.n_wise : c.n_of_losses[loss]) - 1;
  return i <= loss && loss - i <= boundaries;
}

int trained_by(const ReferenceCase& c, int i) {
  int furthest = i;
  for (int loss = i; loss < static_cast<int>(c.stages.size()); ++loss) {
    if (reaches(c, loss, i)) furthest = loss;
  }
  return furthest;
}

/// Returns whether `loss` trains stage `i` or one below it.
bool trains_at_or_below(const ReferenceCase& c, int loss, int i) {
  for (int stage = 0; stage <= i; ++stage) {
    if (trained_by(c, stage) == loss) return true;
  }
  return false;
}

/// The losses whose gradients stage `i` pushes down, nearest first; the last trains its weights.
std::vector<int> losses_through(const ReferenceCase& c, int i) {
  const int furthest = trained_by(c, i);
  std::vector<int> losses;
  for (int loss = i; loss < furthest; ++loss) {
    // A gradient goes down as far as it trains. With all heads it goes as far as it reaches; only
    // the list form makes a stage push that of its own head where it goes no further.
    const bool own = loss == i && (i == 0 || !reaches(c, loss, i - 1));
    const bool wasted = c.all_heads && reaches(c, loss, i) && (c.list || !own);
    if (wasted || trains_at_or_below(c, loss, i)) losses.push_back(loss);
  }
  losses.push_back(furthest);
  return losses;
}

/// Returns whether stage `below` pushes the gradient of `loss`.
bool needs(const ReferenceCase& c, int below, int loss) {
  if (below < 0) return false;
  const std::vector<int> losses = losses_through(c, below);
  return std::find(losses.begin(), losses.end(), loss) != losses.end();
}

void add_gradients(const ReferenceCase& c, int i, std::vector<Step>& steps) {
  const std::vector<int> losses = losses_through(c, i);
  for (int loss : losses) {
    const bool passed_on = needs(c, i - 1, loss);
    const bool trains = loss == losses.back();
    if (loss > i && !c.list) steps.push_back({'<', loss, 1, +1});
    if (!trains || (passed_on && !c.fused)) steps.push_back({'I', loss});
    if (trains && (!passed_on || c.fused)) steps.push_back({'B', loss});
    if (passed_on && !c.list) steps.push_back({'>', loss, 1, -1});
    if (trains && passed_on && !c.fused) steps.push_back({'W', loss});
  }
}

int list_length(const ReferenceCase& c, int i) {
  int length = 0;
  for (int loss : losses_through(c, i)) length += needs(c, i - 1, loss) ? 1 : 0;
  return length;
}

/// Returns the steps of stage `i` with one batch; U included, whether or not this batch updates.
std::vector<Step> steps_of(const ReferenceCase& c, int i) {
  const int last = static_cast<int>(c.stages.size()) - 1;
  std::vector<Step> steps = {{'=', i}};
  if (i > 0) steps.push_back({'<', kForward, 1, -1});
  steps.push_back({'F', i});
  if (i < last) steps.push_back({'>', kForward, 1, +1});
  if (i < last && (c.all_heads || trains_at_or_below(c, i, i))) steps.push_back({'H', i});
  if (c.list && i < last && list_length(c, i + 1) > 0) steps.push_back({'<', i + 1, 1, +1});
  add_gradients(c, i, steps);
  if (c.list && list_length(c, i) > 0) steps.push_back({'>', i, list_length(c, i), -1});
  steps.push_back({'U', i});
  return steps;
}

struct Slot {
  int stage = 0, batch = 0;
  std::size_t step = 0;
  bool running = false;
  bool stands = false;  // rendezvous: has put, and may not go on
};
struct Channel {
  std::deque<Ticks> arrivals;  // of the messages put and not taken
  std::optional<Ticks> asked;  // when the taker comes for the next one, once anyone can know
  Ticks way = 0;               // how long a message takes on an idle wire
};
/// From stage, to stage, slot: batches in flight at once have channels of their own.
using ChannelKey = std::tuple<int, int, int>;

class Loop {
 public:
  explicit Loop(const ReferenceCase& c) : c_(c) {
    const int stages = static_cast<int>(c.stages.size());
    for (int i = 0; i < stages; ++i) {
      steps_.push_back(steps_of(c, i));
      rank_.push_back(c.rank_of_stage.empty() ? i : c.rank_of_stage[i]);
      for (int k = 0; k < c.in_flight; ++k) slots_.push_back({.stage = i, .batch = k});
    }
    busy_.resize(*std::max_element(rank_.begin(), rank_.end()) + 1);
    slots_of_rank_.resize(busy_.size());
    for (const Slot& slot : slots_) ++slots_of_rank_[rank_[slot.stage]];
    trained_.assign(stages, std::vector<bool>(c.batches));
    updated_.assign(stages, 0);
  }

  std::vector<ReferenceSpan> run() {
    while (true) {
      while (settle()) {
      }
      if (start_ops()) continue;
      const std::optional<Ticks> next = next_time();
      if (!next) break;
      now_ = *next;
      end_ops();
    }
    for (const Slot& slot : slots_) CHECK(slot.batch >= c_.batches, "the reference deadlocked");
    std::sort(spans_.begin(), spans_.end(),
              [](const auto& x, const auto& y) { return x.end < y.end; });
    return std::move(spans_);
  }

 private:
  const Step& step(const Slot& slot) const { return steps_[slot.stage][slot.step]; }
  bool live(const Slot& slot) const { return slot.batch < c_.batches; }

  void advance(Slot& slot) {
    if (++slot.step < steps_[slot.stage].size()) return;
    slot.step = 0;
    slot.batch += c_.in_flight;
  }

  Channel& channel_of(const Slot& slot, int from, int to) {
    return channels_[{from, to, slot.batch % c_.in_flight}];
  }

  /// Passes every step that takes no device and can be passed now. Returns whether any was.
  bool settle() {
    bool moved = false;
    std::vector<Slot*> oldest_first;
    for (Slot& slot : slots_) oldest_first.push_back(&slot);
    std::stable_sort(oldest_first.begin(), oldest_first.end(),
                     [](const Slot* x, const Slot* y) { return x->batch < y->batch; });
    for (Slot* slot : oldest_first) {
      if (live(*slot) && !slot->running && pass(*slot)) moved = true;
    }
    return moved;
  }

  bool pass(Slot& slot) {
    const Step& s = step(slot);
    if (s.what == '=' && !may_begin(slot)) return false;
    if (s.what == '<') return take(slot, s);
    if (s.what == '>') return put(slot, s);
    if (!is_void(slot)) return false;
    advance(slot);
    return true;
  }

  /// A batch begins once the updates are done that were due when the one `in_flight` before ended.
  bool may_begin(const Slot& slot) const {
    const int ended = std::max(0, slot.batch - c_.in_flight + 1);
    return updated_[slot.stage] >= ended - ended % c_.update_every;
  }

  /// Returns whether `slot` takes no time: the start, or an update that this batch does not make.
  bool is_void(const Slot& slot) const {
    if (step(slot).what == '=') return true;
    return step(slot).what == 'U' && (slot.batch + 1) % c_.update_every != 0;
  }

  bool take(Slot& slot, const Step& s) {
    Channel& channel = channel_of(slot, slot.stage + s.towards, slot.stage);
    if (channel.arrivals.empty() || channel.arrivals.front() > now_) {
      const bool news = !channel.asked;
      if (news) channel.asked = now_;
      return news && c_.depth == 0;
    }
    channel.arrivals.pop_front();
    channel.asked.reset();
    advance(slot);
    return true;
  }

  bool put(Slot& slot, const Step& s) {
    Channel& channel = channel_of(slot, slot.stage, slot.stage + s.towards);
    const int untaken = static_cast<int>(channel.arrivals.size());
    if (slot.stands) {
      // The taker comes for the front message, which may be the one before this one.
      const bool awaited = channel.asked && now_ >= *channel.asked - channel.way;
      if (untaken > 1 || (untaken == 1 && !awaited)) return false;
      slot.stands = false;
      advance(slot);
      return true;
    }
    if (c_.depth > 0 && untaken >= c_.depth) return false;
    channel.arrivals.push_back(arrival(slot.stage, s));
    channel.way = way(slot.stage, s);
    slot.stands = c_.depth == 0;
    if (!slot.stands) advance(slot);
    return true;
  }

  /// Rendezvous: a device that has only one thing to do knows, when it begins a row of ops, when it
  /// will come to the take behind them. To tell again on the next op of the row changes nothing.
  void tell_of_next_take(Slot slot) {
    Ticks then = now_;
    for (; live(slot) && step(slot).what != '>'; advance(slot)) {
      if (step(slot).what == '<') {
        channel_of(slot, slot.stage + step(slot).towards, slot.stage).asked = then;
        return;
      }
      then += is_void(slot) ? 0 : duration(slot);
    }
  }

  Ticks occupancy(int from, const Step& s) const {
    return s.tensors * c_.stages[std::min(from, from + s.towards)].occupancy;
  }

  Ticks way(int from, const Step& s) const {
    return rank_[from] == rank_[from + s.towards] ? 0 : occupancy(from, s) + c_.latency;
  }

  Ticks arrival(int from, const Step& s) {
    const int to = from + s.towards;
    if (rank_[from] == rank_[to]) return now_;
    Ticks& free = wire_free_[{rank_[from], rank_[to]}];
    free = std::max(free, now_) + occupancy(from, s);
    return free + c_.latency;
  }

  Ticks duration(const Slot& slot) const {
    const ReferenceStage& stage = c_.stages[slot.stage];
    const Step& s = step(slot);
    switch (s.what) {
      case 'F':
        return stage.forward;
      case 'H':
        return stage.head;
      case 'I':
        return stage.backward_input;
      case 'W':
        return stage.backward_weight;
      case 'B':
        return stage.backward_weight +
               (c_.skip_unneeded && !needs(c_, slot.stage - 1, s.loss) ? 0 : stage.backward_input);
      default:
        return stage.update;
    }
  }

  auto priority(const Slot& slot) const {
    const Step& s = step(slot);
    return std::tuple(std::string("FHIBWU").find(s.what), s.loss - slot.stage, slot.batch,
                      slot.stage);
  }

  bool window_trained(const Slot& slot) const {
    const auto& trained = trained_[slot.stage];
    return std::all_of(trained.begin() + slot.batch + 1 - c_.update_every,
                       trained.begin() + slot.batch + 1, [](bool done) { return done; });
  }

  bool ready(const Slot& slot, std::size_t rank) const {
    if (rank_[slot.stage] != static_cast<int>(rank) || !live(slot) || slot.running) return false;
    const char what = step(slot).what;
    // An update closes a window of batches: all of them must have made their gradients.
    if (what == 'U') return window_trained(slot);
    return what != '<' && what != '>' && what != '=';
  }

  /// Devices with a choice come last, as what others begin may let go of something they could do.
  bool start_ops() { return start_ops(false) || start_ops(true); }

  bool start_ops(bool choosing) {
    bool started = false;
    for (std::size_t rank = 0; rank < busy_.size(); ++rank) {
      if (busy_[rank] || (slots_of_rank_[rank] > 1) != choosing) continue;
      Slot* best = nullptr;
      for (Slot& slot : slots_) {
        if (ready(slot, rank) && (!best || priority(slot) < priority(*best))) best = &slot;
      }
      if (!best) continue;
      started = true;
      if (c_.depth == 0 && !choosing) tell_of_next_take(*best);
      best->running = true;
      busy_[rank] = true;
      spans_.push_back({step(*best).what, best->stage, best->batch, step(*best).loss, now_,
                        now_ + duration(*best)});
      running_.push_back({now_ + duration(*best), best});
    }
    if (started) end_ops();  // those of no duration
    return started;
  }

  void end_ops() {
    std::erase_if(running_, [&](const auto& run) {
      if (run.first > now_) return false;
      run.second->running = false;
      busy_[rank_[run.second->stage]] = false;
      const Step& ended = step(*run.second);
      const bool trains = ended.what == 'B' || ended.what == 'W';
      if (trains) trained_[run.second->stage][run.second->batch] = true;
      if (ended.what == 'U') updated_[run.second->stage] = run.second->batch + 1;
      advance(*run.second);
      return true;
    });
  }

  /// The earliest end or arrival to come, if anything is.
  std::optional<Ticks> next_time() const {
    std::optional<Ticks> next;
    const auto consider = [&](Ticks time) {
      if (time > now_ && (!next || time < *next)) next = time;
    };
    for (const auto& run : running_) consider(run.first);
    for (const auto& [key, channel] : channels_) {
      for (Ticks arrival : channel.arrivals) consider(arrival);
      if (channel.asked) consider(*channel.asked - channel.way);
    }
    return next;
  }

  const ReferenceCase& c_;
  std::vector<std::vector<Step>> steps_;  // (stages, steps)
  std::vector<int> rank_;                 // (stages)
  std::vector<Slot> slots_;
  std::vector<bool> busy_;                  // (ranks)
  std::vector<int> slots_of_rank_;          // (ranks) with several it chooses
  std::vector<std::vector<bool>> trained_;  // (stages, batches) weight gradients are made
  std::vector<int> updated_;                // (stages) batches that updates have used
  std::vector<std::pair<Ticks, Slot*>> running_;
  std::map<ChannelKey, Channel> channels_;
  std::map<std::pair<int, int>, Ticks> wire_free_;
  std::vector<ReferenceSpan> spans_;
  Ticks now_ = 0;
};

}  // namespace

std::vector<ReferenceSpan> run_reference(const ReferenceCase& reference) {
  return Loop(reference).run();
}

double reference_period(const std::vector<ReferenceSpan>& spans, int from, int to) {
  Ticks begin = 0, end = 0;
  for (const ReferenceSpan& span : spans) {
    if (span.op != 'U') continue;
    if (span.batch == from) begin = std::max(begin, span.end);
    if (span.batch == to) end = std::max(end, span.end);
  }
  return static_cast<double>(end - begin) / (to - from);
}

}  // namespace interlock
