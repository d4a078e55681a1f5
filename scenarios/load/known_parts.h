// KnownParts: parts of documents that were read before.
// SPDX-License-Identifier: Apache-2.0
//
// A search loads thousands of documents that name one machine, framework and model. Each part is
// read once for equal text at an equal place; what is returned, and what is reported, is what
// reading it again would give. Not for several threads at once.
//
// Example: two documents have "cluster": {"machine": "dgx-a100-80g"}. cluster() reads it once, and
// returns the same Cluster for the second. Models of one text are built once for each BuildOptions:
// those of micro-batches of 1 and of 2 samples are two.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/framework.h"
#include "base/json/json.h"
#include "hardware/networks/cluster.h"
#include "models/layers/model_graph.h"
#include "models/model_file.h"

namespace interlock {

class KnownParts {
 public:
  /// Each returns what the reader of that part returns, and adds its diagnostics.
  Cluster cluster(const JsonNode& node, Diagnostics& diagnostics);
  Framework framework(const JsonNode& node, Diagnostics& diagnostics);
  ModelGraph model(const JsonNode& node, const BuildOptions& options, Diagnostics& diagnostics);
  /// Returns whether the model that was asked for last cannot be built.
  bool refused_model() const { return refused_model_; }

 private:
  template <class Part>
  struct Known {
    std::shared_ptr<const JsonValue> text;
    std::string path;
    Part part;
  };
  struct BuiltModel {
    BuildOptions options;
    std::shared_ptr<const JsonValue> head;  // to which the options point
    ModelGraph graph;
    Diagnostics mistakes;
  };
  /// A description, and the models that were built of it.
  struct Description {
    std::optional<ModelObject> object;
    Diagnostics mistakes;
    std::list<BuiltModel> built;  // the one that was asked for last comes first
  };

  template <class Part>
  static Part* find(std::list<Known<Part>>& known, const JsonNode& node);
  template <class Part, class Read>
  static Part read_once(std::list<Known<Part>>& known, const JsonNode& node,
                        Diagnostics& diagnostics, Read read);

  std::list<Known<Cluster>> clusters_;
  std::list<Known<Framework>> frameworks_;
  std::list<Known<Description>> descriptions_;
  bool refused_model_ = false;
};

}  // namespace interlock
