// Stands for Chakra's files in a program that was built without protobuf.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "sim/workloads/chakra_file.h"

namespace interlock {

void require_chakra(const std::string& who) {
  throw Error(who +
              ": this interlock was built without protobuf, in which Chakra traces are written; "
              "install it (Debian: apt-get install libprotobuf-dev protobuf-compiler), remove the "
              "folder build/ and build again");
}

std::string chakra_bytes(const ExecutionTrace& trace) {
  require_chakra(trace.file);
  return "";
}

ExecutionTrace read_chakra(const std::string& path, int /*rank*/) {
  require_chakra(path);
  return {};
}

}  // namespace interlock
