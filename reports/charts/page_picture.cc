// Figures of pages: a caption, a legend, panels that scale with the window.
// SPDX-License-Identifier: Apache-2.0
#include "reports/charts/page_picture.h"

#include <cstdio>

#include "reports/charts/svg_text.h"
#include "reports/words/encode.h"

namespace interlock {
namespace {

constexpr double kSmallest = 0.68, kLargest = 1.25;  // of a panel's own size

std::string legend_html(const std::vector<LegendEntry>& entries) {
  std::string html;
  for (const LegendEntry& entry : entries) {
    html += std::string("<li><svg class=\"sign\" width=\"") + (entry.area ? "16" : "26") +
            "\" height=\"14\" aria-hidden=\"true\">" + legend_sign(entry, 1, 7) + "</svg>" +
            escape_markup(entry.name) + "</li>\n";
  }
  return html.empty() ? "" : "<ul class=\"legend\">\n" + html + "</ul>\n";
}

std::string panel_html(const PagePanel& panel) {
  return "<svg viewBox=\"0 0 " + svg_number(panel.width) + " " + svg_number(panel.height) +
         "\" role=\"group\" aria-label=\"" + escape_markup(panel.name) +
         "\" style=\"min-width:" + svg_number(kSmallest * panel.width) +
         "px;max-width:" + svg_number(kLargest * panel.width) + "px\">\n" + panel.svg + "</svg>\n";
}

}  // namespace

std::string section_name(std::size_t index) { return "scenario-" + std::to_string(index); }

std::string picture_html(const PagePicture& picture) {
  std::string html = "<figure class=\"picture\">\n<figcaption>" + escape_markup(picture.title);
  if (!picture.subtitle.empty()) html += "<br>" + escape_markup(picture.subtitle);
  html += "</figcaption>\n" + legend_html(picture.entries) + "<div class=\"panels\">\n";
  for (const PagePanel& panel : picture.panels) html += panel_html(panel);
  html += "</div>\n";
  for (const std::string& note : picture.notes) {
    html += "<p class=\"note\">" + escape_markup(note) + "</p>\n";
  }
  return html + "</figure>\n";
}

std::string few_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

}  // namespace interlock
