// Encoding: hostile text becomes harmless, numbers survive.
// SPDX-License-Identifier: Apache-2.0
#include "reports/words/encode.h"

#include <doctest/doctest.h>

namespace interlock::encode_test {

TEST_CASE("base64 agrees with the vectors of RFC 4648, section 10") {
  const auto of = [](const std::string& text) { return base64(text.data(), text.size()); };
  CHECK(of("") == "");
  CHECK(of("f") == "Zg==");
  CHECK(of("fo") == "Zm8=");
  CHECK(of("foo") == "Zm9v");
  CHECK(of("foob") == "Zm9vYg==");
  CHECK(of("fooba") == "Zm9vYmE=");
  CHECK(of("foobar") == "Zm9vYmFy");
}

TEST_CASE("markup characters are escaped and other languages are left alone") {
  CHECK(escape_markup("</script> & \"a\" 'b'") ==
        "&lt;/script&gt; &amp; &quot;a&quot; &#39;b&#39;");
  CHECK(escape_markup("Zürich → 東京 🚀") == "Zürich → 東京 🚀");
}

TEST_CASE("control characters and broken UTF-8 become the replacement character") {
  CHECK(clean_utf8("a\x01"
                   "b\x1b[31m") == "a\uFFFDb\uFFFD[31m");
  CHECK(clean_utf8("\xff") == "\uFFFD");
  CHECK(clean_utf8("\xc3") == "\uFFFD");            // cut short
  CHECK(clean_utf8("\xc0\xaf") == "\uFFFD\uFFFD");  // overlong slash
  CHECK(clean_utf8("\xed\xa0\x80").size() == 9);    // a surrogate: three bytes, three marks
  CHECK(clean_utf8("\xc2\x9b"
                   "2J") == "\uFFFD2J");  // the one-character form of ESC [
}

TEST_CASE("a cell of a Markdown table stays one cell, and no markup") {
  CHECK(markdown_cell("a | b\n<script>") == "a \\| b &lt;script>");
}

TEST_CASE("width counts characters, not bytes") {
  CHECK(display_width("→ü") == 2);
  CHECK(display_width("") == 0);
}

}  // namespace interlock::encode_test
