// Palette: the colour and the words of every op letter and memory class, in all pictures alike.
// SPDX-License-Identifier: Apache-2.0
//
// Colours are those of Okabe and Ito, "Color Universal Design" (2008), which people with any form
// of colour blindness can tell apart; two greys are added. Dark text is readable on all but `F`.
#pragma once

#include <array>
#include <string>

#include "sim/plan/schedules/schedule.h"
#include "sim/program/program.h"

namespace interlock {

/// How a kind of op or a class of memory looks, and what it is called.
struct Swatch {
  const char* colour;   // "#rrggbb"
  const char* ink;      // text on it
  const char* meaning;  // for legends
};

/// Lines on an area, so that what has one colour can be told apart, in print and by every eye.
enum class Hatch { None, Rising, Falling, Upright, Level, Dots, Crossed };

inline constexpr std::array kOpKindsInOrder{OpKind::F, OpKind::H, OpKind::R, OpKind::I,
                                            OpKind::B, OpKind::W, OpKind::U, OpKind::S,
                                            OpKind::T, OpKind::E, OpKind::G};

constexpr Swatch swatch(OpKind kind) {
  switch (kind) {
    case OpKind::F:
      return {"#0072b2", "#ffffff", "forward"};
    case OpKind::H:
      return {"#cc79a7", "#000000", "auxiliary head"};
    case OpKind::R:
      return {"#e69f00", "#000000", "recompute"};
    case OpKind::I:
      return {"#56b4e9", "#000000", "backward, input half"};
    case OpKind::B:
      return {"#009e73", "#000000", "backward, full"};
    case OpKind::W:
      return {"#f0e442", "#000000", "backward, weight half"};
    case OpKind::U:
      return {"#d55e00", "#000000", "optimiser update"};
    case OpKind::S:
      return {"#cc79a7", "#000000", "logits of a part of the vocabulary"};
    case OpKind::T:
      return {"#e69f00", "#000000", "gradients of logits"};
    case OpKind::E:
      return {"#999999", "#000000", "embedding of a part of the vocabulary"};
    case OpKind::G:
      return {"#cccccc", "#000000", "gradients of the embedding"};
  }
  return {"#999999", "#000000", ""};
}

/// Returns the meaning of a kind of op in a program; turns on old inputs have the letter of
/// forwards that run again.
inline std::string meaning_in(const Program& program, OpKind kind) {
  bool replays = false, others = false;
  for (const OpInfo& op : program.ops) {
    if (op.kind == kind) (op.replay ? replays : others) = true;
  }
  std::string meaning = swatch(kind).meaning;
  if (!replays) return meaning;
  return (others ? meaning + " or " : "") + "replay of an old input";
}

/// Returns true if an op of the main network trains nothing on its stage: a gradient that only
/// passes through, a forward that runs again. Such ops are painted paler.
inline bool is_pale(const OpInfo& op) {
  const bool main =
      op.kind == OpKind::F || op.kind == OpKind::I || op.kind == OpKind::B || op.kind == OpKind::W;
  return main && !op.useful;
}

/// Returns a class of memory in one or two words, for tables.
constexpr const char* short_name(MemoryClass memory_class) {
  switch (memory_class) {
    case MemoryClass::Weights:
      return "weights";
    case MemoryClass::WeightVersions:
      return "weight versions";
    case MemoryClass::Gradients:
      return "gradients";
    case MemoryClass::Optimizer:
      return "optimiser";
    case MemoryClass::Stash:
      return "stash";
    case MemoryClass::Boundary:
      return "boundary";
    case MemoryClass::Head:
      return "head";
    case MemoryClass::Workspace:
      return "workspace";
    case MemoryClass::Communication:
      return "communication";
    case MemoryClass::HostStash:
      return "stash on the host";
  }
  return "";
}

constexpr Swatch swatch(MemoryClass memory_class) {
  switch (memory_class) {
    case MemoryClass::Weights:
      return {"#0072b2", "#ffffff", "weights"};
    case MemoryClass::WeightVersions:
      return {"#999999", "#000000", "extra weight versions"};
    case MemoryClass::Gradients:
      return {"#56b4e9", "#000000", "gradients"};
    case MemoryClass::Optimizer:
      return {"#009e73", "#000000", "optimiser state"};
    case MemoryClass::Stash:
      return {"#e69f00", "#000000", "activation stash"};
    case MemoryClass::Boundary:
      return {"#cc79a7", "#000000", "boundary tensors"};
    case MemoryClass::Head:
      return {"#d55e00", "#000000", "auxiliary head"};
    case MemoryClass::Workspace:
      return {"#f0e442", "#000000", "workspace"};
    case MemoryClass::Communication:
      return {"#cccccc", "#000000", "communication buffers"};
    case MemoryClass::HostStash:
      break;
  }
  return {"#999999", "#000000", ""};
}

}  // namespace interlock
