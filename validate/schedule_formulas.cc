// The formulas, one line each.
// SPDX-License-Identifier: Apache-2.0
//
// Where they come from. Without a flush in the way every device works all the time: bubble 0. With
// one, p - 1 forwards and backwards of fill and drain are idle, 3(p - 1) of 3(m + p - 1); v stages
// a device make them v times shorter (arXiv 2104.04473). Weight gradients that fill them leave p -
// 1 of 3m + p - 1 (ZB-H1; half of it where stages are half as long) or nothing (ZB-H2, both arXiv
// 2401.10241; ZB-V, arXiv 2405.15362). DualPipe leaves (p/2 - 1)(F&B + B - 3W) (arXiv 2412.19437) =
// p - 2 where overlap gains nothing, and DualPipeV, on half as long stages, p - 1. Stashes count
// the forwards before the first backward. Hanayo's cells leave 2(p - 1) of the longer pass of a
// stage, here a backward of half a device's share: 2(p - 1) of 3m + 2(p - 1). One has no formula:
// Chimera's (p - 2)/(2m + p - 2) is for F = B (arXiv 2107.06925).
#include "validate/schedule_formulas.h"

#include <algorithm>

namespace interlock {

namespace {

double none(const PipelineShape&) { return 0; }
double one(const PipelineShape&) { return 1; }
double devices(const PipelineShape& s) { return s.devices; }
double all(const PipelineShape& s) { return s.micro_batches; }

/// The share of `idle` beside `busy` units of time.
double share(double idle, double busy) { return idle / (idle + busy); }

const Formula kNoBubble = {"0", none};
const Formula kFlush = {"(p - 1) / (m + p - 1)", [](const PipelineShape& s) {
                          return share(s.devices - 1, s.micro_batches);
                        }};
const Formula kHalfFlush = {"(p - 1) / (2m + p - 1)", [](const PipelineShape& s) {
                              return share(s.devices - 1, 2.0 * s.micro_batches);
                            }};
const Formula kThirdFlush = {"(p - 1) / (3m + p - 1)", [](const PipelineShape& s) {
                               return share(s.devices - 1, 3.0 * s.micro_batches);
                             }};
const Formula kWave = {"2(p - 1) / (3m + 2(p - 1))", [](const PipelineShape& s) {
                         return share(2.0 * (s.devices - 1), 3.0 * s.micro_batches);
                       }};
const Formula kSixthFlush = {"(p - 1) / (6m + p - 1)", [](const PipelineShape& s) {
                               return share(s.devices - 1, 6.0 * s.micro_batches);
                             }};
const Formula kAlone = {"1 - 1/p", [](const PipelineShape& s) { return 1 - 1.0 / s.devices; }};
const Formula kAloneSplit = {"1 - 3 / (2p + 1)",
                             [](const PipelineShape& s) { return 1 - 3.0 / (2 * s.devices + 1); }};
const Formula kTwoWay = {"(p - 2) / (3m + p - 2)", [](const PipelineShape& s) {
                           return share(s.devices - 2, 3.0 * s.micro_batches);
                         }};
const Formula kSlices = {"(p - 1) / (4m + p - 1), of 4 slices", [](const PipelineShape& s) {
                           return share(s.devices - 1, 4.0 * s.micro_batches);
                         }};

const Formula kOne = {"1", one};
const Formula kAll = {"m", all};
const Formula kDevices = {"p", devices};
const Formula kTwice = {"min(2p - 1, m)", [](const PipelineShape& s) -> double {
                          return std::min(2 * s.devices - 1, s.micro_batches);
                        }};
const Formula kLoops = {"p + (p - 1)/2",
                        [](const PipelineShape& s) { return s.devices + (s.devices - 1) / 2.0; }};
const Formula kInputs = {"p - 1", [](const PipelineShape& s) { return s.devices - 1.0; }};
const Formula kHalfChunks = {"p + 1/2", [](const PipelineShape& s) { return s.devices + 0.5; }};
const Formula kMirrored = {"p + 1", [](const PipelineShape& s) { return s.devices + 1.0; }};

}  // namespace

const std::vector<ScheduleFormulas>& schedule_formulas() {
  static const std::vector<ScheduleFormulas> formulas = {
      {"naive", kAlone, kOne},
      {"naive-split", kAloneSplit, kOne},
      {"gpipe", kFlush, kAll},
      {"terapipe", kSlices, kAll},
      {"1f1b", kFlush, kDevices},
      {"eager-1f1b", kFlush, kTwice},
      {"interleaved", kHalfFlush, kLoops},
      {"breadth-first", kHalfFlush, kAll},
      {"zb-h1", kThirdFlush, kDevices},
      {"zb-h2", kNoBubble, kTwice},
      {"interleaved-zb", kSixthFlush, kDevices},
      {"zb-v", kNoBubble, kDevices},
      {"chimera", {}, kDevices},
      {"hanayo", kWave, kDevices},
      {"dualpipe", kTwoWay, kMirrored},
      {"dualpipe-v", kThirdFlush, kHalfChunks},
      {"pipedream", kNoBubble, kDevices},
      {"pipedream-2bw", kNoBubble, kDevices},
      {"pipelined-backprop", kNoBubble, kDevices},
      {"ddg", kNoBubble, kDevices},
      {"features-replay", kNoBubble, kInputs},
      {"petra", kNoBubble, kOne},
      {"eager", kNoBubble, kOne},
      {"list", kNoBubble, kOne},
      {"dgl", kNoBubble, kOne},
      {"ppll", kNoBubble, kOne},
  };
  return formulas;
}

ScheduleFormulas formulas_of(const std::string& schedule) {
  const auto& all_known = schedule_formulas();
  const auto found = std::find_if(all_known.begin(), all_known.end(),
                                  [&](const auto& known) { return known.schedule == schedule; });
  return found == all_known.end() ? ScheduleFormulas{schedule, {}, {}} : *found;
}

}  // namespace interlock
