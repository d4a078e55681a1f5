// Exported plan: a plan read for another program, and what that program cannot say of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/transformer/transformer.h"
#include "scenarios/plan/plan.h"

namespace interlock {

class ExportedPlan {
 public:
  /// Notes everything that no training program but ours can say. `program`: its name in messages.
  ExportedPlan(const Plan& plan, std::string program);

  /// Notes that the plan cannot run there.
  void refuse(const std::string& path, const std::string& message);
  /// Notes that the key at `path` has no place in the file, without which the plan runs all the
  /// same.
  void leave_out(const std::string& path, const std::string& why);
  /// Refuses `path` if `wrong`.
  void refuse_if(bool wrong, const std::string& path, const std::string& message) {
    if (wrong) refuse(path, message);
  }
  /// Refuses what Megatron-Core alone does: ways of tokens to experts other than an all-to-all that
  /// everything waits for (or, if it runs `pairs` of micro-batches, that another one hides), and
  /// weight gradients that are put off.
  void refuse_megatron_ways(bool pairs = false);
  /// Leaves out kernels of the model and CUDA graphs, of which the program's file says nothing.
  void leave_out_kernels();
  /// Throws: Error with everything that was refused, if anything was.
  void throw_if_refused() const { refused_.throw_if_any(); }

  const Plan& plan() const { return *plan_; }
  const Question& question() const { return plan_->question; }
  /// Returns the transformer that is trained. REQUIRES: nothing was refused.
  const Transformer& shape() const { return *shape_; }
  /// Returns its name in the zoo; empty if it has none, or changed keys but for the sequence
  /// length.
  const std::string& zoo_name() const { return zoo_name_; }
  int degree(Dimension dimension) const { return question().layout.mesh.degree(dimension); }
  int micro_batch_size() const;
  int global_batch_size() const;
  /// Returns training.`key` of the scenario as a text; empty if it has none.
  std::string training_text(const char* key) const;
  /// Layers whose forward is computed again, from the model's start; nothing where all are, or
  /// none.
  std::optional<int> recomputed_layers() const;
  const std::vector<std::string>& left_out() const { return left_out_; }

 private:
  void read_model();
  void check_plan();
  void check_placement();
  void check_schedule();
  void check_tokens();

  const Plan* plan_;
  std::string program_, zoo_name_;
  std::optional<Transformer> shape_;
  Diagnostics refused_;
  std::vector<std::string> left_out_;
};

}  // namespace interlock
