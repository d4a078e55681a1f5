// Sources of a model: the zoo, a file beside the scenario, or the scenario itself.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "models/build_model.h"
#include "models/model_file.h"
#include "tests/models/built.h"
#include "tests/support/model_flops.h"

namespace interlock::model_graph_test {
namespace {

const std::string kMlp = R"({"kind": "mlp", "input_size": 5, "hidden_sizes": [7], "classes": 3)";

/// A folder that is gone with the test.
struct Folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / "interlock-models-test";
  Folder() { std::filesystem::create_directories(path / "nets"); }
  ~Folder() { std::filesystem::remove_all(path); }
};

TEST_CASE("every model of the zoo builds and names its source") {
  const std::vector<std::string> names = zoo_names();
  CHECK(names.size() >= 11);
  CHECK(std::is_sorted(names.begin(), names.end()));
  for (const std::string& name : names) {
    CAPTURE(name);
    const ModelGraph graph = zoo(name, {.micro_batch_size = 2, .recompute = Recompute::Full});
    CHECK(graph.name == name);
    CHECK(graph.modules.size() > 10);
    const JsonValue file = read_json_file(data_folder("models/zoo") + "/" + name + ".json");
    REQUIRE(file.find("source"));
    CHECK(file.find("source")->text.size() > 20);
  }
}

TEST_CASE("a model file is looked for beside the scenario that names it") {
  const Folder folder;
  write_file((folder.path / "nets/small.json").string(), kMlp + "}");
  const JsonValue scenario =
      parse_json("\"nets/small.json\"", (folder.path / "scenario.json").string());
  Diagnostics diagnostics;
  const ModelGraph graph = build_model({&scenario, "/model"}, {}, diagnostics);
  CHECK(diagnostics.messages() == std::vector<std::string>{});
  CHECK(graph.modules.size() == 2);
  CHECK(graph.name == "small");
}

TEST_CASE("a model file given as an override is looked for from where the user stands") {
  const Folder folder;
  write_file((folder.path / "nets/small.json").string(), kMlp + "}");
  const std::string path = (folder.path / "nets/small.json").string();
  const JsonValue value = parse_override(path, "--set model=" + path);
  Diagnostics diagnostics;
  CHECK(build_model({&value, "/model"}, {}, diagnostics).modules.size() == 2);
}

TEST_CASE("a model's name is its own, or its kind's") {
  CHECK(built(kMlp + "}").name == "mlp");
  CHECK(built(kMlp + R"(, "name": "toy", "source": "made up"})").name == "toy");
}

TEST_CASE("model flops are those of forward and backward, without heads or recomputation") {
  const ModelGraph graph = built(kMlp + "}", {.recompute = Recompute::Full});
  CHECK(model_flops(graph).value() == 3 * 2.0 * (5 * 7 + 7 * 3));
}

}  // namespace
}  // namespace interlock::model_graph_test
