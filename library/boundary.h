// Boundary: what is thrown inside, as callers of the library know it.
// SPDX-License-Identifier: Apache-2.0
//
// Inside, a mistake of the user's is interlock::Error, and most other exceptions are bugs. Callers
// see v0::Error, also of what the system refuses, v0::InternalError, std::bad_alloc, and what their
// own callbacks throw.
#pragma once

#include <exception>
#include <new>
#include <utility>

#include "base/error.h"
#include "base/json/json.h"
#include "include/interlock/interlock.h"
#include "scenarios/load/question.h"
#include "scenarios/sweep/plain_locale.h"
#include "scenarios/sweep/worker_pool.h"

namespace interlock::v0 {

/// Carries what a callback of the caller threw through the inside.
struct CallerThrew {
  std::exception_ptr exception;
};

/// Returns `error` with each message parted from its hint, which follows a semicolon.
Error told(const interlock::Error& error);
/// Throws: Error with told_failure()'s words if `failure` is the system's, else InternalError.
[[noreturn]] void throw_told(const std::exception& failure);

/// Returns what `work` returns, done under the locale "C". Throws: as callers know it.
template <class Work>
auto at_boundary(const Work& work) -> decltype(work()) {
  const PlainLocale locale;
  try {
    return work();
  } catch (const CallerThrew& threw) {
    std::rethrow_exception(threw.exception);
  } catch (const interlock::Error& error) {
    throw told(error);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& failure) {
    throw_told(failure);
  }
}

/// Returns the document of a scenario, its changes carried out. Throws: interlock::Error.
JsonValue document_of(std::string_view text, const Options& options);
/// Returns the scenarios of a document. The engine "auto" of a scenario is the native one, which
/// needs no process, unless the options ask for "auto".
std::vector<Question> questions_of(const JsonValue& document, const Options& options);

/// Returns the workers of a call: threads.
Workers workers_of(const Options& options);
/// Tells the caller's callback.
void tell_progress(const Options& options, std::size_t done, std::size_t of);

}  // namespace interlock::v0
