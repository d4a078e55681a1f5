// Turns changes of memory into blocks that are allocated and freed, and writes them.
// SPDX-License-Identifier: Apache-2.0
#include "reports/traces/memory_snapshot.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "reports/traces/pickle_text.h"
#include "reports/traces/trace_tracks.h"
#include "reports/words/op_words.h"
#include "reports/words/palette.h"

namespace interlock {
namespace {

constexpr std::int64_t kFirstAddress = 0x7f0000000000;  // as CUDA gives them
constexpr const char* kOtherCategory =
    "unknown";  // a category that viewers miss where there are others
constexpr const char* kLibraries = "libraries";

struct MemoryBlock {
  std::int64_t address = 0, size = 0;
  const char* category = kOtherCategory;
  std::string maker;  // "F3", or what else it is of
};
struct MemoryEvent {
  bool frees = false;
  std::int64_t time = 0;  // nanoseconds
  MemoryBlock block;
};

/// The memory of a device: blocks by address, each at the first place that has room.
class PlacedBlocks {
 public:
  MemoryBlock place(std::int64_t size, const char* category, const std::string& maker) {
    MemoryBlock block{kFirstAddress, size, category, maker};
    for (const auto& [address, other] : held_) {
      if (address - block.address >= size) break;
      block.address = address + other.size;
    }
    held_[block.address] = block;
    end_ = std::max(end_, block.address + size);
    return block;
  }
  /// Takes away the oldest block of `category` that has `size` bytes; of none, the oldest at all.
  MemoryBlock take(std::int64_t size, const char* category) {
    std::vector<MemoryBlock>& blocks = of_category_[category];
    auto found = std::find_if(blocks.begin(), blocks.end(),
                              [&](const MemoryBlock& block) { return block.size == size; });
    if (found == blocks.end()) found = blocks.begin();
    MemoryBlock block = *found;
    blocks.erase(found);
    held_.erase(block.address);
    return block;
  }
  void remember(const MemoryBlock& block) { of_category_[block.category].push_back(block); }
  bool has(const char* category) { return !of_category_[category].empty(); }
  const std::map<std::int64_t, MemoryBlock>& held() const { return held_; }
  /// Bytes from the first address to the last that was ever used.
  std::int64_t reach() const { return end_ - kFirstAddress; }

 private:
  std::map<std::int64_t, MemoryBlock> held_;
  std::map<std::string, std::vector<MemoryBlock>> of_category_;  // by age
  std::int64_t end_ = kFirstAddress;
};

struct BlockHistory {
  std::vector<MemoryEvent> events;
  PlacedBlocks blocks;
};

void allocate_block(BlockHistory& history, std::int64_t time, std::int64_t size,
                    const char* category, const std::string& maker) {
  if (size <= 0) return;
  const MemoryBlock block = history.blocks.place(size, category, maker);
  history.blocks.remember(block);
  history.events.push_back({false, time, block});
}

/// Frees `size` bytes of a category: whole blocks, and what is too much of the last is allocated
/// again.
void free_blocks(BlockHistory& history, std::int64_t time, std::int64_t size,
                 const char* category) {
  while (size > 0 && history.blocks.has(category)) {
    const MemoryBlock block = history.blocks.take(size, category);
    history.events.push_back({true, time, block});
    size -= block.size;
    if (size < 0) allocate_block(history, time, -size, category, block.maker);
  }
}

struct ClassChange {
  std::int64_t time = 0;
  double bytes = 0;
  MemoryClass memory_class = MemoryClass::Stash;
};

/// Names what each rank does, by the instants at which ops begin and end.
using OpMakers = std::vector<std::map<std::int64_t, std::string>>;

OpMakers makers_of(const Measurement& measurement) {
  OpMakers makers(measurement.program.ranks.size());
  const std::vector<std::string> labels = op_labels(measurement.program);
  for (const Span& span : measurement.log.spans) {
    const std::string name =
        labels[span.op] + std::to_string(span.micro_batch % measurement.program.micro_batches);
    makers[span.rank].try_emplace(nanoseconds(span.end), name);
    makers[span.rank][nanoseconds(span.start)] = name;
  }
  return makers;
}

/// Returns what libraries keep on a device: what its peak is more than all that the trace knows.
std::int64_t library_bytes(const ScenarioResult& result, std::size_t rank,
                           const std::vector<ClassChange>& changes) {
  const Program& program = result.measurement.program;
  double held = 0;
  for (const Bytes resident : program.ranks[rank].resident) held += resident.value();
  double most = held;
  for (const ClassChange& change : changes) most = std::max(most, held += change.bytes);
  const Bytes peak = result.measurement.metrics.devices[rank].peak_memory;
  const std::int64_t bytes = std::llround(peak.value() - program.memory_held * most);
  return bytes > kMemoryClasses ? bytes : 0;  // a few bytes are rounding
}

/// Returns what happens in the memory of a rank. Whole bytes: what a class holds, rounded, at each
/// instant.
BlockHistory history_of(const ScenarioResult& result, std::size_t rank,
                        const std::vector<ClassChange>& changes,
                        const std::map<std::int64_t, std::string>& makers) {
  const Program& program = result.measurement.program;
  BlockHistory history;
  std::array<double, kMemoryClasses> bytes{};
  std::array<std::int64_t, kMemoryClasses> held{};
  allocate_block(history, 0, library_bytes(result, rank, changes), kLibraries, kLibraries);
  for (int i = 0; i < kMemoryClasses; ++i) {
    const auto memory_class = static_cast<MemoryClass>(i);
    bytes[i] = program.memory_held * program.ranks[rank].resident[i].value();
    held[i] = std::llround(bytes[i]);
    allocate_block(history, 0, held[i], swatch(memory_class).meaning, "resident");
  }
  for (const ClassChange& change : changes) {
    const auto i = static_cast<std::size_t>(change.memory_class);
    const char* const category = swatch(change.memory_class).meaning;
    bytes[i] += program.memory_held * change.bytes;
    const std::int64_t now = std::max<std::int64_t>(0, std::llround(bytes[i]));
    const auto maker = makers.find(change.time);
    if (now > held[i]) {
      allocate_block(history, change.time, now - held[i], category,
                     maker == makers.end() ? "a message" : maker->second);
    } else {
      free_blocks(history, change.time, held[i] - now, category);
    }
    held[i] = now;
  }
  return history;
}

void write_frames(PickleText& out, const MemoryBlock& block) {
  out.key("frames").begin_list();
  out.begin_dictionary();
  out.key("filename").text(block.category);
  out.key("line").number(0);
  out.key("name").text(block.maker);
  out.end_dictionary();
  out.end_list();
}

void write_memory_event(PickleText& out, const char* action, std::int64_t time,
                        const MemoryBlock& block) {
  out.begin_dictionary();
  out.key("action").text(action);
  out.key("addr").number(block.address);
  out.key("size").number(block.size);
  out.key("stream").number(0);
  out.key("time_us").number(time / 1000);
  out.key("category").text(block.category);
  write_frames(out, block);
  out.end_dictionary();
}

void write_memory_trace(PickleText& out, const BlockHistory& history) {
  std::int64_t count = 0;
  const auto write = [&](const char* action, std::int64_t time, const MemoryBlock& block) {
    out.next_item(count++);
    write_memory_event(out, action, time, block);
  };
  out.begin_list();
  write("segment_alloc", 0, {kFirstAddress, history.blocks.reach(), kOtherCategory, "the device"});
  for (const MemoryEvent& event : history.events) {
    if (event.frees) write("free_requested", event.time, event.block);
    write(event.frees ? "free_completed" : "alloc", event.time, event.block);
  }
  out.end_list();
}

void write_block(PickleText& out, const MemoryBlock& block, bool used) {
  out.begin_dictionary();
  out.key("address").number(block.address);
  out.key("size").number(block.size);
  out.key("requested_size").number(block.size);
  out.key("state").text(used ? "active_allocated" : "inactive");
  write_frames(out, block);
  out.end_dictionary();
}

/// Writes what the device holds at the end: one segment, and blocks and gaps that fill it.
void write_segment(PickleText& out, int device, const PlacedBlocks& blocks) {
  std::int64_t used = 0;
  for (const auto& [address, block] : blocks.held()) used += block.size;
  out.begin_dictionary();
  out.key("device").number(device);
  out.key("address").number(kFirstAddress);
  out.key("total_size").number(blocks.reach());
  for (const char* size : {"allocated_size", "active_size", "requested_size"}) {
    out.key(size).number(used);
  }
  out.key("stream").number(0);
  out.key("segment_type").text("large");
  out.key("is_expandable").truth(false);
  out.key("frames").begin_list();
  out.end_list();
  out.key("blocks").begin_list();
  std::int64_t at = kFirstAddress, count = 0;
  const auto gap_to = [&](std::int64_t address) {
    if (address == at) return;
    out.next_item(count++);
    write_block(out, {at, address - at, kOtherCategory, "free"}, false);
  };
  for (const auto& [address, block] : blocks.held()) {
    gap_to(address);
    out.next_item(count++);
    write_block(out, block, true);
    at = address + block.size;
  }
  gap_to(kFirstAddress + blocks.reach());
  out.end_list();
  out.end_dictionary();
}

}  // namespace

TextSource memory_snapshot(const ScenarioResult& result) {
  return [&result](const TextSink& sink) {
    const Measurement& measurement = result.measurement;
    std::vector<std::vector<ClassChange>> changes(measurement.program.ranks.size());
    for (const MemoryChange& change : measurement.log.memory) {
      if (change.memory_class == MemoryClass::HostStash) continue;
      changes[change.rank].push_back({nanoseconds(change.time), change.bytes, change.memory_class});
    }
    const OpMakers makers = makers_of(measurement);
    std::vector<BlockHistory> histories;
    for (std::size_t rank = 0; rank < changes.size(); ++rank) {
      // Frees of an instant make room for its allocations.
      std::stable_sort(changes[rank].begin(), changes[rank].end(),
                       [](const ClassChange& a, const ClassChange& b) {
                         return std::pair(a.time, a.bytes > 0) < std::pair(b.time, b.bytes > 0);
                       });
      histories.push_back(history_of(result, rank, changes[rank], makers[rank]));
    }
    PickleText out(sink);
    out.begin_dictionary();
    out.key("segments").begin_list();
    for (std::size_t rank = 0; rank < histories.size(); ++rank) {
      out.next_item(static_cast<std::int64_t>(rank));
      write_segment(out, static_cast<int>(rank), histories[rank].blocks);
    }
    out.end_list();
    out.key("device_traces").begin_list();
    for (std::size_t rank = 0; rank < histories.size(); ++rank) {
      out.next_item(static_cast<std::int64_t>(rank));
      write_memory_trace(out, histories[rank]);
    }
    out.end_list();
    out.end_dictionary();
    out.finish();
  };
}

}  // namespace interlock
