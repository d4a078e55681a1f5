// ExchangeLowering: computes with what their devices exchange before, beside and after them.
// SPDX-License-Identifier: Apache-2.0
//
// An op that exchanges is cut into equal pieces, as many as its most frequent exchange has turns.
// What runs beside the kernels begins before a piece and is waited for after it; what does not is
// begun and waited for after it. Stash of layers passes to the host beside the layers that come
// next, and back beside those before. Where nothing else uses the links of an axis and one member
// of each of its groups is simulated, all that is known beforehand, and pieces are written as one.
// Tokens that pass to experts and back beside kernels make steps of pieces (sim/plan/passages.h);
// those of two ops of a pair take turns.
//
// Example: a backward of 12 ms gathers weights in three turns, one of them ahead, and sends
// gradients in two. It becomes: begin gathers 0 and 1, wait for 0, 4 ms; begin gather 2, wait for
// 1, 4 ms, begin send 0; wait for gather 2, 4 ms, begin send 1. Weights come in the order of their
// modules: those of another layout (sim/plan/layer_layouts.h) when those before them have come. If
// gather 1 is of another one: begin 0, wait for it, begin 1, 4 ms; wait for 1, begin 2, 4 ms; ...
#pragma once

#include <array>
#include <map>
#include <optional>
#include <vector>

#include "sim/lower/instruction_writer.h"
#include "sim/lower/op_cost.h"
#include "sim/lower/wiring.h"

namespace interlock {

/// The parts of a program that lowering may leave out.
struct Brevity {
  std::array<bool, kMeshAxes> inside = {};  // exchanges along an axis are part of their op
  bool once = false;   // each exchange once, whatever its count: only links are asked for
  bool alone = false;  // folded ranks do not meet those that they stand for
};

class ExchangeLowering {
 public:
  ExchangeLowering(const LowerInputs& inputs, const Brevity& brevity, Wiring& wiring,
                   InstructionWriter& writer, Program& program);

  void compute(const Op& op, const ComputePiece& piece);
  /// Lowers a forward and a backward whose tokens pass beside each other's kernels.
  void compute_pair(const Op& forward, const ComputePiece& first, const Op& backward,
                    const ComputePiece& second);
  /// Begins all of `exchanges`, a generation of `window` micro-batches.
  void begin(const Op& op, const std::vector<Exchange>& exchanges, int window);
  /// Ends what begin(), or `sends`, began for the generation of `micro_batch`.
  void end(const Op& op, const std::vector<Exchange>& exchanges, int window, int micro_batch);
  /// Makes each turn of `answer` begin when that of `exchange` is done.
  void answer(const Op& op, const Exchange& exchange, const Exchange& answer, int window);
  /// Begins to copy stash between the device and its host, for the micro-batch of `op`. The memory
  /// that it leaves is given back when the copy is done.
  void begin_host_copy(const Op& op, const Exchange& copy);
  /// Returns the event of what pipeline ranks exchange for each micro-batch.
  int event_of(const Op& op, const Exchange& exchange, VocabularyExchange what);
  void end_host_copy(const Op& op, const Exchange& copy);
  /// Returns whether a device holds what a stage sends in buffers apart from the gradients that it
  /// keeps. There are two of them: one is filled while the other is reduced.
  bool is_buffered(int stage, const Exchange& sent) const {
    return !inputs_.stages[stage].adds_up_whole_gradients &&
           sent.kind == CollectiveKind::ReduceScatter;
  }

 private:
  /// Send: gradients that an update waits for. SendOne: those of one micro-batch of several.
  enum class Purpose { Apart, Beside, Gather, Send, SendOne, Copy, There, Back };
  static bool sends(Purpose purpose) {
    return purpose == Purpose::Send || purpose == Purpose::SendOne;
  }
  static bool passes(Purpose purpose) {
    return purpose == Purpose::There || purpose == Purpose::Back;
  }
  static Purpose purpose_of(const Exchange& exchange);
  /// An exchange of an op, all of its count.
  struct Part {
    Purpose purpose = Purpose::Apart;
    Exchange exchange;
    int collective = -1;
    OpKind kind = OpKind::F;  // of the piece; what is sent is waited for by another op
    int window = 1;
    int skipped = -1;                            // turn that has nothing to carry
    std::vector<int> places = {};                // of weights, see WeightGather
    std::vector<int> begins = {};                // of these: the place before which each begins
    bool inside = false;                         // known beforehand
    Seconds done = {};                           // inside: its turn
    std::optional<MemoryClass> gives_back = {};  // its bytes, when a turn is done
  };
  struct Key {
    int collective = 0, op = 0, kind = 0, loss = 0, purpose = 0, turn = 0, window = 1;
    auto operator<=>(const Key&) const = default;
  };
  /// The device since the ops at work began: its kernels, and messages whose times are known.
  struct Clock {
    Seconds time;
    std::map<int, Seconds> communicator_free;
  };
  /// An op at work, and what of it is not written out yet.
  struct Progress {
    const Op* op = nullptr;
    std::vector<Part> parts;
    OpInfo info;                // with the flops of one piece
    Seconds alone;              // all of its kernels
    int turns = 0;              // layers whose tokens pass beside kernels
    int modules = 1;            // whose weights are gathered
    int pieces = 1;             // in all
    int cuts = 1;               // pieces of a step
    int piece = 0;              // that comes next
    Seconds since;              // it has the device since then, or has been written out
    Seconds earlier;            // time of the device before that
    Seconds kernels;            // of both, of its kernels
    double unwritten = 0;       // pieces
    std::map<int, int> inside;  // collectives
  };

  std::vector<Part> parts_of(const Op& op, const ComputePiece& piece);
  Progress begin(const Op& op, const ComputePiece& piece);
  static void cut(Progress& progress, int steps);
  void run(const std::vector<PassageStep>& steps, std::vector<Progress>& ops);
  void hand_over(Progress& from, Progress& to, bool known);
  void run_kernels(Seconds time, Progress& progress);
  void pass(const PassageStep& step, Progress& progress);
  void gather_weights(Progress& progress);
  void before_piece(Part& part, Progress& progress);
  void after_piece(Part& part, Progress& progress);
  void pass_inside(Part& part, Progress& progress);
  void write_out(Progress& progress);
  Part part_of(const Op& op, Purpose purpose, const Exchange& exchange);
  int event_of(const Op& op, const Part& part, int turn);
  void put(Opcode code, const Op& op, const Part& part, int turn);

  const LowerInputs& inputs_;
  const Brevity& brevity_;
  Wiring& wiring_;
  InstructionWriter& writer_;
  Program& program_;
  int stages_of_replica_;
  Clock clock_;
  std::map<Key, int> events_;
};

}  // namespace interlock
