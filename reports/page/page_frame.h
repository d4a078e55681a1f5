// PageFrame: what HTML pages are put together from.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reports/headlines/headlines.h"

namespace interlock {

/// Returns an element with `text` inside, made safe; `attributes` are as they are to be written.
std::string tagged(const std::string& tag, const std::string& attributes, const std::string& text);

/// Returns a table whose class is `kind`.
std::string table_html(const Grid& grid, const std::string& kind);
/// Returns the table, shortened if it would swamp the page.
std::string long_table_html(const Grid& grid, const std::string& kind);

/// Returns a script element that holds `json` safely, for our scripts to read.
std::string data_html(const std::string& type, const std::string& json);

/// Returns the files of reports/web of these names, one after the other.
std::string embedded(std::initializer_list<const char*> names);
/// Names in a frame, and the markup that takes their places.
using FrameParts = std::vector<std::pair<std::string_view, std::string>>;
/// Returns the file `frame` of reports/web with each {{name}} replaced. The replacements are not
/// searched for further names.
std::string filled_page(const char* frame, const FrameParts& parts);

/// Returns the whole page around `content`, which is markup, with style and scripts.
std::string html_page(const std::string& title, const std::string& content);

}  // namespace interlock
