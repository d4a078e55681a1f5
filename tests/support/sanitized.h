// Tells whether a test program was compiled with the address sanitizer.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace interlock {

#if defined(__SANITIZE_ADDRESS__)  // GCC
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)  // Clang
inline constexpr bool kSanitized = __has_feature(address_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace interlock
