// Checksums: a text's fingerprint, which anybody can compute again with sha256sum.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace interlock {

/// Returns the SHA-256 of `text` as 64 hexadecimal digits. Source: FIPS 180-4.
std::string sha256(std::string_view text);

}  // namespace interlock
