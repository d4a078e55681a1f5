// Gradients of embeddings' tables that frameworks make whole, against bytes counted by hand.
// SPDX-License-Identifier: Apache-2.0
#include "tests/scenarios/plan/small_run.h"

namespace interlock::table_gradients_test {

TEST_CASE("the gradient of a table is made whole, and perhaps added by a kernel of its own") {
  const double table = 1000 * 64;  // words, columns
  const Overrides sizes = {kBare, "model.vocab_size=1000", "model.hidden_size=64",
                           "model.positions=rotary", "training.micro_batches=2"};
  const auto step = [&](const std::string& ways, const std::string& rest) {
    const std::string framework = R"({"table_gradients": ")" + ways + "\"" + rest + "}";
    return step_of(run(small_run(joined(sizes, {"training.framework=" + framework}))));
  };
  const std::string fp32 = R"(, "gradients": "fp32")";
  // Each of two micro-batches writes zeros of two bytes; an addition reads them, and reads and
  // writes those kept, of two bytes or four.
  for (const auto& [ways, rest, bytes] :
       {std::tuple("dense", std::string(), 2.0), std::tuple("dense", fp32, 2.0),
        std::tuple("dense_added", std::string(), 2.0 + 2 + 4),
        std::tuple("dense_added", fp32, 2.0 + 2 + 8)}) {
    const double expected = 2 * table * bytes / 1e9, got = step(ways, rest) - step("rows", rest);
    MESSAGE(ways << rest << ": 2 x " << table << " x " << bytes << " bytes at 1 GB/s: " << expected
                 << " s; got " << got);
    CHECK(got == doctest::Approx(expected).epsilon(1e-9));
  }
  const std::string passes = R"(, "gradient_passes": 3)";
  CHECK(step("dense_added", passes) == step("dense", passes));  // nothing is added twice
}

TEST_CASE("a table that two modules look up has one gradient, which both make whole") {
  const auto bytes_of = [](const std::string& ways) {
    double bytes = 0;
    const Question question = loaded(
        small_run({kBare, "model.vocab_size=1000", "model.hidden_size=64", "model.positions=rotary",
                   R"(model.encoder={"layers": 1, "attention_heads": 4, "positions": "rotary"})",
                   R"(training.framework={"table_gradients": ")" + ways + "\"}"}));
    for (const Module& module : question.training().graph.modules) {
      for (const Work& work : module.backward_weight) {
        bytes += work.op_class == OpClass::Elementwise ? work.bytes.value() : 0;
      }
    }
    return bytes;
  };
  const double table = 1000 * 64;
  // Zeros twice, the sum of both; and the kept one is read and written once, beside that.
  CHECK(bytes_of("dense") - bytes_of("rows") == doctest::Approx((2 + 2 + 6) * table));
  CHECK(bytes_of("dense_added") - bytes_of("dense") == doctest::Approx((2 + 4) * table));
}

}  // namespace interlock::table_gradients_test
