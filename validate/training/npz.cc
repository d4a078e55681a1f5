// Arrays to bytes; libzip makes the archive.
// SPDX-License-Identifier: Apache-2.0
#include "validate/training/npz.h"

#include <zip.h>

#include <ctime>
#include <memory>

#include "base/error.h"

namespace interlock {

namespace {

static_assert(std::endian::native == std::endian::little, "npy says little-endian");

constexpr std::size_t kHeaderBlock = 64;
constexpr std::time_t kNoTime = 315532800;  // 1980, where the calendar of zip files begins

/// "(2, 3, )", as Python writes a tuple.
std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "(";
  for (const std::int64_t length : shape) text += std::to_string(length) + ", ";
  return text + ")";
}

void require(bool fine, const char* what) {
  if (!fine) throw Error(std::string("the archive of arrays could not be made: ") + what);
}

}  // namespace

std::string npy(const NamedArray& array) {
  std::string header =
      "{'descr': '<f8', 'fortran_order': False, 'shape': " + shape_text(array.shape) + ", }";
  constexpr std::size_t kPrefix = 10;  // magic, version, length of the header
  const std::size_t unpadded = kPrefix + header.size() + 1;
  header.append((kHeaderBlock - unpadded % kHeaderBlock) % kHeaderBlock, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  bytes.append(reinterpret_cast<const char*>(array.values.data()),
               array.values.size() * sizeof(double));
  return bytes;
}

std::string npz(const std::vector<NamedArray>& arrays) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* archive = zip_source_buffer_create(nullptr, 0, 0, &error);
  require(archive != nullptr, zip_error_strerror(&error));
  zip_source_keep(archive);  // outlives the zip, which takes one reference
  const std::unique_ptr<zip_source_t, void (*)(zip_source_t*)> kept(archive, zip_source_free);
  zip_t* zip = zip_open_from_source(archive, ZIP_TRUNCATE, &error);
  require(zip != nullptr, zip_error_strerror(&error));
  std::vector<std::string> contents;  // read when the zip is closed
  contents.reserve(arrays.size());
  for (const NamedArray& array : arrays) {
    contents.push_back(npy(array));
    const std::string& bytes = contents.back();
    zip_source_t* source = zip_source_buffer(zip, bytes.data(), bytes.size(), 0);
    const auto index = zip_file_add(zip, (array.name + ".npy").c_str(), source, ZIP_FL_ENC_UTF_8);
    require(index >= 0, zip_strerror(zip));
    const auto entry = static_cast<zip_uint64_t>(index);
    zip_set_file_compression(zip, entry, ZIP_CM_STORE, 0);
    zip_file_set_mtime(zip, entry, kNoTime, 0);
  }
  require(zip_close(zip) == 0, zip_strerror(zip));
  zip_stat_t size;
  require(zip_source_stat(archive, &size) == 0, "its size is unknown");
  std::string bytes(size.size, '\0');
  require(zip_source_open(archive) == 0, "it cannot be read");
  const zip_int64_t read = zip_source_read(archive, bytes.data(), bytes.size());
  zip_source_close(archive);
  require(read == static_cast<zip_int64_t>(bytes.size()), "it cannot be read whole");
  return bytes;
}

}  // namespace interlock
