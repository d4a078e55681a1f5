// ConvertSvg: pictures as PDF and PNG, by the program rsvg-convert.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace interlock {

enum class PictureFormat { Svg, Pdf, Png };

/// Returns the format by the end of a file's name. Throws: Error for any other, and for PDF and PNG
/// if rsvg-convert is not installed.
PictureFormat picture_format(const std::string& option, const std::string& path);

/// Returns `svg` in another format, PNG at twice its size. Throws: Error if rsvg-convert fails.
std::string converted(const std::string& svg, PictureFormat format);

}  // namespace interlock
