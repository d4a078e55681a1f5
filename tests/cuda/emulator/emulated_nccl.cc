// NCCL on the emulated machine: messages and collectives, each begun when all members are there.
// SPDX-License-Identifier: Apache-2.0
//
// A library of its own, which the module opens by name. CUDA's functions are those of the program.
// It keeps a record of what it was asked for.
#include <cuda_runtime.h>

#if __has_include(<nccl.h>)
#include <nccl.h>
#else
extern "C" {
typedef struct ncclComm* ncclComm_t;
typedef enum { ncclSuccess = 0, ncclInvalidUsage = 5 } ncclResult_t;
typedef enum { ncclSum = 0 } ncclRedOp_t;
typedef enum { ncclInt8 = 0, ncclFloat32 = 7, ncclBfloat16 = 9 } ncclDataType_t;
}
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <utility>

#include "tests/cuda/emulator/nccl_record.h"

/// A member of a communicator.
struct ncclComm {
  int number = 0;  // of the communicator
  int member = 0, device = 0;
  std::size_t members = 1;
};

namespace {

using emulated::NcclRecord;

/// A member's part of a collective or a message.
struct Part {
  enum class Kind { AllReduce, ReduceScatter, AllGather, Reduce, Broadcast, Send, Receive };
  Kind kind = Kind::AllReduce;
  ncclComm* own = nullptr;
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t numbers = 0;  // as the call counts them
  ncclDataType_t type = ncclInt8;
  int operation = -1, other = -1;
  cudaStream_t stream = nullptr;
};
using Parts = std::vector<Part>;

NcclRecord record;
std::map<int, std::map<int, Parts>> collectives;  // of the open group: by communicator and member
Parts sends, receives;                            // likewise
bool open = false;
int works = 0;

const char* name_of(Part::Kind kind) {
  constexpr const char* kNames[] = {"all-reduce", "reduce-scatter", "all-gather", "reduce",
                                    "broadcast",  "send",           "receive"};
  return kNames[static_cast<int>(kind)];
}

ncclResult_t note(const Part& part) {
  record.calls.push_back({name_of(part.kind), part.own->number, part.own->member, part.numbers,
                          part.type, part.operation, part.other, record.starts - 1});
  const bool message = part.kind == Part::Kind::Send || part.kind == Part::Kind::Receive;
  const bool known = part.type == ncclFloat32 || part.type == ncclBfloat16;
  if (!open || part.stream == nullptr || (!message && !known)) return ncclInvalidUsage;
  if (message && part.type != ncclInt8) return ncclInvalidUsage;
  if (part.operation >= 0 && part.operation != ncclSum) return ncclInvalidUsage;
  if (!message) {
    collectives[part.own->number][part.own->member].push_back(part);
  } else {
    (part.kind == Part::Kind::Send ? sends : receives).push_back(part);
  }
  return ncclSuccess;
}

/// A number of a type as fp32 has it; and rounded to the type.
float widen(std::uint16_t bf16) {
  const std::uint32_t wide = std::uint32_t{bf16} << 16;
  float value = 0;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}
std::uint16_t narrow(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);  // to the nearest
}
float round_to(ncclDataType_t type, float value) {
  return type == ncclBfloat16 ? widen(narrow(value)) : value;
}

float number_at(const Part& part, std::size_t at) {
  if (part.type == ncclFloat32) return static_cast<const float*>(part.from)[at];
  return widen(static_cast<const std::uint16_t*>(part.from)[at]);
}

void append(float value, ncclDataType_t type, std::vector<char>& to) {
  const std::uint16_t narrowed = narrow(value);
  const bool wide = type == ncclFloat32;
  const void* const bytes = wide ? static_cast<const void*>(&value) : &narrowed;
  const auto* const first = static_cast<const char*>(bytes);
  to.insert(to.end(), first, first + (wide ? sizeof value : sizeof narrowed));
}

/// Appends numbers [first, first + count) of the sum of all, which is rounded to their type at
/// every addition: it goes from member to member in that type.
void append_sums(const Parts& all, std::size_t first, std::size_t count, std::vector<char>& to) {
  for (std::size_t i = first; i < first + count; ++i) {
    float sum = 0;
    for (const Part& part : all) sum = round_to(part.type, sum + number_at(part, i));
    append(sum, all.front().type, to);
  }
}

/// Does all of a collective at once, into room of its own first: it may be in place.
void compute(const Parts& all) {
  const std::size_t each = all.front().numbers;
  std::vector<std::vector<char>> made(all.size());
  for (std::size_t m = 0; m < all.size(); ++m) {
    const bool is_root = all[m].other == static_cast<int>(m);
    switch (all[m].kind) {
      case Part::Kind::Reduce:
        if (!is_root) break;
        [[fallthrough]];
      case Part::Kind::AllReduce:
        append_sums(all, 0, each, made[m]);
        break;
      case Part::Kind::ReduceScatter:
        append_sums(all, m * each, each, made[m]);
        break;
      case Part::Kind::AllGather:
      case Part::Kind::Broadcast:
        for (std::size_t from = 0; from < all.size(); ++from) {
          const bool sends_all = all[m].kind == Part::Kind::AllGather;
          if (!sends_all && all[m].other != static_cast<int>(from)) continue;
          for (std::size_t i = 0; i < each; ++i) {
            append(number_at(all[from], i), all[m].type, made[m]);
          }
        }
        break;
      case Part::Kind::Send:
      case Part::Kind::Receive:
        break;
    }
  }
  for (std::size_t m = 0; m < all.size(); ++m) {
    std::copy(made[m].begin(), made[m].end(), static_cast<char*>(all[m].to));
  }
}

template <class Work>
bool launch(cudaStream_t stream, Work work) {
  auto* const kept = new Work(std::move(work));
  const auto run = [](void* data) {
    auto* const own = static_cast<Work*>(data);
    (*own)();
    delete own;
  };
  return cudaLaunchHostFunc(stream, run, kept) == cudaSuccess;
}

bool pass(const Part& part, int work, bool enters) {
  const int device = part.own->device;
  return launch(part.stream, [=] { record.passages.push_back({work, device, enters}); });
}

/// Runs a work of several parts: it begins when the streams of all have come so far, and none goes
/// on before it is done.
template <class Work>
bool run_together(const Parts& parts, Work work) {
  const int number = works++;
  bool fine = true;
  std::vector<cudaEvent_t> marks;
  const auto mark = [&](const Part& part) {
    cudaEvent_t event = nullptr;
    cudaSetDevice(part.own->device);
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    fine = cudaEventRecord(event, part.stream) == cudaSuccess && fine;
    marks.push_back(event);
  };
  for (const Part& part : parts) {
    fine = pass(part, number, true) && fine;
    mark(part);
  }
  const Part& first = parts.front();
  cudaSetDevice(first.own->device);
  for (cudaEvent_t one : marks) {
    fine = cudaStreamWaitEvent(first.stream, one, 0) == cudaSuccess && fine;
  }
  fine = launch(first.stream, work) && fine;
  mark(first);
  for (const Part& part : parts) {
    cudaSetDevice(part.own->device);
    fine = cudaStreamWaitEvent(part.stream, marks.back(), 0) == cudaSuccess && fine;
    fine = pass(part, number, false) && fine;
  }
  for (cudaEvent_t one : marks) cudaEventDestroy(one);
  return fine;
}

/// Runs the collectives of one communicator in the open group. Every member has to take part, in
/// the same ones.
bool run_collectives(const std::map<int, Parts>& by_member) {
  const Parts& first = by_member.begin()->second;
  bool fine = by_member.size() == first.front().own->members;
  for (const auto& [member, parts] : by_member) fine = fine && parts.size() == first.size();
  for (std::size_t i = 0; fine && i < first.size(); ++i) {
    Parts all;
    for (const auto& [member, parts] : by_member) {
      const Part &one = parts[i], &known = first[i];
      fine = fine && one.kind == known.kind && one.numbers == known.numbers &&
             one.type == known.type && one.operation == known.operation && one.other == known.other;
      all.push_back(one);
    }
    fine = fine && run_together(all, [all] { compute(all); });
  }
  return fine;
}

/// Runs messages: every send meets the first receive of its peer that is for it.
bool run_messages() {
  bool fine = sends.size() == receives.size();
  for (const Part& send : sends) {
    auto met = receives.begin();
    while (met != receives.end() &&
           (met->own->number != send.own->number || met->own->member != send.other ||
            met->other != send.own->member)) {
      ++met;
    }
    if (met == receives.end() || met->numbers != send.numbers) return false;
    const Part receive = *met;
    receives.erase(met);
    fine =
        run_together({receive, send}, [=] { std::memcpy(receive.to, send.from, send.numbers); }) &&
        fine;
  }
  return fine;
}

}  // namespace

extern "C" {

NcclRecord* emulated_nccl_record() { return &record; }

ncclResult_t ncclGetVersion(int* version) {
  *version = 20000;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t) { return "the emulated NCCL refuses"; }
ncclResult_t ncclCommInitAll(ncclComm_t* members, int count, const int* devices) {
  const int number = static_cast<int>(record.members.size());
  for (int i = 0; i < count; ++i) {
    for (int j = 0; j < i; ++j) {
      if (devices[i] == devices[j]) return ncclInvalidUsage;
    }
    members[i] = new ncclComm{number, i, devices[i], static_cast<std::size_t>(count)};
  }
  record.members.push_back(count);
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t member) {
  delete member;
  return ncclSuccess;
}
ncclResult_t ncclGroupStart() {
  record.unpaired += open ? 1 : 0;
  ++record.starts;
  open = true;
  return ncclSuccess;
}
ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t own, cudaStream_t stream) {
  return note({Part::Kind::Send, own, from, nullptr, count, type, -1, peer, stream});
}
ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t own,
                      cudaStream_t stream) {
  return note({Part::Kind::Receive, own, nullptr, to, count, type, -1, peer, stream});
}
ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t own, cudaStream_t stream) {
  return note({Part::Kind::AllReduce, own, from, to, count, type, operation, -1, stream});
}
ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, ncclComm_t own, cudaStream_t stream) {
  return note({Part::Kind::ReduceScatter, own, from, to, count, type, operation, -1, stream});
}
ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclComm_t own, cudaStream_t stream) {
  return note({Part::Kind::AllGather, own, from, to, count, type, -1, -1, stream});
}
ncclResult_t ncclReduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                        ncclRedOp_t operation, int root, ncclComm_t own, cudaStream_t stream) {
  return note({Part::Kind::Reduce, own, from, to, count, type, operation, root, stream});
}
ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           int root, ncclComm_t own, cudaStream_t stream) {
  return note({Part::Kind::Broadcast, own, from, to, count, type, -1, root, stream});
}
ncclResult_t ncclGroupEnd() {
  record.unpaired += open ? 0 : 1;
  ++record.ends;
  open = false;
  int device = 0;
  cudaGetDevice(&device);
  bool fine = true;
  for (const auto& [communicator, by_member] : collectives) {
    fine = run_collectives(by_member) && fine;
  }
  fine = run_messages() && fine;
  collectives.clear();
  sends.clear();
  receives.clear();
  cudaSetDevice(device);
  return fine ? ncclSuccess : ncclInvalidUsage;
}
}
