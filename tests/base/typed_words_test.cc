// Words of other tools are answered with ours.
// SPDX-License-Identifier: Apache-2.0
#include "base/json/typed_words.h"

#include <doctest/doctest.h>

#include "base/json/json.h"

namespace interlock::typed_words_test {
namespace {

/// The mistakes of an object with the keys "tensor", "size" (an enumeration), "parallel" and
/// "speed".
std::string mistakes(const std::string& text) {
  const JsonValue value = parse_json(text, "s.json");
  Diagnostics diagnostics;
  ObjectReader reader({&value, ""}, diagnostics);
  reader.count("tensor", 1);
  reader.choice("precision", {"fp32", "bf16"}, 0);
  reader.bytes_per_second("speed", BytesPerSecond(1));
  reader.seconds("delay", Seconds());
  reader.finish();
  std::string all;
  for (const std::string& one : diagnostics.messages()) all += one;
  return all;
}

TEST_CASE("short keys are answered with the key, or with its path from the top") {
  const std::vector<std::string> none, parallel = {"tensor", "pipeline"};
  CHECK(key_meant("tp", parallel) == "tensor");
  CHECK(key_meant("TP", parallel) == "tensor");
  CHECK(key_meant("tensor-model-parallel-size", parallel) == "tensor");
  for (const auto& [typed, path] : {std::pair{"tp", "parallel.tensor"},
                                    {"pp", "parallel.pipeline"},
                                    {"dp", "parallel.data"},
                                    {"ep", "parallel.expert"},
                                    {"cp", "parallel.context"},
                                    {"gbs", "training.global_batch_size"},
                                    {"mbs", "training.micro_batch_size"},
                                    {"seq_len", "model.sequence_length"}}) {
    CHECK(key_meant(typed, none) == path);
  }
  CHECK(!key_meant("tensr", parallel));
  INFO("a word of one command where another has the other word");
  CHECK(key_meant("machine", {"cluster"}) == "cluster");
  CHECK(key_meant("cluster", {"machine"}) == "machine");
  CHECK(!key_meant("machine", none));
}

TEST_CASE("messages carry what was meant: keys, names, units") {
  CHECK(mistakes(R"({"tp": 2})").find("/tp: unknown key; did you mean \"tensor\"?") !=
        std::string::npos);
  CHECK(mistakes(R"({"mbs": 2})").find("did you mean \"training.micro_batch_size\"?") !=
        std::string::npos);
  CHECK(mistakes(R"({"precision": "bfloat16"})").find("(did you mean \"bf16\"?)") !=
        std::string::npos);
  CHECK(mistakes(R"({"speed": "100Gbps"})").find("(did you mean \"100 Gb/s\"?)") !=
        std::string::npos);
  CHECK(mistakes(R"({"delay": "3 usec"})").find("(did you mean \"3 us\"?)") != std::string::npos);
}

TEST_CASE("names and units that are in no table are left alone") {
  CHECK(!name_meant("bfloat16", {"fp32", "fp16"}));
  CHECK(name_meant("Float16", {"fp32", "fp16"}) == "fp16");
  CHECK(quantity_meant("1.5 TFLOPS") == "1.5 TFLOP/s");
  CHECK(!quantity_meant("Gbps"));
  CHECK(!quantity_meant("12"));
  CHECK(!quantity_meant("12 parsecs"));
}

}  // namespace
}  // namespace interlock::typed_words_test
