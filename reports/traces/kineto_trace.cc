// Writes what PyTorch's profiler would have seen of one device.
// SPDX-License-Identifier: Apache-2.0
//
// Holistic Trace Analysis tells kernels by their names (ncclKernel..., which all of its versions
// know, and Memcpy ...), ranks by distributedInfo, and steps by the launch of each kernel, which a
// correlation leads to. A simulated launch takes no time and happens when its kernel begins. The
// operator around it says which op of which stage it is, so that interlock import finds it again.
#include <algorithm>
#include <utility>

#include "reports/result/event_text.h"
#include "reports/traces/trace_events.h"
#include "reports/traces/trace_tracks.h"
#include "reports/words/mesh_words.h"
#include "reports/words/op_words.h"

namespace interlock {
namespace {

constexpr int kFirstStream = 7;          // as PyTorch numbers them
constexpr int kHostProcess = 1'000'000;  // above every device
constexpr int kThreads = 1000;           // of a device, from its number times this
constexpr int kLaunchCbid = 211;         // cudaLaunchKernel of CUPTI's runtime API (recalled)

/// One stream of the device and what runs on it.
struct KernelStream {
  std::string name;
  TrackKind kind = TrackKind::Compute;
  bool receives = false;
  std::vector<Slice> slices;
};

struct ProfiledDevice {
  const ScenarioResult& result;
  int rank = 0;
  std::vector<KernelStream> streams;

  const Program& program() const { return result.measurement.program; }
  const TraceLog& log() const { return result.measurement.log; }
  int process() const { return rank + 1; }
  int host() const { return kHostProcess + rank; }
  int host_thread() const { return 2 * kHostProcess + rank; }
  int thread(std::size_t stream) const {
    return (rank + 1) * kThreads + kFirstStream + static_cast<int>(stream);
  }
};

/// Receives end when the last byte arrives, and take as long as the sends.
KernelStream received(const ProfiledDevice& device, const Track& track) {
  KernelStream stream{"receives from " + track.name, track.kind, true, {}};
  for (Slice slice : track.slices) {
    const Transfer& transfer = device.log().transfers[slice.index];
    const std::int64_t end = nanoseconds(transfer.arrival);
    slice.start += end - slice.end;
    slice.end = end;
    stream.slices.push_back(slice);
  }
  return stream;
}

std::vector<KernelStream> streams_of(const ProfiledDevice& device,
                                     const std::vector<Track>& tracks) {
  std::vector<KernelStream> streams;
  for (const Track& track : tracks) {
    if (track.rank == device.rank) streams.push_back({track.name, track.kind, false, track.slices});
    if (track.wire >= 0) {
      const Wire& wire = device.program().wires[track.wire];
      if (wire.from_rank == device.rank) {
        streams.push_back({"sends from " + track.name, track.kind, false, track.slices});
      }
      if (wire.to_rank == device.rank) streams.push_back(received(device, track));
    }
    if (track.kind != TrackKind::Collective) continue;
    const std::vector<int>& members = device.program().communicators[track.communicator].ranks;
    if (std::find(members.begin(), members.end(), device.rank) != members.end()) {
      streams.push_back({track.name, track.kind, false, track.slices});
    }
  }
  return streams;
}

/// Returns the name of a kernel, and further arguments of its event.
std::pair<std::string, std::string> kernel_words(const ProfiledDevice& device,
                                                 const KernelStream& stream, std::int32_t index) {
  const Program& program = device.program();
  if (stream.kind == TrackKind::Compute) {
    const OpInfo& op = program.ops[device.log().spans[index].op];
    return {std::string(category(op.kind)) + " of stage " +
                std::to_string(model_stage(program, op.stage)),
            ""};
  }
  if (stream.kind == TrackKind::Wire) {
    const Channel& channel = program.channels[device.log().transfers[index].channel];
    const std::string side = stream.receives ? "Recv" : "Send";
    return {"ncclKernel_" + side + " " + name_of(channel.cargo),
            R"(,"Collective name":")" + side + R"(","bytes":)" +
                std::to_string(static_cast<std::int64_t>(channel.bytes.value()))};
  }
  const Collective& collective = program.collectives[device.log().collectives[index].collective];
  const std::string bytes =
      R"(,"bytes":)" + std::to_string(static_cast<std::int64_t>(collective.bytes.value()));
  if (stream.kind == TrackKind::Copy) {
    const bool down = collective.axis == MeshAxis::ToHost;
    return {down ? "Memcpy DtoH (Device -> Pinned)" : "Memcpy HtoD (Pinned -> Device)", bytes};
  }
  const std::string kind = name_of(collective.kind);
  return {"ncclKernel_" + kind, R"(,"Collective name":")" + kind + "\"" + bytes};
}

void write_header(EventText& text, const ProfiledDevice& device) {
  const Question& scenario = device.result.plan.question;
  const int number = device_numbers(device.result.plan).at(device.rank);
  const Device& real = machine_of(scenario.cluster, number).device;
  text << R"({"schemaVersion":1,"deviceProperties":[{"id":)" << device.process() << R"(,"name":)"
       << json_string(real.name) << R"(,"totalGlobalMem":)"
       << static_cast<std::int64_t>(real.memory.value())
       << R"(}],"distributedInfo":{"backend":"nccl","rank":)" << device.rank << R"(,"world_size":)"
       << static_cast<int>(device.program().ranks.size())
       << R"(},"displayTimeUnit":"ms","traceName":)" << json_string(scenario.name)
       << R"(,"traceEvents":[)";
}

void write_names(EventText& text, const ProfiledDevice& device) {
  const auto name = [&](const char* what, std::pair<int, int> place, const std::string& words) {
    text.element() << R"({"ph":"M","name":")" << what << R"(","pid":)" << place.first
                   << R"(,"tid":)" << place.second << R"(,"args":{"name":)" << json_string(words)
                   << "}}";
  };
  const int number = device_numbers(device.result.plan).at(device.rank);
  name("process_name", {device.host(), device.host_thread()}, "host");
  name("thread_name", {device.host(), device.host_thread()}, "launches");
  for (std::size_t s = 0; s < device.streams.size(); ++s) {
    const int stream = kFirstStream + static_cast<int>(s);
    if (s == 0) {
      name("process_name", {device.process(), device.thread(s)},
           "device " + std::to_string(number));
    }
    name("thread_name", {device.process(), device.thread(s)},
         "stream " + std::to_string(stream) + " " + device.streams[s].name);
  }
}

void write_times(EventText& text, std::int64_t start, std::int64_t duration) {
  (text << R"(,"ts":)").micros(start);
  (text << R"(,"dur":)").micros(duration);
}

/// The host's side: steps, which end where those of the run do; the last goes on until all is done,
/// and a nanosecond more, so that what takes no time at its end lies inside.
void write_steps(EventText& text, const ProfiledDevice& device) {
  std::vector<std::int64_t> ends = step_ends(device.program(), device.log());
  if (ends.empty()) return;
  for (const KernelStream& stream : device.streams) {
    if (!stream.slices.empty()) ends.back() = std::max(ends.back(), stream.slices.back().end + 1);
  }
  std::int64_t begin = 0;
  for (std::size_t step = 0; step < ends.size(); ++step) {
    text.element() << R"({"ph":"X","cat":"user_annotation","name":"ProfilerStep#)"
                   << static_cast<int>(step) << R"(","pid":)" << device.host() << R"(,"tid":)"
                   << device.host_thread();
    write_times(text, begin, ends[step] - begin);
    text << "}";
    begin = ends[step];
  }
}

void write_kernel(EventText& text, const ProfiledDevice& device, std::size_t number,
                  const Slice& slice, std::int64_t correlation) {
  const KernelStream& stream = device.streams[number];
  const auto [name, more] = kernel_words(device, stream, slice.index);
  const bool copy = stream.kind == TrackKind::Copy;
  text.element() << R"({"ph":"X","cat":")" << (copy ? "gpu_memcpy" : "kernel") << R"(","name":")"
                 << name << R"(","pid":)" << device.process() << R"(,"tid":)"
                 << device.thread(number);
  write_times(text, slice.start, slice.end - slice.start);
  text << R"(,"args":{"device":)" << device.process() << R"(,"context":1,"stream":)"
       << kFirstStream + static_cast<int>(number) << R"(,"correlation":)" << correlation
       << R"(,"External id":)" << correlation << more << "}}";
}

/// The op of the host that asks for a kernel, the launch inside it, and the arrow to the kernel.
void write_launch(EventText& text, const ProfiledDevice& device, std::size_t stream,
                  const Slice& slice, std::int64_t correlation) {
  const bool copy = device.streams[stream].kind == TrackKind::Copy;
  const auto on_host = [&](const std::string& beginning) {
    text.element() << beginning << R"(,"pid":)" << device.host() << R"(,"tid":)"
                   << device.host_thread();
    write_times(text, slice.start, 0);
    text << R"(,"args":{"External id":)" << correlation;
  };
  const bool compute = device.streams[stream].kind == TrackKind::Compute;
  const std::string op =
      compute ? kernel_words(device, device.streams[stream], slice.index).first : "launch";
  on_host(R"({"ph":"X","cat":"cpu_op","name":")" + op + "\"");
  text << "}}";
  on_host(copy ? R"({"ph":"X","cat":"cuda_runtime","name":"cudaMemcpyAsync")"
               : R"({"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel")");
  text << R"(,"correlation":)" << correlation << R"(,"cbid":)" << kLaunchCbid << "}}";
  if (slice.end <= slice.start) return;  // no room for an arrow
  const auto arrow = [&](const char* beginning, int process, int thread) {
    text.element() << beginning << R"(,"cat":"ac2g","name":"ac2g","id":)" << correlation
                   << R"(,"pid":)" << process << R"(,"tid":)" << thread;
    (text << R"(,"ts":)").micros(slice.start);
    text << "}";
  };
  arrow(R"({"ph":"s")", device.host(), device.host_thread());
  arrow(R"({"ph":"f","bp":"e")", device.process(), device.thread(stream));
}

}  // namespace

TextSource kineto_trace(const ScenarioResult& result, int rank) {
  return [&result, rank](const TextSink& out) {
    ProfiledDevice device{.result = result, .rank = rank};
    device.streams = streams_of(device, lay_tracks(result));
    EventText text(out);
    write_header(text, device);
    write_names(text, device);
    write_steps(text, device);
    std::int64_t correlation = 0;
    for (std::size_t s = 0; s < device.streams.size(); ++s) {
      for (const Slice& slice : device.streams[s].slices) {
        ++correlation;
        write_kernel(text, device, s, slice, correlation);
        write_launch(text, device, s, slice, correlation);
      }
    }
    text << "\n]}\n";
    text.flush();
  };
}

}  // namespace interlock
