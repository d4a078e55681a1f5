// Stash in the memory of hosts: times, bytes and memory against event lists worked out by hand.
// SPDX-License-Identifier: Apache-2.0
//
// Forwards of 2 ms, backwards of 4 ms, stashes of 8 MB; a host of 8 MB per ms copies one in 1 ms.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/plan/lower_plan.h"
#include "tests/validate/support/host_copies.h"
#include "tests/validate/support/layout_trial.h"

namespace interlock::offload_test {
namespace {

constexpr double kMs = 1e-3, kStash = 8e6;

std::string in_units(double value, const char* unit) {
  return "\"" + std::to_string(value) + " " + unit + "\"";
}

/// Equal stages, one for each rank.
LayoutTrial chain_with_host(int ranks, int micro_batches, double copy_ms, double share) {
  return {.model = R"({"kind": "profile", "modules": [{"repeat": )" + std::to_string(ranks) +
                   R"(, "forward": "2 ms", "backward_input": "3 ms", "backward_weight": "1 ms",
                    "head": "0.5 ms", "stash": "8 MB"}]})",
          .cluster = R"({"kind": "uniform", "memory": "80 GiB", "link": {"bandwidth": "1 GB/s"},
                     "host": {"bandwidth": )" +
                     in_units(8 / copy_ms, "GB/s") + R"(, "memory": "1 TB"}, "devices": )" +
                     std::to_string(ranks) + "}",
          .parallel = "\"pipeline\": " + std::to_string(ranks),
          .training = R"("strategy": "global", "schedule": "gpipe", "steps": 1, "offload":
                     {"activations": )" +
                      std::to_string(share) +
                      "}, \"micro_batches\": " + std::to_string(micro_batches)};
}

void replace(std::string& text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
}

LayoutTrial scheduled(LayoutTrial trial, const std::string& schedule) {
  replace(trial.training, "\"gpipe\"", schedule);
  return trial;
}

double megabytes_on(const Metrics& metrics, const std::string& link) {
  const auto found = std::find_if(metrics.links.begin(), metrics.links.end(),
                                  [&](const LinkMetrics& l) { return l.name == link; });
  return found == metrics.links.end() ? 0 : found->bytes.value() / 1e6;
}

void check_step(const LayoutTrial& trial, const StepOutcome& expected) {
  INFO("the step ends at " << expected.end << " ms; " << expected.peak << " stashes on the device, "
                           << expected.host_peak << " on its host");
  const Metrics metrics = run(trial).measurement.metrics;
  CHECK(metrics.step_time.value() / kMs == doctest::Approx(expected.end).epsilon(1e-9));
  CHECK(metrics.devices[0].peak_stash.value() / kStash ==
        doctest::Approx(expected.peak).epsilon(1e-9));
  CHECK(metrics.devices[0].host.stash.value() / kStash ==
        doctest::Approx(expected.host_peak).epsilon(1e-9));
}

TEST_CASE("copies shorter than the ops beside them are hidden") {
  MESSAGE(
      "F 0-2, 2-4, 4-6, 6-8, out 2-3, 4-5, 6-7, 8-9; B 8-12, 12-16, 16-20, 20-24, back "
      "6-7, 8-9, 12-13, 16-17: no op waits. From 6 to 7 stash 2 leaves, 0 comes, 3 is made");
  const LayoutTrial trial = chain_with_host(1, 4, 1, 1);
  check_step(trial, {24, 3, 3});
  const Metrics metrics = run(trial).measurement.metrics;
  CHECK(metrics.busy == doctest::Approx(1).epsilon(1e-9));
  CHECK(metrics.exposed_communication.value() == doctest::Approx(0));
}

TEST_CASE("copies longer than the ops beside them stand in their way") {
  MESSAGE(
      "out 2-7, 7-12, 12-17, 17-22; F 0-2, 2-4, 7-9, 12-14; back 12-17, 17-22, 22-27, 27-32; "
      "B 17-21, 22-26, 27-31, 32-36");
  const LayoutTrial trial = chain_with_host(1, 4, 5, 1);
  const Metrics metrics = run(trial).measurement.metrics;
  CHECK(metrics.step_time.value() / kMs == doctest::Approx(36).epsilon(1e-9));
  CHECK(metrics.exposed_communication.value() / kMs == doctest::Approx(36 - 24).epsilon(1e-9));
}

TEST_CASE("steps with any host meet the event list, on both engines") {
  for (const int micro_batches : {2, 3, 4, 7}) {
    for (const double copy : {0.25, 1.0, 2.0, 3.2, 5.0, 10.0}) {
      for (const double share : {0.5, 1.0}) {
        LayoutTrial trial = chain_with_host(1, micro_batches, copy, share);
        const double part = copy * share;
        const StepOutcome expected = offloaded_step(
            {.micro_batches = micro_batches, .out = part, .back = part, .share = share});
        for (const char* engine : {"native", "simgrid"}) {
          trial.engine = engine;
          INFO(micro_batches << " micro-batches, copies of " << copy << " ms, share " << share
                             << ", " << trial.engine);
          check_step(trial, expected);
        }
      }
    }
  }
}

/// Four ranks of `chunks` stages each, all kept alike, with a host whose copies take next to no
/// time.
LayoutTrial laid_with_host(const std::string& schedule, int chunks, int micro_batches,
                           const std::string& offload) {
  LayoutTrial trial = chain_with_host(4 * chunks, micro_batches, 1e-6, 0);
  replace(trial.cluster, "\"devices\": " + std::to_string(4 * chunks), "\"devices\": 4");
  trial.parallel = "\"pipeline\": 4, \"stages\": " + std::to_string(4 * chunks);
  trial.training = R"("strategy": "global", "schedule": {"kind": ")" + schedule +
                   R"(", "chunks": )" + std::to_string(chunks) + R"(}, "steps": 1, "offload": )" +
                   offload + ", \"micro_batches\": " + std::to_string(micro_batches);
  return trial;
}

/// The ops of a rank, as "2F0", and whether the rank waits before each.
struct RankOps {
  std::vector<std::string> ops;
  std::vector<bool> comes_later;
};

struct KeptStash {
  double device = 0, host = 0;
};

/// Walks the ops of a rank in order. A forward makes its stash; what leaves of it is gone once the
/// next op runs, or before where that comes later. What left comes back when the op before its
/// backward begins, and all is freed with the weight gradients. `leaves`: the share that leaves, by
/// chunk.
KeptStash most_kept(const RankOps& rank, int ranks, const std::vector<double>& leaves) {
  const std::vector<std::string>& ops = rank.ops;
  KeptStash now, most;
  double leaving = 0;
  const auto share = [&](const std::string& op) {
    return leaves[static_cast<std::size_t>(std::stoi(op) / ranks)];
  };
  const auto kind = [](const std::string& op) { return op[op.find_first_of("FIBWU")]; };
  const auto note = [&] {
    most = {std::max(most.device, now.device), std::max(most.host, now.host)};
  };
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (rank.comes_later[i]) now.device -= std::exchange(leaving, 0);
    if (kind(ops[i]) == 'F') now.device += 1;
    const bool back = i + 1 < ops.size() && (kind(ops[i + 1]) == 'I' || kind(ops[i + 1]) == 'B');
    const bool own = back && kind(ops[i]) == 'F' && std::stoi(ops[i]) == std::stoi(ops[i + 1]) &&
                     ops[i].substr(ops[i].find('F') + 1) ==
                         ops[i + 1].substr(ops[i + 1].find_first_of("IB") + 1);
    if (back && !own) now.device += share(ops[i + 1]);
    note();
    now.device -= std::exchange(leaving, 0);
    if (back && !own) now.host -= share(ops[i + 1]);
    if (kind(ops[i]) == 'F' && !own) {
      leaving = share(ops[i]);
      now.host += leaving;
      note();
    }
    if (kind(ops[i]) == 'W' || kind(ops[i]) == 'B') now.device -= 1;
  }
  return most;
}

std::vector<RankOps> orders_of(const LayoutTrial& trial) {
  const Program program = lower_plan(make_plan(load(trial)), 1);
  TraceLog log;
  run_program(program, EngineKind::Native, log_sink(log));
  std::stable_sort(log.spans.begin(), log.spans.end(),
                   [](const Span& a, const Span& b) { return a.start < b.start; });
  std::vector<RankOps> orders(program.ranks.size());
  std::vector<Seconds> ends(program.ranks.size());
  for (const Span& span : log.spans) {
    const OpInfo& op = program.ops[span.op];
    RankOps& rank = orders[span.rank];
    rank.ops.push_back(std::to_string(op.stage) + letter(op.kind) +
                       std::to_string(span.micro_batch));
    rank.comes_later.push_back(span.start > ends[span.rank]);
    ends[span.rank] = span.end;
  }
  return orders;
}

TEST_CASE(
    "half offload sends the stash that lives longest, and what is left meets the event list") {
  for (const std::string schedule : {"interleaved", "pipeoffload"}) {
    for (const int chunks : {2, 3, 4}) {
      for (const double share : {0.25, 0.5, 0.75}) {
        const std::string half =
            R"({"activations": )" + std::to_string(share) + R"(, "selection": "lifetime"})";
        const LayoutTrial trial = laid_with_host(schedule, chunks, 12, half);
        std::vector<double> leaves;  // of chunks, the first of which live longest
        for (int chunk = 0; chunk < chunks; ++chunk) {
          leaves.push_back(std::clamp(share * chunks - chunk, 0.0, 1.0));
        }
        const Metrics metrics = run(trial).measurement.metrics;
        const auto orders = orders_of(trial);
        for (std::size_t rank = 0; rank < orders.size(); ++rank) {
          const KeptStash expected = most_kept(orders[rank], 4, leaves);
          INFO(schedule << ", " << chunks << " chunks, share " << share << ", rank " << rank);
          const DeviceMetrics& device = metrics.devices[rank];
          CHECK(device.peak_stash.value() / kStash == doctest::Approx(expected.device));
          CHECK(device.host.stash.value() / kStash == doctest::Approx(expected.host));
        }
      }
    }
  }
}

TEST_CASE("half offload of PipeOffload leaves less memory than that of as much of every stage") {
  const auto peak = [](const std::string& schedule, const std::string& offload) {
    const Metrics metrics = run(laid_with_host(schedule, 2, 16, offload)).measurement.metrics;
    return fullest_device(metrics).peak_stash.value() / kStash;
  };
  const std::string none = R"({"activations": 0})", equal = R"({"activations": 0.5})",
                    longest = R"({"activations": 0.5, "selection": "lifetime"})";
  CHECK(peak("pipeoffload", longest) < peak("pipeoffload", equal));
  CHECK(peak("pipeoffload", longest) < 0.62 * peak("pipeoffload", none));
  CHECK(peak("pipeoffload", none) < 0.65 * peak("interleaved", none));
}

TEST_CASE("every stash crosses the host's link twice, but where its own backward comes next") {
  constexpr int kRanks = 4;
  for (const int micro_batches : {4, 8, 12}) {
    for (const double share : {0.0, 0.5, 1.0}) {
      const Metrics metrics =
          run(scheduled(chain_with_host(kRanks, micro_batches, 0.5, share), "\"1f1b\""))
              .measurement.metrics;
      for (int rank = 0; rank < kRanks; ++rank) {
        const double expected = rank + 1 == kRanks ? 0 : micro_batches * share * 8;
        INFO(micro_batches << " stashes of 8 MB, share " << share << ", rank " << rank << ": "
                           << expected << " MB each way");
        const std::string device = "gpu" + std::to_string(rank);
        CHECK(megabytes_on(metrics, device + " to host") == doctest::Approx(expected));
        CHECK(megabytes_on(metrics, device + " from host") == doctest::Approx(expected));
      }
    }
  }
}

TEST_CASE("layers of a stage whose backward comes next pass one by one") {
  constexpr int kMicroBatches = 3;
  for (const int layers : {2, 3, 5}) {
    for (const double copy : {0.5, 3.2, 6.4}) {
      for (const double share : {0.5, 1.0}) {
        LayoutTrial trial = chain_with_host(1, kMicroBatches, copy, share);
        replace(trial.model, "\"repeat\": 1", "\"repeat\": " + std::to_string(layers));
        trial = scheduled(trial, "\"1f1b\"");
        // The copy of a layer runs beside the forward of the next, or the backward of the next.
        const double part = copy * share, beside = layers - 1.0;
        const double forward = 2 + beside * std::max(2.0, part);
        const double backward = beside * std::max(4.0, part) + 4;
        for (const char* engine : {"native", "simgrid"}) {
          trial.engine = engine;
          INFO(layers << " layers, copies of " << part << " ms, " << engine << ": " << forward
                      << " + " << backward << " ms a micro-batch");
          check_step(trial, {.end = kMicroBatches * (forward + backward),
                             .peak = layers - (layers - 2) * share,
                             .host_peak = beside * share});
          const Metrics metrics = run(trial).measurement.metrics;
          const double bytes = kMicroBatches * beside * share * 8;
          CHECK(megabytes_on(metrics, "gpu0 to host") == doctest::Approx(bytes));
          CHECK(megabytes_on(metrics, "gpu0 from host") == doctest::Approx(bytes));
        }
      }
    }
  }
}

TEST_CASE("1F1B keeps three stashes, and of the others what does not leave") {
  constexpr int kRanks = 6, kMicroBatches = 12;
  for (const double share : {0.0, 0.25, 0.5, 1.0}) {
    const Metrics metrics =
        run(scheduled(chain_with_host(kRanks, kMicroBatches, 0.5, share), "\"1f1b\""))
            .measurement.metrics;
    for (int rank = 0; rank < kRanks; ++rank) {
      // During the last forward before the first backward: the one that is made, the one before,
      // which leaves, and the first one, which comes back.
      const int warm = kRanks - rank, here = std::min(warm, 3);
      const double expected = here + (warm - here) * (1 - share);
      INFO("rank " << rank << " has " << warm << " under way, share " << share << ": " << here
                   << " + " << warm - here << " (1 - share)");
      CHECK(metrics.devices[rank].peak_stash.value() / kStash == doctest::Approx(expected));
      CHECK(metrics.devices[rank].host.stash.value() / kStash ==
            doctest::Approx((warm - 1) * share));
    }
  }
}

TEST_CASE("the hosts of a node that keep more than they have do not fit") {
  LayoutTrial trial = scheduled(chain_with_host(4, 8, 0.5, 1), "\"1f1b\"");
  MESSAGE("3 + 2 + 1 + 0 stashes of 8 MB: 48 MB");
  const Metrics metrics = run(trial).measurement.metrics;
  CHECK(metrics.host_memory.value() == doctest::Approx(48e6));
  CHECK(metrics.host_capacity->value() == doctest::Approx(1e12));
  CHECK(metrics.fits_in_memory);
  replace(trial.cluster, "1 TB", "48 MB");
  CHECK(run(trial).measurement.metrics.fits_in_memory);
  replace(trial.cluster, "48 MB", "47 MB");
  CHECK_FALSE(run(trial).measurement.metrics.fits_in_memory);
}

TEST_CASE("devices below one PCIe uplink halve it") {
  for (const double uplink : {16.0, 8.0, 4.0, 1.6}) {
    const double copy = 2 * 8 / uplink;  // two stashes of 8 MB at `uplink` GB/s
    LayoutTrial trial = chain_with_host(1, 4, 1, 1);
    trial.cluster = R"({"kind": "machine", "device": "a100-40g", "devices_per_node": 2,
        "port": {"bandwidth": "64 GB/s"}, "host": {"bandwidth": "64 GB/s"},
        "pcie": {"switches": 1, "sockets": 1, "uplink": {"bandwidth": )" +
                    in_units(uplink, "GB/s") + "}}}";
    trial.parallel += ", \"data\": 2";
    for (const char* fold : {"\"none\"", "\"auto\""}) {
      trial.fold = fold;
      INFO("an uplink of " << uplink << " GB/s, folding " << fold << ": copies of " << copy
                           << " ms");
      check_step(trial, offloaded_step({.micro_batches = 4, .out = copy, .back = copy}));
    }
  }
}

TEST_CASE("under every schedule both engines agree, and what leaves comes back") {
  int left = 0;
  for (const char* schedule : {"\"naive\"", "\"gpipe\"", "\"1f1b\"", "\"eager-1f1b\"", "\"zb-h1\"",
                               "\"zb-h2\"", "\"dualpipe\"", "\"chimera\"", "\"pipedream\"",
                               "\"pipedream-2bw\"", R"({"kind": "dualpipe", "overlap": 1})"}) {
    LayoutTrial trial = scheduled(chain_with_host(4, 8, 0.7, 0.75), schedule);
    replace(trial.training, "\"steps\": 1", "\"steps\": 3");
    INFO(document(trial));
    trial.engine = "native";
    const Metrics native = run(trial).measurement.metrics;
    trial.engine = "simgrid";
    const Metrics simgrid = run(trial).measurement.metrics;
    CHECK(native.step_time.value() == doctest::Approx(simgrid.step_time.value()).epsilon(1e-9));
    for (int rank = 0; rank < 4; ++rank) {
      CHECK(native.devices[rank].peak_stash == simgrid.devices[rank].peak_stash);
      CHECK(native.devices[rank].host.stash == simgrid.devices[rank].host.stash);
      const std::string device = "gpu" + std::to_string(rank);
      const double out = megabytes_on(native, device + " to host");
      CHECK(out == doctest::Approx(megabytes_on(native, device + " from host")));
      CHECK(out <= 8 * 0.75 * 8 * (1 + 1e-9));
      left += out > 0 ? 1 : 0;
    }
  }
  MESSAGE(left << " ranks with stash on hosts");
  CHECK(left > 20);
}

TEST_CASE("a backward that opens a pair with the next forward finds the stash of its own") {
  LayoutTrial trial = scheduled(
      chain_with_host(1, 4, 0.5, 0.5),
      R"({"order": ["0F0,(0B0;0F1)OVERLAP_F_B,(0B1;0F2)OVERLAP_F_B,(0B2;0F3)OVERLAP_F_B,0B3"]})");
  replace(trial.model, "\"repeat\": 1", "\"repeat\": 3");
  const Metrics metrics = run(trial).measurement.metrics;
  INFO("two of a stash of three layers at most: of the backward and of the forward of a pair");
  const DeviceMetrics& device = metrics.devices[0];
  CHECK(device.peak_stash.value() / kStash <= 2 * 3);
  CHECK(device.host.stash.value() / kStash <= 2 * 3 * 0.5);
  CHECK(megabytes_on(metrics, "gpu0 to host") ==
        doctest::Approx(megabytes_on(metrics, "gpu0 from host")));
}

TEST_CASE("local and interlocking stages keep stash with their hosts, too") {
  for (const char* strategy :
       {"\"local\"", "\"pairwise\"", R"({"kind": "interlocking", "n_wise": 3})"}) {
    for (const int in_flight : {1, 2, 3}) {
      LayoutTrial trial = chain_with_host(4, 6, 0.7, 1);
      replace(trial.training, "\"global\"", strategy);
      trial = scheduled(trial, R"({"kind": "eager", "in_flight": )" + std::to_string(in_flight) +
                                   ", \"update_every\": 6}");
      replace(trial.training, "\"steps\": 1", "\"steps\": 3");
      INFO(document(trial));
      trial.engine = "native";
      const Metrics native = run(trial).measurement.metrics;
      trial.engine = "simgrid";
      const Metrics simgrid = run(trial).measurement.metrics;
      CHECK(native.step_time.value() == doctest::Approx(simgrid.step_time.value()).epsilon(1e-9));
      for (int rank = 0; rank < 4; ++rank) {
        CHECK(native.devices[rank].host.stash == simgrid.devices[rank].host.stash);
        const std::string device = "gpu" + std::to_string(rank);
        const double out = megabytes_on(native, device + " to host");
        CHECK(out == doctest::Approx(megabytes_on(native, device + " from host")));
      }
    }
  }
}

}  // namespace
}  // namespace interlock::offload_test
