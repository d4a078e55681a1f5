// Archives of arrays: the format byte by byte, and what Python makes of them where it is there.
// SPDX-License-Identifier: Apache-2.0
#include "validate/training/npz.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "base/file.h"

namespace interlock::npz_test {

TEST_CASE("an array is magic, version, a header that ends at a multiple of 64, and values") {
  const std::string bytes = npy({"a", {2, 3}, {1, 2, 3, 4, 5, 6}});
  CHECK(bytes.substr(0, 8) == std::string("\x93NUMPY\x01\x00", 8));
  const std::size_t header =
      static_cast<unsigned char>(bytes[8]) + 256u * static_cast<unsigned char>(bytes[9]);
  CHECK((10 + header) % 64 == 0);
  CHECK(bytes[10 + header - 1] == '\n');
  CHECK(bytes.find("'shape': (2, 3, )") != std::string::npos);
  double last = 0;
  std::memcpy(&last, bytes.data() + bytes.size() - sizeof last, sizeof last);
  CHECK(last == 6);
  CHECK(bytes.size() == 10 + header + 6 * sizeof(double));
}

TEST_CASE("an archive is the same every time, and holds its arrays as they are") {
  const std::vector<NamedArray> arrays = {{"weights/block0.bias", {2}, {0.5, -1}},
                                          {"empty", {0, 4}, {}}};
  const std::string bytes = npz(arrays);
  CHECK(bytes == npz(arrays));
  CHECK(bytes.substr(0, 2) == "PK");
  CHECK(bytes.find("weights/block0.bias.npy") != std::string::npos);
  CHECK(bytes.find(npy(arrays[0])) != std::string::npos);  // stored, not compressed
}

TEST_CASE("Python's zipfile finds the archive whole" *
          doctest::skip(std::system("command -v python3 >/dev/null 2>&1") != 0)) {
  const std::string path = "npz_test." + std::to_string(getpid()) + ".npz";
  write_file(path, npz({{"weights/a", {2, 2}, {1, 2, 3, 4}}, {"b", {1}, {7}}}));
  const std::string check =
      "python3 -c \"import zipfile; z = zipfile.ZipFile('" + path +
      "'); assert z.testzip() is None; assert z.namelist() == ['weights/a.npy', 'b.npy']\"";
  CHECK(std::system(check.c_str()) == 0);
  unlink(path.c_str());
}

}  // namespace interlock::npz_test
