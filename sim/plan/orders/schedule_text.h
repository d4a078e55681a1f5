// Schedules as text: the CSV form of PyTorch's torch.distributed.pipelining.
// SPDX-License-Identifier: Apache-2.0
//
// A row is a rank, a cell one op, `<stage><letter><micro-batch>`; an empty cell is an idle slot and
// means nothing, since time follows from the order. F is a forward, B a whole backward, I and W its
// input and weight halves. Older files write B for the input half: where a W of the same stage and
// micro-batch follows and the file has no I, B is read so. `(0F7;7B3)OVERLAP_F_B` is a pair that
// runs as one. A stage on two ranks has two copies, each for half of the micro-batches. Updates are
// not written: they end the step. What PyTorch adds for communication and sharded weights (SEND_F,
// RECV_F, SEND_B, RECV_B, UNSHARD, RESHARD, REDUCE_GRAD; `(0SEND_F0;2RECV_F0)BATCH_P2P`: messages
// that start together) must fit the compute and is then dropped.
#pragma once

#include <string>
#include <string_view>

#include "sim/plan/orders/schedule_check.h"

namespace interlock {

/// Returns the order that `text` writes, checked. Throws: Error in one sentence with `file`, line
/// and cell, and below it the rows around the cell.
StepOrder parse_schedule_text(std::string_view text, const std::string& file);

/// The messages that a text names. Batched: those that stand side by side, in one cell.
enum class TextMessages { None, Single, Batched };

/// Writes `order` in PyTorch's form, updates left out. Messages stand where PyTorch puts them: a
/// send behind its op, and the receive where the other rank is at that moment if every op takes a
/// turn.
std::string schedule_text(const StepOrder& order, TextMessages messages = TextMessages::None);

/// Returns the first step of `schedule`. Throws: Error in one sentence if the text form has no
/// words for it: a rank that chooses its order, token slices, heads, or updates before the end of
/// the step.
StepOrder first_step(const Schedule& schedule);

}  // namespace interlock
