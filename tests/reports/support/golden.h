// Golden files: small outputs kept whole, so that any change shows as a difference in review.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace interlock {

/// Checks that `text` equals tests/reports/golden/`name`, byte by byte, and shows the first line
/// that differs. With UPDATE_GOLDEN=1 in the environment it rewrites the file instead.
void check_golden(const std::string& name, const std::string& text);

}  // namespace interlock
