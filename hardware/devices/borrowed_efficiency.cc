// Finds the nearest device that states efficiencies.
// SPDX-License-Identifier: Apache-2.0
#include "hardware/devices/borrowed_efficiency.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/text.h"

namespace interlock {
namespace {

/// Returns the fastest rate in 16 bits, or else the fastest of all.
FlopsPerSecond peak_of(const Device& device) {
  double half = 0, any = 0;
  for (std::size_t i = 0; i < device.peak.size(); ++i) {
    const double rate = device.peak[i].value_or(FlopsPerSecond(0)).value();
    const auto precision = static_cast<Precision>(i);
    if (precision == Precision::Fp16 || precision == Precision::Bf16) half = std::max(half, rate);
    any = std::max(any, rate);
  }
  return FlopsPerSecond(half > 0 ? half : any);
}

bool same_architecture(const Device& a, const Device& b) {
  return !a.architecture.empty() && a.architecture == b.architecture;
}

bool same_vendor(const Device& a, const Device& b) {
  return !a.architecture.empty() && vendor_of(a) == vendor_of(b);
}

/// Returns how many times one is the other, as a logarithm: 0 where both are alike in compute and
/// in memory. A kernel fills a large device less than a small one of the same balance, so that
/// their ratio alone does not say how near two devices are.
double unlikeness(const Device& a, const Device& b) {
  return std::hypot(std::log(peak_of(a) / peak_of(b)),
                    std::log(a.memory_bandwidth / b.memory_bandwidth));
}

/// Less is nearer: generation, then architecture, vendor, and the rates of compute and memory.
std::tuple<bool, bool, bool, double> distance(const Device& device, const Device& lender) {
  return {generation_of(device.name) != generation_of(lender.name),
          !same_architecture(device, lender), !same_vendor(device, lender),
          unlikeness(device, lender)};
}

std::string why(const Device& device, const Device& lender) {
  if (generation_of(device.name) == generation_of(lender.name)) return "the same generation";
  if (same_architecture(device, lender)) return "the same architecture, " + device.architecture;
  return format_number(peak_of(device) / peak_of(lender)) + " times its peak, " +
         format_number(device.memory_bandwidth / lender.memory_bandwidth) +
         " times its memory bandwidth";
}

}  // namespace

std::string generation_of(const std::string& device) {
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = std::min(device.find('-', begin), device.size());
    const std::string part = device.substr(begin, end - begin);
    if (end == device.size() || part.find_first_of("0123456789") != std::string::npos) {
      return device.substr(0, end);
    }
    begin = end + 1;
  }
}

std::string vendor_of(const Device& device) {
  return device.architecture.substr(0, device.architecture.find(' '));
}

void borrow_efficiency(Device& device, const std::vector<Lender>& lenders) {
  const Lender* nearest = nullptr;
  for (const Lender& lender : lenders) {
    const bool nearer =
        nearest == nullptr || distance(device, lender.device) < distance(device, nearest->device);
    if (nearer) nearest = &lender;
  }
  if (nearest == nullptr) return;
  device.efficiency = nearest->device.efficiency;
  if (device.tiles.ramp == 0) device.tiles.ramp = nearest->device.tiles.ramp;
  AttentionKernel& attention = device.attention;
  if (attention.ramp == 0) attention.ramp = nearest->device.attention.ramp;
  if (attention.narrowest == 0) attention.narrowest = nearest->device.attention.narrowest;
  device.borrowed = BorrowedEfficiency{nearest->name, why(device, nearest->device)};
}

std::string borrowed_words(const Device& device) {
  return in_quotes(device.name) + " states no efficiency; it borrows those of " +
         device.borrowed->from + " (" + device.borrowed->why + ")";
}

}  // namespace interlock
