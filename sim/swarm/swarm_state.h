// The state of a simulated swarm, and what happens in it; for the sources of swarm.h only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <vector>

#include "base/random.h"
#include "sim/swarm/swarm_parts.h"

namespace interlock {

/// Returns the time of a forward and a backward of `stage` on a peer of speed 1, with what it
/// computes again.
Seconds swarm_work(const std::vector<SwarmStage>& stages, int stage);

class Swarm {
 public:
  Swarm(const SwarmInputs& inputs, std::uint64_t seed, std::vector<SwarmRecord>* records);
  SwarmOutcome run();

 private:
  using Kind = SwarmEventKind;
  using Event = SwarmEvent;
  using Purpose = BulkPurpose;
  using Message = PeerMessage;
  using Bulk = BulkTransfer;
  using Life = PeerLife;
  using Peer = LivePeer;
  using Op = SwarmOp;
  using MicroBatch = RoutedBatch;
  using Phase = AveragingPhase;
  using Averaging = StageAveraging;

  // swarm.cc
  void schedule(double time, Kind kind, int about, std::int64_t generation = 0);
  void handle(const Event& event);
  void account_presence();
  double in_window(double begin, double end) const;
  SwarmOutcome outcome();
  // swarm_links.cc
  void send(Message message);
  void first_byte(int message);
  void delivered(int message);
  void start_bulk(Bulk bulk, double bytes);
  void send_slice(int bulk);
  void slice_arrived(int bulk);
  // swarm_requests.cc
  int route(int stage, double work);
  void place(int& slot, int peer);
  void advance(int micro_batch);
  void request(int micro_batch, int stage, Op op, int executor, int input_from);
  void arrived(int micro_batch, bool gradient);
  void start_next(int peer);
  void done(int peer, std::int64_t dropped);
  void learn_speed(Peer& peer, const MicroBatch& batch);
  void count_queue(Peer& peer);
  void recover(int dead);
  // swarm_steps.cc
  void issue();
  int next_micro_batch();
  bool lacks(int micro_batch, int stages_below) const;
  void begin_pass(int micro_batch);
  void end_pass(int micro_batch);
  void add_gradient(int micro_batch, int stage, int peer);
  void lose_gradients(int dead);
  void lose_gradient(Averaging& one, int id, int stage);
  void stop_averaging(int slot, int stage);
  void try_averaging(int slot, int stage);
  void transfer_averaged(const Bulk& bulk);
  void updated(int place, std::int64_t generation);
  // swarm_peers.cc
  void outage();
  void fail(int machine);
  void noticed(int peer);
  void check_hope(int stage) const;
  void join(int machine);
  void load(int peer);
  void serve(int peer);
  std::vector<int> end_transfers(int dead);
  void keep_leavers(int stage);
  double capacity(int stage) const;
  void drain(int peer, int next_stage);
  void drop_requests(int peer);
  void try_leave(int peer);
  void handed_over(const Bulk& bulk);
  void leave(int peer);
  // swarm_rebalance.cc
  void rebalance();
  std::vector<int> stages_by_load();
  bool move_leaver(int to);
  void move_idlest(const std::vector<int>& from, int to);

  bool is_alive(int peer) const { return peer == kSource || peers_[peer].died == kForever; }
  int slot_of(int micro_batch) const { return micro_batch / inputs_.micro_batches; }
  Averaging& averaging(int slot, int stage) { return averaging_[slot * stages_ + stage]; }
  void record(SwarmRecord::Kind kind, int peer) {
    if (records_) records_->push_back({.kind = kind, .time = Seconds(now_), .peer = peer});
  }

  const SwarmInputs& inputs_;
  std::vector<SwarmRecord>* records_;
  int stages_, window_;
  Random random_;
  OutageStream outages_;
  double now_ = 0, end_, last_up_ = 0;
  std::int64_t order_ = 0;
  std::vector<Event> events_;                        // a heap
  std::vector<Peer> peers_;                          // lives
  std::vector<int> life_of_;                         // of each machine
  std::vector<std::vector<int>> serving_, waiting_;  // of each stage: lives; micro-batches
  std::vector<std::int64_t> turns_;                  // of each stage's router, RoundRobin
  std::vector<int> handing_over_;                    // of each stage
  std::vector<Message> messages_;
  std::vector<int> free_messages_;
  std::vector<Bulk> bulks_;
  std::vector<MicroBatch> batches_;   // (2, micro-batches)
  std::vector<Averaging> averaging_;  // (2, stages)
  std::deque<int> again_;             // micro-batches that lack parts of their gradient
  std::array<std::int64_t, 2> step_of_{-1, -1};
  std::int64_t newest_ = -1;
  int open_steps_ = 0, issued_ = 0, flying_ = 0;
  std::int64_t finished_ = 0, finished_before_ = 0;
  double present_since_ = 0, best_ = 0;
  std::vector<double> machine_busy_, machine_present_, stage_busy_, stage_present_;
  SwarmOutcome out_;
};

}  // namespace interlock
