// Fuzz target: a reader under libFuzzer.
// SPDX-License-Identifier: Apache-2.0
//
// INTERLOCK_FUZZ=megatron build-fuzz/bin/interlock_fuzz OPTIONS-OF-LIBFUZZER FOLDERS...
// A variable picks the reader, since libFuzzer hands it on to processes that it starts; without it
// the names of all readers are printed. What is neither a return nor an Error ends the program:
// another exception, what a sanitizer finds, or what the options set as limits of time and memory.
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/readers.h"

namespace interlock::fuzz {
namespace {

const Reader* chosen = nullptr;

}  // namespace
}  // namespace interlock::fuzz

extern "C" int LLVMFuzzerInitialize(int* /*count*/, char*** /*words*/) {
  using namespace interlock::fuzz;
  const char* name = std::getenv("INTERLOCK_FUZZ");
  for (const Reader& reader : readers()) {
    if (name == nullptr) std::puts(reader.name.c_str());
    if (name != nullptr && reader.name == name) chosen = &reader;
  }
  if (chosen == nullptr) std::exit(name == nullptr ? 0 : 2);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  static const interlock::fuzz::TextFolder folder;
  folder.read(*interlock::fuzz::chosen, std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
