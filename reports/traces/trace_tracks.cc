// Deals spans, transfers and collectives to tracks.
// SPDX-License-Identifier: Apache-2.0
#include "reports/traces/trace_tracks.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "reports/headlines/headlines.h"
#include "reports/words/mesh_words.h"
#include "sim/measure/steady.h"

namespace interlock {
namespace {

constexpr std::int64_t kTickRounding = 1;

/// `slices` of one kind and place as tracks named `track.name`, the second and later numbered.
void append(std::vector<Track>& tracks, const Track& track, std::vector<Slice> slices) {
  int number = 1;
  for (std::vector<Slice>& lane : without_overlap(std::move(slices))) {
    Track one = track;
    if (number > 1) one.name += " (" + std::to_string(number) + ")";
    ++number;
    one.slices = std::move(lane);
    tracks.push_back(std::move(one));
  }
}

/// Returns the entries of a list of the log by the place that `place_of` finds; below 0: none.
template <class Entry>
std::vector<std::vector<Slice>> by_place(const std::vector<Entry>& entries, std::size_t places,
                                         const std::function<int(const Entry&)>& place_of) {
  std::vector<std::vector<Slice>> slices(places);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const int place = place_of(entries[i]);
    if (place < 0) continue;
    slices[place].push_back(
        {nanoseconds(entries[i].start), nanoseconds(entries[i].end), static_cast<std::int32_t>(i)});
  }
  return slices;
}

std::string wire_name(const Program& program, const std::vector<int>& devices, int wire) {
  const Wire& way = program.wires[wire];
  std::string name = "device " + std::to_string(devices.at(way.from_rank)) + " to device " +
                     std::to_string(devices.at(way.to_rank));
  if (way.links.size() == 1) name += ", link " + program.links.at(way.links[0]).name;
  return name;
}

void add_communicators(const ScenarioResult& result, bool copies, std::vector<Track>& tracks) {
  const Program& program = result.measurement.program;
  const std::vector<int> devices = device_numbers(result.plan);
  std::vector<const Collective*> any(program.communicators.size());
  for (const Collective& collective : program.collectives)
    any[collective.communicator] = &collective;
  std::vector<std::vector<Slice>> communicators =
      by_place<CollectiveSpan>(result.measurement.log.collectives, program.communicators.size(),
                               [&](const CollectiveSpan& span) {
                                 return program.collectives[span.collective].communicator;
                               });
  for (std::size_t communicator = 0; communicator < communicators.size(); ++communicator) {
    if (communicators[communicator].empty() || is_host(any[communicator]->axis) != copies) continue;
    std::vector<int> members;
    for (const int rank : program.communicators[communicator].ranks)
      members.push_back(devices.at(rank));
    Track track{.kind = copies ? TrackKind::Copy : TrackKind::Collective,
                .name = name_of(any[communicator]->axis),
                .rank = copies ? program.communicators[communicator].ranks.front() : -1,
                .communicator = static_cast<int>(communicator)};
    if (copies) track.name = "copies " + track.name;
    if (!copies) track.name += members.size() == 1 ? ", device " : ", devices ";
    if (!copies) track.name += list_stages(members);
    append(tracks, track, std::move(communicators[communicator]));
  }
}

}  // namespace

std::int64_t nanoseconds(Seconds time) {
  constexpr double kMost = 9e18;
  const double count = time.value() * 1e9;
  if (!(std::abs(count) < kMost)) {
    throw Error("a timeline in nanoseconds reaches 285 years, and this run takes " + format(time) +
                "; expected a shorter one");
  }
  return std::llround(count);
}

std::vector<std::vector<Slice>> without_overlap(std::vector<Slice> slices) {
  std::stable_sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
    return std::pair(a.start, a.end) < std::pair(b.start, b.end);
  });
  std::vector<std::vector<Slice>> tracks;
  for (Slice slice : slices) {
    const auto fits = [&](const std::vector<Slice>& track) {
      return track.back().end <= slice.start + kTickRounding && track.back().end <= slice.end;
    };
    auto track = std::find_if(tracks.begin(), tracks.end(), fits);
    if (track == tracks.end()) track = tracks.insert(track, std::vector<Slice>());
    if (!track->empty()) slice.start = std::max(slice.start, track->back().end);
    track->push_back(slice);
  }
  return tracks;
}

std::vector<Track> lay_tracks(const ScenarioResult& result) {
  const Program& program = result.measurement.program;
  const TraceLog& log = result.measurement.log;
  const std::vector<int> devices = device_numbers(result.plan);
  std::vector<Track> tracks;
  auto ranks = by_place<Span>(log.spans, program.ranks.size(),
                              [](const Span& span) { return static_cast<int>(span.rank); });
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    append(tracks, {.name = "compute", .rank = static_cast<int>(rank)}, std::move(ranks[rank]));
  }
  add_communicators(result, true, tracks);
  auto wires = by_place<Transfer>(
      log.transfers, program.wires.size(),
      [&](const Transfer& transfer) { return program.channels[transfer.channel].wire; });
  for (std::size_t wire = 0; wire < wires.size(); ++wire) {
    const int number = static_cast<int>(wire);
    if (wires[wire].empty()) continue;
    append(tracks,
           {.kind = TrackKind::Wire, .name = wire_name(program, devices, number), .wire = number},
           std::move(wires[wire]));
  }
  add_communicators(result, false, tracks);
  return tracks;
}

std::vector<std::int64_t> step_ends(const Program& program, const TraceLog& log) {
  StepLog steps(program);
  for (const Span& span : log.spans) steps.add(span);
  std::vector<std::int64_t> ends;
  std::int64_t last = 0;
  for (int step = 0; step < steps.steps(); ++step) {
    last = std::max(last, nanoseconds(steps.end(step)));
    ends.push_back(last);
  }
  return ends;
}

}  // namespace interlock
