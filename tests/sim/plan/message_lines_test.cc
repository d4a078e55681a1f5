// Messages that stand in line: every op against a list of events that reads the order as text.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "sim/plan/orders/schedule_text.h"
#include "tests/sim/support/realised.h"
#include "tests/sim/support/test_chain.h"
#include "tests/support/cases.h"

namespace interlock::message_lines_test {
namespace {

using Lines = MessageOrder::Lines;

/// One word of a row: an op, as 2F0, or one end of a message, as 2SEND_F0.
struct Word {
  int stage = 0, micro_batch = 0;
  char kind = 'F';
  bool message = false, sends = false;
};
using Cell = std::vector<Word>;  // several words: a pair, or messages that begin together
using Row = std::vector<Cell>;

Word read_word(const std::string& text) {
  char* rest = nullptr;
  Word word;
  word.stage = static_cast<int>(std::strtol(text.c_str(), &rest, 10));
  const std::string letters(rest);
  word.message = letters.find('_') != std::string::npos;
  word.sends = letters.starts_with("SEND");
  const std::size_t kind = word.message ? letters.find('_') + 1 : 0;
  word.kind = letters[kind];
  word.micro_batch = std::atoi(letters.c_str() + kind + 1);
  return word;
}

std::vector<Row> read_rows(const std::string& text) {
  std::vector<Row> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream cells(line);
    Row& row = rows.emplace_back();
    for (std::string cell; std::getline(cells, cell, ',');) {
      Cell& words = row.emplace_back();
      if (cell.front() == '(') cell = cell.substr(1, cell.find(')') - 1);
      std::istringstream parts(cell);
      for (std::string word; std::getline(parts, word, ';');) words.push_back(read_word(word));
    }
  }
  return rows;
}

using Key = std::tuple<char, int, int>;  // letter, stage, micro-batch: of an op, or what it makes

/// The times of ops and messages, and who sends what to whom.
struct Prices {
  std::map<std::pair<char, int>, double> ops, messages;  // by letter and stage of the maker
  double of(char kind, int stage) const {
    const auto found = ops.find({kind, stage});
    return found == ops.end() ? 0 : found->second;
  }
};

Prices prices_of(const Program& free) {
  Prices prices;
  for (const OpInfo& op : free.ops) {
    prices.ops[{letter(op.kind), op.stage}] += op.duration.value();
  }
  for (const Channel& channel : free.channels) {
    const char made = channel.cargo == Cargo::Activation ? 'F' : 'B';
    prices.messages[{made, channel.from_stage}] = (channel.occupancy + channel.latency).value();
  }
  return prices;
}

/// Says when each op ends, by the words of each rank and the rule of lines alone.
class EventList {
 public:
  EventList(const TestChain& chain, const std::vector<Row>& step, Prices prices)
      : chain_(chain), prices_(std::move(prices)), stages_(static_cast<int>(chain.costs.size())) {
    for (std::size_t r = 0; r < step.size(); ++r) {
      rows_.emplace_back();
      for (int n = 0; n < chain.steps; ++n) {
        for (Cell cell : step[r]) {
          for (Word& word : cell) word.micro_batch += n * chain.micro_batches;
          rows_[r].push_back(cell);
        }
        for (int s = 0; s < stages_; ++s) {
          if (rank_of(s) != static_cast<int>(r)) continue;
          rows_[r].push_back({{s, (n + 1) * chain.micro_batches - 1, 'U'}});
        }
      }
      lay_lines(static_cast<int>(r));
    }
    next_.resize(rows_.size(), 0);
    free_.resize(rows_.size(), 0);
  }

  /// Returns false if some op never begins.
  bool run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t r = 0; r < rows_.size(); ++r) moved = compute(r) || moved;
      for (Batch& batch : batches_) moved = begin(batch) || moved;
      for (Batch& batch : batches_) moved = end(batch) || moved;
    }
    return std::ranges::all_of(next_, [&](const std::size_t& n) {
      return n == rows_[static_cast<std::size_t>(&n - next_.data())].size();
    });
  }
  const std::map<Key, double>& ends() const { return ends_; }

 private:
  struct Post {
    Key message;
    bool sends = false;
    Key after;      // an op; kind 0: the start of the run
    int track = 0;  // direction and other rank: in order
    double done = -1;
  };
  struct Batch {
    std::vector<Post> posts;
    int before = -1;  // in its line
    double began = -1, done = -1;
  };

  int rank_of(int stage) const { return chain_.rank_of_stage[stage]; }
  static Key made_by(const Word& word) {
    if (!word.message) return {word.kind, word.stage, word.micro_batch};
    const int back = word.kind == 'F' ? -1 : 1;
    return {word.kind, word.sends ? word.stage : word.stage + back, word.micro_batch};
  }

  void lay_lines(int rank) {
    std::map<int, int> last;  // batch of each line
    Key before = {0, 0, 0};
    for (const Cell& cell : rows_[rank]) {
      if (!cell.front().message) {
        before = made_by(cell.back());
        continue;
      }
      std::map<int, int> of_line;
      for (const Word& word : cell) {
        const Key message = made_by(word);
        const auto [kind, from, b] = message;
        const int to = from + (kind == 'F' ? 1 : -1);
        const int other = rank_of(word.sends ? to : from);
        const int line = chain_.policy.messages.lines == Lines::Rank ? -1 : other;
        const auto [entry, fresh] = of_line.try_emplace(line, static_cast<int>(batches_.size()));
        if (fresh) {
          const auto known = last.find(line);
          batches_.push_back({.before = known == last.end() ? -1 : known->second});
          last[line] = entry->second;
        }
        batches_[entry->second].posts.push_back(
            {message, word.sends, word.sends ? message : before, 2 * other + (word.sends ? 1 : 0)});
        (word.sends ? sent_ : taken_)[message] = entry->second;
      }
    }
  }

  bool compute(std::size_t r) {
    if (next_[r] == rows_[r].size()) return false;
    const Cell& cell = rows_[r][next_[r]];
    if (cell.front().message) {
      ++next_[r];
      return true;
    }
    double now = std::max(free_[r], 0.0);
    for (const Word& word : cell) {
      const double ready = ready_at(word);
      if (ready < 0) return false;
      now = std::max(now, ready);
    }
    for (const Key& op : last_[r]) {
      const double left = left_at(op);
      if (left < 0) return false;
      now = std::max(now, left);
    }
    last_[r].clear();
    for (const Word& word : cell) {
      ends_[made_by(word)] = now += prices_.of(word.kind, word.stage);
      last_[r].push_back(made_by(word));
    }
    for (const Key& op : last_[r]) made_[op] = now;
    free_[r] = now;
    ++next_[r];
    return true;
  }
  /// Returns when the message of an op has left, if ranks stand for that.
  double left_at(Key op) const {
    if (!chain_.policy.waits_for_sends) return 0;
    if (std::get<0>(op) == 'I') std::get<0>(op) = 'B';
    const auto found = sent_.find(op);
    return found == sent_.end() ? 0 : batches_[found->second].done;
  }
  double ready_at(const Word& word) const {
    const bool forward = word.kind == 'F', back = word.kind == 'B' || word.kind == 'I';
    const int from = word.stage + (forward ? -1 : 1);
    if ((!forward && !back) || from < 0 || from >= stages_) return 0;
    const Key message = {forward ? 'F' : 'B', from, word.micro_batch};
    if (rank_of(from) == rank_of(word.stage)) return made_at(message);
    return batches_[taken_.at(message)].done;
  }
  /// Returns when an op, or its pair, has ended; the B of a message may be an I.
  double made_at(Key op) const {
    auto found = made_.find(op);
    if (found == made_.end() && std::get<0>(op) == 'B') {
      std::get<0>(op) = 'I';
      found = made_.find(op);
    }
    return found == made_.end() ? -1 : found->second;
  }
  bool begin(Batch& batch) {
    if (batch.began >= 0) return false;
    double at = batch.before < 0 ? 0 : batches_[batch.before].done;
    if (at < 0) return false;
    for (const Post& post : batch.posts) {
      const double after = std::get<0>(post.after) == 0 ? 0 : made_at(post.after);
      if (after < 0) return false;
      at = std::max(at, after);
    }
    batch.began = at;
    return true;
  }
  /// Returns when an end of a message has been come to: all before it on its way are done.
  static double came(const Batch& batch, const Key& message) {
    if (batch.began < 0) return -1;
    const auto own = std::ranges::find(batch.posts, message, &Post::message);
    double at = batch.began;
    for (auto post = batch.posts.begin(); post != own; ++post) {
      if (post->track != own->track) continue;
      if (post->done < 0) return -1;
      at = std::max(at, post->done);
    }
    return at;
  }
  bool end(Batch& batch) {
    if (batch.done >= 0 || batch.began < 0) return false;
    bool moved = false;
    double last = 0;
    for (Post& post : batch.posts) {
      const double own = came(batch, post.message);
      const double other =
          came(batches_[(post.sends ? taken_ : sent_).at(post.message)], post.message);
      if (post.done < 0 && own >= 0 && other >= 0) {
        const auto [kind, from, b] = post.message;
        post.done = std::max(own, other) + prices_.messages.at({kind, from});
        moved = true;
      }
      if (post.done < 0) return moved;
      last = std::max(last, post.done);
    }
    batch.done = last;
    return true;
  }

  const TestChain& chain_;
  Prices prices_;
  int stages_;
  std::vector<Row> rows_;
  std::vector<Batch> batches_;
  std::map<Key, int> sent_, taken_;  // batches at both ends of a message
  std::vector<std::size_t> next_;
  std::vector<double> free_;
  std::map<std::size_t, std::vector<Key>> last_;  // ops of each rank
  std::map<Key, double> ends_, made_;             // of ops; of their turns
};

/// Returns the words of each rank: of the text, or with receives before the ops that read them.
std::vector<Row> rows_of(const TestChain& chain) {
  TestChain one = chain;
  one.steps = 1;
  const StepOrder order = first_step(schedule_of(one));
  const MessageOrder& messages = chain.policy.messages;
  if (!messages.late) {
    return read_rows(
        schedule_text(order, messages.batched ? TextMessages::Batched : TextMessages::Single));
  }
  const int stages = static_cast<int>(chain.costs.size());
  std::vector<Row> rows;
  for (const Row& ops : read_rows(schedule_text(order))) {
    Row& row = rows.emplace_back();
    const auto post = [&](const Word& word) {
      const bool joins = messages.batched && !row.empty() && row.back().front().message;
      if (!joins) row.emplace_back();
      row.back().push_back(word);
    };
    for (const Cell& cell : ops) {
      const auto [stage, b, kind, message, sends] = cell.front();
      const bool forward = kind == 'F';
      const char made = forward ? 'F' : 'B';
      const int below = stage + (forward ? -1 : 1), above = stage - (forward ? -1 : 1);
      const auto elsewhere = [&](int other) {
        return kind != 'W' && other >= 0 && other < stages &&
               chain.rank_of_stage[other] != chain.rank_of_stage[stage];
      };
      if (elsewhere(below)) post({stage, b, made, true, false});
      row.push_back(cell);
      if (elsewhere(above)) post({stage, b, made, true, true});
    }
  }
  return rows;
}

/// Returns the schedules whose messages may stand in line.
std::vector<std::string_view> kinds() {
  std::vector<std::string_view> found;
  for (const std::string_view kind : families()) {
    const ScheduleEntry& entry = schedule_named(kind);
    if (entry.global() && message_problem({.kind = &entry}).empty()) found.push_back(kind);
  }
  return found;
}

TestChain random_case(Random& random) {
  const std::vector<std::string_view> all = kinds();
  TestChain chain;
  do {
    const std::string_view kind = all[random.integer(0, static_cast<int>(all.size()) - 1)];
    chain = make_laid_chain(random.integer(2, 6), kind);
    chain.micro_batches = chain.policy.update_every = random.integer(1, 14);
  } while (shape_problem(chain) != "");
  std::vector<ChainStage> stages;
  for (std::size_t s = 0; s < chain.costs.size(); ++s) {
    stages.push_back({.forward = 0.1 + 2 * random.uniform(),
                      .backward_input = 0.1 + 2 * random.uniform(),
                      .backward_weight = 0.1 + 2 * random.uniform(),
                      .update = random.uniform(),
                      .output = 1000 * random.uniform()});
  }
  chain.costs = make_chain(stages, chain.policy.kind->name).costs;
  chain.cluster.machines.front().port_latency = Seconds(random.uniform());
  chain.steps = 3;
  chain.contention = false;
  chain.policy.waits_for_sends = random.integer(0, 3) == 0;
  SchedulePolicy late_policy = chain.policy;
  late_policy.messages.late = true;
  const bool may_be_late = late_problem(late_policy).empty();
  chain.policy.messages = {.lines = random.integer(0, 1) == 0 ? Lines::Rank : Lines::Pair,
                           .batched = random.integer(0, 1) == 0,
                           .late = may_be_late && random.integer(0, 1) == 0};
  return chain;
}

TEST_CASE("every op ends when the list of events says, or both stand for ever") {
  int stood = 0, ran = 0, pairs = 0, mirrored = 0;
  for (int seed = 0; seed < cases(400); ++seed) {
    Random random(188833, static_cast<std::uint64_t>(seed));
    const TestChain chain = random_case(random);
    INFO("seed " << seed << ": " << describe(chain));
    if (chain.copies > 1) {  // of which the words do not tell the copy
      REQUIRE(realise(program_of(chain), run_native).deadlock == "");
      ++mirrored;
      continue;
    }
    TestChain free = chain;
    free.policy.messages = {};
    EventList list(chain, rows_of(chain), prices_of(program_of(free)));
    const bool goes_on = list.run();
    const Program program = program_of(chain);
    const Realised realised = realise(program, run_native);
    REQUIRE((realised.deadlock == "") == goes_on);
    if (!chain.policy.messages.late) CHECK(goes_on);  // both ends stand where one order has them
    (goes_on ? ran : stood) += 1;
    pairs += chain.policy.kind->overlaps ? 1 : 0;
    if (!goes_on) continue;
    CHECK(realised.log.spans.size() == list.ends().size());
    for (const Span& span : realised.log.spans) {
      const OpInfo& op = program.ops[span.op];
      const auto found = list.ends().find({letter(op.kind), op.stage, span.micro_batch});
      REQUIRE(found != list.ends().end());
      CHECK(span.end.value() == doctest::Approx(found->second).epsilon(1e-9));
    }
  }
  CHECK(ran > stood);
  CHECK(stood > 0);
  CHECK(pairs > 0);
  CHECK(mirrored > 0);
}

}  // namespace
}  // namespace interlock::message_lines_test
