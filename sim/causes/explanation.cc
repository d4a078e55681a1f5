// Bubbles and the critical path, of a mean step.
// SPDX-License-Identifier: Apache-2.0
#include "sim/causes/explanation.h"

namespace interlock {
namespace {

PathUse use_of(const std::vector<PathPart>& path, const Program& program, const TraceLog& log,
               int steps) {
  PathUse use;
  for (const PathPart& part : path) {
    const double seconds = (part.end - part.begin).value() / steps;
    switch (part.node.kind) {
      case TraceNode::Kind::Span: {
        const OpKind kind = program.ops[log.spans[part.node.index].op].kind;
        use.ops[static_cast<std::size_t>(kind)] += seconds;
        break;
      }
      case TraceNode::Kind::Transfer:
        use.messages += seconds;
        break;
      case TraceNode::Kind::Collective:
        use.collectives += seconds;
        break;
      case TraceNode::Kind::Begin:
        use.unknown += seconds;
        break;
    }
  }
  return use;
}

}  // namespace

std::optional<Explanation> explain(const Program& program, const TraceLog& log,
                                   const TimeWindow& window, int steps) {
  const std::optional<Causes> causes = find_causes(program, log);
  if (!causes) return std::nullopt;
  Explanation explanation{
      .devices = find_bubbles(program, log, *causes, window),
      .path = use_of(critical_path(log, *causes, window.begin, window.end), program, log, steps)};
  for (Bubbles& bubbles : explanation.devices) {
    for (double& seconds : bubbles) seconds /= steps;
  }
  return explanation;
}

}  // namespace interlock
