// Walks the contract from the document to every object that has a key.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/contract/key_places.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "scenarios/contract/contract.h"

namespace interlock {
namespace {

constexpr std::size_t kMostPlaces = 3;
constexpr std::string_view kUnknown = "unknown key; known: ";  // no key of its object is near

struct Walk {
  std::string_view key;
  std::string wrong;  // where it stands
  std::set<std::string> places, objects;

  void visit(const std::string& name, const std::string& path) {
    if (!objects.insert(name).second) return;
    for (const ContractKey& row : contract_object(name).keys) {
      const std::string place = path.empty() ? row.key : path + "." + row.key;
      if (row.key == key && place != wrong) places.insert(place);
      follow(row.type, place);
    }
  }
  void follow(const ContractType& type, const std::string& path) {
    if (type.form == ContractType::Form::Object) visit(type.object, path);
    if (type.form != ContractType::Form::Either) return;
    for (const ContractType& form : type.of) follow(form, path);
  }
};

/// Counts the characters that a place shares with `near`, up to a whole key.
std::size_t shared(std::string_view place, const std::string& near) {
  const auto ends = std::mismatch(place.begin(), place.end(), near.begin(), near.end());
  const auto length = static_cast<std::size_t>(ends.first - place.begin());
  const std::size_t dot = place.substr(0, length).rfind('.');
  return dot == std::string_view::npos ? 0 : dot;
}

}  // namespace

std::vector<std::string> places_of_key(std::string_view key, std::string_view near) {
  std::string way(near.substr(std::min<std::size_t>(near.size(), 1)));
  std::ranges::replace(way, '/', '.');
  way += '.';
  Walk walk{.key = key, .wrong = way + std::string(key), .places = {}, .objects = {}};
  walk.visit("", "");
  std::size_t most = 0;
  for (const std::string& place : walk.places) most = std::max(most, shared(place, way));
  std::vector<std::string> nearest;
  for (const std::string& place : walk.places) {
    if (shared(place, way) == most) nearest.push_back(place);
  }
  // Keys of these sections repeat those of others, and are seldom meant elsewhere.
  const auto repeats = [](const std::string& place) {
    return place.starts_with("search.") || place.starts_with("workload.");
  };
  if (!std::ranges::all_of(nearest, repeats)) std::erase_if(nearest, repeats);
  return nearest.size() <= kMostPlaces ? nearest : std::vector<std::string>{};
}

Error with_places_of_keys(const Error& error) {
  std::string text = error.what();
  std::vector<Diagnostic> mistakes = error.mistakes();
  for (Diagnostic& mistake : mistakes) {
    if (!mistake.message.starts_with(kUnknown)) continue;
    const std::size_t slash = mistake.path.rfind('/');
    std::vector<std::string> places =
        places_of_key(mistake.path.substr(slash + 1), mistake.path.substr(0, slash));
    if (places.empty()) continue;
    for (std::string& place : places) place = in_quotes(place);
    const std::string before = mistake.text();
    mistake.message = "unknown key; did you mean " + join_choices(places) + "?";
    text.replace(text.find(before), before.size(), mistake.text());
  }
  return {text, mistakes};
}

}  // namespace interlock
