// PictureStyle: what a paper asks of a figure: its width, its title, and greys for print.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "reports/words/palette.h"

namespace interlock {

struct PictureStyle {
  std::string title = {};  // in the place of the figure's own
  double width = 0;        // pixels, 96 an inch; 0: as wide as its panels are
  bool grey = false;       // greys, dashes and hatching in the place of colours
};

/// An area's colour and the lines on it.
struct Paint {
  std::string colour;
  Hatch hatch = Hatch::None;
};
/// Returns the paint of area `number` of a grey figure. Neighbours differ, and the first twelve all
/// do.
Paint grey_paint(std::size_t number);
/// Returns the pattern `id` of a paint with lines.
std::string pattern_svg(const std::string& id, const Paint& paint);

/// Returns `words` in lines that are about `width` pixels wide at most in letters of `size` pixels;
/// one line if `width` is 0.
std::vector<std::string> in_lines(const std::string& words, double width, double size);

/// Writes lines of grey text below each other, the first at height `y`.
std::string lines_at(double x, double y, const std::vector<std::string>& lines);
inline constexpr double kTextLine = 16;  // from one to the next

/// The words at the top of a figure.
struct Heading {
  std::vector<std::string> title, subtitle;
  double extra = 0;  // height beyond that of a line of each
};
Heading heading_of(const std::string& title, const std::string& subtitle,
                   const PictureStyle& style);
std::string heading_svg(const Heading& heading);

}  // namespace interlock
