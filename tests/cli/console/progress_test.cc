// Lines of progress, as a terminal gets them.
// SPDX-License-Identifier: Apache-2.0
#include "cli/console/progress.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <string>

namespace interlock::progress_test {
namespace {

/// A terminal in the place of standard error.
class Terminal {
 public:
  Terminal() : master_(::posix_openpt(O_RDWR | O_NOCTTY)), before_(::dup(STDERR_FILENO)) {
    REQUIRE(master_ >= 0);
    REQUIRE(::grantpt(master_) == 0);
    REQUIRE(::unlockpt(master_) == 0);
    const int slave = ::open(::ptsname(master_), O_RDWR | O_NOCTTY);
    REQUIRE(slave >= 0);
    ::dup2(slave, STDERR_FILENO);
    ::close(slave);
  }
  ~Terminal() {
    ::dup2(before_, STDERR_FILENO);
    ::close(before_);
    ::close(master_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  /// Reads until `words` have been written; gives what was. A limit only ends what hangs.
  std::string read_until(const std::string& words) const {
    constexpr int kHalfAnHour = 30 * 60 * 1000;
    std::string all;
    while (all.find(words) == std::string::npos) {
      pollfd ready{.fd = master_, .events = POLLIN, .revents = 0};
      REQUIRE(::poll(&ready, 1, kHalfAnHour) == 1);
      char bytes[256];
      const ssize_t got = ::read(master_, bytes, sizeof bytes);
      REQUIRE(got > 0);
      all.append(bytes, static_cast<std::size_t>(got));
    }
    return all;
  }

 private:
  int master_, before_;
};

TEST_CASE("a line of progress is drawn while nothing gets done, and taken away at the end") {
  std::string waited, advanced, over;
  {
    const Terminal terminal;
    {
      std::optional<Progress> line(std::in_place, "things", 3, 1, true);
      waited = terminal.read_until("so far");
      line->reach_part(1, 0.5, "half of the next one");
      advanced = terminal.read_until("half of the next one");
      line.reset();
    }
    over = terminal.read_until("\r\033[K");
  }
  CHECK(waited.find("1 of 3 things, ") != std::string::npos);
  CHECK(waited.find("left") == std::string::npos);
  CHECK(advanced.find("/s, ") != std::string::npos);
  CHECK(advanced.find(" left, half of the next one") != std::string::npos);
}

TEST_CASE("where the time that is left cannot be known, the line says how long it took so far") {
  std::string said;
  {
    const Terminal terminal;
    Progress line("plans", 0, 0, true, Rest::Unknown);
    line.reach(900, 1000, ", 7 looked at");
    said = terminal.read_until("looked at");
  }
  CHECK(said.find("900 of 1000 plans, ") != std::string::npos);
  CHECK(said.find(" s so far, 7 looked at") != std::string::npos);
  CHECK(said.find("left") == std::string::npos);
}

TEST_CASE("nothing is drawn where nothing is wanted") {
  const Terminal terminal;
  {
    Progress line("things", 3, 0, false);
    line.advance("");
    line.reach(2, 3);
  }
  ::dprintf(STDERR_FILENO, "end");
  CHECK(terminal.read_until("end") == "end");
}

}  // namespace
}  // namespace interlock::progress_test
