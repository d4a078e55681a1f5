// SvgText: the elements that all still pictures are made of.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace interlock {

/// Returns `value` with at most two decimals, none that are 0.
std::string svg_number(double value);

/// Returns ` name="value"`.
std::string attribute(const char* name, double value);

/// Returns a `text` element; `more` holds further attributes.
std::string text_at(double x, double y, const std::string& content, const char* more = "");

}  // namespace interlock
