// An engine in a forked child: its trace comes back through a pipe, record by record.
// SPDX-License-Identifier: Apache-2.0
#include "sim/engines/child.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <stdexcept>
#include <type_traits>

#include "base/error.h"
#include "sim/engines/unavailable.h"

namespace interlock {

namespace {

enum class Tag : char {
  Span,
  Transfer,
  Memory,
  Collective,
  Done,
  Error,
  Unavailable,
  Bug,
  NoMemory
};

/// The status of a child whose memory ran out in SimGrid, which then aborts.
constexpr int kOutOfMemory = 77;

/// Writes tagged records to a pipe in large pieces.
class PipeWriter {
 public:
  explicit PipeWriter(int pipe) : pipe_(pipe) {}
  template <class Record>
  void put(Tag tag, const Record& record) {
    static_assert(std::is_trivially_copyable_v<Record>);
    append(&tag, sizeof tag);
    append(&record, sizeof record);
    if (buffer_.size() > kPiece) flush();
  }
  void put(Tag tag, const std::string& text) {
    put(tag, text.size());
    append(text.data(), text.size());
  }
  void flush() {
    for (std::size_t done = 0; done < buffer_.size();) {
      const ssize_t count = ::write(pipe_, buffer_.data() + done, buffer_.size() - done);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) _exit(1);  // the parent is gone
      done += static_cast<std::size_t>(count);
    }
    buffer_.clear();
  }

 private:
  static constexpr std::size_t kPiece = 1 << 16;
  void append(const void* data, std::size_t size) {
    buffer_.append(static_cast<const char*>(data), size);
  }
  int pipe_;
  std::string buffer_;
};

/// Reads what PipeWriter wrote; false at the end of the pipe.
class PipeReader {
 public:
  explicit PipeReader(int pipe) : pipe_(pipe) {}
  bool get(void* data, std::size_t size) {
    char* to = static_cast<char*>(data);
    while (size > 0) {
      if (at_ == filled_ && !fill()) return false;
      const std::size_t piece = std::min(size, filled_ - at_);
      std::memcpy(to, buffer_ + at_, piece);
      at_ += piece;
      to += piece;
      size -= piece;
    }
    return true;
  }
  std::string text() {
    std::size_t size = 0;
    get(&size, sizeof size);
    std::string text(size, '\0');
    get(text.data(), size);
    return text;
  }

 private:
  bool fill() {
    ssize_t count = 0;
    do {
      count = ::read(pipe_, buffer_, sizeof buffer_);
    } while (count < 0 && errno == EINTR);
    at_ = 0;
    filled_ = count > 0 ? static_cast<std::size_t>(count) : 0;
    return filled_ > 0;
  }
  int pipe_;
  char buffer_[1 << 16];
  std::size_t at_ = 0, filled_ = 0;
};

/// Says whether 64 MiB can no longer be had.
bool memory_is_out() {
  constexpr std::size_t kPiece = std::size_t{64} << 20;
  void* piece = ::mmap(nullptr, kPiece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (piece == MAP_FAILED) return true;
  ::munmap(piece, kPiece);
  return false;
}

/// noexcept: nothing thrown here may reach the parent's handlers, which stand around this call.
[[noreturn]] void run_and_exit(int pipe, const Program& program, const TraceSink& wanted,
                               RunSummary (*engine)(const Program&, const TraceSink&)) noexcept {
  PipeWriter writer(pipe);
  TraceSink sink;
  if (wanted.span) sink.span = [&](const Span& span) { writer.put(Tag::Span, span); };
  if (wanted.transfer) {
    sink.transfer = [&](const Transfer& transfer) { writer.put(Tag::Transfer, transfer); };
  }
  if (wanted.memory) {
    sink.memory = [&](const MemoryChange& change) { writer.put(Tag::Memory, change); };
  }
  if (wanted.collective) {
    sink.collective = [&](const CollectiveSpan& span) { writer.put(Tag::Collective, span); };
  }
  std::signal(SIGABRT, [](int) {
    if (memory_is_out()) _exit(kOutOfMemory);
  });
  try {
    const RunSummary summary = engine(program, sink);
    writer.put(Tag::Done, summary.tasks);
    writer.put(Tag::Done, summary.makespan);
    writer.put(Tag::Done, summary.engine);
  } catch (const std::bad_alloc&) {
    writer.flush();  // makes room without allocating
    writer.put(Tag::NoMemory, std::size_t{0});
  } catch (const Error& error) {
    writer.put(Tag::Error, std::string(error.what()));
  } catch (const Unavailable& lack) {
    writer.put(Tag::Unavailable, std::string(lack.what()));
  } catch (const std::exception& bug) {
    writer.put(Tag::Bug, std::string(bug.what()));
  } catch (...) {
    writer.put(Tag::Bug, std::string("the engine threw what is no std::exception"));
  }
  writer.flush();
  _exit(0);  // SimGrid's destructors and our parent's buffers are none of the child's business
}

template <class Record>
void pass_on(PipeReader& reader, const std::function<void(const Record&)>& sink) {
  Record record;
  if (reader.get(&record, sizeof record)) sink(record);
}

/// Returns true when the child said that it was done. Throws: see run_in_child().
bool read_trace(PipeReader& reader, const TraceSink& sink, RunSummary& summary) {
  for (Tag tag = Tag::Error; reader.get(&tag, sizeof tag);) {
    switch (tag) {
      case Tag::Span:
        pass_on(reader, sink.span);
        break;
      case Tag::Transfer:
        pass_on(reader, sink.transfer);
        break;
      case Tag::Memory:
        pass_on(reader, sink.memory);
        break;
      case Tag::Collective:
        pass_on(reader, sink.collective);
        break;
      case Tag::Done:
        reader.get(&summary.tasks, sizeof summary.tasks);
        reader.get(&tag, sizeof tag);
        reader.get(&summary.makespan, sizeof summary.makespan);
        reader.get(&tag, sizeof tag);
        summary.engine = reader.text();
        return true;
      case Tag::Error:
        throw Error(reader.text());
      case Tag::Unavailable:
        throw Unavailable(reader.text());
      case Tag::Bug:
        throw std::logic_error(reader.text());
      case Tag::NoMemory:
        throw std::bad_alloc();
    }
  }
  return false;
}

/// The child's end of the pipe, and its end, whatever happens here.
struct Child {
  int pipe;
  pid_t id;
  int status = 0;
  void wait() {
    if (pipe >= 0) ::close(pipe);
    pipe = -1;
    if (id > 0) ::waitpid(id, &status, 0);
    id = 0;
  }
  ~Child() { wait(); }
};

}  // namespace

RunSummary run_in_child(const Program& program, const TraceSink& sink,
                        RunSummary (*engine)(const Program&, const TraceSink&)) {
  int ends[2];
  if (::pipe(ends) != 0) {
    throw Unavailable(std::string("cannot make a pipe: ") + std::strerror(errno));
  }
  std::fflush(nullptr);  // or the child might print what waits here a second time
  const pid_t id = ::fork();
  if (id < 0) throw Unavailable(std::string("cannot start a process: ") + std::strerror(errno));
  if (id == 0) {
    ::close(ends[0]);
    run_and_exit(ends[1], program, sink, engine);
  }
  ::close(ends[1]);
  Child child{ends[0], id};
  PipeReader reader(ends[0]);
  RunSummary summary;
  const bool done = read_trace(reader, sink, summary);
  child.wait();
  if (WIFEXITED(child.status) && WEXITSTATUS(child.status) == kOutOfMemory) throw std::bad_alloc();
  if (!done && WIFSIGNALED(child.status) && WTERMSIG(child.status) == SIGKILL) {
    throw Unavailable(
        "the engine's process died by signal 9, as when memory runs out; expected a "
        "smaller scenario, or more memory");
  }
  if (!done) {
    throw std::runtime_error("the engine's process died with status " +
                             std::to_string(child.status));
  }
  return summary;
}

}  // namespace interlock
