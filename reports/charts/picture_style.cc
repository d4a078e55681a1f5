// Greys, patterns, and words that are broken into lines.
// SPDX-License-Identifier: Apache-2.0
#include "reports/charts/picture_style.h"

#include <array>
#include <sstream>

#include "reports/charts/svg_text.h"
#include "reports/words/encode.h"

namespace interlock {
namespace {

constexpr double kTitleSize = 18, kTitleLine = 22,
                 kLetterShare = 0.54;  // width of a letter over its size
constexpr double kHeadingMargin = 20;

constexpr const char* lines_of(Hatch hatch) {
  switch (hatch) {
    case Hatch::None:
      break;
    case Hatch::Rising:
      return "M-1 1L1 -1M0 6L6 0M5 7L7 5";
    case Hatch::Falling:
      return "M-1 5L1 7M0 0L6 6M5 -1L7 1";
    case Hatch::Upright:
      return "M3 0V6";
    case Hatch::Level:
      return "M0 3H6";
    case Hatch::Dots:
      return "M2 3H4M3 2V4";
    case Hatch::Crossed:
      return "M0 0L6 6M0 6L6 0";
  }
  return "";
}

}  // namespace

Paint grey_paint(std::size_t number) {
  static const std::array<Paint, 12> all{{{"#4d4d4d"},
                                          {"#ffffff", Hatch::Rising},
                                          {"#b3b3b3"},
                                          {"#ffffff", Hatch::Dots},
                                          {"#808080"},
                                          {"#e6e6e6", Hatch::Falling},
                                          {"#d9d9d9"},
                                          {"#ffffff", Hatch::Crossed},
                                          {"#b3b3b3", Hatch::Upright},
                                          {"#ffffff"},
                                          {"#999999", Hatch::Crossed},
                                          {"#ffffff", Hatch::Level}}};
  return all[number % all.size()];
}

std::string pattern_svg(const std::string& id, const Paint& paint) {
  return "<pattern id=\"" + id +
         "\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\"><rect width=\"6\" "
         "height=\"6\" fill=\"" +
         paint.colour + "\"/><path d=\"" + lines_of(paint.hatch) +
         "\" stroke=\"#333333\" fill=\"none\"/></pattern>\n";
}

std::vector<std::string> in_lines(const std::string& words, double width, double size) {
  if (width <= 0) return {words};
  std::vector<std::string> lines(1);
  std::istringstream each(words);
  for (std::string word; each >> word;) {
    std::string& line = lines.back();
    const double wide = static_cast<double>(display_width(line + " " + word)) * kLetterShare * size;
    if (line.empty()) {
      line = word;
    } else if (wide <= width) {
      line += " " + word;
    } else {
      lines.push_back(word);
    }
  }
  return lines;
}

std::string lines_at(double x, double y, const std::vector<std::string>& lines) {
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    text += text_at(x, y + kTextLine * static_cast<double>(i), lines[i], " fill=\"#555555\"");
  }
  return text;
}

Heading heading_of(const std::string& title, const std::string& subtitle,
                   const PictureStyle& style) {
  const double width = style.width > 0 ? style.width - 2 * kHeadingMargin : 0;
  Heading heading{in_lines(style.title.empty() ? title : style.title, width, kTitleSize),
                  in_lines(subtitle, width, 12)};
  heading.extra = kTitleLine * static_cast<double>(heading.title.size() - 1) +
                  kTextLine * static_cast<double>(heading.subtitle.size() - 1);
  return heading;
}

std::string heading_svg(const Heading& heading) {
  std::string text;
  double y = 28;
  for (const std::string& line : heading.title) {
    text += text_at(kHeadingMargin, y, line, " font-size=\"18\" font-weight=\"bold\"");
    y += kTitleLine;
  }
  return text + lines_at(kHeadingMargin, y - 2, heading.subtitle);
}

}  // namespace interlock
