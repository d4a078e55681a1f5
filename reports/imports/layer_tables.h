// Layer tables: what other systems' profilers measured of layers, as models of kind "profile".
// SPDX-License-Identifier: Apache-2.0
//
// PipeDream's profiler writes a graph: a line for each node,
//   node2 -- Conv2d(...) -- forward_compute_time=22.3, backward_compute_time=24.6,
//     activation_size=1644167168.0, parameter_size=7168.0
// (ms and bytes, of one batch) and a line for each edge, "node1 -- node2". Nodes become modules in
// an order in which each comes after those that it reads. What a module hands on is every tensor
// that it or an earlier one made and a later one reads, once: in a pipeline, tensors that skip
// stages are passed on by those between. A module keeps what it made until its backward.
// Example: node3 makes 200 bytes, node2 before it 400, which node4 reads, too. The module "node3
// MaxPool2d" has an output of 600 bytes and a stash of 200.
//
// Chimera's and PipeFisher's profiles are tables of one block: a row for each micro-batch size
// (bs), time_f and time_b in ms, mem_param and mem_act in MiB; other columns are not used.
//
// Neither tells the halves of a backward apart: they are equal, but without weights all of it is
// for the input.
// Source: github.com/msr-fiddle/pipedream (profiler), github.com/Shigangli/Chimera (prof).
#pragma once

#include <string>
#include <vector>

#include "base/units.h"

namespace interlock {

struct TableModule {
  std::string name;
  int repeat = 1;
  Seconds forward, backward;
  Bytes output, stash, parameters;
};

/// Reads the modules of a graph. `cells`: nodes between two places where one tensor alone is handed
/// on are one module.
/// Throws: Error that names the line which is no node or edge, or says that edges go round.
std::vector<TableModule> read_pipedream_graph(const std::string& text, const std::string& file,
                                              bool cells);

struct ChimeraChoice {
  int batch = 1;   // the row
  int blocks = 1;  // of the model, all alike
  Bytes output;    // between blocks, which the table does not know
};
/// Throws: Error if a column or the row is not there.
std::vector<TableModule> read_chimera_blocks(const std::string& text, const std::string& file,
                                             const ChimeraChoice& choice);

/// Writes a model file of `modules`. `source`: what it was made of.
std::string profile_json(const std::vector<TableModule>& modules, const std::string& source);

}  // namespace interlock
