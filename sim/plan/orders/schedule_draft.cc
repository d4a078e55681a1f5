// Passes over a draft: old letters, sizes, and the ways of micro-batches through the ranks.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/orders/schedule_draft.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>

#include "base/error.h"

namespace interlock {

namespace {

constexpr std::string_view kLetters = "FIWB";

/// Refuses numbers that leave a gap; `last` is an action with the greatest of them.
void require_no_gap(const Draft& draft, const std::set<int>& numbers, const Action& last,
                    const std::string& what) {
  int next = 0;
  for (const int number : numbers) {
    if (number != next) {
      draft.refuse(last, "counts " + what + " to " + std::to_string(*numbers.rbegin()) +
                             ", and no op is of number " + std::to_string(next) +
                             "; expected no gap");
    }
    ++next;
  }
}

/// Returns the rank of each stage for one micro-batch.
std::vector<int> way_of(const Draft& draft, int micro_batch) {
  std::vector<int> way;
  for (int stage = 0; stage < draft.stages; ++stage) {
    const auto found = draft.forwards.find({stage, micro_batch});
    if (found != draft.forwards.end()) {
      way.push_back(found->second.row);
      continue;
    }
    const std::string missing =
        std::to_string(stage) + "F" + std::to_string(micro_batch) + " is nowhere";
    for (const auto& row : draft.rows) {
      for (const Action& action : row) {
        if (!is_compute(action) || action.micro_batch != micro_batch) continue;
        draft.refuse(action, "is of micro-batch " + std::to_string(micro_batch) + ", but " +
                                 missing + "; expected every micro-batch on every stage");
      }
    }
  }
  return way;
}

}  // namespace

bool is_compute(const Action& action) {
  return action.word.size() == 1 && kLetters.find(action.word[0]) != std::string_view::npos;
}

void require_ops(const Draft& draft) {
  for (std::size_t row = 0; row < draft.rows.size(); ++row) {
    if (std::any_of(draft.rows[row].begin(), draft.rows[row].end(), is_compute)) continue;
    throw Error(draft.cells.file + ":" + std::to_string(row + 1) + ": rank " + std::to_string(row) +
                " runs nothing; expected an op such as 0F0 in every row");
  }
  if (!draft.rows.empty()) return;
  throw Error(draft.cells.file + ": holds no op; expected a row for each rank, e.g. 0F0,0B0");
}

void read_old_letters(Draft& draft) {
  std::set<std::pair<int, int>> split;
  for (const auto& row : draft.rows) {
    for (const Action& action : row) {
      if (action.word == "I") return;
      if (action.word == "W") split.insert({action.stage, action.micro_batch});
    }
  }
  for (auto& row : draft.rows) {
    for (Action& action : row) {
      if (action.word == "B" && split.count({action.stage, action.micro_batch})) action.word = "I";
    }
  }
}

void find_forwards(Draft& draft) {
  std::set<int> stages, micro_batches;
  const Action* last_stage = nullptr;
  const Action* last_batch = nullptr;
  for (const auto& row : draft.rows) {
    for (const Action& action : row) {
      if (!is_compute(action)) continue;
      if (action.word == "F")
        draft.forwards.try_emplace({action.stage, action.micro_batch}, action);
      stages.insert(action.stage);
      micro_batches.insert(action.micro_batch);
      if (!last_stage || action.stage > last_stage->stage) last_stage = &action;
      if (!last_batch || action.micro_batch > last_batch->micro_batch) last_batch = &action;
    }
  }
  require_no_gap(draft, stages, *last_stage, "stages");
  require_no_gap(draft, micro_batches, *last_batch, "micro-batches");
  draft.stages = static_cast<int>(stages.size());
  draft.micro_batches = static_cast<int>(micro_batches.size());
}

void find_copies(Draft& draft) {
  std::vector<int> users;
  for (int b = 0; b < draft.micro_batches; ++b) {
    const std::vector<int> way = way_of(draft, b);
    const auto known = std::find(draft.ways.begin(), draft.ways.end(), way);
    const auto copy = static_cast<int>(known - draft.ways.begin());
    bool apart = copy < 2;
    for (int stage = 0; stage < draft.stages && known == draft.ways.end(); ++stage) {
      apart = apart && (draft.ways.empty() || way[stage] != draft.ways[0][stage]);
    }
    if (!apart) {
      const auto& usual = draft.ways[0];
      const auto differs = std::mismatch(way.begin(), way.end(), usual.begin()).first;
      const auto stage = static_cast<int>(differs - way.begin());
      draft.refuse(draft.forwards.at({stage, b}),
                   "is on rank " + std::to_string(way[stage]) + ", but micro-batch 0 has stage " +
                       std::to_string(stage) + " on rank " + std::to_string(usual[stage]) +
                       "; expected one rank for a stage, or two whole copies of the model");
    }
    if (known == draft.ways.end()) {
      draft.ways.push_back(way);
      users.push_back(0);
    }
    ++users[copy];
    draft.copy_of.push_back(copy);
  }
  if (users.size() < 2 || users[0] == users[1]) return;
  const auto second = std::find(draft.copy_of.begin(), draft.copy_of.end(), 1);
  draft.refuse(draft.forwards.at({0, static_cast<int>(second - draft.copy_of.begin())}),
               "goes through a second copy of the model, as " + std::to_string(users[1]) + " of " +
                   std::to_string(draft.micro_batches) +
                   " micro-batches do; expected half of them, or none");
}

namespace {

/// An action by its word, stage and micro-batch.
using Key = std::tuple<std::string, int, int>;

/// The op that must stand in the row before, or after, a message.
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
