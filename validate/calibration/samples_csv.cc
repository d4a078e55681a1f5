// Samples as CSV, to fit other models to.
// SPDX-License-Identifier: Apache-2.0
#include <sstream>

#include "hardware/devices/calibration_reader.h"
#include "hardware/devices/device.h"
#include "validate/calibration/calibration_file.h"

namespace interlock {
namespace {

constexpr int kCountDigits = 17, kTimeDigits = 6;

void write_row(std::ostream& out, const Sample& sample) {
  const Work& work = sample.work;
  const ProductShape& shape = work.shape;
  out << op_class_names()[static_cast<std::size_t>(work.op_class)] << ','
      << op_role_names()[static_cast<std::size_t>(work.role)] << ','
      << op_variant_names()[static_cast<std::size_t>(work.variant)] << ','
      << precision_names()[static_cast<std::size_t>(sample.precision)] << ',';
  out.precision(kCountDigits);
  out << shape.m << ',' << shape.n << ',' << shape.k << ',' << shape.batch << ','
      << work.flops.value() << ',' << work.bytes.value() << ',' << work.launches << ','
      << sample.kernel << ',';
  out.precision(kTimeDigits);
  out << sample.time.value() << ',' << sample.low.value() << ',' << sample.high.value() << ','
      << sample.wall.value() << ',' << sample.spread << '\n';
}

}  // namespace

std::string samples_csv(const Calibration& calibration) {
  std::ostringstream out;
  out << "class,role,variant,precision,m,n,k,batch,flops,bytes,launches,kernel,seconds,low_s,"
         "high_s,wall_s,spread\n";
  for (const Sample& sample : calibration.samples) write_row(out, sample);
  for (Sample stream : calibration.streams) {
    stream.kernel = "stream";
    write_row(out, stream);
  }
  return out.str();
}

}  // namespace interlock
