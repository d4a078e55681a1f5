// Writes one file for viewers of timelines.
// SPDX-License-Identifier: Apache-2.0
#include "reports/traces/trace_events.h"

#include <utility>
#include <vector>

#include "reports/headlines/headlines.h"
#include "reports/result/event_text.h"
#include "reports/traces/trace_counters.h"
#include "reports/traces/trace_tracks.h"
#include "reports/words/mesh_words.h"
#include "reports/words/op_words.h"

namespace interlock {
namespace {

/// Numbers of processes and threads.
struct Numbering {
  int ranks = 0;
  int links() const { return ranks + 1; }
  int collectives() const { return ranks + 2; }
  int steps() const { return ranks + 3; }
  int first_thread() const { return (ranks / 1000 + 1) * 1000; }  // above every process
  int process_of(const Track& track) const {
    if (track.kind == TrackKind::Wire) return links();
    return track.kind == TrackKind::Collective ? collectives() : track.rank + 1;
  }
};

/// The place of an op or a transfer.
struct Place {
  std::int32_t track = -1;
  std::int64_t start = 0, end = 0;
};

struct Drawing {
  const ScenarioResult& result;
  Numbering numbers;
  std::vector<Track> tracks;
  std::vector<Place> spans, transfers;  // by index in the log

  const Program& program() const { return result.measurement.program; }
  const TraceLog& log() const { return result.measurement.log; }
  int thread(std::size_t track) const {
    return numbers.first_thread() + 1 + static_cast<int>(track);
  }
};

Drawing draw(const ScenarioResult& result) {
  Drawing drawing{.result = result,
                  .numbers = {static_cast<int>(result.measurement.program.ranks.size())},
                  .tracks = lay_tracks(result),
                  .spans = std::vector<Place>(result.measurement.log.spans.size()),
                  .transfers = std::vector<Place>(result.measurement.log.transfers.size())};
  for (std::size_t t = 0; t < drawing.tracks.size(); ++t) {
    const Track& track = drawing.tracks[t];
    std::vector<Place>* places = track.kind == TrackKind::Compute ? &drawing.spans : nullptr;
    if (track.kind == TrackKind::Wire) places = &drawing.transfers;
    if (places == nullptr) continue;
    for (const Slice& slice : track.slices) {
      (*places)[slice.index] = {static_cast<std::int32_t>(t), slice.start, slice.end};
    }
  }
  return drawing;
}

void name_process(EventText& text, int process, const std::string& name, int order) {
  text.element() << R"({"ph":"M","name":"process_name","pid":)" << process << R"(,"args":{"name":)"
                 << json_string(name) << "}}";
  text.element() << R"({"ph":"M","name":"process_sort_index","pid":)" << process
                 << R"(,"args":{"sort_index":)" << order << "}}";
}

void name_thread(EventText& text, std::pair<int, int> place, const std::string& name, int order) {
  text.element() << R"({"ph":"M","name":"thread_name","pid":)" << place.first << R"(,"tid":)"
                 << place.second << R"(,"args":{"name":)" << json_string(name) << "}}";
  text.element() << R"({"ph":"M","name":"thread_sort_index","pid":)" << place.first << R"(,"tid":)"
                 << place.second << R"(,"args":{"sort_index":)" << order << "}}";
}

void write_names(EventText& text, const Drawing& drawing) {
  const Numbering& numbers = drawing.numbers;
  const std::vector<int> devices = device_numbers(drawing.result.plan);
  name_process(text, numbers.steps(), "steps", 0);
  name_thread(text, {numbers.steps(), numbers.first_thread()}, "steps", 0);
  for (int rank = 0; rank < numbers.ranks; ++rank) {
    const std::vector<int>& stages = drawing.result.measurement.metrics.devices.at(rank).stages;
    const std::string word = stages.size() == 1 ? " (stage " : " (stages ";
    const std::string name = "device " + std::to_string(devices.at(rank));
    name_process(text, rank + 1, name + (stages.empty() ? "" : word + list_stages(stages) + ")"),
                 rank + 1);
  }
  name_process(text, numbers.links(), "links", numbers.links());
  name_process(text, numbers.collectives(), "collectives", numbers.collectives());
  for (std::size_t t = 0; t < drawing.tracks.size(); ++t) {
    const Track& track = drawing.tracks[t];
    name_thread(text, {numbers.process_of(track), drawing.thread(t)}, track.name,
                static_cast<int>(t) + 1);
  }
}

/// `,"ts":...,"dur":...`
void write_times(EventText& text, const Slice& slice) {
  (text << R"(,"ts":)").micros(slice.start);
  (text << R"(,"dur":)").micros(slice.end - slice.start);
}

void write_span(EventText& text, const Drawing& drawing, const std::vector<std::string>& ops,
                const Slice& slice) {
  const Program& program = drawing.program();
  const Span& span = drawing.log().spans[slice.index];
  const SliceNumber number = slice_number(program, span.micro_batch % program.micro_batches);
  text << ops[span.op] << number.micro_batch;
  if (program.slices > 1) text << "." << number.slice;
  text << R"(","args":{"stage":)" << model_stage(program, program.ops[span.op].stage)
       << R"(,"micro_batch":)" << number.micro_batch << R"(,"step":)"
       << span.micro_batch / program.micro_batches;
  if (span.exposed > Seconds(0)) (text << R"(,"exposed_us":)").micros(nanoseconds(span.exposed));
  text << "}";
}

void write_transfer(EventText& text, const Drawing& drawing, const Slice& slice) {
  const Program& program = drawing.program();
  const Transfer& transfer = drawing.log().transfers[slice.index];
  const Channel& channel = program.channels[transfer.channel];
  const SliceNumber number = slice_number(program, transfer.micro_batch % program.micro_batches);
  text << R"({"ph":"X","cat":"message","name":")" << name_of(channel.cargo) << " "
       << number.micro_batch;
  if (program.slices > 1) text << "." << number.slice;
  text << R"(","args":{"from_stage":)" << model_stage(program, channel.from_stage)
       << R"(,"to_stage":)" << model_stage(program, channel.to_stage) << R"(,"step":)"
       << transfer.micro_batch / program.micro_batches << R"(,"bytes":)" << channel.bytes.value();
  (text << R"(,"waited_us":)").micros(nanoseconds(transfer.start - transfer.sent));
  (text << R"(,"latency_us":)").micros(nanoseconds(transfer.arrival - transfer.end));
  text << "}";
}

void write_collective(EventText& text, const Drawing& drawing, const Slice& slice) {
  const CollectiveSpan& span = drawing.log().collectives[slice.index];
  const Collective& collective = drawing.program().collectives[span.collective];
  text << R"({"ph":"X","cat":"collective","name":")" << name_of(collective.kind)
       << R"(","args":{"stage":)" << model_stage(drawing.program(), collective.stage)
       << R"(,"bytes":)" << collective.bytes.value();
  (text << R"(,"waited_us":)").micros(nanoseconds(span.start - span.joined));
  text << "}";
}

/// Returns how the event of each op begins, up to the micro-batch.
std::vector<std::string> op_beginnings(const Program& program) {
  std::vector<std::string> texts = op_labels(program);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    texts[i] = std::string(R"({"ph":"X","cat":")") + category(program.ops[i].kind) +
               R"(","name":")" + texts[i];
  }
  return texts;
}

void write_slices(EventText& text, const Drawing& drawing) {
  const std::vector<std::string> ops = op_beginnings(drawing.program());
  for (std::size_t t = 0; t < drawing.tracks.size(); ++t) {
    const Track& track = drawing.tracks[t];
    const std::string place = R"(,"pid":)" + std::to_string(drawing.numbers.process_of(track)) +
                              R"(,"tid":)" + std::to_string(drawing.thread(t));
    for (const Slice& slice : track.slices) {
      text.element();
      if (track.kind == TrackKind::Compute) {
        write_span(text, drawing, ops, slice);
      } else if (track.kind == TrackKind::Wire) {
        write_transfer(text, drawing, slice);
      } else {
        write_collective(text, drawing, slice);
      }
      text << place;
      write_times(text, slice);
      text << "}";
    }
  }
}

void write_steps(EventText& text, const Drawing& drawing) {
  const Metrics& metrics = drawing.result.measurement.metrics;
  const std::vector<std::int64_t> ends = step_ends(drawing.program(), drawing.log());
  std::int64_t begin = 0;
  for (std::size_t step = 0; step < ends.size(); ++step) {
    const int number = static_cast<int>(step), measured = number - metrics.fill_steps;
    const bool inside = 0 <= measured && measured < metrics.measured_steps;
    text.element() << R"({"ph":"X","cat":"step","name":"step )" << number << R"(","pid":)"
                   << drawing.numbers.steps() << R"(,"tid":)" << drawing.numbers.first_thread()
                   << R"(,"args":{"measured":)" << (inside ? "true}" : "false}");
    write_times(text, {begin, ends[step]});
    text << "}";
    begin = ends[step];
  }
}

/// One end, or the middle, of an arrow inside `place`.
void write_arrow_end(EventText& text, const Drawing& drawing, char phase, const Place& place) {
  const Track& track = drawing.tracks[place.track];
  text << R"(,"pid":)" << drawing.numbers.process_of(track) << R"(,"tid":)"
       << drawing.thread(place.track);
  // Viewers bind an arrow to the slice around its time; at the end of a slice it is over.
  (text << R"(,"ts":)").micros(phase == 's' ? place.end - 1 : place.start);
  text << "}";
}

/// Arrows of messages whose ends both take time: what does not cannot hold an arrow.
void write_arrows(EventText& text, const Drawing& drawing) {
  const std::vector<MessageEnds> ends = message_ends(drawing.program(), drawing.log());
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (ends[i].made < 0 || ends[i].used < 0 || drawing.transfers[i].track < 0) continue;
    const Place &from = drawing.spans[ends[i].made], &to = drawing.spans[ends[i].used];
    if (from.end <= from.start || to.end <= to.start) continue;
    const auto begin = [&](std::string_view how) {
      text.element() << R"({"cat":"message","name":"message","id":)"
                     << static_cast<std::int64_t>(i) + 1 << R"(,"ph":)" << how;
    };
    begin(R"("s")");
    write_arrow_end(text, drawing, 's', from);
    if (drawing.transfers[i].end > drawing.transfers[i].start) {
      begin(R"("t")");
      write_arrow_end(text, drawing, 't', drawing.transfers[i]);
    }
    begin(R"("f","bp":"e")");
    write_arrow_end(text, drawing, 'f', to);
  }
}

}  // namespace

TextSource trace_events(const ScenarioResult& result) {
  return [&result](const TextSink& out) {
    const Drawing drawing = draw(result);
    const Metrics& metrics = result.measurement.metrics;
    EventText text(out);
    text << R"({"displayTimeUnit":"ns","otherData":{"program":"interlock )" << INTERLOCK_VERSION
         << R"(","scenario":)" << json_string(result.plan.question.name) << R"(,"engine":)"
         << json_string(metrics.engine) << R"(,"step_time_s":)" << metrics.step_time.value()
         << R"(},"traceEvents":[)";
    write_names(text, drawing);
    write_steps(text, drawing);
    write_slices(text, drawing);
    write_arrows(text, drawing);
    write_memory_counters(text, result.measurement);
    text << "\n]}\n";
    text.flush();
  };
}

}  // namespace interlock
