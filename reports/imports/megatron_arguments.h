// MegatronArguments: what a launch script of Megatron-LM, or a list of its settings, hands over.
// SPDX-License-Identifier: Apache-2.0
//
// Read are `--name value` wherever they stand (in commands, in arrays and quoted variables of a
// shell), `--name=value`, and lines `name: value`. Names may have underscores for dashes. Variables
// that the file sets are put in; nothing is executed. Of what is said twice the last counts.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"

namespace interlock {

class MegatronArguments {
 public:
  /// `file` is what messages call it.
  MegatronArguments(const std::string& text, std::string file);

  /// Returns true if the flag was given; a value of false or 0 takes it back. Marks the name as
  /// known.
  bool flag(const std::string& name);
  std::optional<std::string> text(const std::string& name);
  /// A whole number of at least 0; anything else is a mistake.
  std::optional<int> count(const std::string& name);
  std::optional<double> number(const std::string& name);
  /// As count; its absence is a mistake, and 1.
  int required(const std::string& name);

  /// A mistake where `name` was said, or at the file.
  void refuse(const std::string& name, const std::string& message);
  /// Names that were said and never asked for, sorted.
  std::vector<std::string> unused() const;
  Diagnostics& diagnostics() { return diagnostics_; }

 private:
  struct Said {
    std::string value;  // the first word behind the name
    int line = 1;
  };
  void add_line(const std::string& line, int number);
  void add_words(const std::vector<std::string>& words, int number);
  std::string filled_in(const std::string& word) const;
  const Said* find(const std::string& name);

  std::string file_;
  std::map<std::string, Said> said_;
  std::map<std::string, std::string> variables_;
  std::set<std::string> asked_;
  std::string open_;  // the name whose value may follow
  Diagnostics diagnostics_;
};

}  // namespace interlock
