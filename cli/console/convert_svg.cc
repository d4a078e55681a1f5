// Runs rsvg-convert on a temporary file.
// SPDX-License-Identifier: Apache-2.0
#include "cli/console/convert_svg.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace interlock {
namespace {

constexpr const char* kProgram = "rsvg-convert";  // of Debian's librsvg2-bin

bool is_installed() {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (access((folder + "/" + kProgram).c_str(), X_OK) == 0) return true;
  }
  return false;
}

/// A folder of this run alone, gone with it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::error_code failed;
    std::filesystem::path base = std::filesystem::temp_directory_path(failed);
    if (failed) base = "/tmp";
    path_ = (base / "interlock-XXXXXX").string();
    if (mkdtemp(path_.data()) == nullptr) {
      throw Error(path_ + ": cannot be made: " + std::strerror(errno));
    }
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string file(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// Returns the exit status of a program; 127 if it cannot be started.
int run(std::vector<std::string> words) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  if (posix_spawnp(&child, kProgram, nullptr, nullptr, arguments.data(), environ) != 0) return 127;
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return 127;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 127;
}

}  // namespace

PictureFormat picture_format(const std::string& option, const std::string& path) {
  if (path.ends_with(".svg")) return PictureFormat::Svg;
  const bool pdf = path.ends_with(".pdf");
  if (!pdf && !path.ends_with(".png")) {
    throw Error(option + " " + path + ": expected a name that ends with .svg, .pdf or .png");
  }
  if (!is_installed()) {
    throw Error(option + " " + path + ": needs " + kProgram +
                ", which is not installed; expected it (apt-get install librsvg2-bin), or a name "
                "that ends with .svg");
  }
  return pdf ? PictureFormat::Pdf : PictureFormat::Png;
}

std::string converted(const std::string& svg, PictureFormat format) {
  if (format == PictureFormat::Svg) return svg;
  const TemporaryFolder folder;
  const std::string from = folder.file("picture.svg"), to = folder.file("picture");
  write_file(from, svg);
  std::vector<std::string> words = {kProgram, "--format", "pdf", "--output", to, from};
  if (format == PictureFormat::Png) {
    words[2] = "png";
    words.insert(words.end() - 1, {"--zoom", "2"});
  }
  const int status = run(words);
  if (status != 0) {
    throw Error(std::string(kProgram) + " could not convert the picture (exit status " +
                std::to_string(status) +
                "); expected a working librsvg2-bin, or a name that ends "
                "with .svg");
  }
  return read_file(to);
}

}  // namespace interlock
