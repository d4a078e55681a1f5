// Files are replaced whole or not at all.
// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "tests/base/thrown.h"

namespace interlock::file_test {
namespace {

namespace fs = std::filesystem;

/// A folder of its own that is the current one while it lives.
class Folder {
 public:
  Folder() : before_(fs::current_path()) {
    std::string name = (fs::temp_directory_path() / "interlock-file-test-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
    fs::current_path(path_);
  }
  ~Folder() {
    fs::current_path(before_);
    fs::remove_all(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string operator/(const char* name) const { return (path_ / name).string(); }
  long entries() const {
    return std::distance(fs::directory_iterator(path_), fs::directory_iterator());
  }

 private:
  fs::path before_;
  fs::path path_;
};

TEST_CASE("what is written is read, bytes and all") {
  const Folder folder;
  std::string bytes(200'000, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i % 256);
  write_file(folder / "x", bytes);
  CHECK(read_file(folder / "x") == bytes);
  write_file(folder / "x", "");
  CHECK(read_file(folder / "x").empty());
  CHECK(folder.entries() == 1);
}

TEST_CASE("a path without a folder is beside the program's user") {
  const Folder folder;
  write_file("plain.json", "1");
  CHECK(read_file(folder / "plain.json") == "1");
}

TEST_CASE("who reads a file while it is replaced goes on reading the old one") {
  const Folder folder;
  write_file(folder / "x", "old");
  std::FILE* reader = std::fopen((folder / "x").c_str(), "r");
  REQUIRE(reader != nullptr);
  write_file(folder / "x", "new");
  char seen[8] = {};
  CHECK(std::fread(seen, 1, sizeof seen, reader) == 3);
  CHECK(std::string(seen) == "old");
  std::fclose(reader);
  CHECK(read_file(folder / "x") == "new");
}

TEST_CASE("a failed write says why and leaves nothing behind") {
  const Folder folder;
  fs::create_directory(folder / "taken");
  CHECK(thrown([&] { write_file("taken", "x"); }) == "taken: cannot be written: is a directory");
  CHECK(thrown([&] { write_file("no/such/x", "x"); }) ==
        "no/such/x: cannot be written: no such file or directory");
  CHECK(thrown([&] { write_file("", "x"); }) ==
        "\"\": cannot be written: no such file or directory");
  CHECK(folder.entries() == 1);
  CHECK(fs::is_directory(folder / "taken"));
}

TEST_CASE("a write that breaks off leaves the old file and no temporary one") {
  const Folder folder;
  write_file(folder / "x", "old");
  rlimit before = {};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit tight = {.rlim_cur = 1000, .rlim_max = before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &tight) == 0);
  const std::string message = thrown([] { write_file("x", std::string(5000, 'n')); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  CHECK(message == "x: cannot be written: file too large");
  CHECK(read_file(folder / "x") == "old");
  CHECK(folder.entries() == 1);
}

// A pipe of our own stands for all that is no regular file: a test that fails must not be able to
// replace a device of the machine it runs on.
TEST_CASE("a pipe is written to, not replaced") {
  const Folder folder;
  REQUIRE(::mkfifo("pipe", 0600) == 0);
  const int reader = ::open("pipe", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  REQUIRE(reader >= 0);
  write_file("pipe", "through");
  char seen[16] = {};
  CHECK(::read(reader, seen, sizeof seen) == 7);
  CHECK(std::string(seen) == "through");
  ::close(reader);
  CHECK(fs::is_fifo("pipe"));
  CHECK(folder.entries() == 1);
}

TEST_CASE("a link stays a link, and permissions stay as they were") {
  const Folder folder;
  write_file("real", "old");
  ::chmod("real", 0640);
  fs::create_symlink("real", "link");
  write_file("link", "new");
  CHECK(fs::is_symlink("link"));
  CHECK(read_file("real") == "new");
  struct stat now = {};
  REQUIRE(::stat("real", &now) == 0);
  CHECK((now.st_mode & 0777) == 0640);
}

TEST_CASE("what cannot be read is named with the reason") {
  const Folder folder;
  fs::create_directory("taken");
  CHECK(thrown([] { read_file("none"); }) == "none: cannot be read: no such file or directory");
  CHECK(thrown([] { read_file("taken"); }) == "taken: cannot be read: is a directory");
}

TEST_CASE("reading stops at the limit, be the file endless") {
  const Folder folder;
  write_file("four", "1234");
  CHECK(read_file("four", 4) == "1234");
  CHECK(thrown([] { read_file("four", 3); }) == "four: too large; expected at most 3 bytes");
  CHECK(thrown([] { read_file("/dev/zero", 1 << 20); }) ==
        "/dev/zero: too large; expected at most 1048576 bytes");
}

TEST_CASE("data come from INTERLOCK_DATA if it is set, else from an existing folder") {
  ::setenv("INTERLOCK_DATA", "/somewhere", 1);
  CHECK(data_folder("models/zoo") == "/somewhere/models/zoo");
  ::setenv("INTERLOCK_DATA", "", 1);
  const std::string as_unset = data_folder("base");
  ::unsetenv("INTERLOCK_DATA");
  CHECK(data_folder("base") == as_unset);
  CHECK(fs::exists(as_unset + "/file.h"));
}

}  // namespace
}  // namespace interlock::file_test
