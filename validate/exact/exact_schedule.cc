// The mixed-integer program of a step, in the LP format, and the answer of CBC.
// SPDX-License-Identifier: Apache-2.0
//
// Variables: the start of every op; for each two ops of a rank whose order is open, which is first;
// the makespan. Micro-batches are equal, so an op of a stage takes them in order without loss.
// Disjunctions are big-M constraints, with the known makespan as M.
#include "validate/exact/exact_schedule.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <sstream>
#include <string>

namespace interlock {

namespace {

constexpr double kSpanForSolver = 1000;  // the known makespan, in the solver's unit
constexpr double kSlack = 1e-9;
constexpr std::array kLetters = {'F', 'I', 'W'};

class ProgramText {
 public:
  explicit ProgramText(const ExactInputs& inputs) : inputs_(inputs) {
    constraints_ << std::setprecision(15);
    for (int stage = 0; stage < stages(); ++stage) {
      add_messages(stage);
      add_order(stage);
      add_choices(stage);
    }
  }
  std::string text() const {
    std::ostringstream text;
    text << std::setprecision(15) << "Minimize\n span: C\nSubject To\n" << constraints_.str();
    text << "Bounds\n 0 <= C <= " << inputs_.at_most << "\nBinaries\n"
         << binaries_.str() << "End\n";
    return text.str();
  }

 private:
  int stages() const { return static_cast<int>(inputs_.stages.size()); }
  double time(int kind, int stage) const {
    const ExactStage& s = inputs_.stages[stage];
    return std::array{s.forward, s.input, s.weight}[kind];
  }
  static std::string start(int kind, int stage, int micro_batch) {
    return std::string(1, kLetters[kind]) + std::to_string(stage) + "_" +
           std::to_string(micro_batch);
  }
  /// `later` - `earlier` >= `by`.
  void after(const std::string& later, const std::string& earlier, double by) {
    constraints_ << ' ' << later << " - " << earlier << " >= " << by << '\n';
  }

  void add_messages(int stage) {
    for (int b = 0; b < inputs_.micro_batches; ++b) {
      if (stage > 0) {
        after(start(0, stage, b), start(0, stage - 1, b), time(0, stage - 1) + inputs_.transfer);
        after(start(1, stage - 1, b), start(1, stage, b), time(1, stage) + inputs_.transfer);
      }
      after(start(1, stage, b), start(0, stage, b), time(0, stage));
      after(start(2, stage, b), start(1, stage, b), time(1, stage));
    }
  }

  /// Within a kind, to the end, and by memory.
  void add_order(int stage) {
    const int held = inputs_.stages[stage].held;
    for (int kind = 0; kind < 3; ++kind) {
      for (int b = 1; b < inputs_.micro_batches; ++b) {
        after(start(kind, stage, b), start(kind, stage, b - 1), time(kind, stage));
      }
    }
    after("C", start(2, stage, inputs_.micro_batches - 1), time(2, stage));
    for (int b = held; held > 0 && b < inputs_.micro_batches; ++b) {
      after(start(0, stage, b), start(2, stage, b - held), time(2, stage));
    }
    add_bound(stage);
  }

  /// Bounds the step by a rank: what comes before it can begin, all its work, and what must follow
  /// its last backward.
  void add_bound(int stage) {
    double before = 0;
    for (int s = 0; s < stage; ++s) before += time(0, s) + inputs_.transfer;
    double work = 0;
    for (int kind = 0; kind < 3; ++kind) work += inputs_.micro_batches * time(kind, stage);
    constraints_ << " C >= " << before + work << '\n';
  }

  void add_choices(int stage) {
    for (int first = 0; first < 3; ++first) {
      for (int second = first + 1; second < 3; ++second) {
        for (int a = 0; a < inputs_.micro_batches; ++a) {
          // The earlier kind of a micro-batch no later comes first anyway.
          for (int b = 0; b < a; ++b) add_choice(stage, {first, second, a, b});
        }
      }
    }
  }

  struct Pair {
    int first, second, a, b;  // kinds, micro-batches
  };
  static std::string choice(int stage, const Pair& pair) {
    return "y" + start(pair.first, stage, pair.a) + start(pair.second, stage, pair.b);
  }

  /// y = 1: the op of `first` comes before that of `second`.
  void add_choice(int stage, const Pair& pair) {
    const std::string y = choice(stage, pair);
    const std::string first = start(pair.first, stage, pair.a);
    const std::string second = start(pair.second, stage, pair.b);
    const double most = inputs_.at_most;
    binaries_ << ' ' << y << '\n';
    constraints_ << ' ' << second << " - " << first << " - " << most << ' ' << y
                 << " >= " << time(pair.first, stage) - most << '\n';
    constraints_ << ' ' << first << " - " << second << " + " << most << ' ' << y
                 << " >= " << time(pair.second, stage) << '\n';
    // If it comes before, then also before later ones, and earlier ones come before it.
    if (pair.b + 1 < pair.a) {
      const Pair later{pair.first, pair.second, pair.a, pair.b + 1};
      constraints_ << ' ' << choice(stage, later) << " - " << y << " >= 0\n";
    }
    if (pair.a - 1 > pair.b) {
      const Pair earlier{pair.first, pair.second, pair.a - 1, pair.b};
      constraints_ << ' ' << choice(stage, earlier) << " - " << y << " >= 0\n";
    }
  }

  const ExactInputs& inputs_;
  std::ostringstream constraints_, binaries_;
};

/// Runs a program without its output; whether it could be run and ended well.
bool runs(std::vector<std::string> words) {
  const pid_t child = fork();
  if (child == 0) {
    const int nowhere = open("/dev/null", O_WRONLY);
    if (nowhere < 0 || dup2(nowhere, STDOUT_FILENO) < 0) _exit(1);
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execvp(arguments.front(), arguments.data());
    _exit(127);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

/// A folder of its own under the system's for temporary files, removed at the end.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "interlock-XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string file(const char* name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

/// CBC's first line: "Optimal - objective value 12.5", or "Stopped on time - objective value ...".
std::optional<ExactResult> read_answer(const std::string& path, double bound) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  const std::size_t value = line.find("objective value");
  const bool proved = line.rfind("Optimal", 0) == 0;
  if (value == std::string::npos || (!proved && line.rfind("Stopped", 0) != 0)) return std::nullopt;
  const double span = std::strtod(line.c_str() + value + 15, nullptr);
  return ExactResult{.makespan = span, .bound = proved ? span : bound};
}

}  // namespace

bool has_exact_solver() { return runs({"cbc", "-quit"}); }

std::optional<ExactResult> solve_exact(const ExactInputs& asked) {
  // CBC's tolerances are absolute, so that it is given times of a size that they suit.
  const double scale = kSpanForSolver / asked.at_most;
  ExactInputs inputs = asked;
  double bound = 0;
  for (ExactStage& stage : inputs.stages) {
    stage = {stage.forward * scale, stage.input * scale, stage.weight * scale, stage.held};
    bound = std::max(bound, inputs.micro_batches * (stage.forward + stage.input + stage.weight));
  }
  inputs.transfer *= scale;
  inputs.at_most = kSpanForSolver * (1 + kSlack);
  const Folder folder;
  std::ofstream(folder.file("step.lp")) << ProgramText(inputs).text();
  const bool ran = runs({"cbc", folder.file("step.lp"), "-seconds", std::to_string(inputs.seconds),
                         "-solve", "-solution", folder.file("answer.txt")});
  if (!ran) return std::nullopt;
  std::optional<ExactResult> result = read_answer(folder.file("answer.txt"), bound);
  if (result) result = ExactResult{result->makespan / scale, result->bound / scale};
  return result;
}

}  // namespace interlock
