// Module frames: finds the depth at which the layers of a model lie.
// SPDX-License-Identifier: Apache-2.0
#include "reports/kineto/module_frames.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "reports/kineto/phase_names.h"

namespace interlock {
namespace {

constexpr std::string_view kFrame = "nn.Module: ";

struct Frame {
  std::size_t event = 0;  // in events.host
  std::string name;       // "Block_3"
  std::int64_t length = 0;
  int depth = 0;
  bool leaf = true;
};

/// "Block_3" is of the class "Block".
std::string class_of(const std::string& name) {
  return name.substr(0, name.find_last_not_of("0123456789") + 1);
}

/// Returns the frames of all threads with their depths.
std::vector<Frame> frames_of(const KinetoEvents& events) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < events.host.size(); ++i) {
    const std::string& name = events.names[static_cast<std::size_t>(events.host[i].name)];
    if (events.host[i].annotation && name.starts_with(kFrame)) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const HostEvent &x = events.host[a], &y = events.host[b];
    return std::tuple(x.thread, x.start, -x.end) < std::tuple(y.thread, y.start, -y.end);
  });
  std::vector<Frame> frames;
  std::vector<std::size_t> open;  // in `frames`
  for (const std::size_t index : order) {
    const HostEvent& event = events.host[index];
    while (!open.empty()) {
      const HostEvent& around = events.host[frames[open.back()].event];
      if (around.thread == event.thread && event.start < around.end) break;
      open.pop_back();
    }
    if (!open.empty()) frames[open.back()].leaf = false;
    open.push_back(frames.size());
    const std::string& name = events.names[static_cast<std::size_t>(event.name)];
    frames.push_back({index, name.substr(kFrame.size()), event.end - event.start,
                      static_cast<int>(open.size()) - 1});
  }
  return frames;
}

/// Returns the least depth at which classes with several instances take at least half of the time
/// that they take at the best depth; -1 if no class has several.
int depth_of_layers(const std::vector<Frame>& frames) {
  std::map<std::pair<int, std::string>, std::set<std::string>> instances;
  for (const Frame& frame : frames) {
    instances[{frame.depth, class_of(frame.name)}].insert(frame.name);
  }
  std::map<int, std::int64_t> time;
  for (const Frame& frame : frames) {
    if (instances[{frame.depth, class_of(frame.name)}].size() > 1)
      time[frame.depth] += frame.length;
  }
  std::int64_t most = 0;
  for (const auto& [depth, length] : time) most = std::max(most, length);
  for (const auto& [depth, length] : time) {
    if (2 * length >= most) return depth;
  }
  return -1;
}

}  // namespace

bool names_its_parts(const KinetoEvents& events) {
  std::vector<bool> names(events.names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto phase = read_phase_name(events.names[i]);
    names[i] = phase && phase->phase != Phase::Update;
  }
  return std::any_of(events.host.begin(), events.host.end(), [&](const HostEvent& event) {
    return event.annotation && names[static_cast<std::size_t>(event.name)];
  });
}

void name_module_frames(KinetoEvents& events) {
  if (names_its_parts(events)) return;
  const std::vector<Frame> frames = frames_of(events);
  const int depth = depth_of_layers(frames);
  if (depth < 0) return;
  std::map<std::string, std::int32_t> names;
  for (const Frame& frame : frames) {
    if (frame.depth != depth && !(frame.depth < depth && frame.leaf)) continue;
    const auto [known, is_new] =
        names.emplace(frame.name, static_cast<std::int32_t>(events.names.size()));
    if (is_new) events.names.push_back("forward " + frame.name);
    events.host[frame.event].name = known->second;
  }
}

}  // namespace interlock
