// Megatron script: finds names and values in a launch script.
// SPDX-License-Identifier: Apache-2.0
#include "reports/megatron/megatron_script.h"

#include <algorithm>
#include <map>
#include <sstream>

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

/// Returns where the name that begins at `from` ends; `from` itself if none begins there.
std::size_t name_end(const std::string& text, std::size_t from, bool dashes) {
  std::size_t end = from;
  while (end < text.size() && (is_word(text[end]) || (dashes && text[end] == '-'))) ++end;
  const bool starts = end > from && (is_letter(text[from]) || (!dashes && text[from] == '_'));
  return starts ? end : from;
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

class Script {
 public:
  explicit Script(Settings& settings) : settings_(settings) {}
  void add_line(const std::string& line, int number);

 private:
  void add_words(const std::vector<std::string>& words, int number);
  void say(const std::string& name, const std::string& value, int number) {
    settings_.say(name, value, number, "--" + name);
  }
  std::string assigned(const std::string& word);
  std::string value_of(const std::string& name, const std::string& rest,
                       const std::string& written) const;
  std::string filled_in(const std::string& word) const;

  Settings& settings_;
  std::map<std::string, std::string> variables_;
  std::string open_;    // the name whose values may follow
  bool array_ = false;  // words up to a ")" are those of an array
};

/// Returns true if `word` closes a bracket that it does not open.
bool closes_array(const std::string& word) {
  return word.ends_with(')') && std::ranges::count(word, ')') > std::ranges::count(word, '(');
}

/// A line is `name: value`, or words of a shell.
void Script::add_line(const std::string& line, int number) {
  std::size_t start = std::min(line.find_first_not_of(' '), line.size());
  if (line.compare(start, 2, "--") == 0) start += 2;
  const std::size_t end = name_end(line, start, true);
  const std::size_t value = end < line.size() ? line.find_first_not_of(' ', end + 1) : line.npos;
  if (end > start && line[end] == ':' && value != line.npos && value > end + 1) {
    say(dashed(line.substr(start, end - start)), filled_in(line.substr(value)), number);
    open_.clear();
    return;
  }
  add_words(shell_words(line), number);
}

/// Keeps the value of NAME=VALUE and returns it, as an array or a text of arguments may begin
/// there; returns another word as it is.
std::string Script::assigned(const std::string& word) {
  const std::size_t end = name_end(word, 0, false);
  if (end == 0 || end >= word.size() || word[end] != '=') return word;
  array_ = word.compare(end, 2, "=(") == 0;
  open_.clear();
  return variables_[word.substr(0, end)] = filled_in(word.substr(end + (array_ ? 2 : 1)));
}

void Script::add_words(const std::vector<std::string>& words, int number) {
  for (const std::string& written : words) {
    std::string word = assigned(written);
    const bool last = array_ && closes_array(word);
    if (last) word.pop_back();
    const std::size_t end = word.compare(0, 2, "--") == 0 ? name_end(word, 2, true) : 0;
    if (word.ends_with(".py")) say("script", word, number);
    if (end > 2 && (end == word.size() || word[end] == '=')) {
      open_ = dashed(word.substr(2, end - 2));
      say(open_, end < word.size() ? filled_in(word.substr(end + 1)) : "", number);
      if (end < word.size()) open_.clear();
    } else if (!open_.empty() && !word.empty()) {
      settings_.add_word(open_, filled_in(word));
    }
    if (!last) continue;
    open_.clear();
    array_ = false;
  }
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

/// Puts in $NAME, ${NAME} and ${NAME:-otherwise}.
std::string Script::filled_in(const std::string& word) const {
  std::string whole;
  for (std::size_t at = 0; at < word.size() && whole.size() < kLongestWord;) {
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
