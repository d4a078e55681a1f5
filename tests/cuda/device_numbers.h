// Numbers on the device: random tensors go up, results come down, and are held to a reference.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/cuda/reference.h"

namespace interlock::cuda {

using reference::Numbers;
using reference::Tokens;

/// Returns whether there is a GPU; else `why` says what is missing.
bool has_gpu(std::string& why);

/// The first GPU, with tensors that live as long as this.
class OnDevice {
 public:
  OnDevice(Element element, int sms);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  const Stream& stream() const { return stream_; }
  /// Rounds `numbers` to the element type, and takes them up.
  void* put(Numbers& numbers);
  float* put_fp32(Numbers& numbers);
  std::int32_t* put_tokens(const Tokens& tokens);
  /// Room for numbers, each not a number yet.
  void* room(std::size_t size);
  float* room_fp32(std::size_t size);
  Numbers get(const void* tensor, std::size_t size);
  Numbers get_fp32(const void* tensor, std::size_t size);

 private:
  void* take(std::size_t bytes);
  void* send(const void* numbers, std::size_t bytes);

  Stream stream_;
  std::vector<void*> blocks_;
};

/// Uniform in [-1, 1), of a stream of its own.
Numbers random_numbers(std::size_t size, std::uint64_t stream);
Tokens random_tokens(std::size_t size, int most, std::uint64_t stream);

/// The output of a kernel, and that of its reference from the same numbers.
struct Compared {
  std::string name;
  Numbers made, expected;
  int roundings = 1;  // to the element type, one after the other, that it may be off by
};
/// Runs `kernel` in fp32 and bf16, on all multiprocessors and as if there were three: results must
/// be bitwise the same, and as near to the reference as one rounding (bf16) or short sums (fp32).
void check_kernel(const std::function<std::vector<Compared>(OnDevice&)>& kernel);

}  // namespace interlock::cuda
