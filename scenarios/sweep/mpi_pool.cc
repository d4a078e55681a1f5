// The module that knows MPI: rank 0 answers every result with the next job, or with the end.
// SPDX-License-Identifier: Apache-2.0
//
// Waiting is by looking now and then, not by spinning: more ranks than processors are common.
#include <mpi.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "base/error.h"
#include "scenarios/sweep/rank_pool.h"

namespace interlock {
namespace {

constexpr int kResult = 1, kOrder = 2;  // tags
constexpr std::int64_t kEnd = -1;       // in place of a job
constexpr unsigned kNap = 50;           // us

/// Names what a rank says: that it is ready, the result of a job, or why there is none.
enum class Word : char { Ready, Done, Problem };

int own_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int rank_count() {
  int count = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &count);
  return count;
}

/// Ranks that were told the end.
int sent_home = 0;
/// The rank whose message was read and not answered, as `done` threw; 0: none.
int unanswered = 0;

struct Message {
  int from = 0;
  Word word = Word::Ready;
  JobResult result;
};

bool message_waits(MPI_Status& status) {
  int there = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, kResult, MPI_COMM_WORLD, &there, &status);
  return there != 0;
}

Message receive(const MPI_Status& status) {
  int size = 0;
  MPI_Get_count(&status, MPI_BYTE, &size);
  std::string bytes(static_cast<std::size_t>(size), '\0');
  MPI_Recv(bytes.data(), size, MPI_BYTE, status.MPI_SOURCE, kResult, MPI_COMM_WORLD,
           MPI_STATUS_IGNORE);
  unanswered = status.MPI_SOURCE;
  Message message;
  std::int64_t job = 0;
  CHECK(bytes.size() >= 1 + sizeof job, "a rank's message is cut short");
  message.from = status.MPI_SOURCE;
  message.word = static_cast<Word>(bytes[0]);
  std::memcpy(&job, bytes.data() + 1, sizeof job);
  message.result.job = static_cast<std::size_t>(job);
  std::string& text = message.word == Word::Problem ? message.result.problem : message.result.bytes;
  text = bytes.substr(1 + sizeof job);
  return message;
}

void order(int rank, std::int64_t job) {
  MPI_Send(&job, 1, MPI_INT64_T, rank, kOrder, MPI_COMM_WORLD);
  if (job == kEnd) ++sent_home;
  if (rank == unanswered) unanswered = 0;
}

void say(Word word, std::int64_t job, const std::string& text) {
  std::string bytes(1, static_cast<char>(word));
  bytes.append(reinterpret_cast<const char*>(&job), sizeof job);
  bytes += text;
  MPI_Send(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, 0, kResult, MPI_COMM_WORLD);
}

bool run(const Jobs& jobs) {
  bool all = true;
  while (sent_home < rank_count() - 1) {
    if (all && jobs.stop && jobs.stop()) all = false;
    MPI_Status status;
    if (!message_waits(status)) {
      ::usleep(kNap);
      continue;
    }
    const Message message = receive(status);
    if (message.word != Word::Ready) jobs.done(message.result);
    const std::optional<std::size_t> next = all ? jobs.next() : std::nullopt;
    order(message.from, next ? static_cast<std::int64_t>(*next) : kEnd);
  }
  return all;
}

void serve(const std::function<std::string(std::size_t)>& work) {
  say(Word::Ready, 0, "");
  while (true) {
    for (int there = 0; there == 0;) {
      MPI_Iprobe(0, kOrder, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
      if (there == 0) ::usleep(kNap);
    }
    std::int64_t job = kEnd;
    MPI_Recv(&job, 1, MPI_INT64_T, 0, kOrder, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (job == kEnd) return;
    try {
      say(Word::Done, job, work(static_cast<std::size_t>(job)));
    } catch (const std::exception& error) {
      say(Word::Problem, job, error.what());
    }
  }
}

/// After a mistake rank 0 comes here while others still wait for orders.
void close() {
  if (unanswered != 0) order(unanswered, kEnd);
  while (own_rank() == 0 && sent_home < rank_count() - 1) {
    MPI_Status status;
    if (message_waits(status)) {
      order(receive(status).from, kEnd);
    } else {
      ::usleep(kNap);
    }
  }
  MPI_Finalize();
}

}  // namespace
}  // namespace interlock

extern "C" const interlock::MpiCalls* interlock_open_mpi() {
  static const interlock::MpiCalls calls = {interlock::own_rank, interlock::run, interlock::serve,
                                            interlock::close};
  MPI_Init(nullptr, nullptr);
  return &calls;
}
