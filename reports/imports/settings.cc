// Settings: values of names.
// SPDX-License-Identifier: Apache-2.0
#include "reports/imports/settings.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "base/text.h"

namespace interlock {
namespace {

std::vector<std::string> split_words(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
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

void Settings::say(const std::string& name, const std::string& value, int line,
                   const std::string& shown) {
  said_[name] = {split_words(value), line, shown};
}

void Settings::add_word(const std::string& name, const std::string& word) {
  said_.at(name).words.push_back(word);
}

const Settings::Said* Settings::find(const std::string& name) {
  asked_.insert(name);
  const auto found = said_.find(name);
  return found == said_.end() ? nullptr : &found->second;
}

bool Settings::flag(const std::string& name) {
  const Said* said = find(name);
  if (said == nullptr) return false;
  if (said->words.empty()) return true;
  const std::string& value = said->words.front();
  return value != "false" && value != "False" && value != "0" && value != "null" && value != "None";
}

std::optional<std::string> Settings::text(const std::string& name) {
  const Said* said = find(name);
  if (said == nullptr) return std::nullopt;
  const std::string value = said->words.empty() ? "" : said->words.front();
  return value == "null" || value == "None" ? std::nullopt : std::optional(value);
}

std::vector<std::string> Settings::words(const std::string& name) {
  const Said* said = find(name);
  std::string all;
  for (const std::string& word : said ? said->words : std::vector<std::string>()) all += word + " ";
  for (char& c : all) {
    if (c == '[' || c == ']' || c == ',') c = ' ';
  }
  return split_words(all);
}

std::optional<int> Settings::count(const std::string& name) {
  const auto value = text(name);
  if (!value) return std::nullopt;
  const auto whole = parsed<int>(*value);
  if (whole && *whole >= 0) return whole;
  refuse(name, "expected a whole number, got " + in_quotes(*value));
  return std::nullopt;
}

std::optional<double> Settings::number(const std::string& name) {
  const auto value = text(name);
  if (!value) return std::nullopt;
  const auto any = parsed<double>(*value);
  if (!any) refuse(name, "expected a number, got " + in_quotes(*value));
  return any;
}

int Settings::required(const std::string& name) {
  if (find(name) == nullptr) refuse(name, "is not there; expected a number");
  return std::max(count(name).value_or(1), 1);
}

void Settings::refuse(const std::string& name, const std::string& message) {
  const Said* said = find(name);
  diagnostics_.add(file_, said ? said->line : 1, shown(name), message);
}

void Settings::remark(const std::string& name, const std::string& message) {
  find(name);
  remarks_.push_back({shown(name), message});
}

std::string Settings::shown(const std::string& name) const {
  const auto found = said_.find(name);
  const bool own = found != said_.end() && !found->second.shown.empty();
  return own ? found->second.shown : prefix_ + name;
}

std::vector<Settings::Remark> Settings::remarks() const {
  std::vector<Remark> all = remarks_;
  for (const auto& [name, said] : said_) {
    const NameBearing bearing = bearing_(name);
    const bool off = !said.words.empty() && (said.words[0] == "false" || said.words[0] == "False" ||
                                             said.words[0] == "null" || said.words[0] == "None");
    if (asked_.count(name) == 0 && bearing.kind == NameBearing::Matters && !off) {
      all.push_back({shown(name), bearing.why});
    }
  }
  return all;
}

std::vector<std::string> Settings::unused() const {
  std::vector<std::string> names;
  for (const auto& [name, said] : said_) {
    if (asked_.count(name) == 0 && bearing_(name).kind == NameBearing::None) {
      names.push_back(shown(name));
    }
  }
  return names;
}

std::vector<std::string> Settings::unknown() const {
  std::vector<std::string> names;
  for (const auto& [name, said] : said_) {
    if (asked_.count(name) == 0 && bearing_(name).kind == NameBearing::Unknown) {
      names.push_back(shown(name));
    }
  }
  return names;
}

}  // namespace interlock
