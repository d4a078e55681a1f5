// Follows the JSON library's events and keeps the fields of one trace event.
// SPDX-License-Identifier: Apache-2.0
#include "reports/kineto/event_parser.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/error.h"

namespace interlock {
namespace {

using Library = nlohmann::json;

constexpr double kMostMicros = 9e15;  // as nanoseconds they still are a whole number of 64 bits

/// The longest name or number, in bytes. The JSON library holds one of them at a time.
constexpr std::size_t kLongestToken = std::size_t{16} << 20;

/// The text, a character at a time; of spaces in a row, which the library would hold, the first.
class Characters {
 public:
  Characters(const TextPieces& pieces, const std::string& file) : pieces_(pieces), file_(file) {}
  bool more() {
    if (left_.empty() && !ended_) {
      left_ = pieces_();
      ended_ = left_.empty();
    }
    return !ended_;
  }
  char front() const { return left_.front(); }
  void drop() {
    follow(left_.front());
    take();
    while (!in_text_ && spaces_ && more() && is_space(left_.front())) take();
  }
  std::size_t read() const { return read_; }

 private:
  static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
  void take() {
    left_.remove_prefix(1);
    ++read_;
  }
  /// Notes whether the characters after `c` are those of a text, of spaces, or of what token.
  void follow(char c) {
    const bool quote = c == '"' && !escaped_;
    escaped_ = in_text_ && c == '\\' && !escaped_;
    if (quote) in_text_ = !in_text_;
    spaces_ = is_space(c);
    const bool between = !in_text_ && (spaces_ || c == ',' || c == ':' || quote);
    token_ = between ? 0 : token_ + 1;
    if (token_ <= kLongestToken) return;
    throw Error(file_ + ": a name or number of more than " + std::to_string(kLongestToken >> 20) +
                " MiB ends at byte " + std::to_string(read_) +
                " or later; expected a trace of torch.profiler");
  }

  const TextPieces& pieces_;
  const std::string& file_;
  bool in_text_ = false, escaped_ = false, spaces_ = false;
  std::size_t token_ = 0;  // bytes of the one that goes on
  std::string_view left_;
  std::size_t read_ = 0;
  bool ended_ = false;
};

/// The iterator of the parser; without characters it is the end.
class CharacterIterator {
 public:
  using difference_type = std::ptrdiff_t;
  using value_type = char;
  using pointer = const char*;
  using reference = char;
  using iterator_category = std::input_iterator_tag;

  explicit CharacterIterator(Characters* from) : from_(from) {}
  reference operator*() const { return from_->front(); }
  CharacterIterator& operator++() {
    from_->drop();
    return *this;
  }
  bool operator==(const CharacterIterator& other) const { return more() == other.more(); }
  bool operator!=(const CharacterIterator& other) const { return more() != other.more(); }

 private:
  bool more() const { return from_ != nullptr && from_->more(); }
  Characters* from_;
};

/// Decimal microseconds as nanoseconds. A double would not do: profilers count microseconds since
/// 1970, of which it keeps quarters.
std::optional<std::int64_t> nanoseconds_of(std::string_view digits) {
  if (digits.find_first_not_of("0123456789.+-eE") != std::string_view::npos) return std::nullopt;
  const double micros = std::strtod(std::string(digits).c_str(), nullptr);
  if (!(std::abs(micros) < kMostMicros)) return std::nullopt;
  if (digits.find_first_of("eE") != std::string_view::npos) return std::llround(micros * 1e3);
  const bool negative = digits.starts_with('-');
  if (negative) digits.remove_prefix(1);
  std::int64_t value = 0;
  int decimals = -1;  // seen so far; before the point: -1
  for (const char digit : digits) {
    if (digit == '.') {
      decimals = 0;
    } else if (decimals < 3) {
      value = value * 10 + (digit - '0');
      if (decimals >= 0) ++decimals;
    } else {
      if (digit >= '5') ++value;
      break;
    }
  }
  for (int i = std::max(decimals, 0); i < 3; ++i) value *= 10;
  return negative ? -value : value;
}

std::int64_t whole_of(const std::string& digits) {
  std::int64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

using Set = void (*)(ParsedEvent&, const std::string&);
using Fields = std::unordered_map<std::string, Set>;

const Fields& event_fields() {
  static const Fields fields = {
      {"ph", [](auto& event, const auto& text) { event.phase = text; }},
      {"cat", [](auto& event, const auto& text) { event.category = text; }},
      {"name", [](auto& event, const auto& text) { event.name = text; }},
      {"pid", [](auto& event, const auto& text) { event.process = text; }},
      {"tid", [](auto& event, const auto& text) { event.thread = text; }},
      {"ts", [](auto& event, const auto& text) { event.start = nanoseconds_of(text); }},
      {"dur", [](auto& event, const auto& text) { event.duration = nanoseconds_of(text); }}};
  return fields;
}

const Fields& argument_fields() {
  static const Fields fields = {
      {"stream", [](auto& event, const auto& text) { event.stream = text; }},
      {"device", [](auto& event, const auto& text) { event.device = text; }},
      {"correlation", [](auto& event, const auto& text) { event.correlation = whole_of(text); }},
      {"External id", [](auto& event, const auto& text) { event.external = whole_of(text); }},
      {"external id", [](auto& event, const auto& text) { event.external = whole_of(text); }},
      {"Sequence number", [](auto& event, const auto& text) { event.sequence = whole_of(text); }},
      {"Fwd thread id",
       [](auto& event, const auto& text) { event.forward_thread = whole_of(text); }},
      {"dtype", [](auto& event, const auto& text) { event.type = text; }},
      {"In msg nelems",
       [](auto& event, const auto& text) {
         event.elements_in = std::strtod(text.c_str(), nullptr);
       }},
      {"Out msg nelems",
       [](auto& event, const auto& text) {
         event.elements_out = std::strtod(text.c_str(), nullptr);
       }},
      {"bytes",
       [](auto& event, const auto& text) { event.bytes = std::strtod(text.c_str(), nullptr); }}};
  return fields;
}

/// Receives the parser's events.
class TraceParser {
 public:
  TraceParser(const std::string& file, Characters& text,
              const std::function<void(const ParsedEvent&)>& take)
      : file_(file), text_(text), take_(take) {}

  bool null() { return true; }
  bool boolean(bool) { return true; }
  bool number_integer(Library::number_integer_t value) { return number(std::to_string(value)); }
  bool number_unsigned(Library::number_unsigned_t value) { return number(std::to_string(value)); }
  bool number_float(double, const std::string& digits) { return number(digits); }
  bool string(std::string& text) { return value(text); }
  bool binary(Library::binary_t&) { return false; }
  bool key(std::string& name) {
    if (skipped_ == 0) key_.swap(name);
    return true;
  }
  bool start_object(std::size_t) {
    if (skipped_ > 0 || !enter_object()) ++skipped_;
    return true;
  }
  bool end_object() {
    leave();
    return true;
  }
  bool start_array(std::size_t) {
    if (skipped_ > 0 || !enter_array()) ++skipped_;
    return true;
  }
  bool end_array() {
    leave();
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) {
    const std::string bytes = std::to_string(text_.read());
    if (text_.read() == 0) throw Error(file_ + ": is empty; expected a trace of torch.profiler");
    if (!text_.more()) {
      throw Error(file_ + ": is cut off after " + bytes + " bytes; expected a whole trace");
    }
    throw Error(file_ + ": is no JSON at byte " + bytes + "; expected a trace of torch.profiler");
  }

  bool is_trace() const { return found_; }
  std::optional<int> rank() const { return rank_; }

 private:
  /// The place of the innermost value that is not skipped.
  enum class Place { Outside, Root, Events, Event, Arguments, Distributed };

  bool enter_object() {
    if (place_ == Place::Outside && !found_) return go(Place::Root);
    if (place_ == Place::Root && key_ == "distributedInfo") return go(Place::Distributed);
    if (place_ == Place::Event && key_ == "args") return go(Place::Arguments);
    if (place_ != Place::Events) return false;
    event_ = ParsedEvent();
    return go(Place::Event);
  }
  bool enter_array() {
    const bool bare = place_ == Place::Outside && !found_;
    if (!bare && !(place_ == Place::Root && key_ == "traceEvents")) return false;
    bare_ = bare;
    found_ = true;
    return go(Place::Events);
  }
  bool go(Place place) {
    place_ = place;
    return true;
  }
  void leave() {
    if (skipped_ > 0) {
      --skipped_;
    } else if (place_ == Place::Arguments) {
      place_ = Place::Event;
    } else if (place_ == Place::Event) {
      take_(event_);
      place_ = Place::Events;
    } else if (place_ == Place::Distributed || (place_ == Place::Events && !bare_)) {
      place_ = Place::Root;
    } else {
      place_ = Place::Outside;
    }
  }

  bool number(const std::string& digits) { return value(digits); }
  bool value(const std::string& text) {
    if (skipped_ > 0) return true;
    if (place_ == Place::Distributed && key_ == "rank") rank_ = static_cast<int>(whole_of(text));
    if (place_ != Place::Event && place_ != Place::Arguments) return true;
    const Fields& fields = place_ == Place::Event ? event_fields() : argument_fields();
    if (const auto field = fields.find(key_); field != fields.end()) field->second(event_, text);
    return true;
  }

  const std::string& file_;
  Characters& text_;
  const std::function<void(const ParsedEvent&)>& take_;
  Place place_ = Place::Outside;
  int skipped_ = 0;  // levels of values that are skipped
  bool found_ = false, bare_ = false;
  std::string key_;
  ParsedEvent event_;
  std::optional<int> rank_;
};

}  // namespace

std::optional<int> parse_events(const TextPieces& text, const std::string& file,
                                const std::function<void(const ParsedEvent&)>& take) {
  Characters characters(text, file);
  TraceParser parser(file, characters, take);
  Library::sax_parse(CharacterIterator(&characters), CharacterIterator(nullptr), &parser);
  if (!parser.is_trace()) {
    throw Error(
        file +
        ": is no trace, since it has no \"traceEvents\"; expected a file that torch.profiler "
        "exported");
  }
  return parser.rank();
}

}  // namespace interlock
