// interlock studio: a page that answers what-if questions while they are typed.
// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "cli/console/outputs.h"
#include "cli/console/terminal.h"
#include "cli/parser/commands.h"
#include "cli/studio/answering_processes.h"
#include "cli/studio/offline_page.h"
#include "cli/studio/studio_answers.h"
#include "cli/studio/studio_server.h"
#include "reports/page/studio_page.h"

namespace interlock {
namespace {

/// The signals that end the studio, which all its threads leave to `wait`.
class EndingSignals {
 public:
  EndingSignals() {
    sigemptyset(&set_);
    for (const int signal : {SIGINT, SIGTERM}) sigaddset(&set_, signal);
    struct sigaction hangup = {};
    sigaction(SIGHUP, nullptr, &hangup);
    if (hangup.sa_handler != SIG_IGN) sigaddset(&set_, SIGHUP);  // nohup stays so
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  }
  void wait() const {
    int signal = 0;
    sigwait(&set_, &signal);
  }

 private:
  sigset_t set_{};
};

void write_page(const StudioOptions& options) {
  if (options.port != 0) {
    throw Error("--port and --out: a page that is a file needs no server; expected one of them");
  }
  if (!options.out.ends_with(".html")) {
    throw Error("--out " + options.out + ": expected a name that ends with .html");
  }
  check_output("--out", options.out);
  write_file(options.out, offline_page(open_scenario(options.scenario, options.overrides)));
  if (!options.quiet) tell("wrote " + options.out);
}

}  // namespace

void studio(const StudioOptions& options) {
  if (!options.out.empty()) return write_page(options);
  const OpenedScenario opened = open_scenario(options.scenario, options.overrides);
  const std::string page = studio_page({opened.file, opened.text});
  const EndingSignals ending;
  const AnsweringProcesses processes([&](const std::string& question, const LineSink& say) {
    answer_studio(opened, question, say);
  });
  StudioServer server(page, processes, options.port);
  print(server.address() + "\n");
  if (!options.quiet) tell("open this address in a browser; Ctrl-C ends the studio");
  std::thread serving([&] { server.serve(); });
  ending.wait();
  server.stop();
  serving.join();
}

}  // namespace interlock
