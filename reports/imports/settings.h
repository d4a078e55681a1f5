// Settings: what a file of another program sets, by name, and what became of each name.
// SPDX-License-Identifier: Apache-2.0
//
// Every name ends in one of four places: asked for and used; remarked on, since it matters and is
// taken as something else or left out; known to change neither time nor memory; or unknown. The
// last value of a name counts.
//
// Example: {"tensor-model-parallel-size": "2", "lr": "1e-4", "tp-comm-overlap": ""} of Megatron-LM.
// count("tensor-model-parallel-size") is 2 and used; "lr" is without effect; "tp-comm-overlap" has
// a remark, unless it was asked for.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"

namespace interlock {

struct NameBearing {
  enum Kind { None, Matters, Unknown };
  Kind kind = Unknown;
  std::string why = {};  // Matters: in which way the prediction is off
};

class Settings {
 public:
  /// Says how a name that was not asked for stands to the time and memory of a step.
  using Bearing = NameBearing (*)(const std::string& name);
  /// `file` is what messages call it, `prefix` what they put before names that it does not say.
  Settings(std::string file, Bearing bearing, std::string prefix = "")
      : file_(std::move(file)), prefix_(std::move(prefix)), bearing_(bearing) {}

  /// Sets `name` on line `line` of the file. `shown`: what messages call it.
  void say(const std::string& name, const std::string& value, int line, const std::string& shown);
  /// Adds a word to the value of `name`. REQUIRES: it was said.
  void add_word(const std::string& name, const std::string& word);

  bool has(const std::string& name) const { return said_.count(name) > 0; }
  /// Returns true if the flag was given; a value of false or 0 takes it back. Marks the name as
  /// used.
  bool flag(const std::string& name);
  std::optional<std::string> text(const std::string& name);
  /// Returns all words behind the name, without brackets and commas.
  std::vector<std::string> words(const std::string& name);
  /// Returns a whole number of at least 0; adds a diagnostic for anything else.
  std::optional<int> count(const std::string& name);
  std::optional<double> number(const std::string& name);
  /// Returns count(), or 1 with a diagnostic where the name was not said.
  int required(const std::string& name);

  /// Adds a diagnostic where `name` was said, or at the start of the file.
  void refuse(const std::string& name, const std::string& message);
  /// Tells that `name` is taken as something else, or left out though it matters.
  void remark(const std::string& name, const std::string& message);

  struct Remark {
    std::string name, message;
  };
  /// Returns all remarks, those on names that matter and were never asked for among them.
  std::vector<Remark> remarks() const;
  /// Returns the names that change neither time nor memory, sorted.
  std::vector<std::string> unused() const;
  /// Returns the names that are not known here, sorted.
  std::vector<std::string> unknown() const;
  Diagnostics& diagnostics() { return diagnostics_; }
  const std::string& file() const { return file_; }

 private:
  struct Said {
    std::vector<std::string> words;
    int line = 1;
    std::string shown;
  };
  const Said* find(const std::string& name);
  std::string shown(const std::string& name) const;

  std::string file_, prefix_;
  Bearing bearing_;
  std::map<std::string, Said> said_;
  std::set<std::string> asked_;
  std::vector<Remark> remarks_;
  Diagnostics diagnostics_;
};

}  // namespace interlock
