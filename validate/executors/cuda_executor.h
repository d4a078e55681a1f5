// CUDA executor: runs a job on NVIDIA GPUs, or on partitions of one, if there are any.
// SPDX-License-Identifier: Apache-2.0
//
// Everything of CUDA is in a module beside the program that is opened when it is first asked for.
// Without it, without its libraries, a driver or a GPU, look_at_cuda() says what is missing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reports/result/execution_record.h"
#include "sim/program/trace.h"
#include "validate/executors/cuda_options.h"
#include "validate/network/job.h"

namespace interlock {

enum class CudaState { NoModule, NoLibrary, NoDriver, NoDevice, Ready };

struct CudaDevice {
  int number = 0;
  std::string name, bus;           // "0000:3b:00.0"
  int major = 0, minor = 0;        // compute capability
  int sms = 0;                     // multiprocessors
  std::int64_t memory = 0;         // bytes
  int sm_clock = 0, sm_limit = 0;  // MHz, now and at most; 0: NVML does not say
  int memory_clock = 0;            // MHz, now
  double power = 0;                // W, now
  std::vector<int> peers;          // devices whose memory it reaches
};

/// The GPUs and libraries that were found. Versions are as CUDA counts them: 13000 is 13.0.
struct CudaReport {
  CudaState state = CudaState::NoModule;
  std::string sentence;  // the same for people; what to do about it, if anything is missing
  int driver = 0, runtime = 0;
  std::string nvml, nccl;    // their versions; empty: not there
  std::string nccl_problem;  // why NCCL is not there, as a part of a sentence
  std::vector<CudaDevice> devices;
};

CudaReport look_at_cuda();

/// Returns an entry point of the module by its name; null if look_at_cuda() found no module.
void* find_in_cuda_module(const char* name);

struct CudaRun {
  RunSummary summary;
  Outcome outcome;
  ExecutionRecord record;
  bool stopped = false;  // before its end; everything that was issued until then is done
};

/// Issues the whole of `job` from one host thread, at most two steps ahead of the losses. Throws:
/// Error if there is no GPU, not enough of it, if `job` cannot be run, or, two steps after it at
/// the latest, if a loss is not a number. REQUIRES: ranks of the program have one stream each, or
/// it is frozen.
CudaRun run_cuda(const Job& job, const CudaOptions& options, const TraceSink& sink);

}  // namespace interlock
