// Reads a calibration strictly: what a program wrote may have been edited by a person.
// SPDX-License-Identifier: Apache-2.0
#include "hardware/devices/calibration_reader.h"

#include <algorithm>
#include <functional>

#include "hardware/devices/device.h"

namespace interlock {
namespace {

constexpr double kLongest = 1e6;  // seconds
constexpr double kMost = 1e24;    // flops, bytes, and either a second

/// Returns a number that must be there; `least` if it does not fit.
double required(ObjectReader& reader, std::string_view key, double least, double most) {
  const auto node = reader.require(key, "a number");
  if (!node) return least;
  return read_number(*node, least, most, reader.diagnostics()).value_or(least);
}

void each_object(ObjectReader& parent, std::string_view key,
                 const std::function<void(ObjectReader&)>& read) {
  const auto node = parent.require(key, "an array of objects");
  if (!node) return;
  if (node->value->kind != JsonValue::Kind::Array) {
    report(parent.diagnostics(), *node,
           "wrong type; expected an array of objects, got " + described(*node->value));
    return;
  }
  for (std::size_t i = 0; i < node->value->items.size(); ++i) {
    ObjectReader reader(node->item(i), parent.diagnostics());
    read(reader);
    reader.finish();
  }
}

std::size_t read_class(ObjectReader& reader) {
  reader.require("class", "a class of kernels, such as \"gemm\"");
  return static_cast<std::size_t>(reader.choice("class", op_class_names(), 0));
}

Precision read_precision(ObjectReader& reader) {
  return static_cast<Precision>(reader.choice("precision", precision_names(), 0));
}

SmoothRoofline read_roofline(ObjectReader& reader) {
  SmoothRoofline roofline;
  roofline.launch = Seconds(reader.number("launch_s", 0, 0, kLongest));
  roofline.counts_bytes = reader.get("bytes_per_s").has_value();
  roofline.rate = required(reader, roofline.counts_bytes ? "bytes_per_s" : "flops_per_s", 1, kMost);
  roofline.m0 = reader.number("m0", 0, 0, 1e9);
  roofline.n0 = reader.number("n0", 0, 0, 1e9);
  roofline.k0 = reader.number("k0", 0, 0, 1e9);
  roofline.share = reader.number("share", 1, 1e-6, 1e6);
  roofline.sharpness = reader.number("sharpness", 4, 1, 1000);
  return roofline;
}

void read_stream(ObjectReader& parent, CalibratedModel& model) {
  each_object(parent, "stream", [&](ObjectReader& reader) {
    const StreamPoint point = {Bytes(required(reader, "bytes", 1, kMost)),
                               Seconds(required(reader, "seconds", 1e-15, kLongest))};
    const bool grows = model.stream.empty() || (model.stream.back().bytes < point.bytes &&
                                                model.stream.back().time <= point.time);
    if (!grows) {
      report(reader.diagnostics(), reader.node(),
             "expected more bytes than the point before it, and no less time");
    }
    model.stream.push_back(point);
  });
}

MeasuredKernel read_row(ObjectReader& reader, const CalibratedModel& model) {
  MeasuredKernel row;
  row.work.op_class = static_cast<OpClass>(read_class(reader));
  row.work.role = static_cast<OpRole>(reader.choice("role", op_role_names(), 0));
  row.work.variant = static_cast<OpVariant>(reader.choice("variant", op_variant_names(), 0));
  row.precision = read_precision(reader);
  row.work.flops = Flops(reader.number("flops", 0, 0, kMost));
  row.work.bytes = Bytes(reader.number("bytes", 0, 0, kMost));
  row.work.launches = reader.count("launches", 1);
  row.work.shape = {reader.number("m", 0, 0, kMost), reader.number("n", 0, 0, kMost),
                    reader.number("k", 0, 0, kMost), reader.number("batch", 1, 0, kMost)};
  row.time = Seconds(required(reader, "seconds", 1e-15, kLongest));
  for (const char* told : {"low_s", "high_s", "wall_s", "spread", "steady"}) reader.get(told);
  const auto kernel = reader.get("kernel");
  if (!kernel) return row;
  const auto name = read_text(*kernel, reader.diagnostics());
  const auto known =
      std::find_if(model.kernels.begin(), model.kernels.end(),
                   [&](const KernelModel& one) { return name && one.name == *name; });
  if (known != model.kernels.end()) row.kernel = static_cast<int>(known - model.kernels.begin());
  return row;
}

/// Returns the collective that an object is about; null if there is none yet.
CollectiveTimes* read_collective(ObjectReader& reader, CalibratedModel& model) {
  reader.require("collective", "a collective, such as \"all-reduce\"");
  const auto kind =
      static_cast<CollectiveKind>(reader.choice("collective", collective_kind_names(), 0));
  const auto members = static_cast<int>(required(reader, "members", 2, 1e6));
  for (CollectiveTimes& known : model.collectives) {
    if (known.kind == kind && known.members == members) return &known;
  }
  model.collectives.push_back({.kind = kind, .members = members});
  return nullptr;
}

/// "network", the fits, and "collectives", the sizes that were measured.
void read_collectives(ObjectReader& parent, CalibratedModel& model) {
  if (!parent.get("network")) {
    parent.get("collectives");
    return;
  }
  each_object(parent, "network", [&](ObjectReader& reader) {
    if (read_collective(reader, model) != nullptr) {
      report(reader.diagnostics(), reader.node(),
             "a second fit of one collective; expected one for each number of members");
    }
    model.collectives.back().fit = {Seconds(reader.number("latency_s", 0, 0, kLongest)),
                                    BytesPerSecond(required(reader, "bytes_per_s", 1, kMost))};
  });
  if (!parent.get("collectives")) return;
  each_object(parent, "collectives", [&](ObjectReader& reader) {
    const std::size_t fitted = model.collectives.size();
    CollectiveTimes* const times = read_collective(reader, model);
    const StreamPoint point = {Bytes(required(reader, "bytes", 1, kMost)),
                               Seconds(required(reader, "seconds", 1e-15, kLongest))};
    for (const char* told : {"low_s", "high_s"}) reader.get(told);
    if (times == nullptr) {
      model.collectives.resize(fitted);
      report(reader.diagnostics(), reader.node(), "a collective that \"network\" has no fit of");
      return;
    }
    std::vector<StreamPoint>& measured = times->measured;
    if (!measured.empty() && measured.back().bytes >= point.bytes) {
      report(reader.diagnostics(), reader.node(), "expected more bytes than the row before it");
    }
    const Seconds longest = measured.empty() ? point.time : measured.back().time;
    measured.push_back({point.bytes, std::max(point.time, longest)});
  });
}

}  // namespace

const std::vector<std::string>& collective_kind_names() {
  static const std::vector<std::string> names = {"all-reduce", "all-gather", "reduce-scatter",
                                                 "broadcast",  "reduce",     "all-to-all",
                                                 "shift",      "copy",       "halo exchange"};
  return names;
}

const std::vector<std::string>& op_role_names() {
  static const std::vector<std::string> names = {"other", "forward", "input-gradient",
                                                 "weight-gradient"};
  return names;
}

const std::vector<std::string>& op_variant_names() {
  static const std::vector<std::string> names = {"plain",   "relu",     "gelu", "softmax", "add",
                                                 "dropout", "momentum", "adam", "fused"};
  return names;
}

std::shared_ptr<const CalibratedModel> read_calibration(const JsonNode& node,
                                                        Diagnostics& diagnostics) {
  auto model = std::make_shared<CalibratedModel>();
  ObjectReader reader(node, diagnostics);
  reader.choice("format", {"interlock-calibration/1"}, 0);
  read_stream(reader, *model);
  each_object(reader, "rooflines", [&](ObjectReader& one) {
    const std::size_t op_class = read_class(one);
    const auto precision = static_cast<std::size_t>(read_precision(one));
    model->rooflines[precision][op_class] = read_roofline(one);
  });
  each_object(reader, "kernels", [&](ObjectReader& one) {
    read_class(one);
    read_precision(one);
    one.require("kernel", "the name of a kernel");
    model->kernels.push_back({one.text("kernel", ""), read_roofline(one)});
  });
  each_object(reader, "table",
              [&](ObjectReader& one) { model->table.push_back(read_row(one, *model)); });
  read_collectives(reader, *model);
  // These members tell people what was measured, how, and how well it fits.
  for (const char* told :
       {"date", "program_version", "command", "processor", "driver", "clocks", "seed", "rejected",
        "drift", "residuals", "copies", "interference", "beside", "measured_for", "caches"}) {
    reader.get(told);
  }
  reader.finish();
  if (model->stream.empty()) {
    report(diagnostics, node, "no stream; expected what interlock calibrate writes");
    return nullptr;
  }
  sort_table(*model);
  return model;
}

}  // namespace interlock
