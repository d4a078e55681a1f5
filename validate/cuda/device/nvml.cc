// NVML by dlopen, with prototypes of our own: the toolkit need not have its header.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/device/nvml.h"

#include <dlfcn.h>

#include <array>

namespace interlock::cuda {

namespace {

// As NVML's reference gives them: nvmlReturn_t 0 is success, nvmlClockType_t 1 the
// multiprocessors, 2 the memory.
constexpr unsigned kSmClock = 1, kMemoryClock = 2, kDie = 0;
using Handle = void*;

struct Nvml {
  int (*init)() = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*handle_by_bus)(const char*, Handle*) = nullptr;
  int (*clock)(Handle, unsigned, unsigned*) = nullptr;
  int (*most_clock)(Handle, unsigned, unsigned*) = nullptr;
  int (*power)(Handle, unsigned*) = nullptr;  // mW
  int (*temperature)(Handle, unsigned, unsigned*) = nullptr;
  int (*reasons)(Handle, unsigned long long*) = nullptr;
  bool ready = false;
};

template <class Function>
bool find_function(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

const Nvml& nvml() {
  static const Nvml functions = [] {
    Nvml n;
    void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    n.ready = library != nullptr && find_function(library, "nvmlInit_v2", n.init) &&
              find_function(library, "nvmlSystemGetDriverVersion", n.driver_version) &&
              find_function(library, "nvmlDeviceGetHandleByPciBusId_v2", n.handle_by_bus) &&
              find_function(library, "nvmlDeviceGetClockInfo", n.clock) &&
              find_function(library, "nvmlDeviceGetMaxClockInfo", n.most_clock) &&
              find_function(library, "nvmlDeviceGetPowerUsage", n.power) &&
              find_function(library, "nvmlDeviceGetTemperature", n.temperature) &&
              // The name since driver 535, and the one before.
              (find_function(library, "nvmlDeviceGetCurrentClocksEventReasons", n.reasons) ||
               find_function(library, "nvmlDeviceGetCurrentClocksThrottleReasons", n.reasons)) &&
              n.init() == 0;
    return n;
  }();
  return functions;
}

}  // namespace

std::string nvml_version() {
  std::array<char, 81> text{};
  if (!nvml().ready || nvml().driver_version(text.data(), text.size() - 1) != 0) return "";
  return text.data();
}

void read_clocks(CudaDevice& device) {
  Handle handle = nullptr;
  if (!nvml().ready || nvml().handle_by_bus(device.bus.c_str(), &handle) != 0) return;
  unsigned value = 0;
  if (nvml().clock(handle, kSmClock, &value) == 0) device.sm_clock = static_cast<int>(value);
  if (nvml().most_clock(handle, kSmClock, &value) == 0) device.sm_limit = static_cast<int>(value);
  if (nvml().clock(handle, kMemoryClock, &value) == 0) {
    device.memory_clock = static_cast<int>(value);
  }
  if (nvml().power(handle, &value) == 0) device.power = value / 1000.0;
}

bool read_clocks(const std::string& bus, ClockReading& reading) {
  Handle handle = nullptr;
  if (!nvml().ready || nvml().handle_by_bus(bus.c_str(), &handle) != 0) return false;
  unsigned value = 0;
  unsigned long long reasons = 0;
  if (nvml().clock(handle, kSmClock, &value) == 0) reading.sm_clock = static_cast<int>(value);
  if (nvml().clock(handle, kMemoryClock, &value) == 0) {
    reading.memory_clock = static_cast<int>(value);
  }
  if (nvml().power(handle, &value) == 0) reading.power = value / 1000.0;
  if (nvml().temperature(handle, kDie, &value) == 0) reading.temperature = static_cast<int>(value);
  if (nvml().reasons(handle, &reasons) == 0) reading.reasons = reasons;
  return true;
}

}  // namespace interlock::cuda
