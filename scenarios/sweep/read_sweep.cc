// Reads "sweep": plain paths, "grid", "zip", "exclude", "sample", and ranges for lists.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/text.h"
#include "scenarios/contract/contract.h"
#include "scenarios/load/loader.h"
#include "scenarios/sweep/sweep_axes.h"
#include "scenarios/sweep/sweep_range.h"

namespace interlock {
namespace {

bool known_section(const std::string& section) {
  for (const ContractKey& key : scenario_contract().front().keys) {
    if (key.key == section) return true;
  }
  return false;
}

class SweepReader {
 public:
  SweepReader(const JsonNode& sweep, Diagnostics& diagnostics)
      : sweep_(sweep), diagnostics_(diagnostics) {}

  SweepAxes read(double most) {
    if (sweep_.value->kind != JsonValue::Kind::Object) {
      report(diagnostics_, sweep_, "expected an object from paths to lists of values");
      return {};
    }
    for (const auto& [key, value] : sweep_.value->members) {
      const JsonNode node = sweep_.child(key);
      if (key == "grid") {
        read_grid(node);
      } else if (key == "zip") {
        read_zip(node);
      } else if (key != "exclude" && key != "sample") {
        read_axis(key, node);
      }
    }
    name_paths();
    if (sweep_.value->find("exclude")) read_exclusions(sweep_.child("exclude"));
    if (sweep_.value->find("sample")) read_sample(sweep_.child("sample"));
    check_product(most);
    return std::move(result_);
  }

 private:
  void complain(const JsonNode& node, const std::string& message) {
    report(diagnostics_, node, message);
  }

  bool check_path(const std::string& path, const JsonNode& node) {
    const std::string section = path.substr(0, path.find('.'));
    if (section == "sweep") {
      complain(node, "a sweep over the sweep itself never ends; expected the path of another key");
    } else if (!known_section(section)) {
      complain(node, "the path " + in_quotes(path) +
                         " leads to no key; expected one such as \"training.strategy\"");
    }
    return section != "sweep" && known_section(section);
  }

  void read_grid(const JsonNode& node) {
    if (!is_object(node)) return;
    for (const auto& [key, value] : node.value->members) read_axis(key, node.child(key));
  }

  bool is_object(const JsonNode& node) {
    if (node.value->kind == JsonValue::Kind::Object) return true;
    complain(node, "expected an object from paths to lists of values");
    return false;
  }

  /// An object whose lists go along together, or a list of such.
  void read_zip(const JsonNode& node) {
    if (node.value->kind == JsonValue::Kind::Array) {
      for (std::size_t i = 0; i < node.value->items.size(); ++i) read_zip(node.item(i));
      return;
    }
    if (!is_object(node)) return;
    SweepAxis axis;
    for (const auto& [path, value] : node.value->members) {
      const JsonNode list = node.child(path);
      if (!check_path(path, list)) return;
      axis.paths.push_back({path, values_of(list), true, path});
      if (axis.paths.back().values.empty()) return;
      if (axis.paths.back().values.size() == axis.count()) continue;
      return complain(list, "has " + std::to_string(axis.paths.back().values.size()) +
                                " values beside " + std::to_string(axis.count()) + " of " +
                                in_quotes(axis.paths.front().path) +
                                "; expected lists of one length in a \"zip\"");
    }
    if (axis.paths.empty()) return complain(node, "an empty object zips nothing; expected paths");
    result_.axes.push_back(std::move(axis));
  }

  /// {"a, b": [v, [x, y]]} sets two paths together: both to v, then a to x and b to y.
  void read_axis(const std::string& key, const JsonNode& list) {
    SweepAxis axis;
    for (std::size_t from = 0; from <= key.size();) {
      const std::size_t end = std::min(key.find(',', from), key.size());
      std::string path = key.substr(from, end - from);
      path.erase(0, path.find_first_not_of(' '));
      axis.paths.push_back({path, {}, axis.paths.empty(), path});
      from = end + 1;
    }
    const Mistakes mistakes(diagnostics_);
    for (const SweptPath& path : axis.paths) check_path(path.path, list);
    for (const JsonNode& value : values_of(list)) add_parts(value, axis);
    if (mistakes.none()) result_.axes.push_back(std::move(axis));
  }

  void add_parts(const JsonNode& value, SweepAxis& axis) {
    const std::size_t paths = axis.paths.size();
    const bool each = paths > 1 && value.value->kind == JsonValue::Kind::Array;
    if (each && value.value->items.size() != paths) {
      complain(value, "expected a value for all " + std::to_string(paths) +
                          " paths, or a list with one for each, got " +
                          std::to_string(value.value->items.size()));
      return;
    }
    for (std::size_t k = 0; k < paths; ++k) {
      axis.paths[k].values.push_back(each ? value.item(k) : value);
    }
  }

  /// Returns a list, or what a range makes of one; nothing, with a diagnostic, if it is neither.
  std::vector<JsonNode> values_of(const JsonNode& list) {
    std::vector<JsonNode> values;
    if (list.value->kind == JsonValue::Kind::Object && list.value->find("from")) {
      for (JsonValue& value : read_range(list, diagnostics_)) {
        result_.made.push_back(std::move(value));
        values.push_back({&result_.made.back(), list.path});
      }
      return values;
    }
    if (list.value->kind != JsonValue::Kind::Array) {
      complain(list, "expected a list of values");
    } else if (list.value->items.empty()) {
      complain(list, "an empty list leaves nothing to run; expected a value");
    } else {
      for (std::size_t i = 0; i < list.value->items.size(); ++i) values.push_back(list.item(i));
    }
    return values;
  }

  void read_exclusions(const JsonNode& node) {
    if (node.value->kind != JsonValue::Kind::Array) {
      return complain(node, "expected a list of objects from swept paths to values");
    }
    for (std::size_t i = 0; i < node.value->items.size(); ++i) {
      const JsonNode rule = node.item(i);
      SweepExclusion exclusion;
      if (!is_object(rule)) continue;
      for (const auto& [path, value] : rule.value->members) {
        add_part(path, rule.child(path), exclusion);
      }
      if (rule.value->members.empty()) complain(rule, "excludes everything; expected a swept path");
      result_.exclusions.push_back(std::move(exclusion));
    }
  }

  void add_part(const std::string& path, const JsonNode& node, SweepExclusion& exclusion) {
    for (std::size_t axis = 0; axis < result_.axes.size(); ++axis) {
      for (std::size_t k = 0; k < result_.axes[axis].paths.size(); ++k) {
        if (result_.axes[axis].paths[k].path != path) continue;
        SweepExclusion::Part part{axis, k, {}};
        if (node.value->kind == JsonValue::Kind::Array) {
          for (const JsonValue& value : node.value->items) part.same.push_back(&value);
        } else {
          part.same.push_back(node.value);
        }
        exclusion.parts.push_back(std::move(part));
        return;
      }
    }
    complain(node, "the path " + in_quotes(path) + " is not swept; expected one of the sweep's");
  }

  void read_sample(const JsonNode& node) {
    Section section(contract_object("sweep.sample"), node, diagnostics_);
    SweepSample sample;
    section.require("count", "how many scenarios to draw");
    sample.count = section.count("count", 1);
    sample.seed = static_cast<std::uint64_t>(section.count("seed"));
    section.finish();
    result_.sample = sample;
  }

  void check_product(double most) {
    double product = 1;
    for (const SweepAxis& axis : result_.axes) product *= static_cast<double>(axis.count());
    if (product <= most) return;
    char text[64];
    std::snprintf(text, sizeof text, "%.10g scenarios; expected at most %.10g", product, most);
    complain(sweep_, std::string("stands for ") + text);
  }

  void name_paths() {
    for (SweepAxis& axis : result_.axes) {
      for (SweptPath& path : axis.paths) path.short_name = shortest_tail(path.path);
    }
  }

  static bool ends_with_steps(const std::string& path, const std::string& tail) {
    return path == tail || path.ends_with("." + tail);
  }

  /// Returns the shortest end of `path` that begins with a key, not an index, and ends no other
  /// path.
  std::string shortest_tail(const std::string& path) const {
    for (std::size_t dot = path.rfind('.'); dot != std::string::npos;
         dot = dot == 0 ? std::string::npos : path.rfind('.', dot - 1)) {
      std::string tail = path.substr(dot + 1);
      const bool index = tail.find_first_not_of("0123456789") == tail.find('.');
      if (!index && !ends_another(tail, path)) return tail;
    }
    return path;
  }

  bool ends_another(const std::string& tail, const std::string& than) const {
    for (const SweepAxis& axis : result_.axes) {
      for (const SweptPath& path : axis.paths) {
        if (path.told && path.path != than && ends_with_steps(path.path, tail)) return true;
      }
    }
    return false;
  }

  const JsonNode& sweep_;
  Diagnostics& diagnostics_;
  SweepAxes result_;
};

}  // namespace

std::size_t SweepAxes::product() const {
  std::size_t product = 1;
  for (const SweepAxis& axis : axes) product *= axis.count();
  return product;
}

SweepAxes read_sweep(const JsonNode& sweep, double most, Diagnostics& diagnostics) {
  return SweepReader(sweep, diagnostics).read(most);
}

bool same_value(const JsonValue& one, const JsonValue& other) {
  if (one.kind != other.kind || one.items.size() != other.items.size() ||
      one.members.size() != other.members.size()) {
    return false;
  }
  for (std::size_t i = 0; i < one.items.size(); ++i) {
    if (!same_value(one.items[i], other.items[i])) return false;
  }
  for (const auto& [key, member] : one.members) {
    const JsonValue* there = other.find(key);
    if (!there || !same_value(member, *there)) return false;
  }
  return one.boolean == other.boolean && one.number == other.number && one.text == other.text;
}

}  // namespace interlock
