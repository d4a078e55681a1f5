// Reads Chakra's files, and says where one is wrong.
// SPDX-License-Identifier: Apache-2.0
#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "sim/workloads/chakra_attributes.h"
#include "sim/workloads/chakra_file.h"

namespace interlock {
namespace {

constexpr std::size_t kLargestFile = std::size_t{1} << 30;
constexpr double kMostSeconds = 1e9, kMostBytes = 1e18, kMostFlops = 1e24;
constexpr std::size_t kMostShown = 40;  // of a text

/// Returns the rank that `key` names, at an end of a message or as a member of a group.
int rank_of(const ChakraAttributes& said, const char* key, std::optional<int> otherwise) {
  const std::optional<int> rank = said.count(key, 0);
  if (rank) return *rank;
  if (otherwise) return *otherwise;
  throw Error(said.where() + "has no " + key + "; expected the number of a rank");
}

Bytes bytes_of(const ChakraAttributes& said, const char* key) {
  const auto exact = said.number("interlock_bytes", 0, kMostBytes);
  const auto rounded = said.number(key, 0, kMostBytes);
  if (!exact && !rounded) throw Error(said.where() + "has no " + key + "; expected bytes");
  return Bytes(exact ? *exact : *rounded);
}

std::optional<CollectiveKind> collective_of(const ChakraAttributes& said) {
  const std::optional<int> type = said.count("comm_type", 0);
  if (!type) throw Error(said.where() + "has no comm_type; expected that of a collective");
  switch (*type) {
    case chakra::ALL_REDUCE:
      return CollectiveKind::AllReduce;
    case chakra::REDUCE:
      return CollectiveKind::Reduce;
    case chakra::ALL_GATHER:
      return CollectiveKind::AllGather;
    case chakra::BROADCAST:
      return CollectiveKind::Broadcast;
    case chakra::ALL_TO_ALL:
      return CollectiveKind::AllToAll;
    case chakra::REDUCE_SCATTER:
    case chakra::REDUCE_SCATTER_BLOCK:
      return CollectiveKind::ReduceScatter;
    case chakra::BARRIER:
      return std::nullopt;
    default:
      throw Error(said.where() + "comm_type is " + std::to_string(*type) +
                  ", which is not modelled; expected an all-reduce, reduce, all-gather, "
                  "reduce-scatter, broadcast, all-to-all or barrier");
  }
}

std::optional<NodeOp> op_of(const ChakraAttributes& said) {
  static constexpr std::string_view kLetters = "FHRIBWUSTEG";
  const std::string op = said.text("interlock_op");
  const std::optional<int> stage = said.count("interlock_stage", 0);
  if (op.size() != 1 || kLetters.find(op[0]) == std::string_view::npos || !stage) {
    return std::nullopt;
  }
  return NodeOp{.kind = static_cast<OpKind>(kLetters.find(op[0])),
                .stage = *stage,
                .loss = said.count("interlock_loss", 0).value_or(*stage),
                .useful = said.is_true("interlock_useful")};
}

NodeKind kind_of(const chakra::Node& message, const ChakraAttributes& said) {
  switch (message.type()) {
    case chakra::COMP_NODE:
      // Ops of hosts take no time: only devices are simulated.
      return said.is_true("is_cpu_op") ? NodeKind::Other : NodeKind::Compute;
    case chakra::COMM_SEND_NODE:
      return NodeKind::Send;
    case chakra::COMM_RECV_NODE:
      return NodeKind::Receive;
    case chakra::COMM_COLL_NODE:
      return NodeKind::Collective;
    case chakra::MEM_LOAD_NODE:
      return NodeKind::Load;
    case chakra::MEM_STORE_NODE:
      return NodeKind::Store;
    default:
      return NodeKind::Other;
  }
}

void read_message(const ChakraAttributes& said, int rank, ExecutionNode& node) {
  const bool sends = node.kind == NodeKind::Send;
  const std::optional<int> own = rank, other;
  node.from = rank_of(said, "comm_src", sends ? own : other);
  node.to = rank_of(said, "comm_dst", sends ? other : own);
  node.tag = said.count("comm_tag", -kMostChakraCount).value_or(0);
  node.bytes = bytes_of(said, "comm_size");
  const auto cargo =
      std::find(kCargoNames.begin(), kCargoNames.end(), said.text("interlock_cargo"));
  if (cargo != kCargoNames.end()) {
    node.cargo = {static_cast<Cargo>(cargo - kCargoNames.begin()),
                  said.count("interlock_stage", 0).value_or(0)};
  }
  const std::optional<int> depth = said.count("interlock_queue_depth", Channel::kUnlimited);
  node.ordered = depth.has_value();
  node.depth = depth.value_or(Channel::kUnlimited);
  node.synchronous = said.is_true("interlock_synchronous");
  node.sender_waits = !node.synchronous && node.depth == Channel::kUnlimited &&
                      said.is_true("interlock_sender_waits");
}

ExecutionNode node_of(const chakra::Node& message, const std::string& file, int rank) {
  const ChakraAttributes said(message, file + ": node " + std::to_string(message.id()) + ": ");
  ExecutionNode node{.id = message.id(), .name = message.name(), .kind = kind_of(message, said)};
  node.after.assign(message.data_deps().begin(), message.data_deps().end());
  node.after.insert(node.after.end(), message.ctrl_deps().begin(), message.ctrl_deps().end());
  const double written = static_cast<double>(message.duration_micros()) * kChakraTime;
  node.duration = Seconds(said.number("interlock_duration_s", 0, kMostSeconds).value_or(written));
  if (node.duration > Seconds(kMostSeconds)) {
    throw Error(said.where() + "takes " + format(node.duration) + "; expected at most " +
                format(Seconds(kMostSeconds)));
  }
  node.start = Seconds(static_cast<double>(message.start_time_micros()) * kChakraTime);
  node.micro_batch = said.count("interlock_micro_batch", 0).value_or(0);
  node.stream = said.count("interlock_stream", 0).value_or(-1);
  node.place = said.count("interlock_place", 0).value_or(-1);
  switch (node.kind) {
    case NodeKind::Compute:
      node.flops = Flops(said.number("num_ops", 0, kMostFlops).value_or(0));
      node.bytes = Bytes(said.number("tensor_size", 0, kMostBytes).value_or(0));
      node.op = op_of(said);
      break;
    case NodeKind::Send:
    case NodeKind::Receive:
      read_message(said, rank, node);
      break;
    case NodeKind::Collective:
      node.collective = collective_of(said);
      node.group = said.text("pg_name");
      if (node.collective) node.bytes = bytes_of(said, "comm_size");
      break;
    case NodeKind::Load:
    case NodeKind::Store:
      node.bytes = bytes_of(said, "tensor_size");
      break;
    case NodeKind::Other:
      break;
  }
  return node;
}

std::optional<TraceSteps> steps_of(const chakra::GlobalMetadata& metadata,
                                   const std::string& file) {
  const ChakraAttributes said(metadata, file + ": ");
  if (!said.count("interlock_steps", 1)) return std::nullopt;
  const auto count = [&](const char* key, int least) {
    return said.count(key, least).value_or(least);
  };
  const TraceSteps steps{.stages = count("interlock_stages", 1),
                         .micro_batches = count("interlock_micro_batches", 1),
                         .steps = count("interlock_steps", 1),
                         .update_every = count("interlock_update_every", 1),
                         .fill = count("interlock_fill_steps", 0),
                         .measured = count("interlock_measured_steps", 1)};
  const bool fits = std::int64_t{steps.fill} + steps.measured <= steps.steps &&
                    steps.stages <= kMostChakraCount / 1000 &&
                    std::int64_t{steps.steps} * steps.micro_batches <= kMostChakraCount;
  if (fits) return steps;
  throw Error(file + ": its metadata measures steps that the run has not, or too many");
}

/// Reads messages, each behind its length.
class Messages {
 public:
  Messages(const std::string& bytes, std::string file)
      : input_(reinterpret_cast<const std::uint8_t*>(bytes.data()), static_cast<int>(bytes.size())),
        size_(static_cast<int>(bytes.size())),
        file_(std::move(file)) {}

  bool at_end() const { return input_.CurrentPosition() == size_; }

  template <class Message>
  Message next(const std::string& what) {
    std::uint32_t length = 0;
    const int begin = input_.CurrentPosition();
    Message message;
    const bool known = input_.ReadVarint32(&length);
    if (!known || length > static_cast<std::uint32_t>(size_ - input_.CurrentPosition())) {
      throw Error(file_ + ": ends inside " + what + ", which begins at byte " +
                  std::to_string(begin) + "; expected a whole Chakra trace");
    }
    const auto limit = input_.PushLimit(static_cast<int>(length));
    if (!message.MergeFromCodedStream(&input_) || !input_.ConsumedEntireMessage()) {
      throw Error(file_ + ": " + what + ", which begins at byte " + std::to_string(begin) +
                  ", is no message of a Chakra trace");
    }
    input_.PopLimit(limit);
    return message;
  }

 private:
  google::protobuf::io::CodedInputStream input_;
  int size_;
  std::string file_;
};

}  // namespace

ExecutionTrace read_chakra(const std::string& path, int rank) {
  refuse_pipe(path);
  const std::string bytes = read_file(path, kLargestFile);
  Messages messages(bytes, path);
  const auto metadata = messages.next<chakra::GlobalMetadata>("the metadata");
  if (metadata.version() != kChakraVersion) {
    throw Error(path + ": is of version " + in_quotes(printable(metadata.version(), kMostShown)) +
                " of Chakra's schema; expected " + in_quotes(kChakraVersion));
  }
  ExecutionTrace trace{.file = path, .steps = steps_of(metadata, path)};
  while (!messages.at_end()) {
    const std::string number = std::to_string(trace.nodes.size() + 1);
    trace.nodes.push_back(
        node_of(messages.next<chakra::Node>("node number " + number), path, rank));
  }
  return trace;
}

}  // namespace interlock
