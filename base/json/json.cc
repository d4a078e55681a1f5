// Builds the tree of JsonValues from the events of the JSON library's parser.
// SPDX-License-Identifier: Apache-2.0
#include "base/json/json.h"

#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "base/file.h"
#include "base/json/malformed.h"
#include "base/text.h"

namespace interlock {
namespace {

constexpr std::size_t kLargestText = std::size_t{64} << 20;
constexpr std::size_t kDeepest = 64;
constexpr std::size_t kMostValues = 2'000'000;  // a value takes more memory than its text

using Library = nlohmann::json;

/// How far the parser has read.
struct Cursor {
  std::size_t read = 0;  // characters
  int line = 1;          // of the last of them
};

/// Hands the text to the parser and counts lines on the way. At each event the last character read
/// is the token's own last or, after a number, the one behind it. That may be a line feed, which
/// still belongs to the number's line; hence a line begins with the character after it.
class CountingIterator {
 public:
  using difference_type = std::ptrdiff_t;
  using value_type = char;
  using pointer = const char*;
  using reference = const char&;
  using iterator_category = std::input_iterator_tag;

  CountingIterator(const char* at, Cursor* cursor) : at_(at), cursor_(cursor) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    if (cursor_->read > 0 && at_[-1] == '\n') ++cursor_->line;
    ++cursor_->read;
    ++at_;
    return *this;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  Cursor* cursor_;
};

/// Receives the parser's events. Duplicate keys are collected, other mistakes end the parse.
class TreeBuilder {
 public:
  TreeBuilder(std::string_view text, const std::string& file, const Cursor* cursor)
      : text_(text), file_(std::make_shared<const std::string>(file)), cursor_(cursor) {}

  bool null() { return leaf({.kind = JsonValue::Kind::Null}); }
  bool boolean(bool value) { return leaf({.kind = JsonValue::Kind::Boolean, .boolean = value}); }
  bool number_integer(Library::number_integer_t value) {
    return number(static_cast<double>(value));
  }
  bool number_unsigned(Library::number_unsigned_t value) {
    return number(static_cast<double>(value));
  }
  bool number_float(double value, const std::string&) { return number(value); }
  bool string(std::string& value) {
    return leaf({.kind = JsonValue::Kind::String, .text = std::move(value)});
  }
  bool binary(Library::binary_t&) { return false; }
  bool start_object(std::size_t) {
    return open({.kind = JsonValue::Kind::Object}, LastParsed::ObjectStart);
  }
  bool start_array(std::size_t) {
    return open({.kind = JsonValue::Kind::Array}, LastParsed::ArrayStart);
  }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& name);
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& why);

  /// Returns the whole document, once the parse has ended. Throws: Error if any mistake was found.
  JsonValue finish();

 private:
  struct Level {
    JsonValue* value;  // only the innermost value grows, so these stay where they are
    std::unordered_map<std::string, int> key_lines;
  };

  JsonValue& add(JsonValue value);
  bool leaf(JsonValue value);
  bool number(double value);
  bool open(JsonValue value, LastParsed as);
  bool close();
  void parsed(LastParsed last);
  LastParsed after_value() const;
  bool has_room();  // for one more value; else that is reported
  bool refuse(std::string_view message);
  std::string path_of_object() const;  // the innermost, or array
  std::string path_of_next() const;    // the value about to be added

  std::string_view text_;
  std::shared_ptr<const std::string> file_;
  const Cursor* cursor_;
  JsonValue document_;
  std::vector<Level> levels_;
  std::size_t values_ = 0;
  int key_line_ = 0;
  std::size_t end_ = 0;  // of the last event in the text
  LastParsed last_ = LastParsed::Nothing;
  Diagnostics diagnostics_;
};

JsonValue& TreeBuilder::add(JsonValue value) {
  ++values_;
  value.file = file_;
  value.line = cursor_->line;
  if (levels_.empty()) return document_ = std::move(value);
  JsonValue& parent = *levels_.back().value;
  if (parent.kind == JsonValue::Kind::Array) return parent.items.emplace_back(std::move(value));
  value.line = key_line_;
  return parent.members.back().second = std::move(value);
}

bool TreeBuilder::leaf(JsonValue value) {
  if (!has_room()) return false;
  add(std::move(value));
  parsed(after_value());
  return true;
}

bool TreeBuilder::number(double value) {
  const bool go_on = leaf({.kind = JsonValue::Kind::Number, .number = value});
  const char last_read = text_[cursor_->read - 1];
  const bool in_number = cursor_->read == text_.size() && last_read >= '0' && last_read <= '9';
  if (!in_number) --end_;
  return go_on;
}

bool TreeBuilder::open(JsonValue value, LastParsed as) {
  if (!has_room()) return false;
  if (levels_.size() == kDeepest) {
    return refuse("nested too deeply; expected at most " + std::to_string(kDeepest) + " levels");
  }
  JsonValue& added = add(std::move(value));
  levels_.push_back({&added, {}});
  parsed(as);
  return true;
}

bool TreeBuilder::close() {
  levels_.pop_back();
  parsed(after_value());
  return true;
}

bool TreeBuilder::key(std::string& name) {
  Level& level = levels_.back();
  key_line_ = cursor_->line;
  const auto [first, is_new] = level.key_lines.emplace(name, key_line_);
  if (!is_new) {
    diagnostics_.add(*file_, key_line_, diagnostics_.full() ? "" : path_of_object(),
                     "duplicate key " + in_quotes(name) + "; expected it once, but line " +
                         std::to_string(first->second) + " has it too");
  }
  level.value->members.push_back({std::move(name), JsonValue{}});
  parsed(LastParsed::Key);
  return true;
}

bool TreeBuilder::parse_error(std::size_t, const std::string&,
                              const nlohmann::detail::exception& why) {
  constexpr int kNumberOverflow = 406;
  if (why.id == kNumberOverflow) return refuse("a number is too large; expected at most 1.79e308");
  const Malformed found = describe_malformed(text_, end_, last_);
  diagnostics_.add(*file_, line_at(text_, found.offset), "", found.message);
  return false;
}

void TreeBuilder::parsed(LastParsed last) {
  last_ = last;
  end_ = cursor_->read;
}

LastParsed TreeBuilder::after_value() const {
  if (levels_.empty()) return LastParsed::Document;
  const bool in_array = levels_.back().value->kind == JsonValue::Kind::Array;
  return in_array ? LastParsed::Item : LastParsed::Member;
}

bool TreeBuilder::has_room() {
  if (values_ == kMostValues) {
    return refuse("too many values; expected at most " + std::to_string(kMostValues));
  }
  return true;
}

bool TreeBuilder::refuse(std::string_view message) {
  diagnostics_.add(*file_, cursor_->line, path_of_next(), message);
  return false;
}

std::string TreeBuilder::path_of_object() const {
  std::string path;
  for (std::size_t i = 0; i + 1 < levels_.size(); ++i) {
    const JsonValue& value = *levels_[i].value;
    const bool in_array = value.kind == JsonValue::Kind::Array;
    path = json_pointer(
        path, in_array ? std::to_string(value.items.size() - 1) : value.members.back().first);
  }
  return path;
}

std::string TreeBuilder::path_of_next() const {
  if (levels_.empty()) return "";
  const JsonValue& value = *levels_.back().value;
  const bool in_array = value.kind == JsonValue::Kind::Array;
  return json_pointer(path_of_object(),
                      in_array ? std::to_string(value.items.size()) : value.members.back().first);
}

JsonValue TreeBuilder::finish() {
  diagnostics_.throw_if_any();
  return std::move(document_);
}

void refuse_text(const std::string& file, int line, std::string_view message) {
  Diagnostics diagnostics;
  diagnostics.add(file, line, "", message);
  diagnostics.throw_if_any();
}

}  // namespace

JsonValue parse_json(std::string_view text, const std::string& file) {
  if (text.size() > kLargestText) refuse_text(file, 0, "too large; expected at most 64 MiB");
  if (const std::optional<Malformed> bad = find_bad_byte(text)) {
    refuse_text(file, line_at(text, bad->offset), bad->message);
  }
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());

  Cursor cursor;
  TreeBuilder builder(text, file, &cursor);
  const CountingIterator begin(text.data(), &cursor);
  const CountingIterator end(text.data() + text.size(), &cursor);
  constexpr bool kStrict = true;
  constexpr bool kComments = true;
  Library::sax_parse(begin, end, &builder, Library::input_format_t::json, kStrict, kComments);
  return builder.finish();
}

JsonValue read_json_file(const std::string& path) {
  return parse_json(read_file(path, kLargestText), path);
}

}  // namespace interlock
