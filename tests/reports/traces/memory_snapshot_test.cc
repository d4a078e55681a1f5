// Memory snapshots: pickles as PyTorch's viewer takes them, whose sums are the peaks of the result.
// SPDX-License-Identifier: Apache-2.0
#include "reports/traces/memory_snapshot.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "scenarios/contract/set_key.h"

namespace interlock::memory_snapshot_test {
namespace {

using Json = nlohmann::json;

/// Reads a pickle by the opcodes that PyTorch's viewer knows, which are fewer than Python's.
class Unpickler {
 public:
  explicit Unpickler(std::string text) : text_(std::move(text)) {}

  Json read() {
    for (;;) {
      const unsigned char code = byte();
      if (code == '.') return stack_.back();
      step(code);
    }
  }

 private:
  unsigned char byte() {
    REQUIRE(at_ < text_.size());
    return static_cast<unsigned char>(text_[at_++]);
  }
  std::int64_t number(int bytes) {
    std::uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) value |= std::uint64_t{byte()} << (8 * i);
    if (bytes == 4) return static_cast<std::int32_t>(value);
    return static_cast<std::int64_t>(value);
  }
  std::vector<Json> since_mark() {
    const auto from = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    marks_.pop_back();
    std::vector<Json> items(from, stack_.end());
    stack_.erase(from, stack_.end());
    CHECK(items.size() <= 2000);  // a viewer spreads them on its own stack
    return items;
  }
  void step(unsigned char code) {
    switch (code) {
      case 0x80:
        CHECK(byte() <= 4);
        return;
      case '}':
        return stack_.push_back(Json::object());
      case ']':
        return stack_.push_back(Json::array());
      case '(':
        return marks_.push_back(stack_.size());
      case 'K':
        stack_.emplace_back(byte());
        return;
      case 'J':
        stack_.emplace_back(number(4));
        return;
      case 0x8a:
        stack_.emplace_back(number(byte()));
        return;
      case 0x88:
      case 0x89:
        stack_.emplace_back(code == 0x88);
        return;
      case 'X': {
        const auto size = static_cast<std::size_t>(number(4));
        stack_.emplace_back(text_.substr(at_, size));
        at_ += size;
        return;
      }
      case 'e':
        for (Json& item : since_mark()) stack_.back().push_back(std::move(item));
        return;
      case 'u': {
        std::vector<Json> items = since_mark();
        for (std::size_t i = 0; i < items.size(); i += 2) stack_.back()[items[i]] = items[i + 1];
        return;
      }
      default:
        FAIL("an opcode that the viewer does not know: " << static_cast<int>(code));
    }
  }

  std::string text_;
  std::size_t at_ = 0;
  std::vector<Json> stack_;
  std::vector<std::size_t> marks_;
};

ScenarioResult run(const std::vector<std::string>& settings) {
  JsonValue document = parse_json(R"({"model": "gpt2",
    "cluster": {"machine": "dgx-a100-80g", "devices": 4},
    "training": {"strategy": "global", "global_batch_size": 16, "micro_batch_size": 2,
      "steps": 2}})",
                                  "test.json");
  apply_overrides(document, settings);
  return run_scenario(load_questions(document).front(), true);
}

Json snapshot_of(const ScenarioResult& result) {
  std::string text;
  memory_snapshot(result)([&](std::string_view piece) { text += piece; });
  return Unpickler(text).read();
}

/// Replays the events of a device. Returns the most bytes that live at once.
std::int64_t replayed(const Json& trace, std::map<std::int64_t, std::int64_t>& live) {
  std::int64_t held = 0, most = 0, time = 0;
  for (const Json& event : trace) {
    CHECK(event["time_us"] >= time);
    time = event["time_us"];
    const std::int64_t address = event["addr"], size = event["size"];
    CHECK(event["frames"].size() == 1);
    if (event["action"] == "alloc") {
      const auto after = live.lower_bound(address);
      const bool room =
          (after == live.end() || after->first >= address + size) &&
          (after == live.begin() || std::prev(after)->first + std::prev(after)->second <= address);
      CHECK(room);
      live[address] = size;
      held += size;
      most = std::max(most, held);
    } else if (event["action"] == "free_completed") {
      REQUIRE(live.count(address) == 1);
      CHECK(live[address] == size);
      live.erase(address);
      held -= size;
    }
  }
  return most;
}

}  // namespace

TEST_CASE("blocks of a snapshot never overlap, and their sum has the peak of the result") {
  for (const char* schedule : {"gpipe", "1f1b", "zb-h1", "interleaved"}) {
    for (const char* recompute : {"none", "full"}) {
      CAPTURE(schedule);
      CAPTURE(recompute);
      const ScenarioResult result = run({std::string("training.schedule=") + schedule,
                                         std::string("training.recompute=") + recompute});
      const Json snapshot = snapshot_of(result);
      const auto& devices = result.measurement.metrics.devices;
      REQUIRE(snapshot["device_traces"].size() == devices.size());
      REQUIRE(snapshot["segments"].size() == devices.size());
      for (std::size_t rank = 0; rank < devices.size(); ++rank) {
        std::map<std::int64_t, std::int64_t> live;
        const auto most = static_cast<double>(replayed(snapshot["device_traces"][rank], live));
        // Each class is rounded to a byte.
        CHECK(std::abs(most - devices[rank].peak_memory.value()) <= kMemoryClasses);
        std::int64_t at = snapshot["segments"][rank]["address"], used = 0;
        for (const Json& block : snapshot["segments"][rank]["blocks"]) {
          CHECK(block["address"] == at);
          at += block["size"].get<std::int64_t>();
          if (block["state"] != "active_allocated") continue;
          CHECK(live.at(block["address"]) == block["size"]);
          used += block["size"].get<std::int64_t>();
          live.erase(block["address"].get<std::int64_t>());
        }
        CHECK(live.empty());
        const std::int64_t begin = snapshot["segments"][rank]["address"];
        CHECK(at - begin == snapshot["segments"][rank]["total_size"]);
        CHECK(used == snapshot["segments"][rank]["allocated_size"]);
      }
    }
  }
}

TEST_CASE("blocks have the class and the op that made them") {
  const Json snapshot = snapshot_of(run({"training.schedule=1f1b"}));
  std::set<std::string> categories, stash_makers;
  for (const Json& event : snapshot["device_traces"][3]) {
    categories.insert(event["category"].get<std::string>());
    if (event["category"] == "activation stash" && event["action"] == "alloc") {
      stash_makers.insert(event["frames"][0]["name"].get<std::string>());
    }
  }
  for (const char* category : {"weights", "gradients", "optimiser state", "activation stash"}) {
    CHECK(categories.count(category) == 1);
  }
  // Without it, viewers fail that add a category for blocks which have none.
  CHECK(categories.count("unknown") == 1);
  CHECK(stash_makers.count("F0") == 1);
  CHECK(stash_makers.count("F7") == 1);
}

}  // namespace interlock::memory_snapshot_test
