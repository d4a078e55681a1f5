// Reads and writes whole files through POSIX calls, whose reasons for failure reach the user.
// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>
#include <thread>

#include "base/error.h"
#include "base/module_file.h"
#include "base/text.h"

namespace interlock {
namespace {

[[noreturn]] void fail(const std::string& path, const std::string& message) {
  throw Error(printable(path.empty() ? "\"\"" : path, 300) + ": " + message);
}

[[noreturn]] void fail(const std::string& path, const char* what, int reason) {
  std::string words = std::generic_category().message(reason);
  if (!words.empty()) words[0] = static_cast<char>(std::tolower(words[0]));
  fail(path, what + (": " + words));
}

/// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  /// Returns the error number of closing, 0 if it went well.
  int close() {
    const int fd = fd_;
    fd_ = -1;
    return ::close(fd) == 0 ? 0 : errno;
  }

 private:
  int fd_;
};

constexpr std::chrono::seconds kPatience(10);  // for a program at the other end of a pipe

bool is_pipe(const std::string& path) {
  struct stat what = {};
  return ::stat(path.c_str(), &what) == 0 && S_ISFIFO(what.st_mode);
}

/// Opens a file or a pipe to read. A pipe is opened even if no program writes to it.
int open_to_read(const std::string& path) {
  return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | (is_pipe(path) ? O_NONBLOCK : 0));
}

/// A file or a pipe that is read. Reading waits for programs that have opened the pipe, however
/// slowly they write, but only `kPatience` for the first of them.
class Source {
 public:
  explicit Source(const std::string& path)
      : path_(path), begun_(!is_pipe(path)), in_(open_to_read(path)) {
    if (in_.get() < 0) fail(path, "cannot be read", errno);
  }
  /// Returns the next piece, an empty one at the end.
  std::string_view next() {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (true) {
      const ssize_t got = ::read(in_.get(), block_.data(), block_.size());
      if (got > 0 || (got == 0 && begun_)) {
        begun_ = true;
        return {block_.data(), static_cast<std::size_t>(got)};
      }
      if (got == 0) {
        await_writer(end);
      } else if (errno == EAGAIN) {
        begun_ = true;
        wait_for_event(-1);
      } else if (errno != EINTR) {
        fail(path_, "cannot be read", errno);
      }
    }
  }

 private:
  /// Waits for a pipe's first writer. Throws: Error if none comes until `end`. A writer that has
  /// written nothing wakes no reader: reading tells whether there is one.
  void await_writer(std::chrono::steady_clock::time_point end) {
    using std::chrono::milliseconds;
    const auto left = std::chrono::ceil<milliseconds>(end - std::chrono::steady_clock::now());
    if (left <= milliseconds(0)) {
      fail(path_, "cannot be read: no program writes to this pipe; expected one, or a file");
    }
    begun_ = wait_for_event(static_cast<int>(left.count()));
  }

  /// Waits at most `most` milliseconds, -1 for ever, until there is something to read or all
  /// writers have left. Returns whether a writer was there.
  bool wait_for_event(int most) {
    pollfd end = {.fd = in_.get(), .events = POLLIN, .revents = 0};
    return ::poll(&end, 1, most) > 0;
  }

  std::string path_;
  bool begun_;  // what is read there has a writer, or had one
  Descriptor in_;
  std::string block_ = std::string(std::size_t{1} << 16, '\0');
};

/// Writes everything; the error number, 0 if it went well.
int write_all(int fd, std::string_view contents) {
  while (!contents.empty()) {
    const ssize_t written = ::write(fd, contents.data(), contents.size());
    if (written >= 0) {
      contents.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

/// Writes all pieces and closes; the error number, 0 if it went well.
int write_and_close(Descriptor& out, const TextSource& contents) {
  int failed = 0;
  contents([&](std::string_view piece) {
    if (failed == 0) failed = write_all(out.get(), piece);
  });
  const int close_failed = out.close();
  return failed != 0 ? failed : close_failed;
}

/// A file that goes away unless it was renamed.
struct Temporary {
  std::string name;
  bool renamed = false;
  Temporary() = default;
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
    if (!renamed && !name.empty()) ::unlink(name.c_str());
  }
};

/// Creates a new file beside `path`; its name goes to `name`.
int create_beside(const std::string& path, std::string& name) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    name = path + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(attempt);
    const int fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

/// Opens a device or a pipe to write. Throws: Error if no program reads from the pipe in time.
int open_to_write(const std::string& path) {
  if (!is_pipe(path)) return ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  constexpr auto kPause = std::chrono::milliseconds(20);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (true) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0) ::fcntl(fd, F_SETFL, O_WRONLY);  // a reader may take its time
    if (fd >= 0 || errno != ENXIO) return fd;
    if (std::chrono::steady_clock::now() > end) {
      fail(path, "cannot be written: no program reads from this pipe; expected one, or a file");
    }
    std::this_thread::sleep_for(kPause);
  }
}

void write_into(const std::string& path, const TextSource& contents) {
  Descriptor out(open_to_write(path));
  if (out.get() < 0) fail(path, "cannot be written", errno);
  const int failed = write_and_close(out, contents);
  if (failed != 0) fail(path, "cannot be written", failed);
}

/// Returns the file that `path` leads to over links, whether it is there yet or not.
std::string behind_links(const std::string& path) {
  constexpr int kMostLinks = 40;  // as Linux follows
  std::filesystem::path target = path;
  std::error_code failed;
  for (int i = 0; i < kMostLinks && std::filesystem::is_symlink(target, failed); ++i) {
    const std::filesystem::path next = std::filesystem::read_symlink(target, failed);
    if (failed) return path;
    target = target.parent_path() / next;
  }
  return target.string();
}

}  // namespace

TextPieces read_pieces(const std::string& path) {
  return [source = std::make_shared<Source>(path)] { return source->next(); };
}

std::string read_file(const std::string& path, std::size_t most) {
  const TextPieces pieces = read_pieces(path);
  std::string contents;
  for (std::string_view piece = pieces(); !piece.empty(); piece = pieces()) {
    if (piece.size() > most - contents.size()) {
      fail(path, "too large; expected at most " + std::to_string(most) + " bytes");
    }
    contents += piece;
  }
  return contents;
}

void refuse_pipe(const std::string& path) {
  struct stat what = {};
  if (::stat(path.c_str(), &what) == 0 && !S_ISREG(what.st_mode) && !S_ISDIR(what.st_mode)) {
    fail(path, "is a pipe or a device; expected a file, since it may be read again");
  }
}

void write_file(const std::string& path, std::string_view contents) {
  write_file(path, TextSource([contents](const TextSink& out) { out(contents); }));
}

void write_file(const std::string& path, const TextSource& contents) {
  const std::string target = behind_links(path);
  struct stat old = {};
  const bool exists = ::stat(target.c_str(), &old) == 0;
  if (exists && S_ISDIR(old.st_mode)) fail(path, "cannot be written", EISDIR);
  if (exists && !S_ISREG(old.st_mode)) return write_into(path, contents);

  Temporary made;
  Descriptor out(create_beside(target, made.name));
  if (out.get() < 0) {
    const int reason = errno;
    made.name.clear();
    fail(path, "cannot be written", reason);
  }
  int failed = exists && ::fchmod(out.get(), old.st_mode & 0777) != 0 ? errno : 0;
  if (failed == 0) failed = write_and_close(out, contents);
  if (failed == 0 && std::rename(made.name.c_str(), target.c_str()) != 0) failed = errno;
  made.renamed = failed == 0;
  if (failed != 0) fail(path, "cannot be written", failed);
}

void require_writable(const std::string& path) {
  const std::string target = behind_links(path);
  struct stat old = {};
  if (::stat(target.c_str(), &old) == 0 && !S_ISREG(old.st_mode)) return;  // written in place
  Temporary made;
  const Descriptor out(create_beside(target, made.name));
  if (out.get() >= 0) return;
  const int reason = errno;
  made.name.clear();
  fail(path, "cannot be written", reason);
}

std::string data_folder(std::string_view name) {
  namespace fs = std::filesystem;
  const char* set = std::getenv("INTERLOCK_DATA");
  if (set != nullptr && *set != '\0') return (fs::path(set) / name).string();
  // bin/ and lib/ have it beside them; lib/interlock/ and lib/x86_64-linux-gnu/, one further up.
  std::error_code failed;
  fs::path folder = own_file().parent_path();
  for (int up = 0; up < 3 && folder.has_relative_path(); ++up, folder = folder.parent_path()) {
    const fs::path installed = folder / "share" / "interlock" / fs::path(name);
    if (fs::is_directory(installed, failed)) return installed.string();
  }
  return (fs::path(INTERLOCK_SOURCE_FOLDER) / name).string();
}

}  // namespace interlock
