// Numbers on the device: random tensors go up, results come down, and are held to a reference.
// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda/device_numbers.h"

#include <cuda_bf16.h>
#include <doctest/doctest.h>

#include <cmath>

#include "base/random.h"
#include "tests/harness/support/training.h"
#include "validate/cuda/kernels/cuda_call.h"
#include "validate/executors/cuda_executor.h"

namespace interlock::cuda {

namespace {

constexpr double kFp32 = 2e-6, kBf16 = 0x1p-8;

int sms_of_device() {
  int sms = 0;
  require(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0), "describe the device");
  return sms;
}

}  // namespace

bool has_gpu(std::string& why) {
  int devices = 0;
  const cudaError_t status = cudaGetDeviceCount(&devices);
  cudaGetLastError();
  if (status == cudaSuccess && devices > 0) return true;
  why = status == cudaSuccess ? "no device" : cudaGetErrorString(status);
  return false;
}

OnDevice::OnDevice(Element element, int sms) : stream_{nullptr, sms, element} {
  require(cudaStreamCreateWithFlags(&stream_.handle, cudaStreamNonBlocking), "make a stream");
}

OnDevice::~OnDevice() {
  cudaStreamSynchronize(stream_.handle);
  for (void* block : blocks_) cudaFree(block);
  cudaStreamDestroy(stream_.handle);
}

void* OnDevice::take(std::size_t bytes) {
  void* block = nullptr;
  require(cudaMalloc(&block, bytes + 16), "memory");
  require(cudaMemset(block, 0xff, bytes + 16), "poison");
  require(cudaDeviceSynchronize(), "poison");
  blocks_.push_back(block);
  return block;
}

float* OnDevice::put_fp32(Numbers& numbers) {
  std::vector<float> rounded;
  for (double& number : numbers) {
    rounded.push_back(static_cast<float>(number));
    number = rounded.back();
  }
  return static_cast<float*>(send(rounded.data(), rounded.size() * sizeof(float)));
}

void* OnDevice::put(Numbers& numbers) {
  if (stream_.element == Element::Fp32) return put_fp32(numbers);
  std::vector<__nv_bfloat16> rounded;
  for (double& number : numbers) {
    rounded.push_back(__float2bfloat16_rn(static_cast<float>(number)));
    number = __bfloat162float(rounded.back());
  }
  return send(rounded.data(), rounded.size() * sizeof(__nv_bfloat16));
}

std::int32_t* OnDevice::put_tokens(const Tokens& tokens) {
  return static_cast<std::int32_t*>(send(tokens.data(), tokens.size() * sizeof(std::int32_t)));
}

/// Numbers of the host, which are there when it returns: copies from it may end later.
void* OnDevice::send(const void* numbers, std::size_t bytes) {
  void* block = take(bytes);
  require(cudaMemcpy(block, numbers, bytes, cudaMemcpyDefault), "take numbers up");
  require(cudaDeviceSynchronize(), "take numbers up");
  return block;
}

void* OnDevice::room(std::size_t size) {
  return take(size * static_cast<std::size_t>(bytes_of(stream_.element)));
}

float* OnDevice::room_fp32(std::size_t size) {
  return static_cast<float*>(take(size * sizeof(float)));
}

Numbers OnDevice::get_fp32(const void* tensor, std::size_t size) {
  std::vector<float> numbers(size);
  require(cudaStreamSynchronize(stream_.handle), "run");
  require(cudaMemcpy(numbers.data(), tensor, size * sizeof(float), cudaMemcpyDefault), "take down");
  return {numbers.begin(), numbers.end()};
}

Numbers OnDevice::get(const void* tensor, std::size_t size) {
  if (stream_.element == Element::Fp32) return get_fp32(tensor, size);
  std::vector<__nv_bfloat16> numbers(size);
  require(cudaStreamSynchronize(stream_.handle), "run");
  require(cudaMemcpy(numbers.data(), tensor, size * sizeof(__nv_bfloat16), cudaMemcpyDefault),
          "take down");
  Numbers exact;
  for (const __nv_bfloat16 number : numbers) exact.push_back(__bfloat162float(number));
  return exact;
}

Numbers random_numbers(std::size_t size, std::uint64_t stream) {
  Random random(11, stream);
  Numbers numbers(size);
  for (double& number : numbers) number = 2 * random.uniform() - 1;
  return numbers;
}

Tokens random_tokens(std::size_t size, int most, std::uint64_t stream) {
  Random random(13, stream);
  Tokens tokens(size);
  for (std::int32_t& token : tokens) token = random.integer(0, most);
  return tokens;
}

void check_kernel(const std::function<std::vector<Compared>(OnDevice&)>& kernel) {
  for (const Element element : {Element::Fp32, Element::Bf16}) {
    OnDevice whole(element, sms_of_device()), narrow(element, 3);
    const std::vector<Compared> wide = kernel(whole), again = kernel(narrow);
    for (std::size_t i = 0; i < wide.size(); ++i) {
      const double off = distance(wide[i].made, wide[i].expected);
      INFO(wide[i].name, element == Element::Fp32 ? " fp32: " : " bf16: ", off);
      CHECK(off <= wide[i].roundings * (element == Element::Fp32 ? kFp32 : kBf16));
      CHECK(wide[i].made == again[i].made);
    }
  }
}

}  // namespace interlock::cuda
