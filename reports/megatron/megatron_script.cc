// Megatron script: finds names and values in a launch script.
// SPDX-License-Identifier: Apache-2.0
#include "reports/megatron/megatron_script.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "base/error.h"
#include "reports/megatron/shell_values.h"

namespace interlock {
namespace {

/// Longest value that variables may make of a word.
constexpr std::size_t kLongestWord = 100'000;

std::string dashed(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_word(char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_'; }

/// Returns where the name that begins at `from` ends; `from` itself if none begins there. Numbers
/// are names of what a script is called with.
std::size_t name_end(const std::string& text, std::size_t from, bool dashes) {
  std::size_t end = from;
  while (end < text.size() && (is_word(text[end]) || (dashes && text[end] == '-'))) ++end;
  if (end == from || is_letter(text[from])) return end;
  const bool number = text.find_first_not_of("0123456789", from) >= end;
  return !dashes && (text[from] == '_' || number) ? end : from;
}

/// Returns `line` without quotes, line continuations, and what stands behind a # that begins a
/// word.
std::string plain(const std::string& line) {
  std::string kept;
  for (const char c : line) {
    if (c == '#' && (kept.empty() || kept.back() == ' ')) break;
    if (c == '"' || c == '\'') continue;
    kept += c == '\t' || c == '\r' ? ' ' : c;
  }
  while (!kept.empty() && (kept.back() == ' ' || kept.back() == '\\')) kept.pop_back();
  return kept;
}

std::vector<std::string> shell_words(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

/// "cat <<EOT > file" begins lines for a file, which end with "EOT"; that word, or nothing.
std::string end_of_document(const std::string& line) {
  const std::size_t at = line.find("<<");
  if (at == line.npos || line.compare(at, 3, "<<<") == 0 || line.find("((") < at) return "";
  const std::size_t from = line.find_first_not_of(" -", at + 2);
  return from == line.npos ? "" : line.substr(from, name_end(line, from, false) - from);
}

/// Which lines of a script run, by its "if", "elif", "else" and "fi". Where a test is not known,
/// all branches are read, as the values of the last then hold.
class Branches {
 public:
  /// Says whether lines here are read.
  bool read() const { return open_.empty() || open_.back().read; }
  void begin(std::optional<bool> holds) {
    const bool outer = read();
    open_.push_back({outer, holds == true, outer && holds.value_or(true)});
  }
  /// "elif"; for "else", a test that is not known.
  void other(std::optional<bool> holds) {
    if (open_.empty()) return;
    Branch& branch = open_.back();
    branch.read = branch.outer && !branch.taken && holds.value_or(true);
    branch.taken = branch.taken || holds == true;
  }
  void end() {
    if (!open_.empty()) open_.pop_back();
  }

 private:
  struct Branch {
    bool outer, taken, read;
  };
  std::vector<Branch> open_;
};

class Script {
 public:
  explicit Script(Settings& settings) : settings_(settings) {}
  void add_line(const std::string& line, int number);

 private:
  bool add_branch(const std::string& line, int number);
  void add_statement(const std::string& line, int number);
  void add_words(const std::vector<std::string>& words, int number);
  void add_word(const std::string& word, int number);
  void say(const std::string& name, const std::string& value, int number) {
    settings_.say(name, value, number, "--" + name);
  }
  std::string assigned(const std::string& word);
  std::string value_of(const std::string& name, const std::string& rest,
                       const std::string& written) const;
  std::string filled_in(const std::string& word) const;

  Settings& settings_;
  int line_ = 0;
  std::map<std::string, std::string> variables_;
  std::string open_;      // the name whose values may follow
  bool array_ = false;    // words up to a ")" are those of an array
  std::string document_;  // the word that ends lines for a file
  Branches branches_;
};

/// Returns true if `word` closes a bracket that it does not open.
bool closes_array(const std::string& word) {
  return word.ends_with(')') && std::ranges::count(word, ')') > std::ranges::count(word, '(');
}

void Script::add_line(const std::string& line, int number) {
  line_ = number;
  if (!document_.empty()) {
    if (shell_words(line) == std::vector{document_}) document_.clear();
    return;
  }
  document_ = end_of_document(line);
  if (add_branch(line, number) || !branches_.read()) return;
  add_statement(line, number);
}

/// Follows "if TEST; then ...", "elif", "else" and "fi"; false if the line is none of them.
bool Script::add_branch(const std::string& line, int number) {
  const std::vector<std::string> words = shell_words(line.substr(0, line.find(';')));
  if (words.empty()) return false;
  const std::string& first = words.front();
  if (first == "if" || first == "elif") {
    const std::size_t from = line.find(first) + first.size();
    const auto holds =
        shell_condition(with_arithmetic(filled_in(line.substr(from, line.find(';', from) - from))));
    first == "if" ? branches_.begin(holds) : branches_.other(holds);
  } else if (first == "else") {
    branches_.other(std::nullopt);
  } else if (first == "fi") {
    branches_.end();
  } else if (first != "then") {
    return false;
  }
  open_.clear();
  const std::size_t next = line.find(';');
  const bool tests = first == "if" || first == "elif" || first == "fi";
  const std::string rest =
      tests ? (next == line.npos ? "" : line.substr(next + 1))
            : line.substr(std::min(line.size(), line.find(first) + first.size()));
  if (!rest.empty()) {
    std::istringstream statements(rest);
    for (std::string one; std::getline(statements, one, ';');) add_line(one, number);
  }
  return true;
}

/// A line is `name: value`, or words of a shell.
void Script::add_statement(const std::string& line, int number) {
  std::size_t start = std::min(line.find_first_not_of(' '), line.size());
  if (line.compare(start, 2, "--") == 0) start += 2;
  const std::size_t end = name_end(line, start, true);
  const std::size_t value = end < line.size() ? line.find_first_not_of(' ', end + 1) : line.npos;
  if (end > start && line[end] == ':' && value != line.npos && value > end + 1) {
    say(dashed(line.substr(start, end - start)), filled_in(line.substr(value)), number);
    open_.clear();
    return;
  }
  const bool sums = line.find("$((") != line.npos;
  add_words(shell_words(sums ? with_arithmetic(filled_in(line)) : line), number);
}

/// Keeps the value of NAME=VALUE, or adds that of NAME+=VALUE, and returns it, as an array or a
/// text of arguments may begin there; returns another word as it is.
std::string Script::assigned(const std::string& word) {
  const std::size_t end = name_end(word, 0, false);
  const bool adds = word.compare(std::min(end, word.size()), 2, "+=") == 0;
  const std::size_t equals = end + (adds ? 1 : 0);
  if (end == 0 || equals >= word.size() || word[equals] != '=') return word;
  array_ = word.compare(equals, 2, "=(") == 0;
  open_.clear();
  std::string value = filled_in(word.substr(equals + (array_ ? 2 : 1)));
  const std::string name = word.substr(0, end);
  std::string& variable = variables_[name];
  variable = adds ? variable + value : value;
  if (name == "CUDA_LAUNCH_BLOCKING") settings_.say("cuda-launch-blocking", value, line_, name);
  return value;
}

void Script::add_words(const std::vector<std::string>& words, int number) {
  for (const std::string& written : words) {
    std::string word = assigned(written);
    const bool last = word == ")" || (array_ && closes_array(word));
    if (last) word.pop_back();
    add_word(word, number);
    if (!last) continue;
    open_.clear();
    array_ = false;
  }
}

/// Keeps "--name" as what the next words are values of, or "--name=value"; adds another word to the
/// values of the last name.
void Script::add_word(const std::string& word, int number) {
  if (word.ends_with(".py")) say("script", word, number);
  const std::size_t end = word.starts_with("--") ? name_end(word, 2, true) : 0;
  if (end <= 2 || (end < word.size() && word[end] != '=')) {
    if (!open_.empty() && !word.empty()) settings_.add_word(open_, filled_in(word));
    return;
  }
  open_ = dashed(word.substr(2, end - 2));
  if (end == word.size()) return say(open_, "", number);
  say(open_, filled_in(word.substr(end + 1)), number);
  open_.clear();
}

/// Returns what "${NAME:-otherwise}" means, or "$NAME"; `rest` is what follows the name. An unknown
/// variable stays as it is written.
std::string Script::value_of(const std::string& name, const std::string& rest,
                             const std::string& written) const {
  const std::size_t otherwise = rest.starts_with(":-") ? 2 : rest.starts_with('-') ? 1 : 0;
  const auto known = variables_.find(name);
  if (known != variables_.end() && (rest.empty() || otherwise > 0)) return known->second;
  return otherwise > 0 ? rest.substr(otherwise) : written;
}

/// Puts in $NAME, ${NAME} and ${NAME:-otherwise}. Throws: Error if that makes a word too long.
std::string Script::filled_in(const std::string& word) const {
  std::string whole;
  for (std::size_t at = 0; at < word.size();) {
    const bool braces = word.compare(at, 2, "${") == 0;
    const std::size_t from = at + (braces ? 2 : 1);
    const std::size_t end = word[at] == '$' ? name_end(word, from, false) : from;
    const std::size_t close = braces ? word.find('}', end) : end;
    if (end == from || close == word.npos) {
      whole += word[at++];
      continue;
    }
    const std::size_t next = braces ? close + 1 : end;
    whole += value_of(word.substr(from, end - from), word.substr(end, close - end),
                      word.substr(at, next - at));
    at = next;
    if (whole.size() > kLongestWord) {
      throw Error(settings_.file() + ":" + std::to_string(line_) + ": a word has more than " +
                  std::to_string(kLongestWord) +
                  " characters, what its variables hold included; expected a shorter one");
    }
  }
  return whole;
}

}  // namespace

void read_megatron_script(Settings& settings, const std::string& text) {
  Script script(settings);
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) script.add_line(plain(line), ++number);
}

}  // namespace interlock
