// Escaping what users wrote, and guessing what they meant.
// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <doctest/doctest.h>

namespace interlock::text_test {
namespace {

TEST_CASE("UTF-8 characters have their length, anything else has none") {
  CHECK(utf8_length("a") == 1);
  CHECK(utf8_length("\xc3\xa9") == 2);
  CHECK(utf8_length("\xe2\x82\xac") == 3);
  CHECK(utf8_length("\xf0\x9f\x98\x80") == 4);
  CHECK(utf8_length("") == 0);
  for (const char* invalid : {"\x80", "\xff", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xe2\x82",
                              "\xed\xa0\x80", "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xf5"}) {
    CHECK(utf8_length(invalid) == 0);
  }
}

TEST_CASE("nothing that a terminal would act on is shown") {
  CHECK(in_quotes("caf\xc3\xa9") == "\"caf\xc3\xa9\"");
  CHECK(in_quotes("a\nb\tc\r") == "\"a\\nb\\tc\\r\"");
  CHECK(in_quotes("\x1b[31m\x7f") == "\"\\u001b[31m\\u007f\"");
  CHECK(in_quotes("\xc2\x9b") == "\"\\u009b\"");
  CHECK(in_quotes("\xff") == "\"\\xff\"");
}

TEST_CASE("long texts are cut between characters") {
  CHECK(printable("abcdef", 6) == "abcdef");
  CHECK(printable("abcdef", 5) == "abcde...");
  CHECK(printable("ab\xe2\x82\xac", 4) == "ab...");
  CHECK(in_quotes(std::string(1000, 'x')).size() == 80 + 3 + 2);
}

TEST_CASE("a slip is found, whatever its kind") {
  const std::vector<std::string> names = {"micro_batch_size", "micro_batches", "steps"};
  CHECK(nearest("micro_batchs", names) == "micro_batches");    // left out
  CHECK(nearest("micro_batchess", names) == "micro_batches");  // once too often
  CHECK(nearest("micro-batches", names) == "micro_batches");   // another
  CHECK(nearest("setps", names) == "steps");                   // swapped, so one slip of five
  CHECK(nearest("STEPS", names) == "steps");
  CHECK(nearest("1f1b-x", {"naive", "gpipe", "1f1b"}) == "1f1b");
}

TEST_CASE("a name is likely meant up to one slip in three letters") {
  CHECK(nearest("abx", {"abc"}) == "abc");
  CHECK_FALSE(nearest("axx", {"abc"}).has_value());
  CHECK_FALSE(nearest("ab", {"ax"}).has_value());
  CHECK_FALSE(nearest("pipeline", {"steps", "seed"}).has_value());
  CHECK_FALSE(nearest("", {"a"}).has_value());
  CHECK_FALSE(nearest("a", {}).has_value());
}

TEST_CASE("of equally near names the first is taken, of others the nearest") {
  CHECK(nearest("zb-hx", {"zb-h1", "zb-h2"}) == "zb-h1");
  CHECK(nearest("zb-h2x", {"zb-h1", "zb-h2"}) == "zb-h2");
}

TEST_CASE("of names near enough, one that the word begins comes first") {
  CHECK(nearest("dgx-a100", {"dgx-h100", "dgx-a100-80g"}) == "dgx-a100-80g");
  CHECK(nearest("dgx-a10", {"dgx-a10", "dgx-a100-80g"}) == "dgx-a10");
  CHECK_FALSE(nearest("dgx", {"dgx-a100-80g"}).has_value());
}

TEST_CASE("texts too long to be a slip are not compared") {
  const std::string word(100'000, 'a');
  CHECK_FALSE(nearest(word, {word}).has_value());
}

TEST_CASE("choices are joined as in a sentence") {
  CHECK(join_choices({}) == "");
  CHECK(join_choices({"a"}) == "a");
  CHECK(join_choices({"a", "b"}) == "a or b");
  CHECK(join_choices({"a", "b", "c"}) == "a, b or c");
}

}  // namespace
}  // namespace interlock::text_test
