// Starts the studio, and talks to it.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/studio_program.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

namespace interlock {
namespace {

constexpr int kPatience = 1800;  // s; what hangs

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error("studio: " + what); }

}  // namespace

HttpCall::HttpCall(int port, const std::string& request) {
  socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  timeval patience{kPatience, 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  ::inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
  if (::connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) fail("cannot connect");
  for (std::size_t sent = 0; sent < request.size();) {
    const ssize_t part =
        ::send(socket_, request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
    if (part <= 0) return;  // refused before its end
    sent += static_cast<std::size_t>(part);
  }
}

HttpCall::~HttpCall() { ::close(socket_); }

const std::string& HttpCall::until(const std::string& words) {
  std::array<char, 65536> block{};
  while (words.empty() || come_.find(words) == std::string::npos) {
    const ssize_t got = ::recv(socket_, block.data(), block.size(), 0);
    if (got <= 0) break;
    come_.append(block.data(), static_cast<std::size_t>(got));
  }
  return come_;
}

int HttpCall::status() const {
  const std::size_t blank = come_.find(' ');
  return blank == std::string::npos ? 0 : std::stoi(come_.substr(blank));
}

StudioProgram::StudioProgram(const std::string& program,
                             const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {program, "studio", "--quiet"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::array<int, 2> out{};
  if (::pipe2(out.data(), O_CLOEXEC) != 0) fail("no pipe");
  process_ = ::fork();
  if (process_ == 0) {
    ::setpgid(0, 0);
    for (const int signal : {SIGINT, SIGHUP}) std::signal(signal, SIG_DFL);  // whatever is outside
    ::dup2(out[1], STDOUT_FILENO);
    ::alarm(kPatience);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ::close(out[1]);
  char letter = 0;
  while (::read(out[0], &letter, 1) == 1 && letter != '\n') address_ += letter;
  ::close(out[0]);
}

StudioProgram::~StudioProgram() {
  if (process_ > 0) end(SIGTERM);
}

int StudioProgram::port() const { return std::stoi(address_.substr(address_.rfind(':') + 1)); }

std::string StudioProgram::path() const {
  return address_.substr(address_.find('/', std::string("http://").size()));
}

std::string StudioProgram::request(const nlohmann::json& question) const {
  const std::string body = question.dump();
  return "POST " + path() + "ask HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port()) +
         "\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         body;
}

nlohmann::json StudioProgram::ask(const nlohmann::json& question) const {
  HttpCall call(port(), request(question));
  const std::string& come = call.all();
  // Chunks: a size in hexadecimal digits on a line of its own, and bytes.
  std::string body;
  for (std::size_t at = come.find("\r\n\r\n") + 4; at < come.size();) {
    const std::size_t line = come.find("\r\n", at);
    const std::size_t size = std::stoul(come.substr(at, line - at), nullptr, 16);
    if (size == 0) break;
    body += come.substr(line + 2, size);
    at = line + 2 + size + 2;
  }
  nlohmann::json last;
  std::istringstream lines(body);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) last = nlohmann::json::parse(line);
  }
  return last;
}

int StudioProgram::end(int signal) {
  ::kill(process_, signal);
  int status = 0;
  ::waitpid(process_, &status, 0);
  process_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::vector<pid_t> processes_below(pid_t process) {
  const std::string id = std::to_string(process);
  std::ifstream file("/proc/" + id + "/task/" + id + "/children");
  std::vector<pid_t> below;
  for (pid_t child = 0; file >> child;) {
    if (!runs(child)) continue;
    below.push_back(child);
    for (const pid_t further : processes_below(child)) below.push_back(further);
  }
  return below;
}

bool runs(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t name = text.rfind(')');
  return name != std::string::npos && text.substr(name + 2, 1) != "Z";
}

}  // namespace interlock
