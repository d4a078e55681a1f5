// SpaceChecks: documents and requests of which a search can make no space of plans.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "hardware/networks/cluster.h"
#include "scenarios/search/search_request.h"

namespace interlock {

/// Refuses unknown keys and names and values of wrong types of `document`, which every plan would
/// be refused for, before any plan is listed. Throws: Error with a line for each, as the loader
/// words it.
void refuse_unknown(const JsonValue& document);

/// Refuses overrides "path=VALUE" of what every plan chooses by itself, with what to write instead.
/// Throws: Error.
void refuse_chosen(const std::vector<std::string>& overrides);

// These throw Error, with the `file` of the document.

/// Refuses sections under which the time of a step alone does not measure a plan.
void refuse_sections(const JsonValue& document, const std::string& file);

/// Refuses what is itself a search: each plan would be searched anew.
void refuse_auto(const SearchRequest& request, const std::string& file);

/// Refuses a reserve that leaves tensors no memory of some device.
void refuse_reserve(const SearchRequest& request, const Cluster& cluster, const std::string& file);

/// Refuses an aim or a limit of a quantity that is unknown.
void require_known(const SearchRequest& request, const Cluster& cluster, const std::string& file);

}  // namespace interlock
