// interlock import pipedream and chimera: layer tables of other systems as models.
// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"
#include "base/json/json.h"
#include "base/text.h"
#include "tests/cli/child_program.h"

namespace interlock::import_tables_test {
namespace {

/// A node as the profiler writes it.
std::string node(const std::string& name, const char* forward, const char* backward,
                 const char* activation, const char* parameters) {
  return name + " -- forward_compute_time=" + forward + ", backward_compute_time=" + backward +
         ", activation_size=" + activation + ", parameter_size=" + parameters + "\n";
}

/// A U of five nodes: what the second made skips the third, and is joined by the fourth. Lines are
/// in no order, as the profiler writes them.
const std::string kSkipping =
    node("node4 -- Concat(1)", "1.000", "2.000", "600.000", "0.000") +
    node("node2 -- Conv2d(3, 8, kernel_size=(3, 3))", "10.000", "16.000", "400.000", "80.000") +
    node("node1 -- Input", "0.500", "0.000", "100.000", "0.000") +
    node("node10 -- Linear(8, 2)", "3.000", "4.000", "[10.0; 20.0]", "64.000") +
    node("node3 -- MaxPool2d(2)", "2.000", "3.000", "200.000", "0.000") +
    "\tnode4 -- node10\n\tnode1 -- node2\n\tnode2 -- node3\n\tnode2 -- node4\n"
    "\tnode3 -- node4\n";

double size_at(const JsonValue& module, const char* key) {
  const JsonValue* value = module.find(key);
  return value ? parse_quantity(value->text)->value : 0;
}

std::vector<JsonValue> modules_of(const std::string& path) {
  return read_json_file(path).find("modules")->items;
}

TEST_CASE("a graph becomes a chain that hands on every tensor which is still read") {
  const Folder folder;
  folder.file("graph.txt", kSkipping);
  const Outcome run =
      run_program({"import", "pipedream", "graph.txt", "--out", "m.json"}, folder.path());
  CHECK(run.exit_code == 0);
  CHECK(run.out == "5 modules, forward 16.5 ms, backward 25.0 ms\n");
  const std::vector<JsonValue> modules = modules_of(folder.path("m.json"));
  REQUIRE(modules.size() == 5);
  // By hand: behind the pooling both its output and the convolution's are needed.
  const double outputs[] = {100, 400, 400 + 200, 600, 0};
  const double stashes[] = {100, 400, 200, 600, 30};
  const double weights[] = {0, 80, 0, 0, 64};
  const double halves[] = {0, 8e-3, 3e-3, 2e-3, 2e-3};  // of backwards with weights; else the whole
  for (std::size_t i = 0; i < 5; ++i) {
    CAPTURE(i);
    CHECK(size_at(modules[i], "output") == outputs[i]);
    CHECK(size_at(modules[i], "stash") == stashes[i]);
    CHECK(size_at(modules[i], "parameters") == weights[i]);
    CHECK(size_at(modules[i], "backward_input") == doctest::Approx(halves[i]));
  }
  CHECK(modules[1].find("name")->text == "node2 Conv2d");
  CHECK(modules[2].find("backward_weight") == nullptr);
}

TEST_CASE("skipping tensors cross every link between their stages") {
  const Folder folder;
  folder.file("graph.txt", kSkipping);
  run_program({"import", "pipedream", "graph.txt", "--out", "m.json", "-q"}, folder.path());
  folder.file("s.json", R"({"model": "m.json",
    "cluster": {"kind": "uniform", "devices": 3, "memory": "1 GiB",
      "link": {"bandwidth": "1 kB/s"}},
    "partition": [2, 1, 2],
    "training": {"strategy": "global", "schedule": "1f1b", "steps": 1}})");
  // One micro-batch: all ops one behind the other, 16.5 + 25 ms, and the cuts of 400 and 600 B
  // forward and backward: 2 x 1 s.
  const Outcome run = run_program({"simulate", "s.json", "--json", "-", "-q"}, folder.path());
  CHECK(run.exit_code == 0);
  const JsonValue result = parse_json(run.out, "result");
  CHECK(result.find("step_time_s")->number == doctest::Approx(2.0415).epsilon(1e-9));
}

TEST_CASE("cells are what lies between two places with one tensor") {
  const Folder folder;
  folder.file("graph.txt", kSkipping);
  run_program({"import", "pipedream", "graph.txt", "--cells", "--out", "m.json", "-q"},
              folder.path());
  const std::vector<JsonValue> modules = modules_of(folder.path("m.json"));
  REQUIRE(modules.size() == 4);
  CHECK(modules[2].find("name")->text == "node3 to node4");
  CHECK(size_at(modules[2], "forward") == doctest::Approx(3e-3));
  CHECK(size_at(modules[2], "stash") == 800);
  CHECK(size_at(modules[2], "output") == 600);
}

TEST_CASE("graphs that are none are refused where it shows") {
  const Folder folder;
  const auto said = [&](const std::string& text) {
    folder.file("g.txt", text);
    const Outcome run =
        run_program({"import", "pipedream", "g.txt", "--out", "m.json"}, folder.path());
    CHECK(run.exit_code == 2);
    return run.err;
  };
  const std::string one = node("n1 -- View(-1)", "1.0", "1.0", "1.0", "0.0");
  CHECK(said("a,b\n1,2\n") == "g.txt:1: neither a node nor an edge of PipeDream's graphs\n");
  CHECK(said("") == "g.txt:1: no nodes; expected a graph of PipeDream's profiler\n");
  CHECK(said(one + "\tn1 -- n2\n") == "g.txt:2: no node \"n2\"\n");
  CHECK(said(one + node("n2 -- View(-1)", "1.0", "1.0", "1.0", "0.0") +
             "\tn1 -- n2\n\tn2 -- n1\n") == "g.txt:1: edges go round; expected a graph without\n");
  CHECK(said("n1 -- View(-1) -- forward_compute_time=1.0\n")
            .starts_with("g.txt:1: a node without backward_compute_time"));
}

TEST_CASE("a row of Chimera's tables becomes as many blocks as are asked for") {
  const Folder folder;
  folder.file("blocks.csv",
              "bs,time_f,time_b,time_kron,mem_param,mem_act,mem_peak_err\n"
              "4,1.5,2.5,4.2,29,34,46\n8,2.75,4.5,6.8,30,66.5,68\n");
  const auto import = [&](const std::string& batch, const std::string& output) {
    return run_program({"import", "chimera", "blocks.csv", "--batch", batch, "--blocks", "12",
                        "--output", output, "--out", "m.json"},
                       folder.path());
  };
  CHECK(import("8", "6 MiB").out == "12 modules, forward 33.0 ms, backward 54.0 ms\n");
  const std::vector<JsonValue> modules = modules_of(folder.path("m.json"));
  REQUIRE(modules.size() == 1);
  CHECK(modules[0].find("repeat")->number == 12);
  CHECK(size_at(modules[0], "forward") == doctest::Approx(2.75e-3));
  CHECK(size_at(modules[0], "backward_weight") == doctest::Approx(2.25e-3));
  CHECK(size_at(modules[0], "stash") == 66.5 * 1024 * 1024);
  CHECK(size_at(modules[0], "parameters") == 30.0 * 1024 * 1024);
  CHECK(size_at(modules[0], "output") == 6.0 * 1024 * 1024);
  CHECK(import("5", "6 MiB").err ==
        "blocks.csv: no row of micro-batches of 5; expected one of 4, 8\n");
  CHECK(import("8", "6").err == "--output 6: expected a size, e.g. \"6 MiB\"\n");
}

}  // namespace
}  // namespace interlock::import_tables_test
