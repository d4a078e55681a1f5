// Markup: a small strict reader of XML, to check that what reports write is well-formed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace interlock {

struct Element {
  std::string tag;
  std::map<std::string, std::string> attributes;  // entities as written
  std::string parent_fill, parent_stroke;         // of the element around it
  std::string text;                               // directly inside, entities as written
};

struct Markup {
  std::vector<Element> elements;
  std::string error;  // empty if well-formed
};

/// Reads elements, attributes and text; knows no comments, declarations or namespaces.
Markup read_markup(std::string_view text);

}  // namespace interlock
