// Exchanges of experts beside another micro-batch: measured gains, and DeepSeek-V3's own training.
// SPDX-License-Identifier: Apache-2.0
#include "tests/papers/support/paper.h"

namespace interlock::expert_overlap_test {
namespace {

TEST_CASE(
    "pairs of micro-batches beside the exchange of tokens, as Megatron-Bridge measured them") {
  const Paper paper("expert-overlap");
  struct Pair {
    const char* dispatch;
    double waiting, beside;
  };
  for (const Pair& measured :
       {Pair{"all_to_all", 41.25, 31.31}, Pair{"deepep", 24.7138, 21.0725}}) {
    const double waiting = paper.step({measured.dispatch, "waiting"});
    const double beside = paper.step({measured.dispatch, "beside"});
    tell(std::string(measured.dispatch) + ", tokens waited for (s)", measured.waiting, waiting);
    tell(std::string(measured.dispatch) + ", beside another micro-batch (s)", measured.beside,
         beside);
    tell(std::string(measured.dispatch) + ", saved (s)", measured.waiting - measured.beside,
         waiting - beside);
    if (measured.dispatch == std::string("all_to_all")) {
      CHECK(waiting == doctest::Approx(measured.waiting).epsilon(0.06));
      CHECK(beside == doctest::Approx(measured.beside).epsilon(0.06));
    } else {  // its kernels take longer than those of graphs are predicted to; messages do not
      CHECK(waiting - beside == doctest::Approx(measured.waiting - measured.beside).epsilon(0.2));
      CHECK(waiting > measured.waiting * 0.65);
    }
  }
  const double delayed = paper.step({"all_to_all", "delayed"});
  tell("all_to_all, weight gradients delayed (s)", 31.20, delayed);
  CHECK(delayed == doctest::Approx(31.20).epsilon(0.06));
}

TEST_CASE("DeepSeek-V3's step lies between one whose tokens hide and one that waits for them") {
  const Paper paper("deepseek-v3");
  const double published = 2664e3 * 3600 / 2048 / (14.8e12 / (15360 * 4096));
  for (const char* dispatch : {"all_to_all", "deepep"}) {
    for (const char* when : {"waiting", "beside"}) {
      tell(std::string(dispatch) + ", " + when + " (s)", published, paper.step({dispatch, when}));
    }
    CHECK(paper.step({dispatch, "beside"}) < paper.step({dispatch, "waiting"}));
  }
  CHECK(paper.step({"deepep", "beside"}) < published);
  CHECK(paper.step({"all_to_all", "waiting"}) > published);
}

}  // namespace
}  // namespace interlock::expert_overlap_test
