// A row as bytes: its number, its cells with a letter for their kind each, its details.
// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "base/error.h"
#include "reports/sweeps/sweep_row.h"

namespace interlock {
namespace {

class Packer {
 public:
  template <class Number>
  void number(Number value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(const std::string& text) {
    number(text.size());
    bytes_ += text;
  }
  void cell(const SqlValue& cell) {
    number(static_cast<char>(cell.index()));
    if (const auto* whole = std::get_if<std::int64_t>(&cell)) number(*whole);
    if (const auto* real = std::get_if<double>(&cell)) number(*real);
    if (const auto* words = std::get_if<std::string>(&cell)) text(*words);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : bytes_(bytes) {}
  template <class Number>
  Number number() {
    Number value;
    CHECK(bytes_.size() >= sizeof value, "a row is shorter than it says");
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_.remove_prefix(sizeof value);
    return value;
  }
  std::string text() {
    const auto size = number<std::size_t>();
    CHECK(bytes_.size() >= size, "a row is shorter than it says");
    std::string text(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
    return text;
  }
  SqlValue cell() {
    switch (number<char>()) {
      case 1:
        return number<std::int64_t>();
      case 2:
        return number<double>();
      case 3:
        return text();
      default:
        return {};
    }
  }

 private:
  std::string_view bytes_;
};

}  // namespace

std::string packed(const SweepRow& row) {
  Packer packer;
  packer.number(row.id);
  packer.number(row.cells.size());
  for (const SqlValue& cell : row.cells) packer.cell(cell);
  packer.text(row.details);
  return packer.take();
}

SweepRow unpacked(std::string_view bytes) {
  Unpacker unpacker(bytes);
  SweepRow row;
  row.id = unpacker.number<std::size_t>();
  row.cells.resize(unpacker.number<std::size_t>());
  for (SqlValue& cell : row.cells) cell = unpacker.cell();
  row.details = unpacker.text();
  return row;
}

}  // namespace interlock
