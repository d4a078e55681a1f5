// NVML on the emulated machine: a clock that falls with every reading, wavers in the end, and why.
// SPDX-License-Identifier: Apache-2.0
//
// Prototypes are those of NVML's reference; its header need not be there.
#include <cstdlib>
#include <cstring>

namespace {

constexpr unsigned kMost = 1980, kLeast = 1200, kFall = 15, kMemory = 2619;  // MHz
constexpr unsigned long long kPowerCap = 4;

struct Device {
  unsigned clock = kMost;
};
Device devices[8];

Device& device_of(void* handle) { return *static_cast<Device*>(handle); }

}  // namespace

extern "C" {

int nvmlInit_v2() { return 0; }
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  std::strncpy(text, "580.0-emulated", size);
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, void** handle) {
  *handle = &devices[std::strtol(bus + 5, nullptr, 16) % 8];  // "0000:03:00.0"
  return 0;
}
int nvmlDeviceGetClockInfo(void* handle, unsigned type, unsigned* clock) {
  if (type == 2) return *clock = kMemory, 0;
  Device& device = device_of(handle);
  *clock = device.clock;
  // No two readings are alike, however long a slow machine has been read.
  device.clock = device.clock > kLeast ? device.clock - kFall : kLeast + kFall;
  return 0;
}
int nvmlDeviceGetMaxClockInfo(void*, unsigned type, unsigned* clock) {
  *clock = type == 2 ? kMemory : kMost;
  return 0;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = 699'500;
  return 0;
}
int nvmlDeviceGetTemperature(void*, unsigned, unsigned* degrees) {
  *degrees = 61;
  return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void* handle, unsigned long long* reasons) {
  *reasons = device_of(handle).clock < kMost - kFall ? kPowerCap : 0;
  return 0;
}
}
