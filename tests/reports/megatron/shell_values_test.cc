// Shell values against what a shell says.
// SPDX-License-Identifier: Apache-2.0
#include "reports/megatron/shell_values.h"

#include <doctest/doctest.h>

#include <utility>

namespace interlock::shell_values_test {
namespace {

TEST_CASE("whole numbers and their signs have the values that a shell gives them") {
  CHECK(with_arithmetic("a $((2 + 3 * 4)) b") == "a 14 b");
  CHECK(with_arithmetic("$(((2+3)*4))$((7/2))$((7%4))$((-3+1))") == "2033-2");
  CHECK(with_arithmetic("$(( $N * 2 )) $((1/0)) $((9000000000000000 * 9))") ==
        "$(($N*2)) $((1/0)) $((9000000000000000*9))");
  CHECK(with_arithmetic("$((1 + (2)") == "$((1+(2)");
  CHECK(with_arithmetic(std::string(3000, '(')).size() == 3000);
}

TEST_CASE("tests hold, do not hold, or are not known") {
  const std::optional<bool> unknown;
  for (const auto& [text, holds] :
       std::initializer_list<std::pair<const char*, std::optional<bool>>>{
           {"[[ fp8 == fp8 ]]", true},
           {"[[ fp8 != fp8 ]]", false},
           {"[ 8 -gt 16 ]", false},
           {"[ 8 -le 16 ] && [ 3 -eq 3 ]", true},
           {"[ -z ]", true},
           {"[ -n ]", false},
           {"[ -n x ]", true},
           {"[ -n $X ]", unknown},
           {"[[ == fp8 ]]", false},
           {"! [[ a = a ]]", false},
           {"true", true},
           {"[ -f file ]", unknown},
           {"[ $X = 1 ] && false", false},
           {"[ $X = 1 ] || true", true},
           {"[ $X = 1 ] || false", unknown},
           {"true && true || false", unknown},
           {"grep -q words file", unknown},
           {"", unknown}}) {
    const std::string asked = text;  // clang 14 lets CAPTURE see no binding
    CAPTURE(asked);
    CHECK(shell_condition(text) == holds);
  }
}

}  // namespace
}  // namespace interlock::shell_values_test
