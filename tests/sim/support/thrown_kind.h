// ThrownKind: what a run throws, by the kinds that callers tell apart.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <new>
#include <stdexcept>
#include <string>

#include "base/error.h"
#include "sim/processes/unavailable.h"

namespace interlock {

/// Returns the kind of what `run` throws, and its words: "Error: no such model"; "nothing".
inline std::string kind_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    return std::string("Error: ") + error.what();
  } catch (const Unavailable& lack) {
    return std::string("Unavailable: ") + lack.what();
  } catch (const std::bad_alloc&) {
    return "no memory";
  } catch (const std::logic_error& bug) {
    return std::string("bug: ") + bug.what();
  } catch (const std::exception& other) {
    return std::string("other: ") + other.what();
  }
  return "nothing";
}

/// Returns true if `part` is in `text`.
inline bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace interlock
