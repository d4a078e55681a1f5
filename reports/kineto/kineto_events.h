// KinetoEvents: what PyTorch's profiler saw of one process, as far as durations are made of it.
// SPDX-License-Identifier: Apache-2.0
//
// A trace is an object with "traceEvents", or their array. Of its events count those that ran on a
// device (category kernel, gpu_memcpy or gpu_memset), the host's operators and annotations, and the
// launches that connect both. Files are read as a stream: a trace may be larger than memory.
//
// Example: a kernel "gemm" that ran from 1.5 us to 3.5 us, launched at 1 us as number 3, is the
// DeviceActivity {start 1500, end 3500, correlation 3}, whose `name` is the place of "gemm" among
// `names`, and the Launch {correlation 3, at 1000}.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"

namespace interlock {

enum class DeviceWork {
  Kernel,         // or a copy inside the device, or a fill
  Communication,  // with other devices: its time holds waiting
  Copy,           // between device and host
};

/// Times are nanoseconds of the trace's clock; numbers of events are 0 where there is none.
struct DeviceActivity {
  std::int64_t start = 0, end = 0;
  std::int64_t correlation = 0;  // of its launch
  std::int64_t external = 0;     // of the operator that launched it
  std::int32_t name = 0, stream = 0;
  DeviceWork work = DeviceWork::Kernel;
  std::optional<double> bytes = {};  // of a message or a copy, if the trace says so
};

/// An operator of the host or a named range; both nest on their thread.
struct HostEvent {
  std::int64_t start = 0, end = 0;
  std::int64_t external = 0;
  std::int64_t sequence = -1;  // equal for a forward operator and its backward; below 0: none
  std::int32_t name = 0, thread = 0;
  bool annotation = false;
  bool backward = false;
};

/// A call that put work on a stream.
struct Launch {
  std::int64_t correlation = 0, at = 0;
  std::int32_t thread = 0;
};

struct KinetoEvents {
  std::string file;
  std::optional<int> rank;
  int steps = 0;  // ProfilerStep#N
  std::vector<std::string> names, streams;
  std::vector<int> process_of;         // (threads)
  std::vector<DeviceActivity> device;  // by stream, then start; those of a stream do not overlap
  std::vector<HostEvent> host;
  std::vector<Launch> launches;
  int without_time = 0;  // events of devices that lack their start or duration
  int duplicates = 0;    // of other events of devices
};

/// Throws: Error naming `file` if it is cut off, no trace, has no event of a device, or two that
/// overlap on a stream by more than a microsecond, to which older profilers round.
KinetoEvents read_kineto(const TextPieces& text, const std::string& file);
/// Reads the events of a file, which may be compressed.
KinetoEvents read_kineto_file(const std::string& path);

}  // namespace interlock
