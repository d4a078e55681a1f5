// Devices that run a scenario for real: every form that a cluster may name, and the mistakes.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "base/error.h"
#include "hardware/devices/real_devices_reader.h"

namespace interlock::real_devices_test {

namespace {

struct ReadDevices {
  RealDevices devices;
  std::string mistakes;
};

ReadDevices read(const std::string& text) {
  const JsonValue value = parse_json(text, "t.json");
  Diagnostics diagnostics;
  ReadDevices result{read_real_devices({&value, ""}, diagnostics)};
  try {
    diagnostics.throw_if_any();
  } catch (const Error& error) {
    result.mistakes = error.what();
  }
  return result;
}

}  // namespace

TEST_CASE("names stand for themselves with every default") {
  CHECK(read("\"virtual\"").devices.kind == RealDevices::Kind::Virtual);
  CHECK(read("\"cpu\"").devices.links == RealDevices::Links::Immediate);
  CHECK(read("\"cuda\"").devices.links == RealDevices::Links::CopyEngine);
  for (const char* kind : {"virtual", "cpu", "cuda"}) {
    const RealDevices devices = read("\"" + std::string(kind) + "\"").devices;
    CHECK(name_of(devices.kind) == kind);
    const RealDevices object = read(R"({"kind": ")" + std::string(kind) + R"("})").devices;
    CHECK(object.kind == devices.kind);
    CHECK(object.links == devices.links);
  }
}

TEST_CASE("objects say what their kind has") {
  const RealDevices cuda =
      read(R"({"kind": "cuda", "devices": "partitions", "multiprocessors": 16, "links": "paced"})")
          .devices;
  CHECK(cuda.partitions);
  CHECK(cuda.multiprocessors == 16);
  CHECK(cuda.links == RealDevices::Links::Paced);
  CHECK(read(R"({"kind": "cpu", "links": "emulated"})").devices.links ==
        RealDevices::Links::Emulated);
  CHECK(read(R"({"kind": "cuda", "transport": "nccl"})").devices.nccl);
}

TEST_CASE("what does not fit together is refused") {
  CHECK(read("\"threads\"").mistakes.find("cuda") != std::string::npos);
  CHECK(read(R"({"kind": "cpu", "multiprocessors": 4})").mistakes.find("multiprocessors") !=
        std::string::npos);
  CHECK(read(R"({"kind": "cuda", "multiprocessors": 4})").mistakes.find("partitions") !=
        std::string::npos);
  CHECK(read(R"({"kind": "cuda", "devices": "partitions", "transport": "nccl"})")
            .mistakes.find("NCCL") != std::string::npos);
}

}  // namespace interlock::real_devices_test
