// WireFormat: protobuf's bytes taken apart and put together by hand, without protobuf.
// SPDX-License-Identifier: Apache-2.0
//
// From the public description of the encoding: a message is a row of fields, each a varint of
// number * 8 + type, then a varint (type 0), 8 bytes (1), a length and that number of bytes (2) or
// 4 bytes (5). Varints hold 7 bits a byte, the lowest first, and all but the last byte have the 8th
// set.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace interlock {

inline std::uint64_t take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    REQUIRE(!bytes.empty());
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}

inline std::string take_bytes(std::string_view& bytes, std::size_t count) {
  REQUIRE(bytes.size() >= count);
  std::string taken(bytes.substr(0, count));
  bytes.remove_prefix(count);
  return taken;
}

/// The messages of a file.
inline std::vector<std::string> split_file(std::string_view bytes) {
  std::vector<std::string> messages;
  while (!bytes.empty()) {
    const std::uint64_t length = take_varint(bytes);
    messages.push_back(take_bytes(bytes, length));
  }
  return messages;
}

struct WireField {
  std::uint64_t number = 0;  // of type 0
  std::string bytes;         // of the others
};
using WireMessage = std::multimap<int, WireField>;

inline WireMessage split_message(std::string_view bytes) {
  WireMessage fields;
  while (!bytes.empty()) {
    const std::uint64_t key = take_varint(bytes);
    WireField field;
    switch (key & 7) {
      case 0:
        field.number = take_varint(bytes);
        break;
      case 1:
        field.bytes = take_bytes(bytes, 8);
        break;
      case 2: {
        const std::uint64_t length = take_varint(bytes);
        field.bytes = take_bytes(bytes, length);
        break;
      }
      default:
        REQUIRE((key & 7) == 5);
        field.bytes = take_bytes(bytes, 4);
    }
    fields.emplace(static_cast<int>(key >> 3), field);
  }
  return fields;
}

inline std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7f) | 0x80);
  return bytes + static_cast<char>(value);
}
inline std::string varint_field(int field, std::uint64_t value) {
  return varint(static_cast<std::uint64_t>(field) * 8) + varint(value);
}
inline std::string bytes_field(int field, const std::string& bytes) {
  return varint(static_cast<std::uint64_t>(field) * 8 + 2) + varint(bytes.size()) + bytes;
}
inline std::string delimited(const std::string& message) {
  return varint(message.size()) + message;
}
/// Fields of type 2 that hold several numbers.
inline std::string packed(const std::vector<std::uint64_t>& numbers) {
  std::string bytes;
  for (const std::uint64_t number : numbers) bytes += varint(number);
  return bytes;
}
inline std::vector<std::uint64_t> varints_of(std::string_view bytes) {
  std::vector<std::uint64_t> numbers;
  while (!bytes.empty()) numbers.push_back(take_varint(bytes));
  return numbers;
}
inline double number_of(const std::string& bytes) {
  double value = 0;
  REQUIRE(bytes.size() == sizeof value);
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

}  // namespace interlock
