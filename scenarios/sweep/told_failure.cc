// Tells what the system could not give apart from mistakes of users and from bugs.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/sweep/told_failure.h"

#include <cctype>
#include <filesystem>
#include <new>
#include <system_error>

#include "base/error.h"
#include "base/text.h"
#include "sim/processes/unavailable.h"

namespace interlock {
namespace {

std::string reason_of(const std::system_error& failure) {
  std::string words = failure.code().message();
  if (!words.empty()) words[0] = static_cast<char>(std::tolower(words[0]));
  return words;
}

}  // namespace

ToldFailure told_failure(const std::exception& failure) {
  if (dynamic_cast<const Error*>(&failure) != nullptr) return {.words = failure.what()};
  if (dynamic_cast<const std::bad_alloc*>(&failure) != nullptr) {
    return {.words =
                "there is not enough memory for this; expected a smaller scenario (fewer devices, "
                "stages or micro-batches), or more memory",
            .lacking = true};
  }
  if (dynamic_cast<const Unavailable*>(&failure) != nullptr) {
    return {.words = failure.what(), .lacking = true};
  }
  if (const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&failure)) {
    return {.words = printable(file->path1().string(), 300) + ": " + reason_of(*file)};
  }
  const auto* system = dynamic_cast<const std::system_error*>(&failure);
  if (system != nullptr && system->code() == std::errc::resource_unavailable_try_again) {
    return {.words = "no further thread can be started: " + reason_of(*system) +
                     "; expected more memory, or a higher limit of threads (ulimit -u)",
            .lacking = true};
  }
  return {.words = std::string("this is a bug in interlock: ") + failure.what(), .ours = true};
}

}  // namespace interlock
