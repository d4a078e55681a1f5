// PageFrame: what HTML pages are put together from.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "reports/headlines/figures.h"

namespace interlock {

/// An element with `text` inside, made safe; `attributes` are as they are to be written.
std::string tagged(const std::string& tag, const std::string& attributes, const std::string& text);

/// `kind` is the class of the table.
std::string table_html(const Grid& grid, const std::string& kind);
/// The table, shortened if it would swamp the page.
std::string long_table_html(const Grid& grid, const std::string& kind);

/// `json` for a script element: an element of our scripts reads it, whatever it holds.
std::string data_html(const std::string& type, const std::string& json);

/// The whole page around `content`, which is markup, with style and scripts.
std::string html_page(const std::string& title, const std::string& content);

}  // namespace interlock
