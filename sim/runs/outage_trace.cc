// Reads traces of outages and preemptions: CSV, one event a line.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "sim/runs/outages.h"

namespace interlock {
namespace {

constexpr std::string_view kHead = "time_s,device,event";
constexpr int kMostDevices = 1'000'000;
constexpr double kLongest = 1e10;  // seconds, some three hundred years

/// An event and where it was written.
struct WrittenEvent {
  DeviceEvent event;
  int line = 0;
};

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

/// Cuts the text before the next `separator` off `rest`.
std::string_view take(std::string_view& rest, char separator) {
  const std::size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto [rest, failed] = std::from_chars(text.data(), end, number);
  if (failed != std::errc{} || rest != end) return std::nullopt;
  return number;
}

/// Reads the event of a line; returns what is wrong with the line, or nothing.
std::string read_line(std::string_view line, DeviceEvent& event) {
  std::string_view rest = line;
  const std::string_view time = trimmed(take(rest, ','));
  const std::string_view device = trimmed(take(rest, ','));
  const std::string_view name = trimmed(rest);
  const auto seconds = number_in<double>(time);
  const auto number = number_in<int>(device);
  if (!seconds || !(*seconds >= 0 && *seconds <= kLongest)) {
    return "expected seconds from 0 to 1e10 before the first comma, got " + in_quotes(time);
  }
  if (!number || *number < 0 || *number >= kMostDevices) {
    return "expected a device from 0 to 999999 after the first comma, got " + in_quotes(device);
  }
  if (name != "down" && name != "up") {
    return "expected \"down\" or \"up\" after the second comma, got " + in_quotes(name);
  }
  event = {.time = Seconds(*seconds), .first = *number, .up = name == "up"};
  return "";
}

/// A device is down once before it is up again, and the other way round.
void check_turns(const std::vector<WrittenEvent>& events, const std::string& file,
                 Diagnostics& diagnostics) {
  std::map<int, const WrittenEvent*> last;
  for (const WrittenEvent& written : events) {
    const WrittenEvent*& before = last[written.event.first];
    if (before && before->event.up == written.event.up) {
      const std::string state = written.event.up ? "up" : "down";
      diagnostics.add(file, written.line, "",
                      "device " + std::to_string(written.event.first) + " is " + state +
                          " since line " + std::to_string(before->line) + "; expected \"" +
                          (written.event.up ? "down" : "up") + "\"");
    }
    before = &written;
  }
}

}  // namespace

std::vector<DeviceEvent> parse_outage_trace(std::string_view text, const std::string& file) {
  Diagnostics diagnostics;
  std::vector<WrittenEvent> events;
  std::string_view rest = text;
  int line = 0;
  bool headed = false;
  while (!rest.empty()) {
    ++line;
    const std::string_view written = trimmed(take(rest, '\n'));
    if (written.empty()) continue;
    if (!headed) {
      headed = true;
      if (written == kHead) continue;
      diagnostics.add(file, line, "",
                      "expected the head " + in_quotes(kHead) + ", got " + in_quotes(written));
      break;
    }
    DeviceEvent event;
    const std::string problem = read_line(written, event);
    if (problem.empty()) {
      events.push_back({event, line});
    } else {
      diagnostics.add(file, line, "", problem);
    }
  }
  if (!headed) diagnostics.add(file, 1, "", "no events; expected the head " + in_quotes(kHead));
  std::stable_sort(events.begin(), events.end(), [](const WrittenEvent& a, const WrittenEvent& b) {
    return a.event.time < b.event.time;
  });
  if (diagnostics.empty()) check_turns(events, file, diagnostics);
  diagnostics.throw_if_any();
  std::vector<DeviceEvent> sorted;
  sorted.reserve(events.size());
  for (const WrittenEvent& written : events) sorted.push_back(written.event);
  return sorted;
}

}  // namespace interlock
