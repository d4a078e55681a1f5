// ExchangeLowering: computes with what their devices exchange before, beside and after them.
// SPDX-License-Identifier: Apache-2.0
//
// An op that exchanges is cut into equal pieces, as many as its most frequent exchange has turns.
// What runs beside the kernels begins before a piece and is waited for after it; what does not is
// begun and waited for after it. Where nothing else uses the links of an axis and one member of
// each of its groups is simulated, all that is known beforehand, and pieces are written as one.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <vector>

#include "sim/lower/instruction_writer.h"
#include "sim/lower/wiring.h"

namespace interlock {

/// The parts of a program that lowering may leave out.
struct Brevity {
  std::array<bool, kMeshAxes> inside = {};  // exchanges along an axis are part of their op
  bool once = false;   // each exchange once, whatever its count: only links are asked for
  bool alone = false;  // folded ranks do not meet those that they stand for
};

/// A compute and what goes with it.
struct ComputePiece {
  OpKind kind = OpKind::F;
  OpCost cost;
  bool useful = false;
  double share = 1;                    // of the time that its kernels take alone
  std::vector<Exchange> gathers = {};  // one of their count must be done before so much of the op
  std::vector<Exchange> sends = {};    // one of their count begins after so much of the op
  bool sends_all = false;              // `sends` are of all micro-batches of an update, not of one
};

class ExchangeLowering {
 public:
  ExchangeLowering(const LowerInputs& inputs, const Brevity& brevity, Wiring& wiring,
                   InstructionWriter& writer, Program& program);

  void compute(const Op& op, const ComputePiece& piece);
  /// All of `exchanges`, a generation of `window` micro-batches.
  void begin(const Op& op, const std::vector<Exchange>& exchanges, int window);
  /// Ends what begin(), or `sends`, began for the generation of `micro_batch`.
  void end(const Op& op, const std::vector<Exchange>& exchanges, int window, int micro_batch);
  /// Each turn of `answer` will begin when that of `exchange` is done.
  void answer(const Op& op, const Exchange& exchange, const Exchange& answer, int window);
  /// Between the device and its host, for the micro-batch of `op`: stash, which the memory that it
  /// leaves gives back when the copy is done.
  void begin_copy(const Op& op, const Exchange& copy);
  void end_copy(const Op& op, const Exchange& copy);
  /// Returns whether a device holds what a stage sends in buffers apart from the gradients that it
  /// keeps. There are two of them: one is filled while the other is reduced.
  bool is_buffered(int stage, const Exchange& sent) const {
    return !inputs_.stages[stage].adds_up_whole_gradients &&
           sent.kind == CollectiveKind::ReduceScatter;
  }

 private:
  /// Send: gradients that an update waits for. SendOne: those of one micro-batch of several.
  enum class Purpose { Apart, Beside, Gather, Send, SendOne, Copy };
  static bool sends(Purpose purpose) {
    return purpose == Purpose::Send || purpose == Purpose::SendOne;
  }
  /// An exchange of an op, all of its count.
  struct Part {
    Purpose purpose = Purpose::Apart;
    Exchange exchange;
    int collective = -1;
    OpKind kind = OpKind::F;  // of the piece; what is sent is waited for by another op
    int window = 1;
    bool inside = false;                         // known beforehand
    Seconds done = {};                           // Beside and inside: its turn
    std::optional<MemoryClass> gives_back = {};  // its bytes, when a turn is done
  };
  struct Key {
    int collective = 0, op = 0, kind = 0, loss = 0, purpose = 0, turn = 0, window = 1;
    auto operator<=>(const Key&) const = default;
  };
  /// How far an op has come since its start, and what of that is not written out yet.
  struct Progress {
    OpInfo info;  // with the flops of one piece
    Seconds time;
    std::map<int, Seconds> communicator_free;
    Seconds written, kernels;   // up to where; kernels since then
    int pieces = 0;             // since then
    std::map<int, int> inside;  // collectives since then
  };

  std::vector<Part> parts_of(const Op& op, const ComputePiece& piece);
  void before_piece(const Op& op, Part& part, int piece, Progress& progress);
  void after_piece(const Op& op, Part& part, int piece, Progress& progress);
  void pass_inside(Part& part, Progress& progress);
  void write_out(const Op& op, Progress& progress);
  Part part_of(const Op& op, Purpose purpose, const Exchange& exchange);
  int event_of(const Op& op, const Part& part, int turn);
  void put(Opcode code, const Op& op, const Part& part, int turn);

  const LowerInputs& inputs_;
  const Brevity& brevity_;
  Wiring& wiring_;
  InstructionWriter& writer_;
  Program& program_;
  int stages_of_replica_;
  int pieces_ = 1;  // of the op at work
  std::map<Key, int> events_;
};

}  // namespace interlock
