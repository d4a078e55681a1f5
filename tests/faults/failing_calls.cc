// Failing calls: preloaded into a program, lets one call that changes files fail.
// SPDX-License-Identifier: Apache-2.0
//
// INTERLOCK_FAIL_AT=7 INTERLOCK_FAIL_WITH=28 INTERLOCK_FAIL_SAID=FILE LD_PRELOAD=... program
// The seventh call of the program that opens a file for writing, writes to a file, cuts it, asks
// for it to be on the disk or renames one fails with errno 28 (ENOSPC), and FILE says which it was.
// With INTERLOCK_FAIL_ON=1 all calls after it fail too, as on a disk that stays full. Pipes and
// terminals are left alone, and so are processes that the program starts.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <cstring>

namespace {

long number_of(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? 0 : std::atol(text);
}

/// The process that was started with the variables; workers that it forks count nothing.
const pid_t first_process = ::getpid();
std::atomic<long> calls = 0;

void say(const char* call) {
  const char* path = std::getenv("INTERLOCK_FAIL_SAID");
  if (path == nullptr) return;
  const long file = ::syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND, 0666);
  ::syscall(SYS_write, file, call, std::strlen(call));
  ::syscall(SYS_write, file, "\n", 1);
  ::syscall(SYS_close, file);
}

/// Counts a call, and tells whether it is to fail; errno is then set.
bool fails(const char* call) {
  static const long at = number_of("INTERLOCK_FAIL_AT");
  static const long with = number_of("INTERLOCK_FAIL_WITH");
  static const bool on = number_of("INTERLOCK_FAIL_ON") != 0;
  if (at == 0 || ::getpid() != first_process) return false;
  const long count = ++calls;
  if (on ? count < at : count != at) return false;
  say(call);
  errno = static_cast<int>(with);
  return true;
}

bool is_file(int descriptor) {
  struct stat what = {};
  return ::fstat(descriptor, &what) == 0 && S_ISREG(what.st_mode);
}

bool fails_on(int descriptor, const char* call) { return is_file(descriptor) && fails(call); }

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

int open_at(int folder, const char* path, int flags, mode_t mode) {
  const bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT) != 0;
  if (writes && std::strncmp(path, "/dev/", 5) != 0 && fails("open")) return -1;
  return static_cast<int>(::syscall(SYS_openat, folder, path, flags, mode));
}

}  // namespace

// The declarations of glibc have other attributes and names of parameters.
// NOLINTBEGIN
extern "C" {

#define MODE_OF(flags)                          \
  mode_t mode = 0;                              \
  if (((flags) & (O_CREAT | O_TMPFILE)) != 0) { \
    va_list more;                               \
    va_start(more, flags);                      \
    mode = va_arg(more, mode_t);                \
    va_end(more);                               \
  }

int open(const char* path, int flags, ...) {
  MODE_OF(flags)
  return open_at(AT_FDCWD, path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  MODE_OF(flags)
  return open_at(AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char* path, int flags, ...) {
  MODE_OF(flags)
  return open_at(folder, path, flags, mode);
}

ssize_t write(int file, const void* from, size_t size) {
  if (fails_on(file, "write")) return -1;
  return ::syscall(SYS_write, file, from, size);
}

ssize_t pwrite(int file, const void* from, size_t size, off_t at) {
  if (fails_on(file, "pwrite")) return -1;
  return ::syscall(SYS_pwrite64, file, from, size, at);
}

ssize_t pwrite64(int file, const void* from, size_t size, off64_t at) {
  if (fails_on(file, "pwrite")) return -1;
  return ::syscall(SYS_pwrite64, file, from, size, at);
}

ssize_t writev(int file, const struct iovec* from, int count) {
  if (fails_on(file, "writev")) return -1;
  return ::syscall(SYS_writev, file, from, count);
}

int ftruncate(int file, off_t size) noexcept {
  if (fails_on(file, "ftruncate")) return -1;
  return static_cast<int>(::syscall(SYS_ftruncate, file, size));
}

int ftruncate64(int file, off64_t size) noexcept {
  if (fails_on(file, "ftruncate")) return -1;
  return static_cast<int>(::syscall(SYS_ftruncate, file, size));
}

int fsync(int file) {
  if (fails_on(file, "fsync")) return -1;
  return static_cast<int>(::syscall(SYS_fsync, file));
}

int fdatasync(int file) {
  if (fails_on(file, "fdatasync")) return -1;
  return static_cast<int>(::syscall(SYS_fdatasync, file));
}

int rename(const char* from, const char* to) noexcept {
  if (fails("rename")) return -1;
  return next<int(const char*, const char*)>("rename")(from, to);
}

}  // extern "C"
// NOLINTEND
