// From cause to cause, backwards.
// SPDX-License-Identifier: Apache-2.0
#include "sim/causes/critical_path.h"

#include <algorithm>

#include "base/error.h"

namespace interlock {
namespace {

using Kind = TraceNode::Kind;

/// Returns when `node` began, and why.
std::pair<Seconds, Cause> origin_of(const TraceNode& node, const TraceLog& log,
                                    const Causes& causes) {
  switch (node.kind) {
    case Kind::Span:
      return {log.spans[node.index].start, causes.spans[node.index]};
    case Kind::Transfer:
      return {log.transfers[node.index].start, causes.transfers[node.index]};
    case Kind::Collective:
      return {log.collectives[node.index].start, causes.collectives[node.index]};
    case Kind::Begin:
      break;
  }
  CHECK(false, "the start of a run has no cause");
}

/// A thing in a log, and when it was over.
struct LastNode {
  TraceNode node;
  Seconds end = Seconds(-kInfinity);

  /// Takes the thing, if it is over later than this one and by `latest`.
  void take(Kind kind, std::size_t index, Seconds over, Seconds latest) {
    if (over <= end || over > latest) return;
    *this = {{kind, static_cast<std::int32_t>(index)}, over};
  }
};

/// Returns what is over last by `end`: an op, or the exchange or message that a run ends with; if
/// several are at once, an op, and the first in the log.
LastNode last_node(const TraceLog& log, Seconds end) {
  LastNode last;
  for (std::size_t i = 0; i < log.spans.size(); ++i) {
    last.take(Kind::Span, i, log.spans[i].end, end);
  }
  for (std::size_t i = 0; i < log.collectives.size(); ++i) {
    last.take(Kind::Collective, i, log.collectives[i].end, end);
  }
  for (std::size_t i = 0; i < log.transfers.size(); ++i) {
    last.take(Kind::Transfer, i, log.transfers[i].arrival, end);
  }
  return last;
}

}  // namespace

std::vector<PathPart> critical_path(const TraceLog& log, const Causes& causes, Seconds begin,
                                    Seconds end) {
  std::vector<PathPart> path;
  auto [node, until] = last_node(log, end);
  if (until <= begin) return path;
  // Nothing is on a path twice, unless a trace contradicts its program.
  std::size_t left = log.spans.size() + log.transfers.size() + log.collectives.size();
  for (; left > 0 && node.kind != Kind::Begin && until > begin; --left) {
    const auto [began, cause] = origin_of(node, log, causes);
    const Seconds from = std::max(begin, std::min(began, until));
    if (from < until) path.push_back({node, from, until});
    until = from;
    if (cause.at < until) {  // the time in between has no known cause
      path.push_back({{}, std::max(begin, cause.at), until});
      until = path.back().begin;
    }
    node = cause.node;
  }
  if (until > begin) path.push_back({{}, begin, until});
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace interlock
