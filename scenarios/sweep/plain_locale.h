// PlainLocale: numbers are read and written with points, whatever the locale of the host.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <clocale>

namespace interlock {

/// While it lives, this thread has the locale "C"; no other thread sees that.
class PlainLocale {
 public:
  PlainLocale() : before_(::uselocale(plain())) {}
  ~PlainLocale() { ::uselocale(before_); }
  PlainLocale(const PlainLocale&) = delete;
  PlainLocale& operator=(const PlainLocale&) = delete;

 private:
  static locale_t plain() {
    static const locale_t locale = ::newlocale(LC_ALL_MASK, "C", nullptr);
    return locale;
  }
  locale_t before_;
};

}  // namespace interlock
