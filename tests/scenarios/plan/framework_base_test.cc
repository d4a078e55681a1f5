// Frameworks that stand on others, and the origins of what those that ship say.
// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"
#include "scenarios/contract/read_framework.h"
#include "tests/scenarios/plan/small_run.h"

namespace interlock::framework_base_test {
namespace {

TEST_CASE("a framework is another one but for what it says") {
  const auto framework = [](const std::string& text) {
    return loaded(small_run({"training.framework=" + text})).training().framework;
  };
  const Framework nemo = framework("nemo");
  Framework changed = framework(R"({"base": "nemo", "product_speed": 0.5})");
  CHECK(changed.product_speed == 0.5);
  changed.product_speed = nemo.product_speed;
  changed.name = nemo.name;
  CHECK(changed == nemo);
  const Framework less = framework(
      R"({"base": {"base": "nemo", "kernel_issue": "3 us"}, "expert_library_memory": null,
          "library_memory": {"other": "1 GiB"}})");
  CHECK(less.kernel_issue == Seconds(3e-6));
  CHECK(less.expert_library_memory.empty());
  CHECK(less.library_memory.at("other") == Bytes(1 << 30));
  CHECK(less.library_memory.at("NVIDIA Hopper") == nemo.library_memory.at("NVIDIA Hopper"));
  CHECK(mistakes({R"(training.framework={"base": "nemmo"})"}).find("did you mean \"nemo\"?") !=
        std::string::npos);
  CHECK(mistakes({R"(training.framework={"base": "nemo", "kernel_isue": "3 us"})"})
            .find("did you mean \"kernel_issue\"?") != std::string::npos);
}

TEST_CASE("every number of a shipped framework has an origin") {
  REQUIRE(!framework_names().empty());
  for (const std::string& name : framework_names()) {
    CHECK_MESSAGE(mistakes({"training.framework=" + name}) == "", name);
    const JsonValue file =
        read_json_file(data_folder("scenarios/frameworks") + "/" + name + ".json");
    const JsonValue* origin = file.find("origin");
    REQUIRE(origin);
    for (const auto& member : file.members) {
      if (member.first == "origin" || member.first == "base") continue;
      CHECK_MESSAGE(origin->find(member.first), name << ": " << member.first);
    }
    if (file.find("base") == nullptr) continue;
    for (const auto& member : origin->members) {
      CHECK_MESSAGE(file.find(member.first), name << ": its base says " << member.first);
    }
  }
}

TEST_CASE("what a framework says of an architecture is refused where its name is misspelt") {
  const std::string own = R"(cluster={"kind": "uniform", "devices": 1, "link": {"bandwidth":
      "1 GB/s"}, "device": {"architecture": "NVIDIA Hoper", "memory": "80 GiB",
      "memory_bandwidth": "2 TB/s", "peak": {"bf16": "300 TFLOP/s"}}})";
  const std::string said = " of an unknown architecture \"NVIDIA Hoper\"; known: AMD CDNA 3, ";
  for (const std::string key : {"attention_speeds", "library_memory", "expert_library_memory"}) {
    CAPTURE(key);
    const std::string value = key == "attention_speeds" ? "0.5" : "\"1 MiB\"";
    const std::string framework = "training.framework={\"" + key + "\": {\"NVIDIA Hoper\": ";
    CHECK(mistakes({own, framework + value + "}}"}) == "");
    CHECK(mistakes({framework + value + "}}"}).find(key + said) != std::string::npos);
  }
  // A variant's cluster may have it.
  CHECK(mistakes({R"(training.framework={"library_memory": {"Acme One": "1 MiB"}})"}) == "");
  CHECK(mistakes({R"(training.framework={"library_memory": {"other": "1 MiB"}})"}) == "");
  CHECK(mistakes({R"(training.framework={"attention_speeds": {"other": 0.5}})"}) != "");
}

}  // namespace
}  // namespace interlock::framework_base_test
