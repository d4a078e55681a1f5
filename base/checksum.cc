// SHA-256, by OpenSSL.
// SPDX-License-Identifier: Apache-2.0
#include "base/checksum.h"

#include <openssl/evp.h>

#include <array>

#include "base/error.h"

namespace interlock {

std::string sha256(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  const int done =
      EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr);
  CHECK(done == 1, "a digest of a text");
  std::string hexadecimal;
  for (unsigned int i = 0; i < size; ++i) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    hexadecimal += kDigits[digest[i] >> 4U];
    hexadecimal += kDigits[digest[i] & 15U];
  }
  return hexadecimal;
}

}  // namespace interlock
