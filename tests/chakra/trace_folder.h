// TraceFolder: a folder of Chakra files, and scenarios that simulate them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "scenarios/simulate/run_scenario.h"

namespace interlock {

/// Gone with the test.
class TraceFolder {
 public:
  TraceFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "chakra-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TraceFolder() { std::filesystem::remove_all(path_); }
  TraceFolder(const TraceFolder&) = delete;
  TraceFolder& operator=(const TraceFolder&) = delete;

  void write(int rank, const std::string& bytes) const {
    write_file((path_ / ("rank." + std::to_string(rank) + ".et")).string(), bytes);
  }
  /// The scenario that simulates the files. `cluster`: `"cluster": ...`; `more`: of the workload.
  Question load(const std::string& cluster, const std::string& more = "") const {
    const std::string text =
        R"({"workload": {"chakra": "rank.%d.et")" + more + "}, " + cluster + "}";
    return load_questions(parse_json(text, (path_ / "test.json").string())).front();
  }

 private:
  std::filesystem::path path_;
};

}  // namespace interlock
