// Tables, script data, and the frame of a page.
// SPDX-License-Identifier: Apache-2.0
#include "reports/page/page_frame.h"

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "reports/page/web_file.h"
#include "reports/words/encode.h"
#include "reports/words/scale.h"

namespace interlock {
namespace {

constexpr std::size_t kMostTableRows = 512;  // of a table

std::string cell_html(const Cell& cell, const Column& column) {
  std::string classes = column.number ? "number" : "";
  if (cell.alarm) classes += classes.empty() ? "alarm" : " alarm";
  const std::string open = classes.empty() ? "<td>" : "<td class=\"" + classes + "\">";
  std::string bar;
  if (cell.bar) {
    const double share = std::clamp(*cell.bar, 0.0, 1.0);
    bar = "<span class=\"bar\"><i style=\"width:" + fixed(100 * share, 1) + "%\"></i></span>";
  }
  std::string text = escape_markup(cell.text);
  if (!cell.link.empty()) text = "<a href=\"" + escape_markup(cell.link) + "\">" + text + "</a>";
  return open + bar + text + "</td>";
}

}  // namespace

std::string embedded(std::initializer_list<const char*> names) {
  std::string text;
  for (const char* name : names) {
    CHECK(!web_file(name).empty(), std::string("the page has its part ") + name);
    text += web_file(name);
  }
  return text;
}

std::string filled_page(const char* frame, const FrameParts& parts) {
  const std::string_view page = web_file(frame);
  std::string html;
  for (std::size_t at = 0;;) {
    const std::size_t open = page.find("{{", at);
    html += page.substr(at, open - at);
    if (open == std::string_view::npos) return html;
    const std::size_t close = page.find("}}", open);
    const std::string_view name = page.substr(open + 2, close - open - 2);
    for (const auto& [part, text] : parts) {
      if (part == name) html += text;
    }
    at = close + 2;
  }
}

std::string tagged(const std::string& tag, const std::string& attributes, const std::string& text) {
  const std::string space = attributes.empty() ? "" : " ";
  return "<" + tag + space + attributes + ">" + escape_markup(text) + "</" + tag + ">\n";
}

std::string table_html(const Grid& grid, const std::string& kind) {
  std::string html = "<div class=\"scroll\"><table class=\"" + kind + "\">\n<thead><tr>";
  for (const Column& column : grid.columns) {
    html += "<th" + std::string(column.number ? " class=\"number\"" : "") + ">" +
            escape_markup(column.head);
    if (!column.unit.empty()) html += "<small>" + escape_markup(column.unit) + "</small>";
    html += "</th>";
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const auto& row : grid.rows) {
    html += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) html += cell_html(row[i], grid.columns[i]);
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string long_table_html(const Grid& grid, const std::string& kind) {
  const Grid shown = shorten(grid, kMostTableRows, {});
  std::string html = table_html(shown, kind);
  if (shown.rows.size() == grid.rows.size()) return html;
  return html + tagged("p", "class=\"note\"", rows_left_out(shown, grid));
}

std::string data_html(const std::string& type, const std::string& json) {
  std::string html = "<script type=\"" + type + "\">";
  html.reserve(html.size() + json.size() + 16);
  for (const char c : json) {
    // `<` never occurs in JSON outside strings, so no element can end or begin in the data.
    if (c == '<') {
      html += "\\u003c";
    } else {
      html += c;
    }
  }
  return html + "</script>\n";
}

std::string html_page(const std::string& title, const std::string& content) {
  return filled_page(
      "page.html",
      {{"title", escape_markup(title)},
       {"style", embedded({"page.css", "views.css"})},
       {"content", content},
       {"footer", "Made by interlock " INTERLOCK_VERSION "."},
       {"script",
        embedded({"axis.js", "data.js", "view.js", "chart.js", "graph.js", "describe.js",
                  "coverage.js", "timeline.js", "selection.js", "utilisation.js", "memory.js",
                  "choices.js", "tables.js", "sections.js", "charts.js", "main.js"})}});
}

}  // namespace interlock
