// Links of a swarm: messages wait for the sender's up link, then for the receiver's down link.
// SPDX-License-Identifier: Apache-2.0
//
// A message passes through: it reaches the down link one latency after it begins to leave, and ends
// no earlier than one latency after it has left. Each link carries one message after the other.
#include <algorithm>

#include "sim/swarm/swarm_state.h"

namespace interlock {
namespace {

constexpr int kSlices = 32;  // of a bulk

}  // namespace

void Swarm::send(Message message) {
  if (!is_alive(message.from)) return;
  double latency = peers_[message.to].latency;
  message.up_begin = message.up_end = now_;
  if (message.from != kSource) {
    Peer& sender = peers_[message.from];
    latency += sender.latency;
    message.up_begin = std::max(now_, sender.up_free);
    message.up_end = sender.up_free = message.up_begin + message.bytes / sender.up;
  }
  int id = static_cast<int>(messages_.size());
  if (free_messages_.empty()) {
    messages_.push_back(message);
  } else {
    id = free_messages_.back();
    free_messages_.pop_back();
    messages_[id] = message;
  }
  schedule(message.up_begin + latency, Kind::FirstByte, id);
}

void Swarm::first_byte(int id) {
  const Message& message = messages_[id];
  const bool source = message.from == kSource;
  if (!source && peers_[message.from].died <= message.up_begin) {
    free_messages_.push_back(id);  // it never left
    return;
  }
  const Bytes bytes(message.bytes);
  out_.traffic[static_cast<std::size_t>(message.kind)] += bytes;
  (source ? out_.from_source : out_.sent[peers_[message.from].machine]) += bytes;
  if (!is_alive(message.to)) {
    out_.lost += bytes;
    free_messages_.push_back(id);
    return;
  }
  out_.on_way += bytes;
  Peer& receiver = peers_[message.to];
  const double begin = std::max(now_, receiver.down_free);
  receiver.down_free = begin + message.bytes / receiver.down;
  const double last_byte = now_ + message.up_end - message.up_begin;
  schedule(std::max(receiver.down_free, last_byte), Kind::Delivered, id);
}

void Swarm::delivered(int id) {
  const Message message = messages_[id];
  free_messages_.push_back(id);
  const Bytes bytes(message.bytes);
  out_.on_way -= bytes;
  const bool cut_off = message.from != kSource && peers_[message.from].died < message.up_end;
  if (cut_off || !is_alive(message.to)) {
    out_.lost += bytes;
    return;
  }
  out_.received[peers_[message.to].machine] += bytes;
  if (message.kind == SwarmMessage::Averaging || message.kind == SwarmMessage::State) {
    slice_arrived(message.about);
  } else if (batches_[message.about].token == message.token) {
    arrived(message.about, message.kind == SwarmMessage::Gradient);
  }
}

void Swarm::start_bulk(Bulk bulk, double bytes) {
  const bool whole = bulk.from == kSource || bytes <= 0;
  bulk.unsent = bulk.unarrived = whole ? 1 : kSlices;
  bulk.slice = bytes / bulk.unsent;
  bulk.open = true;
  int id = 0;
  while (id < static_cast<int>(bulks_.size()) && (bulks_[id].open || bulks_[id].unarrived > 0))
    ++id;
  if (id == static_cast<int>(bulks_.size())) bulks_.emplace_back();
  bulks_[id] = bulk;
  send_slice(id);
}

void Swarm::send_slice(int id) {
  Bulk& bulk = bulks_[id];
  if (!bulk.open || bulk.unsent == 0 || !is_alive(bulk.from)) return;
  --bulk.unsent;
  const bool averages = bulk.purpose != Purpose::Load;
  send({.from = bulk.from,
        .to = bulk.to,
        .bytes = bulk.slice,
        .kind = averages ? SwarmMessage::Averaging : SwarmMessage::State,
        .about = id});
  if (bulk.unsent > 0) schedule(peers_[bulk.from].up_free, Kind::Sent, id);
}

void Swarm::slice_arrived(int id) {
  Bulk& bulk = bulks_[id];
  if (--bulk.unarrived > 0 || !bulk.open) return;
  bulk.open = false;
  const Bulk arrived = bulk;  // what follows may start others
  switch (arrived.purpose) {
    case Purpose::Averaging:
      transfer_averaged(arrived);
      break;
    case Purpose::HandOver:
      handed_over(arrived);
      break;
    case Purpose::Load:
      serve(arrived.to);
      break;
  }
}

}  // namespace interlock
