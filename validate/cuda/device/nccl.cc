// NCCL by dlopen, with prototypes of our own: the toolkit need not have its header.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/device/nccl.h"

#include <dlfcn.h>

#include "base/error.h"

namespace interlock::cuda {

namespace {

// As NCCL's reference gives them: ncclResult_t 0 is success, ncclDataType_t 0 is int8.
constexpr int kBytes = 0;
using Communicator = void*;

struct Nccl {
  int (*version)(int*) = nullptr;
  const char* (*error)(int) = nullptr;
  int (*init_all)(Communicator*, int, const int*) = nullptr;
  int (*destroy)(Communicator) = nullptr;
  int (*group_start)() = nullptr;
  int (*group_end)() = nullptr;
  int (*send)(const void*, std::size_t, int, int, Communicator, cudaStream_t) = nullptr;
  int (*receive)(void*, std::size_t, int, int, Communicator, cudaStream_t) = nullptr;
  bool ready = false;
};

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

const Nccl& nccl() {
  static const Nccl functions = [] {
    Nccl n;
    void* library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    n.ready = library != nullptr && find(library, "ncclGetVersion", n.version) &&
              find(library, "ncclGetErrorString", n.error) &&
              find(library, "ncclCommInitAll", n.init_all) &&
              find(library, "ncclCommDestroy", n.destroy) &&
              find(library, "ncclGroupStart", n.group_start) &&
              find(library, "ncclGroupEnd", n.group_end) && find(library, "ncclSend", n.send) &&
              find(library, "ncclRecv", n.receive);
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
  if (!nccl().ready || nccl().version(&version) != 0) return "";
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

NcclGroup::NcclGroup(const std::vector<int>& devices) : communicators_(devices.size(), nullptr) {
  if (!nccl().ready) {
    throw Error("NCCL was asked for, but libnccl.so.2 is not found; install it, or use copies");
  }
  require_nccl(
      nccl().init_all(communicators_.data(), static_cast<int>(devices.size()), devices.data()),
      "join the devices");
}

NcclGroup::~NcclGroup() {
  for (Communicator one : communicators_) nccl().destroy(one);
}

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

}  // namespace interlock::cuda
