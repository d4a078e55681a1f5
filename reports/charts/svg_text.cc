// Elements of SVG as text.
// SPDX-License-Identifier: Apache-2.0
#include "reports/charts/svg_text.h"

#include "reports/words/encode.h"
#include "reports/words/scale.h"

namespace interlock {

std::string svg_number(double value) {
  std::string text = fixed(value, 2);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string attribute(const char* name, double value) {
  return std::string(" ") + name + "=\"" + svg_number(value) + "\"";
}

std::string text_at(double x, double y, const std::string& content, const char* more) {
  return "<text" + attribute("x", x) + attribute("y", y) + more + ">" + escape_markup(content) +
         "</text>\n";
}

}  // namespace interlock
