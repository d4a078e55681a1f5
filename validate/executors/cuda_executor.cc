// CUDA executor: opens the module and hands over.
// SPDX-License-Identifier: Apache-2.0
#include "validate/executors/cuda_executor.h"

#include <dlfcn.h>

#include <filesystem>

#include "base/error.h"
#include "base/module_file.h"

namespace interlock {

namespace {

using LookAtCuda = void (*)(CudaReport&);
using RunCuda = void (*)(const Job&, const CudaOptions&, const TraceSink&, CudaRun&);

struct CudaModule {
  CudaState state = CudaState::NoModule;
  std::string problem;
  void* library = nullptr;
  LookAtCuda look = nullptr;
  RunCuda run = nullptr;
};

/// Returns why the last of dlopen and dlsym failed; dlerror() says it once.
std::string loader_error() {
  const char* reason = dlerror();
  return reason != nullptr ? reason : "unknown reason";
}

CudaModule open_cuda_module() {
  CudaModule module;
  const std::filesystem::path path = module_file("libinterlock_cuda.so");
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    module.problem = "no CUDA: this interlock was built without a CUDA toolkit (there is no " +
                     path.string() + "); install one of 12.5 or later and build again";
    return module;
  }
  module.state = CudaState::NoLibrary;
  module.library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module.library == nullptr) {
    module.problem = "no CUDA: cannot open " + path.string() + ": " + loader_error() +
                     "; put the folder of that library into LD_LIBRARY_PATH";
    return module;
  }
  module.look = reinterpret_cast<LookAtCuda>(dlsym(module.library, "interlock_look_at_cuda"));
  module.run = reinterpret_cast<RunCuda>(dlsym(module.library, "interlock_run_cuda"));
  if (module.look == nullptr || module.run == nullptr) {
    module.problem = "no CUDA: " + path.string() + " is of another interlock; build again";
    return module;
  }
  module.state = CudaState::Ready;
  return module;
}

const CudaModule& cuda_module() {
  static const CudaModule module = open_cuda_module();
  return module;
}

}  // namespace

CudaReport look_at_cuda() {
  CudaReport report;
  const CudaModule& module = cuda_module();
  report.state = module.state;
  report.sentence = module.problem;
  if (module.state == CudaState::Ready) module.look(report);
  return report;
}

void* find_in_cuda_module(const char* name) {
  const CudaModule& module = cuda_module();
  return module.state == CudaState::Ready ? dlsym(module.library, name) : nullptr;
}

CudaRun run_cuda(const Job& job, const CudaOptions& options, const TraceSink& sink) {
  const CudaReport report = look_at_cuda();
  if (report.state != CudaState::Ready) throw Error(report.sentence);
  CudaRun run;
  cuda_module().run(job, options, sink, run);
  return run;
}

}  // namespace interlock
