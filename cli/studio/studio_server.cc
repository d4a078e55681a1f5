// The HTTP server: who may ask, the page, and answers as they come.
// SPDX-License-Identifier: Apache-2.0
#include "cli/studio/studio_server.h"

#include <httplib.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "base/error.h"

namespace interlock {
namespace {

constexpr std::size_t kLargestQuestion = std::size_t{16} << 20;
constexpr std::size_t kThreads = 64;  // questions and pages at once; more wait
constexpr int kHeartbeat = 50;        // ms between signs of life, which find who has gone
constexpr const char* kLoopback = "127.0.0.1";

std::string random_token() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw Error("cannot make a token: the system gives no random numbers");
  }
  constexpr const char* kDigits = "0123456789abcdef";
  std::string token;
  for (const unsigned char byte : bytes) {
    token += kDigits[byte >> 4];
    token += kDigits[byte & 15];
  }
  return token;
}

/// Compares in a time that does not tell how much of `given` is right.
bool same_token(std::string_view given, std::string_view token) {
  if (given.size() != token.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < token.size(); ++i) {
    difference |= static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(token[i]);
  }
  return difference == 0;
}

void refuse(httplib::Response& response, int status, const std::string& sentence) {
  response.status = status;
  response.set_content(sentence + "\n", "text/plain; charset=utf-8");
}

}  // namespace

struct StudioServer::Inside {
  std::string page, token = random_token();
  const AnsweringProcesses& processes;
  httplib::Server server;
  int port = 0;
  std::atomic<bool> stopping = false, ended = false;

  Inside(std::string text, const AnsweringProcesses& who) : page(std::move(text)), processes(who) {}

  std::string host(const char* name) const {
    return std::string(name) + ":" + std::to_string(port);
  }

  /// Says whether `text` is this server as a browser names it.
  bool is_us(const std::string& text, const std::string& before) const {
    return text == before + host(kLoopback) || text == before + host("localhost");
  }

  bool refuses(const httplib::Request& request, httplib::Response& response) const {
    if (!is_us(request.get_header_value("Host"), "")) {
      refuse(response, 403, "this is not a name of this server; expected " + host(kLoopback));
      return true;
    }
    if (request.has_header("Origin") && !is_us(request.get_header_value("Origin"), "http://")) {
      refuse(response, 403, "another site asks; only the page of the studio may");
      return true;
    }
    const std::size_t end = request.path.find('/', 1);
    const std::string given = request.path.substr(0, end);
    if (!same_token(given, "/" + token)) {
      refuse(response, 403,
             "the address lacks the token of this studio; expected the whole address that "
             "interlock studio printed");
      return true;
    }
    return false;
  }

  /// Hands on what the process of `question` says, and a line end now and then: writing it fails
  /// as soon as the page has gone, which ends the process.
  void answer(const httplib::Request& request, httplib::Response& response) const {
    const auto question = std::make_shared<AskedQuestion>(processes.ask(request.body));
    response.set_chunked_content_provider(
        "application/x-ndjson", [this, question](std::size_t, httplib::DataSink& sink) {
          std::string text;
          const AskedQuestion::Heard heard = question->hear(text, kHeartbeat);
          if (stopping) return false;
          if (heard == AskedQuestion::Heard::End) {
            sink.done();
            return true;
          }
          if (text.empty()) text = "\n";
          return sink.write(text.data(), text.size());
        });
  }

  void add_routes() {
    server.set_payload_max_length(kLargestQuestion);
    server.set_keep_alive_max_count(1);  // a connection that idles would hold a thread
    server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    // Not SO_REUSEPORT, by which two servers could share a port.
    server.set_socket_options([](socket_t socket) {
      const int yes = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    server.set_default_headers({{"Cache-Control", "no-store"},
                                {"Referrer-Policy", "no-referrer"},
                                {"X-Content-Type-Options", "nosniff"},
                                {"X-Frame-Options", "DENY"},
                                {"Cross-Origin-Resource-Policy", "same-origin"}});
    server.set_pre_routing_handler([this](const auto& request, auto& response) {
      return refuses(request, response) ? httplib::Server::HandlerResponse::Handled
                                        : httplib::Server::HandlerResponse::Unhandled;
    });
    server.Get("/" + token + "/", [this](const auto&, auto& response) {
      // A page of unknown length would be compressed, which takes longer than sending it.
      response.set_content_provider(
          page.size(), "text/html; charset=utf-8",
          [this](std::size_t from, std::size_t size, httplib::DataSink& sink) {
            return sink.write(page.data() + from, size);
          });
    });
    server.Post("/" + token + "/ask",
                [this](const auto& request, auto& response) { answer(request, response); });
    server.set_error_handler([](const auto&, auto& response) {
      if (!response.body.empty()) return;
      if (response.status == 413) return refuse(response, 413, "the question is too large");
      if (response.status == 404) refuse(response, 404, "there is no such page");
    });
  }
};

StudioServer::StudioServer(std::string page, const AnsweringProcesses& processes, int port)
    : inside_(std::make_unique<Inside>(std::move(page), processes)) {
  inside_->add_routes();
  httplib::Server& server = inside_->server;
  if (port == 0) {
    inside_->port = server.bind_to_any_port(kLoopback);
  } else {
    inside_->port = server.bind_to_port(kLoopback, port) ? port : -1;
  }
  if (inside_->port > 0) return;
  throw Error(port == 0 ? std::string("no port of 127.0.0.1 is free")
                        : "--port " + std::to_string(port) +
                              ": cannot listen there: it is taken, or not allowed; expected "
                              "another port, or none, for any that is free");
}

StudioServer::~StudioServer() = default;

std::string StudioServer::address() const {
  return "http://" + inside_->host(kLoopback) + "/" + inside_->token + "/";
}

void StudioServer::serve() {
  inside_->server.listen_after_bind();
  inside_->ended = true;
}

void StudioServer::stop() {
  inside_->stopping = true;
  // A server that does not listen yet hears nothing.
  while (!inside_->ended) {
    inside_->server.stop();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace interlock
