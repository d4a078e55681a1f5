// Every text of the corpus, and every finding that was repaired, is read or refused.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <filesystem>

#include "base/file.h"
#include "tests/fuzz/readers.h"

namespace interlock::corpus_test {
namespace {

TEST_CASE("every text of the corpus is read, or refused by an Error") {
  const fuzz::TextFolder folder;
  for (const fuzz::Reader& reader : fuzz::readers()) {
    CAPTURE(reader.name);
    const std::filesystem::path texts = std::filesystem::path(FUZZ_CORPUS) / reader.name;
    REQUIRE(std::filesystem::is_directory(texts));
    int count = 0;
    for (const auto& text : std::filesystem::directory_iterator(texts)) {
      CAPTURE(text.path());
      CHECK_NOTHROW(folder.read(reader, read_file(text.path().string())));
      ++count;
    }
    CHECK(count > 0);
  }
}

TEST_CASE("the corpus takes at most 2 MB") {
  std::uintmax_t bytes = 0;
  for (const auto& text : std::filesystem::recursive_directory_iterator(FUZZ_CORPUS)) {
    if (text.is_regular_file()) bytes += text.file_size();
  }
  CHECK(bytes <= 2'000'000);
}

}  // namespace
}  // namespace interlock::corpus_test
