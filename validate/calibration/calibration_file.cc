// Writes calibrations: numbers with all digits that mean something, one object a line.
// SPDX-License-Identifier: Apache-2.0
#include "validate/calibration/calibration_file.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/error.h"
#include "base/text.h"
#include "hardware/devices/calibration_reader.h"
#include "hardware/devices/device.h"
#include "reports/result/event_text.h"
#include "reports/words/mesh_words.h"

namespace interlock {
namespace {

std::string digits_of(double value, int digits = 6) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.*g", digits, value);
  return text.data();
}

/// Counts: all digits of whole numbers.
std::string count(double value) { return digits_of(value, 17); }

const std::string& name_of(OpClass op_class) {
  return op_class_names()[static_cast<std::size_t>(op_class)];
}

const std::string& name_of(OpVariant variant) {
  return op_variant_names()[static_cast<std::size_t>(variant)];
}

const std::string& name_of(Precision precision) {
  return precision_names()[static_cast<std::size_t>(precision)];
}

/// The members of one object, in order.
class Members {
 public:
  Members& add(const char* key, const std::string& json) {
    text_ += (text_.empty() ? "\"" : ", \"") + std::string(key) + "\": " + json;
    return *this;
  }
  std::string object() const { return "{" + text_ + "}"; }

 private:
  std::string text_;
};

std::string array_of(const std::vector<std::string>& lines) {
  std::string text = "[";
  for (std::size_t i = 0; i < lines.size(); ++i) text += (i ? ",\n      " : "\n      ") + lines[i];
  return text + "\n    ]";
}

Members& add_roofline(Members& members, const SmoothRoofline& roofline) {
  members.add("launch_s", digits_of(roofline.launch.value()))
      .add(roofline.counts_bytes ? "bytes_per_s" : "flops_per_s", digits_of(roofline.rate));
  if (!roofline.counts_bytes) {
    members.add("m0", digits_of(roofline.m0)).add("n0", digits_of(roofline.n0));
    members.add("k0", digits_of(roofline.k0));
  }
  if (roofline.counts_bytes) members.add("share", digits_of(roofline.share));
  return members.add("sharpness", digits_of(roofline.sharpness));
}

std::vector<std::string> stream_lines(const CalibratedModel& model) {
  std::vector<std::string> lines;
  lines.reserve(model.stream.size());
  for (const StreamPoint& point : model.stream) {
    lines.push_back(Members()
                        .add("bytes", count(point.bytes.value()))
                        .add("seconds", digits_of(point.time.value()))
                        .object());
  }
  return lines;
}

std::vector<std::string> roofline_lines(const CalibratedModel& model) {
  std::vector<std::string> lines;
  for (std::size_t precision = 0; precision < model.rooflines.size(); ++precision) {
    for (std::size_t op_class = 0; op_class < model.rooflines[precision].size(); ++op_class) {
      const auto& roofline = model.rooflines[precision][op_class];
      if (!roofline) continue;
      Members members;
      members.add("class", json_string(op_class_names()[op_class]))
          .add("precision", json_string(precision_names()[precision]));
      lines.push_back(add_roofline(members, *roofline).object());
    }
  }
  return lines;
}

std::vector<std::string> kernel_lines(const Calibration& calibration) {
  std::vector<std::string> lines;
  for (const KernelModel& kernel : calibration.model.kernels) {
    const auto of = std::find_if(calibration.samples.begin(), calibration.samples.end(),
                                 [&](const Sample& one) { return one.kernel == kernel.name; });
    CHECK(of != calibration.samples.end(), "a sample of every kernel");
    Members members;
    members.add("kernel", json_string(kernel.name))
        .add("class", json_string(name_of(of->work.op_class)))
        .add("precision", json_string(name_of(of->precision)));
    lines.push_back(add_roofline(members, kernel.roofline).object());
  }
  return lines;
}

std::vector<std::string> table_lines(const std::vector<Sample>& samples) {
  std::vector<std::string> lines;
  for (const Sample& sample : samples) {
    const Work& work = sample.work;
    Members members;
    members.add("class", json_string(name_of(work.op_class)))
        .add("role", json_string(op_role_names()[static_cast<std::size_t>(work.role)]))
        .add("precision", json_string(name_of(sample.precision)));
    if (work.variant != OpVariant::Plain)
      members.add("variant", json_string(name_of(work.variant)));
    if (work.shape.k > 0) {
      members.add("m", count(work.shape.m)).add("n", count(work.shape.n));
      members.add("k", count(work.shape.k)).add("batch", count(work.shape.batch));
    }
    if (work.flops > Flops(0)) members.add("flops", count(work.flops.value()));
    members.add("bytes", count(work.bytes.value())).add("launches", count(work.launches));
    if (!sample.kernel.empty()) members.add("kernel", json_string(sample.kernel));
    members.add("seconds", digits_of(sample.time.value()))
        .add("low_s", digits_of(sample.low.value()))
        .add("high_s", digits_of(sample.high.value()))
        .add("wall_s", digits_of(sample.wall.value()))
        .add("spread", digits_of(sample.spread, 3));
    lines.push_back(members.object());
  }
  return lines;
}

std::vector<std::string> residual_lines(const std::vector<HeldOutErrors>& errors) {
  std::vector<std::string> lines;
  for (const HeldOutErrors& row : errors) {
    for (const auto& [level, summary] :
         {std::pair("roofline", row.roofline), std::pair("kernel", row.kernel)}) {
      lines.push_back(Members()
                          .add("class", json_string(name_of(row.op_class)))
                          .add("precision", json_string(name_of(row.precision)))
                          .add("held_out", json_string(name_of(row.part)))
                          .add("level", json_string(level))
                          .add("samples", count(summary.count))
                          .add("mape", digits_of(summary.mape, 4))
                          .add("mape_low", digits_of(summary.low, 4))
                          .add("mape_high", digits_of(summary.high, 4))
                          .add("median", digits_of(summary.median, 4))
                          .add("p95", digits_of(summary.p95, 4))
                          .add("max", digits_of(summary.most, 4))
                          .add("bias", digits_of(summary.bias, 4))
                          .object());
    }
  }
  return lines;
}

std::vector<std::string> slowdown_lines(const std::vector<Slowdown>& slowdowns) {
  std::vector<std::string> lines;
  lines.reserve(slowdowns.size());
  for (const Slowdown& one : slowdowns) {
    lines.push_back(Members()
                        .add("class", json_string(name_of(one.op_class)))
                        .add("beside", json_string(name_of(one.beside)))
                        .add("factor", digits_of(one.factor, 4))
                        .object());
  }
  return lines;
}

std::vector<std::string> collective_lines(const std::vector<MeasuredCollective>& collectives) {
  std::vector<std::string> lines;
  lines.reserve(collectives.size());
  for (const MeasuredCollective& one : collectives) {
    lines.push_back(Members()
                        .add("collective", json_string(name_of(one.kind)))
                        .add("members", count(one.members))
                        .add("bytes", count(one.bytes.value()))
                        .add("seconds", digits_of(one.time.value()))
                        .add("low_s", digits_of(one.low.value()))
                        .add("high_s", digits_of(one.high.value()))
                        .object());
  }
  return lines;
}

std::vector<std::string> network_lines(const std::vector<CollectiveSpeed>& network) {
  std::vector<std::string> lines;
  lines.reserve(network.size());
  for (const CollectiveSpeed& one : network) {
    lines.push_back(Members()
                        .add("collective", json_string(name_of(one.kind)))
                        .add("members", count(one.members))
                        .add("latency_s", digits_of(one.speed.latency.value()))
                        .add("bytes_per_s", digits_of(one.speed.bandwidth.value()))
                        .object());
  }
  return lines;
}

std::string calibration_json(const Calibration& calibration, const CalibrationStamp& stamp) {
  const BenchFacts& facts = calibration.facts;
  std::string text = "{\n";
  const auto add = [&](const char* key, const std::string& json, bool last = false) {
    text += "    \"" + std::string(key) + "\": " + json + (last ? "\n" : ",\n");
  };
  add("format", json_string("interlock-calibration/1"));
  add("date", json_string(stamp.date));
  add("program_version", json_string(stamp.program_version));
  add("command", json_string(stamp.command));
  add("processor", json_string(facts.processor));
  add("driver", json_string(facts.driver));
  add("clocks", json_string(facts.clocks));
  add("seed", count(calibration.options.seed));
  if (calibration.options.beside != Beside::Nothing) {
    add("beside", json_string(name_of(calibration.options.beside)));
  }
  if (calibration.options.warm) add("caches", json_string("warm"));
  if (!calibration.options.wanted_for.empty()) {
    std::vector<std::string> names;
    for (const std::string& name : calibration.options.wanted_for) {
      names.push_back(json_string(name));
    }
    add("measured_for", array_of(names));
  }
  add("rejected", count(calibration.rejected));
  add("drift", digits_of(calibration.drift, 3));
  if (calibration.copies) {
    add("copies", Members()
                      .add("latency_s", digits_of(calibration.copies->latency.value()))
                      .add("bytes_per_s", digits_of(calibration.copies->bandwidth.value()))
                      .object());
  }
  if (!calibration.network.empty()) {
    add("network", array_of(network_lines(calibration.network)));
    add("collectives", array_of(collective_lines(calibration.collectives)));
  }
  add("interference", array_of(slowdown_lines(calibration.interference)));
  add("residuals", array_of(residual_lines(calibration.errors)));
  add("stream", array_of(stream_lines(calibration.model)));
  add("rooflines", array_of(roofline_lines(calibration.model)));
  add("kernels", array_of(kernel_lines(calibration)));
  add("table", array_of(table_lines(calibration.samples)), true);
  return text + "  }";
}

/// Returns the highest rate that a measured product reached in each precision, as "peak".
std::string peaks_json(const Calibration& calibration) {
  std::array<double, kPrecisions> most{};
  for (const Sample& sample : calibration.samples) {
    double& rate = most[static_cast<std::size_t>(sample.precision)];
    rate = std::max(rate, sample.work.flops / Flops(1) / sample.time.value());
  }
  Members members;
  for (std::size_t i = 0; i < most.size(); ++i) {
    if (most[i] > 0)
      members.add(precision_names()[i].c_str(), json_string(count(most[i]) + " FLOP/s"));
  }
  return members.object();
}

}  // namespace

const char* name_of(SamplePart part) {
  switch (part) {
    case SamplePart::Training:
      return "none";
    case SamplePart::Interior:
      return "interior";
    case SamplePart::Largest:
      return "largest";
  }
  CHECK(false, "one of three parts");
}

const char* name_of(Beside beside) {
  switch (beside) {
    case Beside::Nothing:
      return "nothing";
    case Beside::Products:
      return "products";
    case Beside::Copies:
      return "copies";
  }
  CHECK(false, "one of three neighbours");
}

std::string device_file(const Calibration& calibration, const CalibrationStamp& stamp) {
  const StreamPoint& last = calibration.model.stream.back();
  const std::string measured = "measured on " + stamp.date + ": ";
  Members origin;
  origin.add("memory", json_string("what the system says that there is"))
      .add("memory_bandwidth",
           json_string(measured + "the longest plain copy, reads and writes counted"))
      .add("launch_overhead", json_string(measured + "calls of a kernel that does nothing"))
      .add("peak",
           json_string(measured + "the highest rate that any product reached; shares of it are "
                                  "no shares of a datasheet's peak"));
  std::string text = "{\n";
  const auto add = [&](const char* key, const std::string& json, bool is_last = false) {
    text += "  \"" + std::string(key) + "\": " + json + (is_last ? "\n" : ",\n");
  };
  add("name", json_string(calibration.facts.name));
  add("memory", json_string(count(calibration.facts.memory.value()) + " B"));
  add("memory_bandwidth", json_string(count((last.bytes / last.time).value()) + " B/s"));
  add("launch_overhead", json_string(digits_of(calibration.launch.value() * 1e9) + " ns"));
  add("peak", peaks_json(calibration));
  add("origin", origin.object());
  add("calibration", calibration_json(calibration, stamp), true);
  return text + "}\n";
}

}  // namespace interlock
