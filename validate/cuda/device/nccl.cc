// NCCL by dlopen, with prototypes of our own: the toolkit need not have its header.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/device/nccl.h"

#include <dlfcn.h>

#if __has_include(<nccl.h>)
#include <nccl.h>
#define INTERLOCK_HAS_NCCL_HEADER
#endif

#include <algorithm>
#include <type_traits>

#include "base/error.h"

namespace interlock::cuda {

namespace {

// Numbers of NCCL's reference: ncclResult_t 0 is success, ncclDataType_t 0 is int8, 7 is float32
// and 9 is bfloat16, ncclRedOp_t 0 is the sum.
constexpr int kBytes = 0, kFp32 = 7, kBf16 = 9, kSum = 0;
using Communicator = void*;
using Reduction = int (*)(const void*, void*, std::size_t, int, int, Communicator, cudaStream_t);

struct Nccl {
  int (*version)(int*) = nullptr;
  const char* (*error)(int) = nullptr;
  int (*init_all)(Communicator*, int, const int*) = nullptr;
  int (*destroy)(Communicator) = nullptr;
  int (*group_start)() = nullptr;
  int (*group_end)() = nullptr;
  int (*send)(const void*, std::size_t, int, int, Communicator, cudaStream_t) = nullptr;
  int (*receive)(void*, std::size_t, int, int, Communicator, cudaStream_t) = nullptr;
  Reduction all_reduce = nullptr, reduce_scatter = nullptr;
  int (*all_gather)(const void*, void*, std::size_t, int, Communicator, cudaStream_t) = nullptr;
  int (*reduce)(const void*, void*, std::size_t, int, int, int, Communicator,
                cudaStream_t) = nullptr;
  int (*broadcast)(const void*, void*, std::size_t, int, int, Communicator, cudaStream_t) = nullptr;
};

#ifdef INTERLOCK_HAS_NCCL_HEADER
// Holds what stands above against the header, where the toolkit has it.
template <class A, class B>
constexpr bool kPassedAlike =
    sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>;
template <class OurResult, class... Ours, class Result, class... Theirs>
constexpr bool called_alike(OurResult (*)(Ours...), Result (*)(Theirs...)) {
  if constexpr (sizeof...(Ours) != sizeof...(Theirs)) {
    return false;
  } else {
    return kPassedAlike<OurResult, Result> && (kPassedAlike<Ours, Theirs> && ...);
  }
}
constexpr Nccl kOurs;
static_assert(called_alike(kOurs.version, decltype(&ncclGetVersion){}) &&
              called_alike(kOurs.error, decltype(&ncclGetErrorString){}) &&
              called_alike(kOurs.init_all, decltype(&ncclCommInitAll){}) &&
              called_alike(kOurs.destroy, decltype(&ncclCommDestroy){}) &&
              called_alike(kOurs.group_start, decltype(&ncclGroupStart){}) &&
              called_alike(kOurs.group_end, decltype(&ncclGroupEnd){}) &&
              called_alike(kOurs.send, decltype(&ncclSend){}) &&
              called_alike(kOurs.receive, decltype(&ncclRecv){}) &&
              called_alike(kOurs.all_reduce, decltype(&ncclAllReduce){}) &&
              called_alike(kOurs.reduce_scatter, decltype(&ncclReduceScatter){}) &&
              called_alike(kOurs.all_gather, decltype(&ncclAllGather){}) &&
              called_alike(kOurs.reduce, decltype(&ncclReduce){}) &&
              called_alike(kOurs.broadcast, decltype(&ncclBroadcast){}));
static_assert(ncclSuccess == 0 && ncclInt8 == kBytes && ncclFloat32 == kFp32 &&
              ncclBfloat16 == kBf16 && ncclSum == kSum);
#endif

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

struct OpenedNccl : Nccl {
  std::string problem;  // why it cannot be opened; empty: it is
};

const OpenedNccl& nccl() {
  static const OpenedNccl functions = [] {
    OpenedNccl n;
    void* library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    const bool found =
        library != nullptr && find(library, "ncclGetVersion", n.version) &&
        find(library, "ncclGetErrorString", n.error) &&
        find(library, "ncclCommInitAll", n.init_all) &&
        find(library, "ncclCommDestroy", n.destroy) &&
        find(library, "ncclGroupStart", n.group_start) &&
        find(library, "ncclGroupEnd", n.group_end) && find(library, "ncclSend", n.send) &&
        find(library, "ncclRecv", n.receive) && find(library, "ncclAllReduce", n.all_reduce) &&
        find(library, "ncclReduceScatter", n.reduce_scatter) &&
        find(library, "ncclAllGather", n.all_gather) && find(library, "ncclReduce", n.reduce) &&
        find(library, "ncclBroadcast", n.broadcast);
    const char* const why = found ? nullptr : dlerror();
    n.problem = found ? "" : why != nullptr ? why : "the loader does not say why";
    return n;
  }();
  return functions;
}

void require_nccl(int status, const char* what) {
  if (status != 0) throw Error(std::string("NCCL: ") + what + ": " + nccl().error(status));
}

}  // namespace

std::string nccl_version() {
  int version = 0;
  if (!nccl().problem.empty() || nccl().version(&version) != 0) return "";
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

std::string nccl_problem() {
  if (!nccl_version().empty()) return "";
  const std::string& why = nccl().problem;
  return "libnccl.so.2 cannot be opened (" + (why.empty() ? "it says no version" : why) + ")";
}

NcclGroup::NcclGroup(const std::vector<int>& devices) : communicators_(devices.size(), nullptr) {
  if (const std::string problem = nccl_problem(); !problem.empty()) {
    throw Error("NCCL was asked for, but " + problem + "; install it, or use copies");
  }
  require_nccl(
      nccl().init_all(communicators_.data(), static_cast<int>(devices.size()), devices.data()),
      "join the devices");
}

NcclGroup::~NcclGroup() {
  for (Communicator one : communicators_) nccl().destroy(one);
}

namespace {

/// Issues the part of each member, as `issue(member)` does, in one group call. Throws: Error in the
/// words of `what` with the first problem.
template <class Issue>
void issue_together(std::size_t members, const std::string& what, const Issue& issue) {
  require_nccl(nccl().group_start(), ("begin " + what).c_str());
  int first = 0;
  for (std::size_t member = 0; member < members; ++member) {
    const int status = issue(member);
    if (first == 0) first = status;
  }
  require_nccl(nccl().group_end(), ("end " + what).c_str());
  require_nccl(first, ("share in " + what).c_str());
}

}  // namespace

void NcclGroup::transfer(const End& from, const End& to, std::int64_t bytes) {
  const auto count = static_cast<std::size_t>(bytes);
  require_nccl(nccl().group_start(), "begin a message");
  const int sent =
      nccl().send(from.bytes, count, kBytes, to.member, communicators_[from.member], from.stream);
  const int received =
      nccl().receive(to.bytes, count, kBytes, from.member, communicators_[to.member], to.stream);
  require_nccl(nccl().group_end(), "end a message");
  require_nccl(sent, "send");
  require_nccl(received, "receive");
}

namespace {

/// Returns what NCCL says to the part of one member in a collective of `members`.
int issue_share(CollectiveKind kind, const NcclGroup::Share& share, std::size_t numbers,
                const std::vector<Communicator>& members, std::size_t member) {
  Communicator own = members[member];
  const std::size_t part = numbers / members.size();
  switch (kind) {
    case CollectiveKind::AllReduce:
      return nccl().all_reduce(share.from, share.to, numbers, kBf16, kSum, own, share.stream);
    case CollectiveKind::ReduceScatter:
      return nccl().reduce_scatter(share.from, share.to, part, kBf16, kSum, own, share.stream);
    case CollectiveKind::AllGather:
      return nccl().all_gather(share.from, share.to, part, kBf16, own, share.stream);
    default:
      break;
  }
  CHECK(kind == CollectiveKind::AllToAll, "a collective that NCCL is asked for");
  const std::size_t bytes = part * 2;
  int status = 0;
  for (std::size_t peer = 0; peer < members.size() && status == 0; ++peer) {
    const auto* from = static_cast<const char*>(share.from) + peer * bytes;
    auto* to = static_cast<char*>(share.to) + peer * bytes;
    const int other = static_cast<int>(peer);
    status = nccl().send(from, bytes, kBytes, other, own, share.stream);
    if (status == 0) status = nccl().receive(to, bytes, kBytes, other, own, share.stream);
  }
  return status;
}

}  // namespace

void NcclGroup::collective(CollectiveKind kind, const std::vector<Share>& shares,
                           std::int64_t bytes) {
  CHECK(shares.size() == communicators_.size(), "a share of every member");
  const auto numbers = static_cast<std::size_t>(bytes / 2);
  CHECK(numbers % shares.size() == 0, "numbers that divide among the members");
  issue_together(shares.size(), "a collective", [&](std::size_t member) {
    return issue_share(kind, shares[member], numbers, communicators_, member);
  });
}

namespace {

/// Returns what NCCL says to the part of one member in an exchange of shards that differ: one call
/// for the shard of each.
int issue_shards(CollectiveKind kind, const NcclGroup::Copy& copy,
                 const NcclGroup::Replicated& what, std::size_t members, Communicator own) {
  const int type = what.element == Element::Fp32 ? kFp32 : kBf16;
  int status = 0;
  for (std::size_t m = 0; m < members && status == 0; ++m) {
    const NumberRange shard = shard_of(what.numbers, what.shard, m);
    const auto numbers = static_cast<std::size_t>(shard.numbers);
    if (numbers == 0) break;
    void* const at = static_cast<char*>(copy.block) + shard.first * bytes_of(what.element);
    const int root = static_cast<int>(m);
    status = kind == CollectiveKind::ReduceScatter
                 ? nccl().reduce(at, at, numbers, type, kSum, root, own, copy.stream)
                 : nccl().broadcast(at, at, numbers, type, root, own, copy.stream);
  }
  return status;
}

/// Returns what NCCL says to the part of one member in an exchange.
int issue_exchange(CollectiveKind kind, const NcclGroup::Copy& copy,
                   const NcclGroup::Replicated& what, const std::vector<Communicator>& members,
                   std::size_t member) {
  Communicator own = members[member];
  const int type = what.element == Element::Fp32 ? kFp32 : kBf16;
  if (kind == CollectiveKind::AllReduce) {
    const auto numbers = static_cast<std::size_t>(what.numbers);
    return nccl().all_reduce(copy.block, copy.block, numbers, type, kSum, own, copy.stream);
  }
  const auto count = static_cast<std::int64_t>(members.size());
  if (what.numbers != what.shard * count) {
    return issue_shards(kind, copy, what, members.size(), own);
  }
  const auto shard = static_cast<std::size_t>(what.shard);
  char* const at = static_cast<char*>(copy.block) +
                   static_cast<std::int64_t>(member) * what.shard * bytes_of(what.element);
  return kind == CollectiveKind::ReduceScatter
             ? nccl().reduce_scatter(copy.block, at, shard, type, kSum, own, copy.stream)
             : nccl().all_gather(at, copy.block, shard, type, own, copy.stream);
}

}  // namespace

void NcclGroup::exchange(CollectiveKind kind, const std::vector<Copy>& copies,
                         const Replicated& what) {
  CHECK(copies.size() == communicators_.size(), "a block of every member");
  issue_together(copies.size(), "an exchange", [&](std::size_t member) {
    return issue_exchange(kind, copies[member], what, communicators_, member);
  });
}

}  // namespace interlock::cuda
