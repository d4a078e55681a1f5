// Calibration files: a device that scenarios can use, and its samples as CSV.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "validate/calibration/calibration.h"

namespace interlock {

/// Facts that a calibration cannot measure.
struct CalibrationStamp {
  std::string date, command, program_version;
};

/// Returns the device file that hardware/devices/device_reader reads.
std::string device_file(const Calibration& calibration, const CalibrationStamp& stamp);

/// Returns one line for each sample.
std::string samples_csv(const Calibration& calibration);

/// Returns "interior" or "largest".
const char* name_of(SamplePart part);
/// Returns "products" or "copies".
const char* name_of(Beside beside);

}  // namespace interlock
