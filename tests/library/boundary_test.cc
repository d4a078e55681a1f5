// Holds the library to telling what the system refuses apart from bugs.
// SPDX-License-Identifier: Apache-2.0
#include "library/boundary.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace interlock::boundary_test {
namespace {

/// Returns what a caller catches of `thrown`: its kind and its words.
template <class Thrown>
std::string caught_of(const Thrown& thrown) {
  try {
    v0::at_boundary([&] { throw thrown; });
  } catch (const v0::Error& error) {
    return std::string("Error: ") + error.what();
  } catch (const v0::InternalError& error) {
    return std::string("InternalError: ") + error.what();
  } catch (const std::bad_alloc&) {
    return "bad_alloc";
  } catch (const std::exception& other) {
    return std::string("neither: ") + other.what();
  }
  return "nothing";
}

TEST_CASE("what the system refuses is no bug, a mistake in the text keeps its words") {
  CHECK(caught_of(interlock::Error("as it is")) == "Error: as it is");
  CHECK(
      caught_of(std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again)))
          .starts_with("Error: no further thread can be started: "));
  CHECK(caught_of(std::filesystem::filesystem_error(
            "stat", "name", std::make_error_code(std::errc::filename_too_long))) ==
        "Error: name: file name too long");
  CHECK(caught_of(std::bad_alloc()) == "bad_alloc");
  CHECK(caught_of(std::out_of_range("at")) == "InternalError: this is a bug in interlock: at");
}

}  // namespace
}  // namespace interlock::boundary_test
