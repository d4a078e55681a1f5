// What a text says besides compute: checked against it, then dropped.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <tuple>

#include "sim/plan/schedule_draft.h"

namespace interlock {

namespace {

/// An action by its word, stage and micro-batch.
using Key = std::tuple<std::string, int, int>;

/// What must stand in the row before, or after, a message.
struct MessageRule {
  std::string partner;    // the word of the other end
  int partner_stage = 1;  // relative to the stage
  bool forward = true;    // carries an activation
  bool sends = true;
};

MessageRule rule_of(const std::string& word) {
  if (word == "SEND_F") return {"RECV_F", 1, true, true};
  if (word == "RECV_F") return {"SEND_F", -1, true, false};
  if (word == "SEND_B") return {"RECV_B", -1, false, true};
  return {"SEND_B", 1, false, false};
}

void check_message(const Draft& draft, const Action& action, const std::set<Key>& all,
                   const std::set<Key>& done) {
  const MessageRule rule = rule_of(action.word);
  const int partner = action.stage + rule.partner_stage;
  const std::string batch = std::to_string(action.micro_batch);
  if (partner < 0 || partner >= draft.stages) {
    draft.refuse(action, "has no stage at its other end; expected a neighbour of stage " +
                             std::to_string(action.stage));
  }
  if (!all.count({rule.partner, partner, action.micro_batch})) {
    draft.refuse(action, "has no other end; expected " + std::to_string(partner) + rule.partner +
                             batch + " on some rank");
  }
  const bool computed = rule.forward ? done.count({"F", action.stage, action.micro_batch}) > 0
                                     : done.count({"B", action.stage, action.micro_batch}) > 0 ||
                                           done.count({"I", action.stage, action.micro_batch}) > 0;
  if (computed == rule.sends) return;
  draft.refuse(action, std::string("stands ") + (rule.sends ? "before" : "after") +
                           " what it belongs to; expected the " +
                           (rule.forward ? "forward" : "backward") + " of stage " +
                           std::to_string(action.stage) + " for micro-batch " + batch +
                           (rule.sends ? " before it" : " after it"));
}

/// Every action, which must not stand twice.
std::set<Key> all_actions(const Draft& draft) {
  std::set<Key> all;
  for (const auto& row : draft.rows) {
    for (const Action& action : row) {
      if (is_compute(action)) continue;
      if (all.insert({action.word, action.stage, action.micro_batch}).second) continue;
      if (action.micro_batch >= 0) draft.refuse(action, "stands twice; expected it once");
    }
  }
  return all;
}

/// An action must be about a stage of its rank and, where it names one, a micro-batch of the step.
void check_place(const Draft& draft, const Action& action, int rank) {
  const bool here = std::any_of(draft.ways.begin(), draft.ways.end(), [&](const auto& way) {
    return action.stage < draft.stages && way[action.stage] == rank;
  });
  if (here && action.micro_batch < draft.micro_batches) return;
  draft.refuse(action, "is about nothing that rank " + std::to_string(rank) +
                           " runs; expected one of its stages and micro-batches");
}

}  // namespace

void check_dropped(const Draft& draft) {
  const std::set<Key> all = all_actions(draft);
  for (std::size_t row = 0; row < draft.rows.size(); ++row) {
    std::set<Key> done;
    for (const Action& action : draft.rows[row]) {
      if (is_compute(action)) {
        done.insert({action.word, action.stage, action.micro_batch});
        continue;
      }
      check_place(draft, action, static_cast<int>(row));
      if (action.micro_batch >= 0) check_message(draft, action, all, done);
    }
  }
}

}  // namespace interlock
