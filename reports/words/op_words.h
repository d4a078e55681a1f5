// OpWords: what ops and messages are called in timelines.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/program/program.h"

namespace interlock {

/// Returns the label of each op: "F", or "2F" (of stage 2) if its rank has several stages.
inline std::vector<std::string> op_labels(const Program& program) {
  std::vector<bool> several(static_cast<std::size_t>(program.stages), false);
  for (const Rank& rank : program.ranks) {
    for (const int stage : rank.stages) several[stage] = rank.stages.size() > 1;
  }
  std::vector<std::string> labels;
  for (const OpInfo& op : program.ops) {
    const std::string stage = std::to_string(model_stage(program, op.stage));
    labels.push_back((several[op.stage] ? stage : "") + letter(op.kind));
  }
  return labels;
}

/// Returns one word for each kind of op, as traces name kinds of events.
constexpr const char* category(OpKind kind) {
  switch (kind) {
    case OpKind::F:
      return "forward";
    case OpKind::H:
      return "head";
    case OpKind::R:
      return "recompute";
    case OpKind::I:
      return "backward_input";
    case OpKind::B:
      return "backward";
    case OpKind::W:
      return "backward_weight";
    case OpKind::U:
      return "update";
    case OpKind::S:
      return "logits";
    case OpKind::T:
      return "logits_backward";
    case OpKind::E:
      return "embedding";
    case OpKind::G:
      return "embedding_backward";
  }
  return "";
}

constexpr const char* name_of(Cargo cargo) {
  switch (cargo) {
    case Cargo::Activation:
      return "activation";
    case Cargo::Gradient:
      return "gradient";
    case Cargo::Readout:
      return "readout";
    case Cargo::Copy:
      return "copy";
    case Cargo::Context:
      return "context";
    case Cargo::Weights:
      return "weights";
    case Cargo::Sums:
      return "weight gradients";
  }
  return "";
}

}  // namespace interlock
