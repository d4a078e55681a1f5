// Finds fitted numbers, varies them, and fits them with sources, models and devices left out.
// SPDX-License-Identifier: Apache-2.0
#include "validate/published/parameter_fit.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/error_summary.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "hardware/devices/catalogue_file.h"
#include "reports/words/scale.h"
#include "scenarios/contract/read_framework.h"
#include "validate/published/accuracy_report.h"
#include "validate/published/predict_rows.h"

namespace interlock {
namespace {

constexpr const char* kDevices = "hardware/catalogue/devices";
constexpr const char* kFrameworks = "scenarios/frameworks";
constexpr double kRefused = 10;  // the error of a value out of range, which no fit takes
constexpr int kSteps = 60;       // of a fit, between the least and the greatest factor
/// Quantities that tell a speed without another row.
constexpr Measurand kSpeeds[] = {Measurand::StepTime,   Measurand::SamplesPerS,
                                 Measurand::TokensPerS, Measurand::TflopsPerDevice,
                                 Measurand::Forward,    Measurand::Backward};

/// Letters and digits alone: "RTX 3090" is "rtx3090", as "RTX-3090-24GB" begins.
std::string label_of(const std::string& name) {
  std::string label;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c))) {
      label += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return label;
}

bool is_framework(const std::string& entry) {
  const std::vector<std::string> names = framework_names();
  return std::find(names.begin(), names.end(), entry) != names.end();
}

JsonValue read_entry(const char* folder, const std::string& name) {
  return read_json_file(data_folder(folder) + "/" + name + ".json");
}

/// Devices of the catalogue, by the name that they give themselves.
std::map<std::string, std::string> devices_of(const std::string& entry) {
  std::map<std::string, std::string> files;
  for (const std::string& file : catalogue_entries(kDevices)) {
    const JsonValue document = read_entry(kDevices, file);
    const JsonValue* name = document.find("name");
    if (holds_text(name) && label_of(name->text).starts_with(label_of(entry))) {
      files[name->text] = file;
    }
  }
  return files;
}

std::vector<std::string> split_at(const std::string& text, char mark) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(mark, begin), text.size());
    std::string part = text.substr(begin, end - begin);
    part.erase(0, part.find_first_not_of(' '));
    parts.push_back(part);
    begin = end + 1;
  }
  return parts;
}

/// Returns the parameters of "A: k, l; B: m", where A and B are known and keys have no spaces.
std::vector<FittedParameter> parameters_in(const std::string& text) {
  std::vector<FittedParameter> found;
  for (const std::string& part : split_at(text, ';')) {
    const std::size_t colon = part.find(": ");
    if (colon == std::string::npos) continue;
    const std::string entry = part.substr(0, colon);
    if (!is_framework(entry) && devices_of(entry).empty()) continue;
    for (const std::string& key : split_at(part.substr(colon + 1), ',')) {
      if (!key.empty() && key.find(' ') == key.npos) found.push_back({entry, key, {}});
    }
  }
  return found;
}

const JsonValue* value_at(const JsonValue& document, const std::string& path) {
  const JsonValue* value = &document;
  for (const std::string& key : split_at(path, '.')) {
    if (value != nullptr) value = value->find(key);
  }
  return value;
}

/// `value`, a number or a text that begins with one, `factor` times as large.
JsonValue scaled(const JsonValue& value, double factor) {
  if (value.kind == JsonValue::Kind::Number) return json_number(value.number * factor);
  double number = 0;
  const char* end = value.text.data() + value.text.size();
  const auto [rest, failed] = std::from_chars(value.text.data(), end, number);
  CHECK(failed == std::errc(), "quantities begin with a number");
  return json_text(std::to_string(number * factor) + std::string(rest, end));
}

/// Sets a key, whose names have dots between them, of an object.
void set_at(JsonValue& object, const std::string& path, const JsonValue& value) {
  set_json(object, path, value, "validate fit");
}

/// A parameter to be varied: its number, and where its file says that it is from.
struct Numbered {
  JsonValue value;
  std::string origin;
};

/// Returns the number of `parameter` in the file of a framework, or of a device, named `file`, or
/// in the one that this stands on.
std::optional<Numbered> numbered(const FittedParameter& parameter, const char* folder,
                                 const std::string& file) {
  const JsonValue document = read_entry(folder, file);
  const JsonValue* value = value_at(document, parameter.key);
  if (value == nullptr) {
    const JsonValue* base = document.find("base");
    return holds_text(base) ? numbered(parameter, folder, base->text) : std::nullopt;
  }
  Numbered found{*value, {}};
  if (const JsonValue* origins = document.find("origin")) {
    const JsonValue* origin = origins->find(parameter.key);
    if (holds_text(origin)) found.origin = origin->text;
  }
  return found;
}

/// Returns the numbers of `parameter` by device, each its own; a framework's one by an empty name.
std::map<std::string, Numbered> numbers_of(const FittedParameter& parameter) {
  std::map<std::string, Numbered> numbers;
  const auto add = [&](const std::string& device, const char* folder, const std::string& file) {
    if (auto number = numbered(parameter, folder, file)) numbers[device] = *number;
  };
  if (is_framework(parameter.entry)) {
    add("", kFrameworks, parameter.entry);
  } else {
    for (const auto& [device, file] : devices_of(parameter.entry)) add(device, kDevices, file);
  }
  return numbers;
}

/// Returns `row` with the parameter `factor` times as large; nothing if it does not price the row.
std::optional<MeasuredRow> varied(const MeasuredRow& row, const FittedParameter& parameter,
                                  const Numbered& number, const std::string& device_file,
                                  double factor) {
  MeasuredRow copy = row;
  copy.candidates.clear();
  const JsonValue value = scaled(number.value, factor);
  if (device_file.empty()) {
    const JsonValue* framework = value_at(row.document, "training.framework");
    if (!holds_text(framework) || framework->text != parameter.entry) return std::nullopt;
    JsonValue own = json_object({{"base", json_text(parameter.entry)}});
    set_at(own, parameter.key, value);
    JsonValue* training = copy.document.find("training");
    *training->find("framework") = own;
    return copy;
  }
  JsonValue device = json_object({{"base", json_text(device_file)}});
  set_at(device, parameter.key, value);
  JsonValue* cluster = copy.document.find("cluster");
  if (cluster == nullptr || cluster->find("machines") != nullptr) return std::nullopt;
  if (holds_text(cluster)) *cluster = json_object({{"machine", *cluster}});
  set_at(*cluster, "device", device);
  return copy;
}

std::optional<Measurand> speed_of(const MeasuredRow& row) {
  for (const Measurand what : kSpeeds) {
    const auto found = row.measured.find(what);
    if (found != row.measured.end() && found->second > 0) return what;
  }
  return std::nullopt;
}

/// Returns a model in few words: its name, or its layers and width.
std::string model_of(const JsonValue& document) {
  const JsonValue* model = document.find("model");
  if (model == nullptr) return "";
  if (holds_text(model)) return model->text;
  if (const JsonValue* base = model->find("base"); holds_text(base)) return base->text;
  std::string words;
  for (const char* key : {"kind", "layers", "hidden_size", "experts"}) {
    const JsonValue* value = model->find(key);
    if (value != nullptr) words += described(*value) + " ";
  }
  return words;
}

const JsonValue* framework_of(const MeasuredRow& row) {
  const JsonValue* name = value_at(row.document, "training.framework");
  return holds_text(name) ? name : nullptr;
}

/// Returns the rows of `parameter`: those of a framework name it, those of a device run on it.
std::vector<SpeedRow> priced_rows(const FittedParameter& parameter,
                                  const std::vector<SpeedRow>& rows) {
  const bool framework = is_framework(parameter.entry);
  const std::string label = label_of(parameter.entry);
  std::vector<SpeedRow> priced;
  for (const SpeedRow& one : rows) {
    const JsonValue* name = framework_of(*one.row);
    const bool named = name != nullptr && name->text == parameter.entry;
    if (framework ? named : label_of(one.device).starts_with(label)) priced.push_back(one);
  }
  return priced;
}

/// Items spread evenly over all, so that at most `most` are left.
template <typename Item>
std::vector<Item> thinned(const std::vector<Item>& items, std::size_t most) {
  std::vector<Item> left;
  const std::size_t count = std::min(most, items.size());
  for (std::size_t i = 0; i < count; ++i) left.push_back(items[i * items.size() / count]);
  return left;
}

/// Returns the errors of rows whose predictions at all factors follow each other.
std::vector<VariedRow> varied_rows(const std::vector<SpeedRow>& priced,
                                   const std::vector<RowPrediction>& predictions) {
  const std::size_t factors = varied_factors().size();
  CHECK(predictions.size() == priced.size() * factors, "a prediction for each factor");
  std::vector<VariedRow> rows;
  for (std::size_t i = 0; i < priced.size(); ++i) {
    const MeasuredRow& row = *priced[i].row;
    const Measurand what = *speed_of(row);
    VariedRow varied_row{priced[i].source, model_of(row.document), priced[i].device, {}};
    for (std::size_t f = 0; f < factors; ++f) {
      const auto value = predicted_value(what, row, predictions[i * factors + f].values, nullptr);
      varied_row.errors.push_back(value ? std::log(*value / row.measured.at(what)) : kRefused);
    }
    if (varied_row.errors[factors / 2] != kRefused) rows.push_back(std::move(varied_row));
  }
  return rows;
}

/// Returns the error of `row` at a factor between those that were tried: `at` counts steps of the
/// grid.
double error_at(const VariedRow& row, double at) {
  const std::size_t below = std::min(static_cast<std::size_t>(at), varied_factors().size() - 2);
  const double share = at - static_cast<double>(below);
  return (1 - share) * row.errors[below] + share * row.errors[below + 1];
}

using Rows = std::vector<const VariedRow*>;

/// Returns the place in the grid with the least sum of absolute errors.
double best_place(const Rows& rows) {
  const double last = static_cast<double>(varied_factors().size() - 1);
  double best = last / 2, least = kInfinity;
  for (int step = 0; step <= kSteps; ++step) {
    const double at = last * step / kSteps;
    double sum = 0;
    for (const VariedRow* row : rows) sum += std::abs(error_at(*row, at));
    if (sum < least) best = at;
    least = std::min(least, sum);
  }
  return best;
}

double median_error(const Rows& rows, double at) {
  std::vector<double> errors;
  for (const VariedRow* row : rows) errors.push_back(std::abs(std::expm1(error_at(*row, at))));
  return median_of(errors);
}

/// Fits with each group left out in turn, and tells how far off its rows are.
LeftOut left_out(const Rows& rows, std::string VariedRow::*group) {
  std::set<std::string> groups;
  for (const VariedRow* row : rows) groups.insert(row->*group);
  if (groups.size() < 2) return {};
  std::vector<double> errors;
  for (const std::string& name : groups) {
    Rows others;
    for (const VariedRow* row : rows) {
      if (row->*group != name) others.push_back(row);
    }
    const double at = best_place(others);
    for (const VariedRow* row : rows) {
      if (row->*group == name) errors.push_back(std::abs(std::expm1(error_at(*row, at))));
    }
  }
  return {static_cast<int>(groups.size()), median_of(errors)};
}

std::string percent_of(double share) { return fixed(100 * share, 1); }

std::string left_text(const LeftOut& left) {
  return left.groups == 0 ? kUnknown
                          : percent_of(left.error) + " (" + std::to_string(left.groups) + ")";
}

}  // namespace

const std::vector<double>& varied_factors() {
  static const std::vector<double> factors = {
      0.5, std::sqrt(0.5), std::sqrt(std::sqrt(0.5)), 1, std::sqrt(std::sqrt(2)), std::sqrt(2), 2};
  return factors;
}

std::vector<FittedParameter> fitted_parameters(const std::vector<MeasurementFile>& files) {
  std::vector<FittedParameter> all;
  for (const MeasurementFile& file : files) {
    std::map<std::string, int> counts;
    for (const MeasuredTable& table : file.tables) {
      for (const MeasuredRow& row : table.rows) ++counts[row.fitted];
    }
    for (const auto& [text, count] : counts) {
      for (const FittedParameter& one : parameters_in(text)) {
        auto known = std::find_if(all.begin(), all.end(), [&](const FittedParameter& other) {
          return other.entry == one.entry && other.key == one.key;
        });
        if (known == all.end()) known = all.insert(all.end(), one);
        known->rests_on.push_back(file.name + ": " + std::to_string(count) +
                                  (count == 1 ? " row" : " rows"));
      }
    }
  }
  return all;
}

ParameterFit fit_rows(const std::vector<VariedRow>& rows) {
  CHECK(!rows.empty(), "rows to fit");
  Rows all;
  for (const VariedRow& row : rows) all.push_back(&row);
  const double middle = static_cast<double>(varied_factors().size() - 1) / 2;
  const double best = best_place(all);
  const auto below = std::min(static_cast<std::size_t>(best), varied_factors().size() - 2);
  const double share = best - static_cast<double>(below);
  ParameterFit fit{.rows = static_cast<int>(rows.size())};
  fit.best =
      std::pow(varied_factors()[below], 1 - share) * std::pow(varied_factors()[below + 1], share);
  fit.error_now = median_error(all, middle);
  fit.error_best = median_error(all, best);
  fit.source = left_out(all, &VariedRow::source);
  fit.model = left_out(all, &VariedRow::model);
  fit.device = left_out(all, &VariedRow::device);
  return fit;
}

std::vector<SpeedRow> speed_rows(const std::vector<MeasurementFile>& files,
                                 const std::vector<FittedParameter>& parameters, int jobs) {
  std::set<std::string> frameworks;
  bool devices = false;
  for (const FittedParameter& parameter : parameters) {
    devices = devices || !is_framework(parameter.entry);
    frameworks.insert(parameter.entry);
  }
  std::vector<SpeedRow> rows;
  for (const MeasurementFile& file : files) {
    for (const MeasuredTable& table : file.tables) {
      for (const MeasuredRow& row : table.rows) {
        const JsonValue* name = framework_of(row);
        const bool asked = devices || (name != nullptr && frameworks.contains(name->text));
        if (asked && speed_of(row) && row.candidates.empty()) rows.push_back({&row, file.name, ""});
      }
    }
  }
  std::vector<const MeasuredRow*> pointers;
  pointers.reserve(rows.size());
  for (const SpeedRow& one : rows) pointers.push_back(one.row);
  const std::vector<RowPrediction> predictions = predict_rows(pointers, {jobs});
  std::vector<SpeedRow> predicted;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!predictions[i].problem.empty()) continue;
    predicted.push_back(rows[i]);
    predicted.back().device = predictions[i].setup.device;
  }
  return predicted;
}

ParameterFit refit(const FittedParameter& parameter, const std::vector<SpeedRow>& rows_of_all,
                   std::size_t most, int jobs) {
  const std::map<std::string, Numbered> numbers = numbers_of(parameter);
  if (numbers.empty())
    return {.parameter = parameter, .problem = "no file has such a key any more"};
  std::map<std::string, std::string> devices;
  if (!is_framework(parameter.entry)) devices = devices_of(parameter.entry);
  std::vector<SpeedRow> priced = thinned(priced_rows(parameter, rows_of_all), most);
  const auto number_of = [&](const SpeedRow& one) {
    return numbers.find(devices.empty() ? std::string() : one.device);
  };
  const auto row_at = [&](const SpeedRow& one, double factor) -> std::optional<MeasuredRow> {
    const auto number = number_of(one);
    if (number == numbers.end()) return std::nullopt;
    const auto file = devices.find(one.device);
    return varied(*one.row, parameter, number->second, file == devices.end() ? "" : file->second,
                  factor);
  };
  std::erase_if(priced, [&](const SpeedRow& one) { return !row_at(one, 1); });
  std::vector<MeasuredRow> asked;
  for (const SpeedRow& one : priced) {
    for (const double factor : varied_factors()) asked.push_back(*row_at(one, factor));
  }
  std::vector<const MeasuredRow*> pointers;
  pointers.reserve(asked.size());
  for (const MeasuredRow& row : asked) pointers.push_back(&row);
  const std::vector<VariedRow> rows = varied_rows(priced, predict_rows(pointers, {jobs}));
  if (rows.empty()) return {.parameter = parameter, .problem = "no row that it prices alone"};
  ParameterFit fit = fit_rows(rows);
  fit.parameter = parameter;
  const Numbered& number = number_of(priced.front())->second;
  fit.value = holds_text(&number.value) ? number.value.text : format_number(number.value.number);
  fit.origin = number.origin;
  return fit;
}

Grid fit_grid(const std::vector<ParameterFit>& fits) {
  Grid grid{{{"Parameter", "", false},
             {"Is", ""},
             {"Rows", ""},
             {"Error", "%"},
             {"Best", "times"},
             {"Error there", "%"},
             {"Source left out", "%"},
             {"Model left out", "%"},
             {"Device left out", "%"}},
            {}};
  for (const ParameterFit& fit : fits) {
    const std::string name = fit.parameter.entry + ": " + fit.parameter.key;
    if (!fit.problem.empty()) {
      grid.rows.push_back({{name},
                           {fit.problem},
                           {"0"},
                           {kUnknown},
                           {kUnknown},
                           {kUnknown},
                           {kUnknown},
                           {kUnknown},
                           {kUnknown}});
      continue;
    }
    grid.rows.push_back({{name},
                         {fit.value},
                         {std::to_string(fit.rows)},
                         {percent_of(fit.error_now)},
                         {fixed(fit.best, 2)},
                         {percent_of(fit.error_best)},
                         {left_text(fit.source)},
                         {left_text(fit.model)},
                         {left_text(fit.device)}});
  }
  return grid;
}

std::string fit_note() {
  return "Rows: that the number prices, those that it was fitted on among them. Errors: medians of "
         "absolute ones. Best: the factor, between half and twice, with the least sum of absolute "
         "logarithms over all rows, all other numbers as they are. Left out: the errors of a "
         "source, a model or a device when the factor is fitted on all others, over all of them in "
         "turn, how many in brackets.";
}

std::string fit_json(const std::vector<ParameterFit>& fits) {
  using Json = nlohmann::ordered_json;
  const auto left = [](const LeftOut& one) {
    return one.groups == 0 ? Json(nullptr) : Json{{"groups", one.groups}, {"error", one.error}};
  };
  Json list = Json::array();
  for (const ParameterFit& fit : fits) {
    Json json{{"entry", fit.parameter.entry},
              {"key", fit.parameter.key},
              {"rests_on", fit.parameter.rests_on}};
    if (!fit.problem.empty()) {
      json["problem"] = fit.problem;
    } else {
      json.update({{"value", fit.value},
                   {"origin", fit.origin},
                   {"rows", fit.rows},
                   {"error", fit.error_now},
                   {"best_factor", fit.best},
                   {"best_error", fit.error_best},
                   {"source_left_out", left(fit.source)},
                   {"model_left_out", left(fit.model)},
                   {"device_left_out", left(fit.device)}});
    }
    list.push_back(std::move(json));
  }
  return Json{{"format", "interlock-fit/1"}, {"parameters", std::move(list)}}.dump(1) + "\n";
}

std::string fit_markdown(const std::vector<ParameterFit>& fits, const std::string& command) {
  std::string text = "# Fitted numbers, fitted again\n\nWritten by `" + command + "`.\n\n" +
                     markdown_table(fit_grid(fits)) + "\n" + fit_note() +
                     "\n\n## What each rests on\n\n";
  for (const ParameterFit& fit : fits) {
    text += "- **" + fit.parameter.entry + ": " + fit.parameter.key + "**, " + fit.value + ": ";
    for (std::size_t i = 0; i < fit.parameter.rests_on.size(); ++i) {
      text += (i > 0 ? ", " : "") + fit.parameter.rests_on[i];
    }
    text += ". Its file says: " + (fit.origin.empty() ? "nothing" : fit.origin) + ".\n";
  }
  return text;
}

}  // namespace interlock
