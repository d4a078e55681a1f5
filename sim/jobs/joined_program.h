// Joined programs: several jobs as one program, whose ranks lie side by side on one cluster.
// SPDX-License-Identifier: Apache-2.0
//
// Jobs meet on links. The joined program has all that each of them has, with numbers that go on
// where those of the job before end; links of one name are one link, which the wires of all jobs
// cross. An engine runs it like any other program. Its trace is parted by job, in each job's own
// numbers, so that what reads the run of one job needs no change. A
// job that shares no link does what it does alone, to the tick; but where a rank chooses its order,
// which of its streams is first at a tie may be another.
//
// Example: two jobs of two ranks each, both of which send over the link "leaf0 up".
//   job 0   ranks 0, 1   wire 0 over links 0 "node0 nic0 up", 1 "leaf0 up"
//   job 1   ranks 0, 1   wire 0 over links 0 "node1 nic0 up", 1 "leaf0 up"
//   joined  ranks 0 to 3, wires 0 and 1, links 0 "node0 nic0 up", 1 "leaf0 up", 2 "node1 nic0 up";
//           wires 0 and 1 share link 1. Rank 3 of its trace is rank 1 of job 1.
#pragma once

#include <vector>

#include "sim/program/trace.h"

namespace interlock {

/// The numbers with which the parts of a job begin in the joined program.
struct JobBegin {
  int rank = 0, stream = 0, segment = 0, instruction = 0, stage = 0, op = 0;
  int channel = 0, wire = 0, buffer = 0, event = 0, collective = 0, communicator = 0;
};

struct JoinedProgram {
  Program program;  // its steps and micro-batches are 1: those of jobs differ
  std::vector<JobBegin> begins;
  std::vector<int> ranks;  // of each job; what is between them and the next job's is a clock
  std::vector<std::vector<int>> links;  // by job, then by its own link: the joined program's
};

/// Joins `jobs`, and marks the links that they share. `starts`: when each begins; empty: at once. A
/// job that begins later has a clock behind its ranks, for which all of its streams wait at first.
/// REQUIRES: they have equal ticks, stand for no others, do not vary and are not frozen; links of
/// one name are alike.
JoinedProgram join(const std::vector<Program>& jobs, const std::vector<Seconds>& starts = {});

/// Returns a sink that hands what happens to each job to its own of `sinks`, in its own numbers.
/// Both outlive it.
TraceSink parted(const JoinedProgram& joined, const std::vector<TraceSink>& sinks);

}  // namespace interlock
