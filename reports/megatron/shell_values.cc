// Shell values: arithmetic and comparisons.
// SPDX-License-Identifier: Apache-2.0
#include "reports/megatron/shell_values.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <sstream>
#include <vector>

namespace interlock {
namespace {

constexpr int kDeepest = 100;                       // parentheses and signs
constexpr long long kMost = 1'000'000'000'000'000;  // beyond it nothing is known

/// Whole numbers, + - * / % and parentheses, read by descent.
class Arithmetic {
 public:
  explicit Arithmetic(const std::string& text) : text_(text) {}
  std::optional<long long> value() {
    const auto sum = added(0);
    return at_ == text_.size() ? sum : std::nullopt;
  }

 private:
  using Number = std::optional<long long>;

  bool takes(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  Number added(int depth) {
    Number sum = multiplied(depth);
    while (sum) {
      const bool plus = takes('+');
      if (!plus && !takes('-')) break;
      const Number more = multiplied(depth);
      sum = more ? bounded(plus ? *sum + *more : *sum - *more) : std::nullopt;
    }
    return sum;
  }

  Number multiplied(int depth) {
    Number product = single(depth);
    while (product && at_ < text_.size()) {
      const char sign = text_[at_];
      if (sign != '*' && sign != '/' && sign != '%') break;
      ++at_;
      const Number by = single(depth);
      if (!by || (sign != '*' && *by == 0)) return std::nullopt;
      if (sign == '*' && *by != 0 && std::abs(*product) > kMost / std::abs(*by))
        return std::nullopt;
      product = sign == '*' ? *product * *by : sign == '/' ? *product / *by : *product % *by;
    }
    return product;
  }

  Number single(int depth) {
    if (depth > kDeepest) return std::nullopt;
    if (takes('-')) {
      const Number positive = single(depth + 1);
      return positive ? Number(-*positive) : std::nullopt;
    }
    if (takes('(')) {
      const Number inner = added(depth + 1);
      return takes(')') ? inner : std::nullopt;
    }
    long long number = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, failed] = std::from_chars(begin, text_.data() + text_.size(), number);
    if (failed != std::errc() || end == begin) return std::nullopt;
    at_ += static_cast<std::size_t>(end - begin);
    return bounded(number);
  }

  static Number bounded(long long number) {
    return std::abs(number) > kMost ? std::nullopt : Number(number);
  }

  const std::string& text_;
  std::size_t at_ = 0;
};

std::optional<long long> number_of(const std::string& word) { return Arithmetic(word).value(); }

bool is_known(const std::string& word) { return word.find_first_of("$`") == word.npos; }

using Words = std::vector<std::string>;

std::optional<bool> compared(const std::string& left, const std::string& sign,
                             const std::string& right) {
  if (!is_known(left) || !is_known(right)) return std::nullopt;
  if (sign == "==" || sign == "=") return left == right;
  if (sign == "!=") return left != right;
  static const std::map<std::string, bool (*)(long long, long long)> numbers = {
      {"-eq", [](long long a, long long b) { return a == b; }},
      {"-ne", [](long long a, long long b) { return a != b; }},
      {"-gt", [](long long a, long long b) { return a > b; }},
      {"-ge", [](long long a, long long b) { return a >= b; }},
      {"-lt", [](long long a, long long b) { return a < b; }},
      {"-le", [](long long a, long long b) { return a <= b; }}};
  const auto found = numbers.find(sign);
  const auto a = number_of(left), b = number_of(right);
  if (found == numbers.end() || !a || !b) return std::nullopt;
  return found->second(*a, *b);
}

/// A test between "&&" and "||": "a == b", "-n a", "-z a", "true", "false", or one after "!".
std::optional<bool> tested(Words words) {
  if (!words.empty() && words.front() == "!") {
    const auto other = tested({words.begin() + 1, words.end()});
    return other ? std::optional(!*other) : std::nullopt;
  }
  if (words.size() == 1 && (words[0] == "true" || words[0] == "false")) return words[0] == "true";
  if (!words.empty() && (words[0] == "-n" || words[0] == "-z") && words.size() <= 2) {
    if (words.size() == 2 && !is_known(words[1])) return std::nullopt;
    return (words.size() == 2) == (words[0] == "-n");
  }
  const auto sign = std::find_if(words.begin(), words.end(), [](const std::string& word) {
    return word == "==" || word == "=" || word == "!=" || (word.size() == 3 && word[0] == '-');
  });
  if (sign == words.end() || sign - words.begin() > 1 || words.end() - sign > 2) {
    return std::nullopt;
  }
  return compared(sign == words.begin() ? "" : words.front(), *sign,
                  sign + 1 == words.end() ? "" : words.back());
}

/// Joins two tests: what one of them decides alone is known without the other.
std::optional<bool> joined(std::optional<bool> a, std::optional<bool> b, bool both) {
  if (a == !both || b == !both) return !both;
  return a && b ? std::optional(both) : std::nullopt;
}

}  // namespace

std::string with_arithmetic(const std::string& line) {
  std::string whole;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t begin = line.find("$((", at);
    if (begin == line.npos) return whole + line.substr(at);
    int open = 2;
    std::size_t end = begin + 3;
    while (end < line.size() && open > 0) {
      if (line[end] == '(') ++open;
      if (line[end] == ')') --open;
      ++end;
    }
    std::string expression = line.substr(begin + 3, end - begin - 3);
    std::erase(expression, ' ');
    const bool closed = open == 0 && expression.ends_with("))");
    const auto value = closed ? number_of(expression.substr(0, expression.size() - 2))
                              : std::optional<long long>();
    whole += line.substr(at, begin - at);
    whole += value ? std::to_string(*value) : "$((" + expression;
    at = end;
  }
  return whole;
}

std::optional<bool> shell_condition(const std::string& text) {
  std::istringstream stream(text);
  std::optional<bool> all;
  Words test;
  std::string join;
  const auto close = [&] {
    const auto next = tested(test);
    all = join.empty() ? next : joined(all, next, join == "&&");
    test.clear();
  };
  for (std::string word; stream >> word;) {
    if (word == "[[" || word == "]]" || word == "[" || word == "]") continue;
    if (word != "&&" && word != "||") {
      test.push_back(word);
      continue;
    }
    close();
    if (!join.empty() && join != word) return std::nullopt;  // which of them binds more is not said
    join = word;
  }
  close();
  return all;
}

}  // namespace interlock
