// Takes events out of a trace while it is parsed, and orders what ran on each stream.
// SPDX-License-Identifier: Apache-2.0
#include "reports/kineto/kineto_events.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "base/error.h"
#include "base/text.h"
#include "reports/kineto/event_parser.h"
#include "reports/kineto/module_frames.h"
#include "reports/kineto/repeated_kernels.h"
#include "reports/result/gzip.h"

namespace interlock {
namespace {

constexpr std::int64_t kClockRounding = 1000;  // nanoseconds

/// Numbers for texts, in the order in which they first appear.
class Numbers {
 public:
  explicit Numbers(std::vector<std::string>& texts) : texts_(texts) {}
  std::int32_t of(const std::string& text) {
    const auto [known, is_new] = numbers_.emplace(text, static_cast<std::int32_t>(texts_.size()));
    if (is_new) texts_.push_back(text);
    return known->second;
  }

 private:
  std::vector<std::string>& texts_;
  std::unordered_map<std::string, std::int32_t> numbers_;
};

/// Copies inside a device and fills are work like that of kernels.
DeviceWork work_of(const std::string& name) {
  for (const char* start : {"nccl", "rccl", "gloo:", "Memcpy PtoP"}) {
    if (name.starts_with(start)) return DeviceWork::Communication;
  }
  for (const char* start : {"Memcpy HtoD", "Memcpy DtoH"}) {
    if (name.starts_with(start)) return DeviceWork::Copy;
  }
  return DeviceWork::Kernel;
}

/// As PyTorch names types; 0 for others.
double element_bytes(const std::string& type) {
  static const std::unordered_map<std::string, double> sizes = {
      {"Byte", 1},    {"Char", 1},     {"Bool", 1},  {"Float8_e4m3fn", 1}, {"Float8_e5m2", 1},
      {"uint8", 1},   {"int8", 1},     {"bool", 1},  {"Half", 2},          {"BFloat16", 2},
      {"float16", 2}, {"bfloat16", 2}, {"Float", 4}, {"Int", 4},           {"float32", 4},
      {"int32", 4},   {"Double", 8},   {"Long", 8},  {"float64", 8},       {"int64", 8}};
  const auto known = sizes.find(type);
  return known == sizes.end() ? 0 : known->second;
}

std::optional<double> message_bytes(const ParsedEvent& event) {
  if (event.bytes) return event.bytes;
  const double size = element_bytes(event.type);
  if (size == 0 || (!event.elements_in && !event.elements_out)) return std::nullopt;
  return size * std::max(event.elements_in.value_or(0), event.elements_out.value_or(0));
}

enum class Category { Device, Operator, Annotation, PythonCall, Launch };

/// Those with a capital are of profilers before 2022.
const std::unordered_map<std::string, Category>& categories() {
  static const std::unordered_map<std::string, Category> known = {
      {"kernel", Category::Device},
      {"Kernel", Category::Device},
      {"gpu_memcpy", Category::Device},
      {"Memcpy", Category::Device},
      {"gpu_memset", Category::Device},
      {"Memset", Category::Device},
      {"cpu_op", Category::Operator},
      {"Operator", Category::Operator},
      {"cuda_runtime", Category::Launch},
      {"Runtime", Category::Launch},
      {"cuda_driver", Category::Launch},
      {"user_annotation", Category::Annotation},
      {"python_function", Category::PythonCall}};
  return known;
}

/// Sorts parsed events into a KinetoEvents.
class EventSorter {
 public:
  explicit EventSorter(KinetoEvents& events)
      : events_(events), names_(events.names), streams_(events.streams), threads_(thread_names_) {}

  void add(const ParsedEvent& event) {
    if (event.phase != "X") return;
    const auto known = categories().find(event.category);
    if (known == categories().end()) return;
    if (known->second == Category::Device) add_device(event);
    if (known->second == Category::Operator) add_host(event, false);
    if (known->second == Category::Annotation) add_host(event, true);
    if (known->second == Category::PythonCall && event.name.starts_with("nn.Module: ")) {
      add_host(event, true);
    }
    if (known->second != Category::Launch || event.correlation == 0 || !event.start) return;
    events_.launches.push_back({event.correlation, *event.start, thread_of(event)});
  }

 private:
  void add_device(const ParsedEvent& event) {
    if (!event.start || !event.duration || *event.duration < 0) {
      ++events_.without_time;
      return;
    }
    const std::string device = event.device.empty() ? event.process : event.device;
    const std::string stream = event.stream.empty() ? event.thread : event.stream;
    events_.device.push_back({.start = *event.start,
                              .end = *event.start + *event.duration,
                              .correlation = event.correlation,
                              .external = event.external,
                              .name = names_.of(event.name),
                              .stream = streams_.of("stream " + stream + " of device " + device),
                              .work = work_of(event.name),
                              .bytes = message_bytes(event)});
  }

  void add_host(const ParsedEvent& event, bool annotation) {
    if (!event.start) return;
    if (event.name.starts_with("ProfilerStep")) ++events_.steps;
    events_.host.push_back(
        {.start = *event.start,
         .end = *event.start + std::max<std::int64_t>(event.duration.value_or(0), 0),
         .external = event.external,
         .sequence = event.sequence,
         .name = names_.of(event.name),
         .thread = thread_of(event),
         .annotation = annotation,
         .backward = event.forward_thread != 0});
  }

  std::int32_t thread_of(const ParsedEvent& event) {
    const std::int32_t thread = threads_.of(event.process + "/" + event.thread);
    if (static_cast<std::size_t>(thread) == events_.process_of.size()) {
      const auto [process, is_new] =
          processes_.emplace(event.process, static_cast<int>(processes_.size()));
      events_.process_of.push_back(process->second);
    }
    return thread;
  }

  KinetoEvents& events_;
  std::vector<std::string> thread_names_;
  Numbers names_, streams_, threads_;
  std::unordered_map<std::string, int> processes_;
};

auto key(const DeviceActivity& event) {
  return std::tie(event.stream, event.start, event.end, event.name, event.correlation);
}

void drop_duplicates(KinetoEvents& events) {
  std::vector<DeviceActivity>& device = events.device;
  std::stable_sort(device.begin(), device.end(),
                   [](const auto& a, const auto& b) { return key(a) < key(b); });
  const auto last = std::unique(device.begin(), device.end(),
                                [](const auto& a, const auto& b) { return key(a) == key(b); });
  events.duplicates = static_cast<int>(device.end() - last);
  device.erase(last, device.end());
}

std::string micros(std::int64_t nanoseconds) {
  const std::string digits = std::to_string(nanoseconds % 1000);
  return std::to_string(nanoseconds / 1000) + "." + std::string(3 - digits.size(), '0') + digits;
}

void check_streams(const KinetoEvents& events) {
  const DeviceActivity* before = nullptr;
  for (const DeviceActivity& event : events.device) {
    if (before == nullptr || before->stream != event.stream) before = &event;
    if (before->end > event.start + kClockRounding && before != &event) {
      throw Error(events.file + ": " + events.streams[event.stream] + ": " +
                  in_quotes(events.names[event.name]) + " starts at " + micros(event.start) +
                  " us, and " + in_quotes(events.names[before->name]) + " before it ends at " +
                  micros(before->end) + " us; expected one after the other on a stream");
    }
    if (event.end > before->end) before = &event;
  }
}

}  // namespace

KinetoEvents read_kineto(const TextPieces& text, const std::string& file) {
  KinetoEvents events{.file = file};
  EventSorter sorter(events);
  events.rank = parse_events(text, file, [&](const ParsedEvent& event) { sorter.add(event); });
  if (events.device.empty()) {
    const std::string lost = std::to_string(events.without_time);
    throw Error(file + ": has no kernel, copy or memset of a device" +
                (events.without_time > 0 ? " but " + lost + " without a time or a duration" : "") +
                "; expected a trace that torch.profiler recorded with ProfilerActivity.CPU and "
                "ProfilerActivity.CUDA");
  }
  drop_duplicates(events);
  check_streams(events);
  name_module_frames(events);
  name_repeated_kernels(events);
  return events;
}

KinetoEvents read_kineto_file(const std::string& path) {
  return read_kineto(gunzip(read_pieces(path), path), path);
}

}  // namespace interlock
