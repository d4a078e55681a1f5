// Markup: a small strict reader of XML, to check that what reports write is well-formed.
// SPDX-License-Identifier: Apache-2.0
#include "tests/reports/support/markup.h"

#include <cctype>

namespace interlock {
namespace {

/// Reads one document from front to back; the first mistake ends it.
class MarkupReader {
 public:
  explicit MarkupReader(std::string_view text) : text_(text) {}

  Markup read() {
    while (document_.error.empty() && at_ < text_.size()) {
      if (text_[at_] != '<') {
        content();
      } else if (text_.substr(at_, 2) == "</") {
        close();
      } else {
        open();
      }
    }
    if (document_.error.empty() && !open_.empty()) fail("an element is never closed");
    return document_;
  }

 private:
  void fail(const std::string& what) {
    document_.error = what + " at byte " + std::to_string(at_);
    at_ = text_.size();
  }

  std::string word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '-')) {
      ++at_;
    }
    return std::string(text_.substr(begin, at_ - begin));
  }

  void blanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }

  bool entities_are_known(std::string_view part) {
    for (std::size_t i = part.find('&'); i != part.npos; i = part.find('&', i + 1)) {
      bool known = false;
      for (const auto entity : {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"}) {
        known |= part.substr(i, std::string_view(entity).size()) == entity;
      }
      if (!known) return false;
    }
    return part.find('<') == part.npos;
  }

  void content() {
    const std::size_t end = std::min(text_.find('<', at_), text_.size());
    const std::string_view part = text_.substr(at_, end - at_);
    if (!entities_are_known(part)) return fail("a bare & in text");
    const bool blank = part.find_first_not_of(" \n") == part.npos;
    if (open_.empty() && !blank) return fail("text outside the document");
    if (!open_.empty()) document_.elements[open_.back()].text += part;
    at_ = end;
  }

  void open() {
    ++at_;
    Element element{.tag = word()};
    if (element.tag.empty()) return fail("no tag after <");
    if (!open_.empty()) {
      const auto& around = document_.elements[open_.back()].attributes;
      if (const auto fill = around.find("fill"); fill != around.end()) {
        element.parent_fill = fill->second;
      }
      if (const auto stroke = around.find("stroke"); stroke != around.end()) {
        element.parent_stroke = stroke->second;
      }
    }
    for (blanks(); at_ < text_.size() && text_[at_] != '>' && text_[at_] != '/'; blanks()) {
      const std::string name = word();
      if (name.empty() || text_.substr(at_, 2) != "=\"") return fail("a bad attribute");
      const std::size_t end = text_.find('"', at_ + 2);
      if (end == text_.npos) return fail("an attribute without end");
      const std::string_view value = text_.substr(at_ + 2, end - at_ - 2);
      if (!entities_are_known(value)) return fail("a bare & or < in an attribute");
      if (!element.attributes.emplace(name, value).second) return fail("an attribute twice");
      at_ = end + 1;
    }
    const bool closed = text_.substr(at_, 2) == "/>";
    at_ += closed ? 2 : 1;
    if (!closed) open_.push_back(document_.elements.size());
    document_.elements.push_back(element);
  }

  void close() {
    at_ += 2;
    const std::string tag = word();
    if (open_.empty() || document_.elements[open_.back()].tag != tag) {
      return fail("</" + tag + "> closes something else");
    }
    open_.pop_back();
    ++at_;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<std::size_t> open_;
  Markup document_;
};

}  // namespace

Markup read_markup(std::string_view text) { return MarkupReader(text).read(); }

}  // namespace interlock
