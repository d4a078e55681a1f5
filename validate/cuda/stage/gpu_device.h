// GpuDevice: a stage's device on a GPU: everything is issued to the stream of its rank.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "validate/cuda/stage/gpu_inputs.h"
#include "validate/cuda/stage/gpu_memory.h"

namespace interlock::cuda {

class GpuDevice final : public StageDevice {
 public:
  /// Makes the device of a stage on the current GPU, which is that of `rank`.
  GpuDevice(const Job& job, int stage, int rank, const KernelContext& context,
            GpuMemories& memories);
  ~GpuDevice() override;

  /// Says where and until when blocks are used that are freed, or noted as used, from now on.
  void begin_use(const LastUse& use) { use_ = use; }
  /// Returns the losses that kernels make, by micro-batch, in memory of the host; null if the stage
  /// makes none.
  const float* losses() const { return losses_; }
  /// Returns the bytes of the GPU that the inputs of its stage take.
  std::int64_t input_bytes() const { return inputs_.bytes(); }
  /// Returns the micro-batch whose loss the op under way made, once; -1 if it made none.
  int take_noted_loss() { return std::exchange(noted_loss_, -1); }

  int number_bytes() const override { return static_cast<int>(bytes_of(stream().element)); }
  int state_bytes() const override { return sizeof(float); }
  Block allocate(std::int64_t bytes, MemoryClass memory_class) override;
  void free(Block& block) override { memory_of(block).free(block, use_); }
  void retag(const Block& block, MemoryClass memory_class) override {
    memory_of(block).retag(block, memory_class);
  }
  void note_use(const Block& block) override { memory_of(block).note_use(block, use_); }
  bool messages_linger() const override { return true; }
  void clear(char* to, std::int64_t bytes) override;
  void copy(char* to, const char* from, std::int64_t bytes) override;
  void add(const Block& from, const Block& to) override;
  void scale(const Block& block, double factor) override;
  void cast(const Block& from, const Block& to, SentFormat format) override;
  void cast_back(const Block& from, const Block& to, SentFormat format) override;
  void read_input(char* to, std::int64_t bytes, int micro_batch) override;
  void run(const std::vector<Step>& steps, const StageTensors& tensors, StepPart part) override;
  void note_loss(int micro_batch, bool replay) override;
  void begin(const TrainedParameter& parameter) override;
  void descend(const TrainedParameter& parameter, char* gradient,
               const StepFactors& factors) override;
  std::vector<double> fetch(const char* numbers, std::int64_t count) override;

 private:
  const Stream& stream() const { return context_.stream; }
  GpuMemory& memory_of(const Block& block) const {
    return *memories_[static_cast<std::size_t>(block.rank)];
  }

  const Job& job_;
  const int stage_, rank_;
  const KernelContext context_;
  GpuMemories& memories_;
  GpuInputs inputs_;
  float* losses_ = nullptr;
  LastUse use_;
  int noted_loss_ = -1;
};

}  // namespace interlock::cuda
