// CpuDevice: a stage's device on the CPU, with numbers of type T.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "validate/cpu/cpu_memory.h"
#include "validate/network/denoising.h"

namespace interlock {

struct CpuOptions {
  bool doubles = false;  // floats otherwise; doubles take twice the memory that the program says
  bool poison = false;   // see CpuMemory
  /// A sender keeps what it has sent until `sent` is called: for executors that know when a
  /// transfer ends. Otherwise it is copied, and freed, at once.
  bool keeps_sent = false;
  /// Returns the first value of a weight, given the value that its job has; empty: the job's value.
  std::function<double(const std::string& parameter, std::int64_t index, double value)> first = {};
};

template <class T>
class CpuDevice final : public StageDevice {
 public:
  /// Notes losses in `losses`.
  CpuDevice(const Job& job, int stage, const CpuOptions& options, CpuMemory& memory,
            StageLosses& losses);

  int number_bytes() const override { return sizeof(T); }
  int state_bytes() const override { return sizeof(T); }
  Block allocate(std::int64_t bytes, MemoryClass memory_class) override {
    return memory_.allocate(bytes, memory_class);
  }
  void free(Block& block) override { memory_.free(block); }
  void retag(const Block& block, MemoryClass memory_class) override {
    memory_.retag(block, memory_class);
  }
  void note_use(const Block&) override {}
  bool messages_linger() const override { return false; }
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
  const Batch& batch(int micro_batch);
  double chain_term(const Step& loss, const StageTensors& tensors);

  const Job& job_;
  const int stage_;
  const CpuOptions& options_;
  CpuMemory& memory_;
  StageLosses& losses_;
  double loss_ = 0;                     // of the steps that ran last
  double chain_term_ = 0;               // likewise
  int asked_ = -1;                      // the micro-batch that the job was asked for last
  Batch batch_;                         // which is this
  std::optional<Denoising> denoising_;  // of an independent stage
};

}  // namespace interlock
