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

const Reader& chosen_reader() {
  const char* name = std::getenv("INTERLOCK_FUZZ");
  for (const Reader& reader : readers()) {
    if (name != nullptr && reader.name == name) return reader;
  }
  for (const Reader& reader : readers()) std::puts(reader.name.c_str());
  std::exit(name == nullptr ? 0 : 2);
}

}  // namespace
}  // namespace interlock::fuzz

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  static const interlock::fuzz::Reader& reader = interlock::fuzz::chosen_reader();
  static const interlock::fuzz::TextFolder folder;
  folder.read(reader, std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
