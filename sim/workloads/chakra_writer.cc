// Writes Chakra's files: nodes and their attributes, one message after the other.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "sim/workloads/chakra_attributes.h"
#include "sim/workloads/chakra_file.h"

namespace interlock {
namespace {

chakra::NodeType type_of(NodeKind kind) {
  switch (kind) {
    case NodeKind::Compute:
      return chakra::COMP_NODE;
    case NodeKind::Send:
      return chakra::COMM_SEND_NODE;
    case NodeKind::Receive:
      return chakra::COMM_RECV_NODE;
    case NodeKind::Collective:
      return chakra::COMM_COLL_NODE;
    case NodeKind::Load:
      return chakra::MEM_LOAD_NODE;
    case NodeKind::Store:
      return chakra::MEM_STORE_NODE;
    case NodeKind::Other:
      break;
  }
  return chakra::METADATA_NODE;
}

/// Returns the type of a collective that execution_traces() makes.
chakra::CollectiveCommType type_of(const std::optional<CollectiveKind>& kind) {
  if (!kind) return chakra::BARRIER;
  switch (*kind) {
    case CollectiveKind::Reduce:
      return chakra::REDUCE;
    case CollectiveKind::AllGather:
      return chakra::ALL_GATHER;
    case CollectiveKind::Broadcast:
      return chakra::BROADCAST;
    case CollectiveKind::AllToAll:
      return chakra::ALL_TO_ALL;
    case CollectiveKind::ReduceScatter:
      return chakra::REDUCE_SCATTER;
    default:
      return chakra::ALL_REDUCE;
  }
}

/// Adds attributes in the types in which Chakra's own feeder asks for them.
template <class Message>
class Attributes {
 public:
  explicit Attributes(Message& message) : message_(message) {}
  void put_bool(const char* name, bool value) { fresh(name).set_bool_val(value); }
  void put_int32(const char* name, int value) { fresh(name).set_int32_val(value); }
  void put_int64(const char* name, double value) { fresh(name).set_int64_val(std::llround(value)); }
  void put_uint64(const char* name, double value) {
    fresh(name).set_uint64_val(static_cast<std::uint64_t>(std::llround(value)));
  }
  void put_double(const char* name, double value) { fresh(name).set_double_val(value); }
  void put_text(const char* name, const std::string& value) { fresh(name).set_string_val(value); }

 private:
  chakra::AttributeProto& fresh(const char* name) {
    chakra::AttributeProto& attribute = *message_.add_attr();
    attribute.set_name(name);
    return attribute;
  }
  Message& message_;
};

void append(const google::protobuf::MessageLite& message, std::string& bytes) {
  for (std::size_t left = message.ByteSizeLong();; left >>= 7) {
    const bool last = left < 0x80;
    bytes += static_cast<char>((left & 0x7f) | (last ? 0 : 0x80));
    if (last) break;
  }
  message.AppendToString(&bytes);
}

chakra::GlobalMetadata metadata_of(const ExecutionTrace& trace) {
  chakra::GlobalMetadata metadata;
  metadata.set_version(kChakraVersion);
  if (!trace.steps) return metadata;
  Attributes attributes(metadata);
  attributes.put_int32("interlock_stages", trace.steps->stages);
  attributes.put_int32("interlock_micro_batches", trace.steps->micro_batches);
  attributes.put_int32("interlock_steps", trace.steps->steps);
  attributes.put_int32("interlock_update_every", trace.steps->update_every);
  attributes.put_int32("interlock_fill_steps", trace.steps->fill);
  attributes.put_int32("interlock_measured_steps", trace.steps->measured);
  return metadata;
}

void put_size(Attributes<chakra::Node>& attributes, const char* name, Bytes bytes) {
  const double exact = bytes.value();
  attributes.put_int64(name, exact);
  if (std::floor(exact) != exact) attributes.put_double("interlock_bytes", exact);
}

void put_compute(const ExecutionNode& node, Attributes<chakra::Node>& attributes) {
  attributes.put_int64("num_ops", node.flops.value());
  attributes.put_uint64("tensor_size", node.bytes.value());
  if (!node.op) return;
  attributes.put_text("interlock_op", std::string(1, letter(node.op->kind)));
  attributes.put_int32("interlock_stage", node.op->stage);
  attributes.put_int32("interlock_loss", node.op->loss);
  attributes.put_bool("interlock_useful", node.op->useful);
}

void put_message(const ExecutionNode& node, Attributes<chakra::Node>& attributes) {
  attributes.put_int32("comm_src", node.from);
  attributes.put_int32("comm_dst", node.to);
  attributes.put_int32("comm_tag", node.tag);
  put_size(attributes, "comm_size", node.bytes);
  if (node.cargo) {
    attributes.put_text("interlock_cargo",
                        kCargoNames[static_cast<std::size_t>(node.cargo->cargo)]);
    attributes.put_int32("interlock_stage", node.cargo->stage);
  }
  if (!node.ordered) return;
  attributes.put_int32("interlock_queue_depth", node.depth);
  if (node.synchronous) attributes.put_bool("interlock_synchronous", true);
  if (node.sender_waits) attributes.put_bool("interlock_sender_waits", true);
}

void put_collective(const ExecutionNode& node, Attributes<chakra::Node>& attributes) {
  attributes.put_int64("comm_type", type_of(node.collective));
  put_size(attributes, "comm_size", node.bytes);
  attributes.put_text("pg_name", node.group);
}

chakra::Node message_of(const ExecutionNode& node) {
  chakra::Node message;
  message.set_id(node.id);
  message.set_name(node.name);
  message.set_type(type_of(node.kind));
  for (const std::uint64_t other : node.after) message.add_data_deps(other);
  message.set_start_time_micros(static_cast<std::uint64_t>(node.start.value() / kChakraTime));
  message.set_duration_micros(
      static_cast<std::uint64_t>(std::llround(node.duration.value() / kChakraTime)));
  Attributes attributes(message);
  attributes.put_bool("is_cpu_op", false);
  attributes.put_double("interlock_duration_s", node.duration.value());
  attributes.put_int32("interlock_micro_batch", node.micro_batch);
  if (node.stream >= 0) attributes.put_int32("interlock_stream", node.stream);
  if (node.place >= 0) attributes.put_int32("interlock_place", node.place);
  switch (node.kind) {
    case NodeKind::Compute:
      put_compute(node, attributes);
      break;
    case NodeKind::Send:
    case NodeKind::Receive:
      put_message(node, attributes);
      break;
    case NodeKind::Collective:
      put_collective(node, attributes);
      break;
    case NodeKind::Load:
    case NodeKind::Store:
      attributes.put_uint64("tensor_size", node.bytes.value());
      attributes.put_double("interlock_bytes", node.bytes.value());
      break;
    case NodeKind::Other:
      break;
  }
  return message;
}

}  // namespace

void require_chakra(const std::string& /*who*/) {}

std::string chakra_bytes(const ExecutionTrace& trace) {
  std::string bytes;
  append(metadata_of(trace), bytes);
  for (const ExecutionNode& node : trace.nodes) append(message_of(node), bytes);
  return bytes;
}

}  // namespace interlock
