// MadeTrace: profiler traces written event by event, as PyTorch writes them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "reports/kineto/kineto_events.h"

namespace interlock {

/// Times are texts of decimal microseconds, put into the file as they are.
struct MadeTrace {
  std::vector<std::string> events;

  void event(const std::string& category, const std::string& name, const std::string& thread,
             const std::string& times, const std::string& args) {
    events.push_back(R"({"ph": "X", "cat": ")" + category + R"(", "name": ")" + name +
                     R"(", "pid": 100, "tid": )" + thread + ", " + times + R"(, "args": {)" + args +
                     "}}");
  }
  void range(const std::string& name, const std::string& times) {
    event("user_annotation", name, "100", times,
          "\"External id\": " + std::to_string(10'000 + events.size()));
  }
  void op(const std::string& name, const std::string& thread, const std::string& times,
          const std::string& args) {
    event("cpu_op", name, thread, times, R"("Input Dims": [[32, 1024], []], )" + args);
  }
  void launch(const std::string& thread, const std::string& at, int correlation) {
    event("cuda_runtime", "cudaLaunchKernel", thread, R"("ts": )" + at + R"(, "dur": 2)",
          R"("cbid": 211, "correlation": )" + std::to_string(correlation));
  }
  void kernel(const std::string& name, int stream, const std::string& times,
              const std::string& args) {
    event("kernel", name, std::to_string(stream), times,
          R"("device": 0, "context": 1, "grid": [16, 1, 1], "stream": )" + std::to_string(stream) +
              ", " + args);
  }

  std::string text() const {
    std::string all = R"({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU"}],
      "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8, "pg_config": [{}]},
      "baseTimeNanoseconds": 1743521598000000000, "traceEvents": [)";
    for (std::size_t i = 0; i < events.size(); ++i) all += (i > 0 ? ",\n" : "\n") + events[i];
    return all + "\n], \"traceName\": \"worker0.pt.trace.json\"}\n";
  }
};

/// `text` in pieces of `size` bytes. `text` must outlive them.
inline TextPieces in_pieces(const std::string& text, std::size_t size) {
  return [&text, size, given = std::size_t{0}]() mutable {
    const std::size_t from = given;
    given = given + size < text.size() ? given + size : text.size();
    return std::string_view(text).substr(from, given - from);
  };
}

inline KinetoEvents events_of(const MadeTrace& trace) {
  const std::string text = trace.text();
  return read_kineto(in_pieces(text, 1000), "made.json");
}

}  // namespace interlock
