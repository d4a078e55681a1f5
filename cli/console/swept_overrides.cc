// Takes apart what --set says of a sweep.
// SPDX-License-Identifier: Apache-2.0
#include "cli/console/swept_overrides.h"

#include "scenarios/load/question.h"

namespace interlock {
namespace {

/// `text` between the commas that stand in no brackets and no quotes.
std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' && (i == 0 || text[i - 1] != '\\')) quoted = !quoted;
    if (!quoted && (c == '[' || c == '{')) ++depth;
    if (!quoted && (c == ']' || c == '}')) --depth;
    if (c == ',' && !quoted && depth == 0) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

/// `text` between its "..", if it has some.
std::vector<std::string> ends_of(const std::string& text) {
  std::vector<std::string> ends;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t end = std::min(text.find("..", from), text.size());
    ends.push_back(text.substr(from, end - from));
    from = end + 2;
  }
  return ends;
}

bool begins_number(const std::string& text) {
  return !text.empty() && text.find_first_of("0123456789-") == 0;
}

/// Returns the object of a range, whose ends may be followed by a step or a factor.
JsonValue range_of(std::vector<std::string> ends, const std::string& origin) {
  const char* third = "step";
  const std::size_t times = ends.back().find('x');
  if (ends.size() == 2 && times != std::string::npos) {
    third = "times";
    ends.push_back(ends.back().substr(times + 1));
    ends[1].erase(times);
  }
  JsonValue range = {.kind = JsonValue::Kind::Object};
  const char* keys[] = {"from", "to", third};
  for (std::size_t i = 0; i < ends.size(); ++i) {
    range.members.push_back({keys[i], parse_override(ends[i], origin)});
  }
  return range;
}

/// Returns the list of "path,path=[[V,W],[X,Y]]", whose inner lists hold a value for each path.
std::optional<JsonValue> coupled_axis(const std::string& path, const std::string& text,
                                      const std::string& origin) {
  if (path.find(',') == std::string::npos) return std::nullopt;
  JsonValue axis = parse_override(text, origin);
  if (axis.kind != JsonValue::Kind::Array) return std::nullopt;
  return axis;
}

/// Adds an axis to a "sweep"; one of the same path makes way.
void put_axis(JsonMember axis, JsonValue& sweep) {
  if (JsonValue* same = sweep.find(axis.first)) {
    *same = std::move(axis.second);
  } else {
    sweep.members.push_back(std::move(axis));
  }
}

}  // namespace

std::optional<JsonValue> swept_axis(const std::string& text, const std::string& origin) {
  const std::vector<std::string> ends = ends_of(text);
  const bool range = (ends.size() == 2 || ends.size() == 3) && begins_number(ends.front()) &&
                     text.find_first_of(",[{\"/") == std::string::npos;
  JsonValue axis = {.kind = JsonValue::Kind::Array};
  if (range) {
    axis = range_of(ends, origin);
  } else {
    const std::vector<std::string> parts = parts_of(text);
    if (parts.size() < 2) return std::nullopt;
    for (const std::string& part : parts) axis.items.push_back(parse_override(part, origin));
  }
  axis.file = std::make_shared<const std::string>(origin);
  return axis;
}

SweptDocument read_swept_document(const std::string& file,
                                  const std::vector<std::string>& overrides) {
  SweptDocument swept;
  JsonValue axes = {.kind = JsonValue::Kind::Object};
  for (const std::string& text : overrides) {
    const std::size_t equals = text.find('=');
    const std::string path = text.substr(0, equals), origin = "--set " + path;
    std::optional<JsonValue> axis;
    if (equals != std::string::npos && equals > 0) {
      const std::string values = text.substr(equals + 1);
      axis = swept_axis(values, origin);
      if (!axis) axis = coupled_axis(path, values, origin);
    }
    if (axis) {
      put_axis({path, std::move(*axis)}, axes);
    } else {
      swept.overrides.push_back(text);
    }
  }
  swept.document = read_scenario_document(file, swept.overrides);
  if (axes.members.empty()) return swept;
  JsonValue* there = swept.document.find("sweep");
  if (!there) {
    swept.document.members.push_back({"sweep", std::move(axes)});
    return swept;
  }
  for (JsonMember& axis : axes.members) put_axis(std::move(axis), *there);
  return swept;
}

}  // namespace interlock
