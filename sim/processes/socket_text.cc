// Sends and receives until all is there, whatever interrupts.
// SPDX-License-Identifier: Apache-2.0
#include "sim/processes/socket_text.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace interlock {

void send_all(int to, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::send(to, text.data(), text.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

std::string receive_all(int from) {
  constexpr std::size_t kBlock = 1 << 16;
  std::string text;
  std::size_t filled = 0;
  while (true) {
    if (filled == text.size()) text.resize(std::max(kBlock, 2 * filled));
    const ssize_t count = ::read(from, text.data() + filled, text.size() - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    filled += static_cast<std::size_t>(count);
  }
  text.resize(filled);
  return text;
}

}  // namespace interlock
