// Standard output and standard error.
// SPDX-License-Identifier: Apache-2.0
#include "cli/console/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace interlock {

TableStyle terminal_style() {
  constexpr int kNarrowest = 60;
  TableStyle style;
  if (!isatty(STDOUT_FILENO)) return style;
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal && std::strcmp(terminal, "dumb") == 0;
  style.colour = (no_color == nullptr || *no_color == '\0') && !dumb;
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    style.width = std::max<int>(size.ws_col, kNarrowest);
  }
  return style;
}

void print(std::string_view data) {
  const std::size_t written = std::fwrite(data.data(), 1, data.size(), stdout);
  if (written < data.size() || std::fflush(stdout) != 0) {
    throw Error(std::string("cannot write to standard output: ") + std::strerror(errno));
  }
}

void tell(std::string_view message) {
  std::fwrite(message.data(), 1, message.size(), stderr);
  std::fputc('\n', stderr);
}

}  // namespace interlock
