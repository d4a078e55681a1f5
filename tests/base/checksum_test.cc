// Checksums against the examples of the standard.
// SPDX-License-Identifier: Apache-2.0
#include "base/checksum.h"

#include <doctest/doctest.h>

namespace interlock::checksum_test {

// Source: NIST, Cryptographic Standards and Guidelines, examples of SHA-256; FIPS 180-2, B.
TEST_CASE("SHA-256 of the standard's examples") {
  CHECK(sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

}  // namespace interlock::checksum_test
