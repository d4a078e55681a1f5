// Traces through a pipe, record by record.
// SPDX-License-Identifier: Apache-2.0
#include "sim/processes/trace_pipe.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "sim/processes/unavailable.h"

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

/// Writes tagged records to a pipe in large pieces. It allocates nothing: what it writes is whole
/// however little memory is left.
class PipeWriter {
 public:
  explicit PipeWriter(int pipe) : pipe_(pipe) {}
  template <class Record>
  void put(Tag tag, const Record& record) {
    put(tag);
    put(record);
  }
  template <class Record>
  void put(const Record& record) {
    static_assert(std::is_trivially_copyable_v<Record> && !std::is_pointer_v<Record>);
    append(reinterpret_cast<const char*>(&record), sizeof record);
  }
  void put_text(std::string_view text) {
    put(text.size());
    append(text.data(), text.size());
  }
  void flush() {
    for (std::size_t done = 0; done < filled_;) {
      const ssize_t count = ::write(pipe_, buffer_ + done, filled_ - done);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) _exit(1);  // the parent is gone
      done += static_cast<std::size_t>(count);
    }
    filled_ = 0;
  }

 private:
  void append(const char* data, std::size_t size) {
    while (size > 0) {
      if (filled_ == sizeof buffer_) flush();
      const std::size_t piece = std::min(size, sizeof buffer_ - filled_);
      std::memcpy(buffer_ + filled_, data, piece);
      filled_ += piece;
      data += piece;
      size -= piece;
    }
  }
  int pipe_;
  char buffer_[1 << 16];
  std::size_t filled_ = 0;
};

/// The pipe ended within a record: the process died while it wrote it.
struct CutShort {};

/// Reads what PipeWriter wrote.
class PipeReader {
 public:
  explicit PipeReader(int pipe) : pipe_(pipe) {}
  /// Reads the tag of the next record; false at the end of the pipe.
  bool next(Tag& tag) {
    if (at_ == filled_ && !fill()) return false;
    tag = get<Tag>();
    return true;
  }
  /// Throws: CutShort.
  template <class Record>
  Record get() {
    Record record{};
    read(reinterpret_cast<char*>(&record), sizeof record);
    return record;
  }
  /// Throws: CutShort.
  std::string get_text() {
    std::string text(get<std::size_t>(), '\0');
    read(text.data(), text.size());
    return text;
  }

 private:
  void read(char* to, std::size_t size) {
    while (size > 0) {
      if (at_ == filled_ && !fill()) throw CutShort();
      const std::size_t piece = std::min(size, filled_ - at_);
      std::memcpy(to, buffer_ + at_, piece);
      at_ += piece;
      to += piece;
      size -= piece;
    }
  }
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

/// Writes `error` with the file and line of each of its mistakes.
void put_error(PipeWriter& writer, const Error& error) {
  writer.put(Tag::Error);
  writer.put_text(error.what());
  writer.put(error.mistakes().size());
  for (const Diagnostic& mistake : error.mistakes()) {
    writer.put_text(mistake.file);
    writer.put(mistake.line);
    writer.put_text(mistake.path);
    writer.put_text(mistake.message);
  }
}

/// Reads what put_error() wrote behind its tag.
Error get_error(PipeReader& reader) {
  const std::string text = reader.get_text();
  const auto count = reader.get<std::size_t>();
  std::vector<Diagnostic> mistakes;
  for (std::size_t i = 0; i < count; ++i) {
    Diagnostic mistake;
    mistake.file = reader.get_text();
    mistake.line = reader.get<int>();
    mistake.path = reader.get_text();
    mistake.message = reader.get_text();
    mistakes.push_back(std::move(mistake));
  }
  return {text, std::move(mistakes)};
}

/// Says whether 64 MiB can no longer be had.
bool memory_is_out() {
  constexpr std::size_t kPiece = std::size_t{64} << 20;
  void* piece = ::mmap(nullptr, kPiece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (piece == MAP_FAILED) return true;
  ::munmap(piece, kPiece);
  return false;
}

/// Returns true when the engine said that it was done, false where the pipe ended before.
/// Throws: see take_trace(), and CutShort.
bool read_trace(PipeReader& reader, const TraceSink& sink, RunSummary& summary) {
  for (Tag tag = Tag::Error; reader.next(tag);) {
    switch (tag) {
      case Tag::Span:
        sink.span(reader.get<Span>());
        break;
      case Tag::Transfer:
        sink.transfer(reader.get<Transfer>());
        break;
      case Tag::Memory:
        sink.memory(reader.get<MemoryChange>());
        break;
      case Tag::Collective:
        sink.collective(reader.get<CollectiveSpan>());
        break;
      case Tag::Done:
        summary.tasks = reader.get<decltype(summary.tasks)>();
        summary.makespan = reader.get<Seconds>();
        summary.engine = reader.get_text();
        return true;
      case Tag::Error:
        throw get_error(reader);
      case Tag::Unavailable:
        throw Unavailable(reader.get_text());
      case Tag::Bug:
        throw std::logic_error(reader.get_text());
      case Tag::NoMemory:
        throw std::bad_alloc();
    }
  }
  return false;
}

/// Returns true for signals that people and systems end processes by, and faults never raise.
bool comes_from_outside(int signal) {
  return signal == SIGTERM || signal == SIGHUP || signal == SIGINT || signal == SIGXCPU;
}

}  // namespace

WantedTrace wanted_by(const TraceSink& sink) {
  return {.spans = static_cast<bool>(sink.span),
          .transfers = static_cast<bool>(sink.transfer),
          .memory = static_cast<bool>(sink.memory),
          .collectives = static_cast<bool>(sink.collective)};
}

// noexcept: nothing thrown here may reach the handlers of a forked process, which stand around
// this.
void run_and_exit(int pipe, const WantedTrace& wanted,
                  const std::function<RunSummary(const TraceSink&)>& run) noexcept {
  PipeWriter writer(pipe);
  TraceSink sink;
  if (wanted.spans) sink.span = [&](const Span& span) { writer.put(Tag::Span, span); };
  if (wanted.transfers) {
    sink.transfer = [&](const Transfer& transfer) { writer.put(Tag::Transfer, transfer); };
  }
  if (wanted.memory) {
    sink.memory = [&](const MemoryChange& change) { writer.put(Tag::Memory, change); };
  }
  if (wanted.collectives) {
    sink.collective = [&](const CollectiveSpan& span) { writer.put(Tag::Collective, span); };
  }
  std::signal(SIGABRT, [](int) {  // SimGrid aborts when its memory runs out
    if (memory_is_out()) _exit(kOutOfMemory);
  });
  try {
    const RunSummary summary = run(sink);
    writer.put(Tag::Done, summary.tasks);
    writer.put(summary.makespan);
    writer.put_text(summary.engine);
  } catch (const std::bad_alloc&) {
    writer.put(Tag::NoMemory);
  } catch (const Error& error) {
    put_error(writer, error);
  } catch (const Unavailable& lack) {
    writer.put(Tag::Unavailable);
    writer.put_text(lack.what());
  } catch (const std::exception& bug) {
    writer.put(Tag::Bug);
    writer.put_text(bug.what());
  } catch (...) {
    writer.put(Tag::Bug);
    writer.put_text("the engine threw what is no std::exception");
  }
  writer.flush();
  _exit(0);  // SimGrid's destructors and our parent's buffers are none of the child's business
}

RunSummary EngineProcess::take_trace(const TraceSink& sink) {
  PipeReader reader(pipe_);
  RunSummary summary;
  bool done = false;
  try {
    done = read_trace(reader, sink, summary);
  } catch (const CutShort&) {  // it died, see below
  }
  wait();
  if (WIFEXITED(status_) && WEXITSTATUS(status_) == kOutOfMemory) throw std::bad_alloc();
  if (done) return summary;
  if (WIFSIGNALED(status_) && WTERMSIG(status_) == SIGKILL) {
    throw Unavailable(
        "the engine's process died by signal 9, as when memory runs out; expected a "
        "smaller scenario, or more memory");
  }
  if (WIFSIGNALED(status_) && comes_from_outside(WTERMSIG(status_))) {
    throw Unavailable("the engine's process was ended by signal " +
                      std::to_string(WTERMSIG(status_)) + "; expected it to run to its end");
  }
  throw std::runtime_error("the engine's process died with status " + std::to_string(status_));
}

void EngineProcess::wait() {
  if (pipe_ >= 0) {
    // The other side must not wait for a reader, also where a child of this process has a copy.
    ::shutdown(pipe_, SHUT_RDWR);  // of a socket; a pipe stays as it is
    ::close(pipe_);
  }
  pipe_ = -1;
  if (id_ <= 0) return;
  // A host that lets its children go by themselves leaves no status.
  while (::waitpid(id_, &status_, 0) < 0 && errno == EINTR) {
  }
  id_ = 0;
}

}  // namespace interlock
