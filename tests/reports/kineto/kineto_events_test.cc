// Traces of profilers: what is read of them, and what is refused.
// SPDX-License-Identifier: Apache-2.0
#include "reports/kineto/kineto_events.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "tests/reports/support/made_trace.h"

namespace interlock::kineto_events_test {
namespace {

/// A trace of one kernel.
MadeTrace one_kernel(const std::string& times) {
  MadeTrace trace;
  trace.kernel("gemm", 7, times, R"("correlation": 9, "External id": 5)");
  return trace;
}

void check_refused(const std::string& text, const std::string& words) {
  CHECK_THROWS_WITH_AS(read_kineto(in_pieces(text, 64), "t.json"), words.c_str(), Error);
}

}  // namespace

TEST_CASE("microseconds since 1970 keep their nanoseconds, which a double could not") {
  // 1712667379482786.125 us: doubles of that size are 0.25 us apart.
  const KinetoEvents events =
      events_of(one_kernel(R"("ts": 1712667379482786.127, "dur": 10.2504)"));
  REQUIRE(events.device.size() == 1);
  CHECK(events.device[0].start == 1712667379482786127);
  CHECK(events.device[0].end - events.device[0].start == 10250);
  CHECK(events.device[0].correlation == 9);
  CHECK(events.device[0].external == 5);
  CHECK(events.rank == 3);
  CHECK(events.names[events.device[0].name] == "gemm");
  CHECK(events.streams[events.device[0].stream] == "stream 7 of device 0");
}

TEST_CASE("times are whole, negative, short, rounded or with an exponent") {
  const auto start_of = [](const std::string& ts) {
    return events_of(one_kernel("\"ts\": " + ts + ", \"dur\": 1")).device.at(0).start;
  };
  CHECK(start_of("12") == 12'000);
  CHECK(start_of("-1.5") == -1'500);
  CHECK(start_of("0.1") == 100);
  CHECK(start_of("1.2345") == 1'235);
  CHECK(start_of("1.5e3") == 1'500'000);
}

TEST_CASE("a text may come in pieces of any size, and keys in any order") {
  MadeTrace trace = one_kernel(R"("ts": 1, "dur": 2)");
  trace.events.push_back(R"json({"args": {"correlation": 4, "nested": {"stream": 9, "a": [{}, []]}},
    "dur": 1.5, "ts": 3, "tid": "stream 7", "pid": "0", "name": "Memset (Device)",
    "cat": "gpu_memset", "ph": "X"})json");
  const std::string text = trace.text();
  for (const std::size_t size : {std::size_t{1}, std::size_t{7}, text.size()}) {
    const KinetoEvents events = read_kineto(in_pieces(text, size), "made.json");
    CHECK(events.device.size() == 2);
  }
  const std::string bare = "[" + trace.events[0] + "]";
  CHECK(read_kineto(in_pieces(bare, 5), "bare.json").device.size() == 1);
}

TEST_CASE("events that lack a time are counted, and those that come twice are taken once") {
  MadeTrace trace = one_kernel(R"("ts": 1, "dur": 2)");
  trace.events.push_back(trace.events[0]);
  trace.kernel("no_duration", 7, R"("ts": 5)", R"("correlation": 10)");
  trace.kernel("negative", 7, R"("ts": 5, "dur": -3)", R"("correlation": 11)");
  trace.kernel("no_number", 7, R"("ts": "soon", "dur": 1)", R"("correlation": 12)");
  const KinetoEvents events = events_of(trace);
  CHECK(events.device.size() == 1);
  CHECK(events.duplicates == 1);
  CHECK(events.without_time == 3);
}

TEST_CASE("messages say their bytes in elements of a type, or outright") {
  MadeTrace trace;
  const auto message = [&](const std::string& args) {
    trace.kernel("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage)", 20,
                 R"("ts": )" + std::to_string(10 * trace.events.size()) + R"(, "dur": 5)", args);
  };
  message(R"("In msg nelems": 1024, "Out msg nelems": 4096, "dtype": "BFloat16")");
  message(R"("In msg nelems": 1024, "Out msg nelems": 1024, "dtype": "float32")");
  message(R"("In msg nelems": 1024, "Out msg nelems": 1024, "dtype": "unheard of")");
  message(R"("bytes": 77)");
  message(R"("Collective name": "allreduce")");
  const KinetoEvents events = events_of(trace);
  REQUIRE(events.device.size() == 5);
  CHECK(events.device[0].work == DeviceWork::Communication);
  CHECK(events.device[0].bytes == 8192);
  CHECK(events.device[1].bytes == 4096);
  CHECK_FALSE(events.device[2].bytes);
  CHECK(events.device[3].bytes == 77);
  CHECK_FALSE(events.device[4].bytes);
}

TEST_CASE("copies between device and host are no work of a kernel, copies inside a device are") {
  MadeTrace trace;
  for (const std::string name : {"Memcpy HtoD (Pinned -> Device)", "Memcpy DtoH (Device -> Pinned)",
                                 "Memcpy DtoD (Device -> Device)", "Memset (Device)"}) {
    trace.event("gpu_memcpy", name, "7",
                R"("ts": )" + std::to_string(10 * trace.events.size()) + R"(, "dur": 5)",
                R"("stream": 7, "device": 0, "bytes": 4096)");
  }
  const KinetoEvents events = events_of(trace);
  CHECK(events.device[0].work == DeviceWork::Copy);
  CHECK(events.device[1].work == DeviceWork::Copy);
  CHECK(events.device[2].work == DeviceWork::Kernel);
  CHECK(events.device[3].work == DeviceWork::Kernel);
}

TEST_CASE("events that overlap on a stream are refused, but not by what old profilers round") {
  const auto two = [](const std::string& second, int stream) {
    MadeTrace trace = one_kernel(R"("ts": 10, "dur": 5)");
    trace.kernel("relu", stream, "\"ts\": " + second + ", \"dur\": 1", R"("correlation": 10)");
    return trace;
  };
  CHECK(events_of(two("15", 7)).device.size() == 2);
  CHECK(events_of(two("14", 7)).device.size() == 2);
  CHECK(events_of(two("12", 8)).device.size() == 2);
  check_refused(
      two("13.999", 7).text(),
      "t.json: stream 7 of device 0: \"relu\" starts at 13.999 us, and \"gemm\" before it "
      "ends at 15.000 us; expected one after the other on a stream");
}

TEST_CASE("what is no whole trace of a device is refused in one sentence") {
  const std::string text = one_kernel(R"("ts": 1, "dur": 2)").text();
  check_refused("", "t.json: is empty; expected a trace of torch.profiler");
  check_refused(text.substr(0, 300), "t.json: is cut off after 300 bytes; expected a whole trace");
  check_refused("# a trace", "t.json: is no JSON at byte 1; expected a trace of torch.profiler");
  for (const char* other : {"{}", "7", R"({"model": {}, "training": {"traceEvents": []}})"}) {
    check_refused(other,
                  "t.json: is no trace, since it has no \"traceEvents\"; expected a file that "
                  "torch.profiler exported");
  }
  check_refused(R"({"traceEvents": [{"ph": "X", "cat": "cpu_op", "ts": 1, "dur": 1}]})",
                "t.json: has no kernel, copy or memset of a device; expected a trace that "
                "torch.profiler recorded with ProfilerActivity.CPU and ProfilerActivity.CUDA");
  check_refused(one_kernel(R"("ts": 1)").text(),
                "t.json: has no kernel, copy or memset of a device but 1 without a time or a "
                "duration; expected a trace that torch.profiler recorded with "
                "ProfilerActivity.CPU and ProfilerActivity.CUDA");
}

TEST_CASE("a trace cut off anywhere is refused, and a changed byte never crashes") {
  const std::string text = one_kernel(R"("ts": 1.5, "dur": 2)").text();
  const std::size_t end = text.find_last_of('}');
  for (std::size_t size = 0; size < end; ++size) {
    const std::string part = text.substr(0, size);
    CAPTURE(size);
    CHECK_THROWS_AS(read_kineto(in_pieces(part, 11), "t.json"), Error);
  }
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (const char c : {'"', '{', '}', ']', '-', '9', 'e', '\xff', '\0'}) {
      std::string changed = text;
      changed[at] = c;
      try {
        read_kineto(in_pieces(changed, 13), "t.json");
      } catch (const Error& error) {
        CHECK(std::string(error.what()).starts_with("t.json: "));
      }
    }
  }
}

}  // namespace interlock::kineto_events_test
