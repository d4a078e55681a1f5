// Readers: every reader of outside text, as one function each, for damaged texts to be tried on.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace interlock::fuzz {

/// A text, and the file that holds it: some readers take the one, some the other.
struct Input {
  std::string text, path;
};

/// A reader returns or throws Error; what it makes is thrown away.
struct Reader {
  std::string name;
  std::string ending;  // of the names of its files
  void (*read)(const Input& input);
};
const std::vector<Reader>& readers();

/// A folder of this process alone, in memory if there is such, for one text at a time.
class TextFolder {
 public:
  TextFolder();
  ~TextFolder();
  TextFolder(const TextFolder&) = delete;
  TextFolder& operator=(const TextFolder&) = delete;

  /// Writes `text` to a file and lets `reader` read it. Throws: std::logic_error unless the reader
  /// returns or throws an Error that says something.
  void read(const Reader& reader, const std::string& text) const;

 private:
  std::string path_;
};

}  // namespace interlock::fuzz
