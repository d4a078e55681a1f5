// OldLibrary: what the C++ library of Debian's Emscripten lacks of C++20, read before each source.
// SPDX-License-Identifier: Apache-2.0
//
// It is libc++ 13: no double in from_chars and to_chars, no algorithms of std::ranges, no <=> of
// strings and vectors, no bit_cast. Declared here is as much of each as the sources use.
#pragma once

#include <algorithm>
#include <charconv>
#include <compare>
#include <concepts>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace interlock::old_library {
/// Reads a number as std::from_chars does: no blanks, no plus, and no locale.
std::from_chars_result read_number(const char* first, const char* last, double& value);
/// Writes the shortest text that reads back the same, as std::to_chars does.
std::to_chars_result write_number(char* first, char* last, double value);
/// Writes `value` with `digits` significant digits at most, as printf's %g.
std::to_chars_result write_number(char* first, char* last, double value, int digits);
}  // namespace interlock::old_library

namespace std {

template <class Double>
requires same_as<Double, double> from_chars_result from_chars(const char* first, const char* last,
                                                              Double& value) {
  return interlock::old_library::read_number(first, last, value);
}
template <class Double>
requires same_as<Double, double> to_chars_result to_chars(char* first, char* last, Double value) {
  return interlock::old_library::write_number(first, last, value);
}
template <class Double>
requires same_as<Double, double> to_chars_result to_chars(char* first, char* last, Double value,
                                                          chars_format, int digits) {
  return interlock::old_library::write_number(first, last, value, digits);
}

template <class To, class From>
To bit_cast(const From& from) {
  return __builtin_bit_cast(To, from);
}

inline strong_ordering operator<=>(const string& one, const string& other) {
  return one.compare(other) <=> 0;
}
// Its templates are no narrower than those of the library's <, which is therefore still called for
// "one < other"; by a narrower <=> that would be rewritten to call itself without end.
template <class Item, class Allocator>
strong_ordering operator<=>(const vector<Item, Allocator>& one,
                            const vector<Item, Allocator>& other) {
  const auto first_is_less = [](const auto& a, const auto& b) {
    return lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
  };
  return first_is_less(one, other)   ? strong_ordering::less
         : first_is_less(other, one) ? strong_ordering::greater
                                     : strong_ordering::equal;
}

namespace ranges {
template <class Range, class Test>
bool all_of(Range&& range, Test test) {
  return std::all_of(std::begin(range), std::end(range), test);
}
template <class Range, class Test>
bool any_of(Range&& range, Test test) {
  return std::any_of(std::begin(range), std::end(range), test);
}
template <class Range, class Test>
bool none_of(Range&& range, Test test) {
  return std::none_of(std::begin(range), std::end(range), test);
}
template <class Range, class Value>
auto count(Range&& range, const Value& value) {
  return std::count(std::begin(range), std::end(range), value);
}
template <class Range, class Other, class Same>
bool equal(Range&& range, Other&& other, Same same) {
  return std::equal(std::begin(range), std::end(range), std::begin(other), std::end(other), same);
}
template <class Range, class Value, class Key = std::identity>
auto find(Range&& range, const Value& value, Key key = {}) {
  return std::find_if(std::begin(range), std::end(range),
                      [&](const auto& one) { return std::invoke(key, one) == value; });
}
template <class Range, class Test>
auto find_if(Range&& range, Test test) {
  return std::find_if(std::begin(range), std::end(range), test);
}
template <class Range, class Value>
void replace(Range&& range, const Value& old, const Value& value) {
  std::replace(std::begin(range), std::end(range), old, value);
}
template <class Range, class Order = std::less<>, class Key = std::identity>
void sort(Range&& range, Order order = {}, Key key = {}) {
  std::sort(std::begin(range), std::end(range), [&](const auto& one, const auto& other) {
    return order(std::invoke(key, one), std::invoke(key, other));
  });
}
}  // namespace ranges
}  // namespace std
