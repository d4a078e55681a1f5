// Forks a process for each question, and hands each its socket.
// SPDX-License-Identifier: Apache-2.0
#include "cli/studio/answering_processes.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <string_view>
#include <thread>

#include "base/error.h"
#include "sim/processes/socket_text.h"

namespace interlock {
namespace {

[[noreturn]] void throw_no(const char* what) {
  throw Error(std::string("cannot make ") + what + ": " + std::strerror(errno));
}

std::array<int, 2> socket_pair() {
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) throw_no("a socket");
  return pair;
}

/// A message of one byte that carries a descriptor, as sendmsg and recvmsg take it.
struct Parcel {
  char byte = 0;
  iovec bytes{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> room{};
  msghdr message{};
  Parcel() {
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = room.data();
    message.msg_controllen = room.size();
  }
};

bool send_descriptor(int to, int descriptor) {
  Parcel parcel;
  cmsghdr* const head = CMSG_FIRSTHDR(&parcel.message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof descriptor);
  std::memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
  return ::sendmsg(to, &parcel.message, MSG_NOSIGNAL) == 1;
}

/// Returns the next descriptor; nothing when the other end is closed.
std::optional<int> receive_descriptor(int from) {
  for (;;) {
    Parcel parcel;
    const ssize_t count = ::recvmsg(from, &parcel.message, MSG_CMSG_CLOEXEC);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    const cmsghdr* const head = CMSG_FIRSTHDR(&parcel.message);
    if (head == nullptr || head->cmsg_type != SCM_RIGHTS) continue;
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(head), sizeof descriptor);
    return descriptor;
  }
}

/// Ends this process as soon as the other end of `socket` is closed.
void die_with(int socket) {
  std::thread([socket] {
    pollfd end{socket, 0, 0};
    while (::poll(&end, 1, -1) < 0 && errno == EINTR) {
    }
    ::_exit(0);
  }).detach();
}

[[noreturn]] void answer_and_exit(int socket, const Answerer& answer) {
  std::signal(SIGCHLD, SIG_DFL);  // or the processes of a search could not be waited for
  const std::string question = receive_all(socket);
  die_with(socket);
  answer(question, [&](const std::string& line) { send_all(socket, line + "\n"); });
  ::_exit(0);
}

[[noreturn]] void fork_for_each(int control, const Answerer& answer) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::signal(SIGCHLD, SIG_IGN);  // children are not waited for
  while (const std::optional<int> socket = receive_descriptor(control)) {
    if (::fork() == 0) {
      ::close(control);
      answer_and_exit(*socket, answer);
    }
    ::close(*socket);
  }
  ::_exit(0);
}

}  // namespace

AskedQuestion::~AskedQuestion() { ::close(socket_); }

AskedQuestion::Heard AskedQuestion::hear(std::string& text, int milliseconds) {
  pollfd waiting{socket_, POLLIN, 0};
  if (::poll(&waiting, 1, milliseconds) <= 0) return Heard::Nothing;
  std::array<char, 65536> block{};
  const ssize_t count = ::recv(socket_, block.data(), block.size(), 0);
  if (count < 0 && errno == EINTR) return Heard::Nothing;
  if (count <= 0) return Heard::End;
  text.append(block.data(), static_cast<std::size_t>(count));
  return Heard::Bytes;
}

AnsweringProcesses::AnsweringProcesses(const Answerer& answer) {
  const std::array<int, 2> control = socket_pair();
  forker_ = ::fork();
  if (forker_ == 0) {
    ::close(control[0]);
    fork_for_each(control[1], answer);
  }
  ::close(control[1]);
  control_ = control[0];
  if (forker_ < 0) throw_no("a process");
}

AnsweringProcesses::~AnsweringProcesses() {
  ::close(control_);
  while (::waitpid(forker_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

int AnsweringProcesses::ask(const std::string& question) const {
  const std::array<int, 2> pair = socket_pair();
  const bool sent = send_descriptor(control_, pair[1]);
  ::close(pair[1]);
  if (sent) send_all(pair[0], question);
  ::shutdown(pair[0], SHUT_WR);
  return pair[0];
}

}  // namespace interlock
