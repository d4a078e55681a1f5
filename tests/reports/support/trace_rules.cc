// Reads trace-event JSON and says which rule it breaks.
// SPDX-License-Identifier: Apache-2.0
#include "tests/reports/support/trace_rules.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

namespace interlock {
namespace {

using Json = nlohmann::json;

/// One end, or the middle, of an arrow.
struct ArrowEnd {
  TraceFile::Place place;
  std::int64_t time = 0;
};

struct Arrow {
  std::vector<ArrowEnd> begins, middles, ends;
};

class TraceReader {
 public:
  TraceFile read(std::string_view text) {
    const Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded()) fail("no JSON");
    if (!json.contains("traceEvents") || !json["traceEvents"].is_array()) fail("no traceEvents");
    if (!file_.fault.empty()) return file_;
    for (const Json& event : json["traceEvents"]) add(event);
    check_places();
    for (auto& [place, slices] : file_.slices) check_nesting(place, slices);
    for (const auto& [id, arrow] : arrows_) check_arrow(id, arrow);
    for (const auto& [name, points] : file_.counters) check_counter(name.second, points);
    file_.arrows = static_cast<int>(arrows_.size());
    return file_;
  }

 private:
  void fail(const std::string& what) {
    if (file_.fault.empty()) file_.fault = what;
  }

  /// Microseconds of `key` in nanoseconds.
  std::int64_t time(const Json& event, const char* key) {
    if (!event.contains(key) || !event[key].is_number()) {
      fail("no " + std::string(key) + " in " + event.dump());
      return 0;
    }
    const double value = event[key];
    if (!std::isfinite(value) || value < 0) fail("bad " + std::string(key) + event.dump());
    return std::llround(value * 1e3);
  }

  TraceFile::Place place(const Json& event) {
    const int process = event.value("pid", 0), thread = event.value("tid", 0);
    if (process <= 0 || thread <= 0) fail("a number is 0 in " + event.dump());
    return {process, thread};
  }

  void add(const Json& event) {
    const std::string phase = event.value("ph", "");
    if (phase == "M") return add_name(event);
    if (phase == "C") return add_counter(event);
    if (phase == "X") {
      const std::int64_t start = time(event, "ts");
      file_.slices[place(event)].push_back(
          {event.value("name", ""), event.value("cat", ""), start, start + time(event, "dur")});
      return;
    }
    Arrow& arrow = arrows_[event.value("cat", "") + std::to_string(event.value("id", 0))];
    std::vector<ArrowEnd>* ends = phase == "s"   ? &arrow.begins
                                  : phase == "t" ? &arrow.middles
                                  : phase == "f" ? &arrow.ends
                                                 : nullptr;
    if (ends == nullptr) return fail("unknown event " + event.dump());
    if (phase == "f" && event.value("bp", "") != "e") fail("an arrow to the next slice");
    ends->push_back({place(event), time(event, "ts")});
  }

  void add_name(const Json& event) {
    const std::string what = event.value("name", "");
    if (what == "process_name") file_.processes[event.value("pid", 0)] = event["args"]["name"];
    if (what == "thread_name") file_.threads[place(event)] = event["args"]["name"];
  }

  void add_counter(const Json& event) {
    double sum = 0;
    for (const auto& [series, value] : event["args"].items()) {
      if (!value.is_number() || !std::isfinite(value.get<double>()) || value < 0) {
        fail("a counter of " + value.dump() + " " + series);
        continue;
      }
      sum += value.get<double>();
    }
    file_.counters[{event.value("pid", 0), event.value("name", "")}].emplace_back(time(event, "ts"),
                                                                                  sum);
  }

  void check_places() {
    std::set<int> seen;
    std::set<std::pair<int, std::string>> names;
    for (const auto& [place, name] : file_.threads) {
      if (!seen.insert(place.second).second) fail("a thread of two processes");
      if (file_.processes.count(place.second)) fail("a thread with the number of a process");
      if (!names.insert({place.first, name}).second) fail("two tracks named " + name);
    }
    for (const auto& [place, slices] : file_.slices) {
      if (!file_.threads.count(place)) fail("a track without a name");
      if (!file_.processes.count(place.first)) fail("a process without a name");
    }
  }

  void check_nesting(const TraceFile::Place& place, std::vector<TraceSlice>& slices) {
    std::stable_sort(slices.begin(), slices.end(), [](const TraceSlice& a, const TraceSlice& b) {
      return std::pair(a.start, -a.end) < std::pair(b.start, -b.end);
    });
    std::vector<const TraceSlice*> open;
    for (const TraceSlice& slice : slices) {
      while (!open.empty() && open.back()->end <= slice.start) open.pop_back();
      if (!open.empty() && open.back()->end < slice.end) {
        fail(slice.name + " overlaps " + open.back()->name + " on " + file_.threads[place]);
      }
      open.push_back(&slice);
    }
  }

  bool inside_slice(const ArrowEnd& end) {
    const auto& slices = file_.slices[end.place];
    auto after =
        std::upper_bound(slices.begin(), slices.end(), end.time,
                         [](std::int64_t at, const TraceSlice& slice) { return at < slice.start; });
    while (after != slices.begin()) {
      if (end.time < (--after)->end) return true;
    }
    return false;
  }

  void check_arrow(const std::string& id, const Arrow& arrow) {
    if (arrow.begins.size() != 1 || arrow.ends.size() != 1 || arrow.middles.size() > 1) {
      return fail("arrow " + id + " has not one begin and one end");
    }
    std::vector<ArrowEnd> ends = {arrow.begins[0]};
    ends.insert(ends.end(), arrow.middles.begin(), arrow.middles.end());
    ends.push_back(arrow.ends[0]);
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (i > 0 && ends[i].time < ends[i - 1].time) fail("arrow " + id + " goes back in time");
      if (!inside_slice(ends[i])) fail("arrow " + id + " hangs in the air");
    }
  }

  void check_counter(const std::string& name,
                     const std::vector<std::pair<std::int64_t, double>>& points) {
    for (std::size_t i = 1; i < points.size(); ++i) {
      if (points[i].first <= points[i - 1].first) fail(name + " stands or goes back in time");
    }
  }

  TraceFile file_;
  std::map<std::string, Arrow> arrows_;
};

}  // namespace

TraceFile read_trace(std::string_view json) { return TraceReader().read(json); }

}  // namespace interlock
