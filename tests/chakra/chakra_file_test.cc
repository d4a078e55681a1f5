// Chakra's files, byte by byte: ours, those of other tools, and those that must be refused.
// SPDX-License-Identifier: Apache-2.0
#include "sim/workloads/chakra_file.h"

#include "base/error.h"
#include "base/random.h"
#include "tests/chakra/trace_folder.h"
#include "tests/chakra/wire_format.h"

namespace interlock::chakra_file_test {
namespace {

/// The attributes of a message; each has a name (1) and one other field, its value.
std::map<std::string, std::pair<int, WireField>> attributes_of(const WireMessage& message,
                                                               int field) {
  std::map<std::string, std::pair<int, WireField>> attributes;
  const auto range = message.equal_range(field);
  for (auto found = range.first; found != range.second; ++found) {
    const WireMessage attribute = split_message(found->second.bytes);
    REQUIRE(attribute.size() == 2);
    const auto value = std::next(attribute.begin());
    attributes[attribute.begin()->second.bytes] = {value->first, value->second};
  }
  return attributes;
}

ExecutionNode message_node(NodeKind kind) {
  ExecutionNode node{.id = 300, .name = "send 0 to 1, 4", .kind = kind, .after = {1, 299}};
  node.start = Seconds(0.5);
  node.duration = Seconds(0.0123456789);
  node.micro_batch = 4;
  node.from = 2;
  node.to = 5;
  node.tag = 7;
  node.bytes = Bytes(1 << 20);
  node.ordered = true;
  node.depth = 1;
  return node;
}

TEST_CASE("a file is Chakra's, by the numbers of its fields") {
  ExecutionTrace trace{.steps = TraceSteps{.stages = 8, .micro_batches = 4, .steps = 3}};
  trace.nodes.push_back(message_node(NodeKind::Send));
  const std::vector<std::string> messages = split_file(chakra_bytes(trace));
  REQUIRE(messages.size() == 2);

  const WireMessage metadata = split_message(messages[0]);
  CHECK(metadata.find(1)->second.bytes == "0.0.4");
  CHECK(attributes_of(metadata, 2).at("interlock_stages").second.number == 8);

  const WireMessage node = split_message(messages[1]);
  CHECK(node.find(1)->second.number == 300);
  CHECK(node.find(2)->second.bytes == "send 0 to 1, 4");
  CHECK(node.find(3)->second.number == 5);  // COMM_SEND_NODE
  CHECK(node.count(4) == 0);
  CHECK(varints_of(node.find(5)->second.bytes) == std::vector<std::uint64_t>{1, 299});
  CHECK(node.find(6)->second.number == 500'000);  // microseconds
  CHECK(node.find(7)->second.number == 12'346);
  // In the types that Chakra's feeder asks for: bool 27, double 3, int32 7, int64 9.
  const auto attributes = attributes_of(node, 10);
  CHECK(attributes.at("is_cpu_op").first == 27);
  CHECK(attributes.at("comm_src").first == 7);
  CHECK(attributes.at("comm_src").second.number == 2);
  CHECK(attributes.at("comm_dst").second.number == 5);
  CHECK(attributes.at("comm_tag").second.number == 7);
  CHECK(attributes.at("comm_size").first == 9);
  CHECK(attributes.at("comm_size").second.number == 1 << 20);
  CHECK(attributes.at("interlock_queue_depth").second.number == 1);
  CHECK(attributes.at("interlock_duration_s").first == 3);
  CHECK(number_of(attributes.at("interlock_duration_s").second.bytes) == 0.0123456789);
}

TEST_CASE("ops and collectives have the attributes that Chakra's feeder knows") {
  ExecutionTrace trace;
  ExecutionNode op{.id = 1, .name = "0F3", .kind = NodeKind::Compute, .duration = Seconds(0.0025)};
  op.flops = Flops(5e12);
  op.op = NodeOp{OpKind::B, 3, 4, true};
  ExecutionNode sum{.id = 2, .kind = NodeKind::Collective, .after = {1}};
  sum.collective = CollectiveKind::ReduceScatter;
  sum.bytes = Bytes(1000);
  sum.group = "12";
  trace.nodes = {op, sum};
  const std::vector<std::string> messages = split_file(chakra_bytes(trace));
  REQUIRE(messages.size() == 3);
  const WireMessage first = split_message(messages[1]), second = split_message(messages[2]);
  CHECK(first.find(3)->second.number == 4);  // COMP_NODE
  CHECK(first.find(7)->second.number == 2500);
  const auto of_op = attributes_of(first, 10);
  CHECK(of_op.at("num_ops").first == 9);
  CHECK(of_op.at("num_ops").second.number == 5'000'000'000'000);
  CHECK(of_op.at("tensor_size").first == 13);
  CHECK(of_op.at("interlock_op").second.bytes == "B");
  CHECK(second.find(3)->second.number == 7);  // COMM_COLL_NODE
  const auto of_sum = attributes_of(second, 10);
  CHECK(of_sum.at("comm_type").first == 9);
  CHECK(of_sum.at("comm_type").second.number == 7);  // REDUCE_SCATTER
  CHECK(of_sum.at("comm_size").second.number == 1000);
  CHECK(of_sum.at("pg_name").first == 29);
  CHECK(of_sum.at("pg_name").second.bytes == "12");
}

// Files of another tool: its own attributes and fields, numbers of other types.

std::string number_attribute(const std::string& name, int type, std::uint64_t value) {
  return bytes_field(10, bytes_field(1, name) + varint_field(type, value));
}

std::string foreign_header() { return delimited(bytes_field(1, "0.0.4")); }

std::string foreign_compute(int id, int micros, const std::vector<std::uint64_t>& after) {
  const std::string unknown = bytes_field(8, bytes_field(1, "[[1, 2], 3]"));  // inputs
  const std::string list = bytes_field(10, bytes_field(1, "rf_id") + bytes_field(8, packed({1})));
  return delimited(varint_field(1, id) + bytes_field(2, "aten::mm") + varint_field(3, 4) +
                   bytes_field(5, packed(after)) + varint_field(7, micros) + unknown + list +
                   number_attribute("is_cpu_op", 27, 0) + number_attribute("num_ops", 13, 12));
}

std::string foreign_message(int id, bool sends, const std::vector<std::uint64_t>& after) {
  return delimited(varint_field(1, id) + varint_field(3, sends ? 5 : 6) +
                   bytes_field(4, packed(after)) +  // control dependencies
                   number_attribute("comm_src", 7, 0) + number_attribute("comm_dst", 11, 1) +
                   number_attribute("comm_tag", 7, 3) +
                   number_attribute("comm_size", 13, 1'000'000));
}

constexpr const char* kTwoDevices =
    R"("cluster": {"kind": "uniform", "devices": 2, "memory": "8 GiB",
                   "link": {"bandwidth": "1 GB/s"}})";

TEST_CASE("a trace of another tool: 3 ms, 1 MB at 1 GB/s, 2 ms take 6 ms") {
  const TraceFolder folder;
  folder.write(0, foreign_header() + foreign_compute(5, 3000, {}) + foreign_message(6, true, {5}));
  folder.write(1, foreign_header() + foreign_message(8, false, {}) + foreign_compute(9, 2000, {8}));
  const Question scenario = folder.load(kTwoDevices);
  const ScenarioResult result = run_scenario(scenario, true);
  CHECK(result.measurement.metrics.step_time.value() == doctest::Approx(6e-3).epsilon(1e-12));
  CHECK(result.measurement.metrics.devices.at(0).busy == doctest::Approx(0.5));
  CHECK(result.measurement.metrics.links.at(0).bytes == Bytes(1e6));
  CHECK(scenario.trace() != nullptr);
  INFO("traces do not say how many micro-batches they hold: throughput counts steps");
  CHECK(result.measurement.metrics.micro_batches_per_step == std::nullopt);
}

TEST_CASE("a message that no op waits for ends the step: 3 ms, then 1 MB at 1 GB/s, take 4 ms") {
  const TraceFolder folder;
  folder.write(0, foreign_header() + foreign_compute(5, 3000, {}) + foreign_message(6, true, {5}));
  folder.write(1, foreign_header() + foreign_message(8, false, {}));
  const ScenarioResult result = run_scenario(folder.load(kTwoDevices), true);
  CHECK(result.measurement.metrics.step_time.value() == doctest::Approx(4e-3).epsilon(1e-12));
}

TEST_CASE("ops of hosts take no time but hand on what they wait for, and are counted") {
  const TraceFolder folder;
  const std::string host =
      delimited(varint_field(1, 2) + varint_field(3, 4) + bytes_field(5, packed({1})) +
                varint_field(7, 900'000) + number_attribute("is_cpu_op", 27, 1));
  folder.write(0, foreign_header() + foreign_compute(1, 1000, {}) + host +
                      foreign_compute(3, 500, {2}) + foreign_compute(4, 0, {}));
  const Question scenario = folder.load(kTwoDevices);
  CHECK(scenario.trace()->notes.others == 1);
  CHECK(scenario.trace()->notes.without_time == 1);
  const ScenarioResult result = run_scenario(scenario, false);
  CHECK(result.measurement.metrics.step_time.value() == doctest::Approx(1.5e-3));
}

TEST_CASE("work without a duration is priced where the scenario names a precision") {
  const TraceFolder folder;
  const std::string work = varint_field(1, 1) + varint_field(3, 4) +
                           number_attribute("num_ops", 9, 3'000'000'000) +
                           number_attribute("tensor_size", 13, 1'000'000);
  folder.write(0, foreign_header() + delimited(work));
  const std::string machine = R"("cluster": {"machine": "dgx-a100-80g", "devices": 1})";
  const Question free = folder.load(machine);
  CHECK(run_scenario(free, false).measurement.metrics.step_time == Seconds(0));
  const ScenarioResult priced =
      run_scenario(folder.load(machine, R"(, "precision": "bf16")"), false);
  // A roofline: the launch, and 3 Gflop at the share of the peak that matrix products reach.
  const Device& device = free.cluster.machines.front().device;
  const double rate = device.peak[static_cast<int>(Precision::Bf16)]->value() *
                      device.efficiency[static_cast<int>(OpClass::Gemm)].compute;
  const double expected = device.launch_overhead.value() + 3e9 / rate;
  CHECK(priced.measurement.metrics.step_time.value() == doctest::Approx(expected).epsilon(1e-9));
  CHECK(priced.measurement.metrics.mfu.has_value());
}

// Bad files.

std::string complaint(const TraceFolder& folder) {
  try {
    run_scenario(folder.load(kTwoDevices), false);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool mentions(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

TEST_CASE("bad files are refused in one sentence that names file and node") {
  const TraceFolder folder;
  const auto says = [&](const std::string& bytes, const std::string& words) {
    folder.write(0, bytes);
    const std::string said = complaint(folder);
    INFO(said);
    CHECK(mentions(said, "rank.0.et: "));
    CHECK(mentions(said, words));
  };
  const std::string good = foreign_header() + foreign_compute(1, 1, {});
  says("", "ends inside the metadata, which begins at byte 0");
  says("{\"nodes\": []}", "ends inside the metadata");
  says(delimited(bytes_field(1, "9.9")), "is of version \"9.9\" of Chakra's schema");
  says(delimited("\xff\xff\xff"), "the metadata, which begins at byte 0, is no message");
  says(good.substr(0, good.size() - 1), "ends inside node number 1, which begins at byte 8");
  says(foreign_header() + delimited(varint_field(1, 4) + varint_field(3, 5)),
       "node 4: has no comm_dst; expected the number of a rank");
  says(foreign_header() + delimited(varint_field(1, 4) + varint_field(3, 7)),
       "node 4: has no comm_type");
  says(foreign_header() +
           delimited(varint_field(1, 4) + varint_field(3, 7) + number_attribute("comm_type", 9, 3)),
       "node 4: comm_type is 3, which is not modelled");
  says(foreign_header() + foreign_message(3, true, {}),
       "node 3: comm_dst is 1; expected another one of the 1 ranks");
  says(foreign_header() + foreign_compute(1, 1, {7}), "node 1 (aten::mm): comes after node 7");
}

TEST_CASE("a file that is cut anywhere, or damaged, is read or refused") {
  const TraceFolder folder;
  const std::string one = foreign_header() + foreign_message(8, false, {}) +
                          foreign_compute(9, 2000, {8}) + foreign_compute(10, 1, {8, 9});
  folder.write(0, foreign_header() + foreign_compute(5, 3000, {}) + foreign_message(6, true, {5}));
  int whole = 0, refused = 0;
  for (std::size_t size = 0; size < one.size(); ++size) {
    folder.write(1, one.substr(0, size));
    complaint(folder).empty() ? ++whole : ++refused;
  }
  CHECK(whole == 2);  // before each of the last two nodes
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    Random random(seed, 9);
    std::string bytes = one;
    for (int i = random.integer(1, 3); i > 0; --i) {
      bytes[static_cast<std::size_t>(random.integer(0, static_cast<int>(bytes.size()) - 1))] =
          static_cast<char>(random.integer(0, 255));
    }
    folder.write(1, bytes);
    complaint(folder).empty() ? ++whole : ++refused;
  }
  MESSAGE(whole << " read, " << refused << " refused");
  CHECK(refused > 300);
}

}  // namespace
}  // namespace interlock::chakra_file_test
