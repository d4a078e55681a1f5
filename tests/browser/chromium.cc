// Starts Chromium with a pipe each way and asks it to open, look and act.
// SPDX-License-Identifier: Apache-2.0
#include "tests/browser/chromium.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>

#include "base/file.h"
#include "tests/support/base64.h"

namespace interlock {
namespace {

namespace fs = std::filesystem;

constexpr int kPatience = 1800'000;               // milliseconds; a browser that hangs
constexpr int kTheirInput = 3, kTheirOutput = 4;  // as the protocol wants it

[[noreturn]] void fail(const std::string& words) { throw std::runtime_error("browser: " + words); }

std::string new_folder() {
  std::string name = (fs::temp_directory_path() / "interlock-browser-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) fail("no temporary folder");
  return name;
}

std::string script_file(const std::string& name) {
  return read_file(std::string(SCRIPTS_FOLDER) + "/" + name);
}

/// Runs in the child until it is the browser.
[[noreturn]] void become(const std::string& program, const std::string& folder, int in, int out) {
  // Both moved out of the way first: either could be the number that the other one must get.
  const int input = fcntl(in, F_DUPFD, 10), output = fcntl(out, F_DUPFD, 10);
  dup2(input, kTheirInput);
  dup2(output, kTheirOutput);
  const int nowhere = ::open("/dev/null", O_RDWR);
  dup2(nowhere, STDOUT_FILENO);
  dup2(nowhere, STDERR_FILENO);
  const std::string profile = "--user-data-dir=" + folder + "/profile";
  execl(program.c_str(), program.c_str(), "--headless", "--no-sandbox", "--disable-gpu",
        "--remote-debugging-pipe", "--enable-precise-memory-info", "--no-first-run",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", profile.c_str(), "about:blank",
        nullptr);
  _exit(127);
}

/// Lines "name<tab>what is wrong".
std::vector<PageCheck> checks_in(const std::string& text) {
  std::vector<PageCheck> checks;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t tab = line.find('\t');
    if (tab != std::string::npos) checks.push_back({line.substr(0, tab), line.substr(tab + 1)});
  }
  return checks;
}

}  // namespace

std::optional<std::string> find_chromium() {
  const char* const path = std::getenv("PATH");
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
    std::istringstream folders(path == nullptr ? "" : path);
    for (std::string folder; std::getline(folders, folder, ':');) {
      const std::string program = folder + "/" + name;
      if (access(program.c_str(), X_OK) == 0) return program;
    }
  }
  return std::nullopt;
}

Chromium::Chromium(const std::string& program) : folder_(new_folder()) {
  std::array<int, 2> down{}, up{};
  if (pipe2(down.data(), O_CLOEXEC) != 0 || pipe2(up.data(), O_CLOEXEC) != 0) fail("no pipes");
  child_ = fork();
  if (child_ < 0) fail("cannot be started");
  if (child_ == 0) become(program, folder_, down[0], up[1]);
  close(down[0]);
  close(up[1]);
  to_ = down[1];
  from_ = up[0];
}

Chromium::~Chromium() {
  close(to_);  // it ends when its input is closed
  kill(child_, SIGTERM);
  waitpid(child_, nullptr, 0);
  close(from_);
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

Chromium::Json Chromium::next_message() {
  for (;;) {
    const std::size_t end = pending_.find('\0');
    if (end != std::string::npos) {
      Json message = Json::parse(pending_.substr(0, end));
      pending_.erase(0, end + 1);
      return message;
    }
    pollfd waiting{from_, POLLIN, 0};
    if (poll(&waiting, 1, kPatience) <= 0) fail("does not answer");
    std::array<char, 65536> block{};
    const ssize_t got = read(from_, block.data(), block.size());
    if (got <= 0) fail("has ended");
    pending_.append(block.data(), static_cast<std::size_t>(got));
  }
}

Chromium::Json Chromium::call(const std::string& method, const Json& parameters) {
  Json message{{"id", ++calls_}, {"method", method}, {"params", parameters}};
  if (!session_.empty()) message["sessionId"] = session_;
  const std::string text = message.dump() + '\0';
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t part = write(to_, text.data() + sent, text.size() - sent);
    if (part <= 0) fail("has ended");
    sent += static_cast<std::size_t>(part);
  }
  for (;;) {
    Json answer = next_message();
    if (answer.contains("method")) events_.push_back(answer["method"]);
    if (answer.value("id", 0) != calls_) continue;
    if (answer.contains("error")) fail(method + ": " + answer["error"].dump());
    return answer["result"];
  }
}

void Chromium::wait_for(const std::string& event) {
  while (std::find(events_.begin(), events_.end(), event) == events_.end()) {
    const Json message = next_message();
    if (message.contains("method")) events_.push_back(message["method"]);
  }
}

void Chromium::open(const std::string& page, const BrowserWindow& window) {
  const std::string file = folder_ + "/page.html";
  write_file(file, page);
  visit("file://" + file, window);
}

void Chromium::visit(const std::string& address, const BrowserWindow& window) {
  session_.clear();
  const Json target = call("Target.createTarget", {{"url", "about:blank"}});
  session_ = call("Target.attachToTarget", {{"targetId", target["targetId"]}, {"flatten", true}})
                 .at("sessionId");
  call("Page.enable", Json::object());
  call("Page.addScriptToEvaluateOnNewDocument", {{"source", script_file("watch.js")}});
  call("Emulation.setDeviceMetricsOverride", {{"width", window.width},
                                              {"height", window.height},
                                              {"deviceScaleFactor", 1},
                                              {"mobile", false}});
  const Json scheme{{"name", "prefers-color-scheme"}, {"value", window.dark ? "dark" : "light"}};
  call("Emulation.setEmulatedMedia", {{"features", Json::array({scheme})}});
  events_.clear();
  call("Page.navigate", {{"url", address}});
  wait_for("Page.loadEventFired");
}

void Chromium::press(const std::string& key) {
  const int code = key == "Tab" ? 9 : key == "Enter" ? 13 : 0;
  Json event{{"type", "rawKeyDown"}, {"key", key}, {"code", key}, {"windowsVirtualKeyCode", code}};
  if (key == "Enter") event["text"] = "\r";
  if (key == "Enter") event["type"] = "keyDown";
  call("Input.dispatchKeyEvent", event);
  event["type"] = "keyUp";
  event.erase("text");
  call("Input.dispatchKeyEvent", event);
}

std::vector<PageCheck> Chromium::check(const std::string& script) {
  const std::string source = "{" + script_file("checks.js") + script_file(script) + "}";
  const Json answer =
      call("Runtime.evaluate",
           {{"expression", source}, {"awaitPromise", true}, {"returnByValue", true}});
  if (answer.contains("exceptionDetails")) fail(script + ": " + answer["exceptionDetails"].dump());
  return checks_in(answer["result"].value("value", ""));
}

std::string Chromium::screenshot(const std::string& selector) {
  const std::string size =
      "(box => [innerWidth, Math.ceil(box.bottom + scrollY)])(document.querySelector('" + selector +
      "').getBoundingClientRect())";
  const Json reach =
      call("Runtime.evaluate", {{"expression", size}, {"returnByValue", true}})["result"]["value"];
  const Json clip{{"x", 0}, {"y", 0}, {"width", reach[0]}, {"height", reach[1]}, {"scale", 1}};
  const Json picture = call("Page.captureScreenshot",
                            {{"format", "png"}, {"captureBeyondViewport", true}, {"clip", clip}});
  return decode_base64(picture.at("data"));
}

Chromium& browser() {
  static Chromium chromium(*find_chromium());
  return chromium;
}

}  // namespace interlock
