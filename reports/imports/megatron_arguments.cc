// MegatronArguments: finds names and values in a script.
// SPDX-License-Identifier: Apache-2.0
#include "reports/imports/megatron_arguments.h"

#include <algorithm>
#include <charconv>
#include <regex>
#include <sstream>

#include "base/text.h"

namespace interlock {
namespace {

std::string dashed(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

/// Without quotes, line continuations, and what stands behind a # that begins a word.
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

template <class Number>
std::optional<Number> parsed(const std::string& text) {
  Number value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, failed] = std::from_chars(text.data(), end, value);
  if (failed != std::errc() || rest != end) return std::nullopt;
  return value;
}

}  // namespace

MegatronArguments::MegatronArguments(const std::string& text, std::string file)
    : file_(std::move(file)) {
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) add_line(plain(line), ++number);
}

void MegatronArguments::add_line(const std::string& line, int number) {
  static const std::regex setting(R"(\s*(?:--)?([A-Za-z][\w-]*):\s+(\S.*))");
  std::smatch match;
  if (std::regex_match(line, match, setting)) {
    said_[dashed(match[1])] = {filled_in(match[2]), number};
    open_.clear();
    return;
  }
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  add_words(words, number);
}

void MegatronArguments::add_words(const std::vector<std::string>& words, int number) {
  static const std::regex variable(R"(([A-Za-z_]\w*)=\(?(.*))");
  static const std::regex argument(R"(--([A-Za-z][\w-]*)(?:=(.*))?)");
  for (std::string word : words) {
    std::smatch match;
    if (std::regex_match(word, match, variable)) {
      const std::string name = match[1], rest = match[2];
      word = filled_in(rest);
      variables_[name] = word;
      open_.clear();  // but an array, or a text of arguments, may begin here
    }
    if (std::regex_match(word, match, argument)) {
      open_ = dashed(match[1]);
      said_[open_] = {filled_in(match[2]), number};
      if (match[2].matched) open_.clear();
    } else if (!open_.empty() && word != ")") {
      said_[open_].value = filled_in(word);
      open_.clear();
    }
  }
}

/// $NAME, ${NAME} and ${NAME:-otherwise}; an unknown variable stays as it is.
std::string MegatronArguments::filled_in(const std::string& word) const {
  static const std::regex use(R"(\$(?:\{(\w+)(?::?-([^}]*))?\}|(\w+)))");
  std::string whole, rest = word;
  for (std::smatch match; std::regex_search(rest, match, use); rest = match.suffix()) {
    const auto known = variables_.find(match[1].matched ? match[1] : match[3]);
    whole += match.prefix();
    whole += known != variables_.end() ? known->second
             : match[2].matched        ? match[2].str()
                                       : match[0].str();
    if (whole.size() > 10'000) break;
  }
  return whole + rest;
}

const MegatronArguments::Said* MegatronArguments::find(const std::string& name) {
  asked_.insert(name);
  const auto found = said_.find(name);
  return found == said_.end() ? nullptr : &found->second;
}

bool MegatronArguments::flag(const std::string& name) {
  const Said* said = find(name);
  if (said == nullptr) return false;
  return said->value != "false" && said->value != "False" && said->value != "0";
}

std::optional<std::string> MegatronArguments::text(const std::string& name) {
  const Said* said = find(name);
  if (said == nullptr || said->value == "null" || said->value == "None") return std::nullopt;
  return said->value;
}

std::optional<int> MegatronArguments::count(const std::string& name) {
  const auto value = text(name);
  if (!value) return std::nullopt;
  const auto whole = parsed<int>(*value);
  if (whole && *whole >= 0) return whole;
  refuse(name, "expected a whole number, got " + in_quotes(*value));
  return std::nullopt;
}

std::optional<double> MegatronArguments::number(const std::string& name) {
  const auto value = text(name);
  if (!value) return std::nullopt;
  const auto any = parsed<double>(*value);
  if (!any) refuse(name, "expected a number, got " + in_quotes(*value));
  return any;
}

int MegatronArguments::required(const std::string& name) {
  if (find(name) == nullptr) refuse(name, "is not there; expected a number");
  return std::max(count(name).value_or(1), 1);
}

void MegatronArguments::refuse(const std::string& name, const std::string& message) {
  const Said* said = find(name);
  diagnostics_.add(file_, said ? said->line : 1, "--" + name, message);
}

std::vector<std::string> MegatronArguments::unused() const {
  std::vector<std::string> names;
  for (const auto& [name, said] : said_) {
    if (asked_.count(name) == 0) names.push_back(name);
  }
  return names;
}

}  // namespace interlock
