// Devices dealt to jobs.
// SPDX-License-Identifier: Apache-2.0
#include "scenarios/jobs/placement.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "base/text.h"

namespace interlock {
namespace {

std::string counted(int number, const std::string& noun) {
  return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
}

class Placer {
 public:
  Placer(const Cluster& cluster, const std::vector<UnplacedJob>& jobs, Diagnostics& diagnostics)
      : jobs_(jobs),
        diagnostics_(diagnostics),
        owner_(static_cast<std::size_t>(cluster.devices), kFree),
        nodes_(static_cast<std::size_t>(nodes(cluster))),
        placed_(jobs.size()) {
    for (int device = 0; device < cluster.devices; ++device) {
      nodes_[static_cast<std::size_t>(node_of(cluster, device))].push_back(device);
    }
  }

  std::vector<std::vector<int>> place() {
    using Kind = PlacementRule::Kind;
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      if (jobs_[j].rule.kind == Kind::Devices) on_devices(j);
      if (jobs_[j].rule.kind == Kind::Nodes) on_nodes(j);
    }
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      if (jobs_[j].rule.kind == Kind::Packed) pack(j);
    }
    spread();
    return std::move(placed_);
  }

 private:
  static constexpr int kFree = -1;

  void take(std::size_t job, int device) {
    owner_[static_cast<std::size_t>(device)] = static_cast<int>(job);
    placed_[job].push_back(device);
  }
  bool is_free(int device) const { return owner_[static_cast<std::size_t>(device)] == kFree; }
  void refuse(std::size_t job, const std::string& message) {
    report(diagnostics_, jobs_[job].node, message);
  }

  /// Reports numbers that the cluster lacks, and those that stand twice.
  bool known(std::size_t job, const std::string& noun, std::size_t count) {
    std::set<int> seen;
    for (const int number : jobs_[job].rule.numbers) {
      if (number < 0 || static_cast<std::size_t>(number) >= count) {
        refuse(job, "there is no " + noun + " " + std::to_string(number) + "; expected 0 to " +
                        std::to_string(count - 1));
        return false;
      }
      if (!seen.insert(number).second) {
        refuse(job, noun + " " + std::to_string(number) + " stands twice; expected it once");
        return false;
      }
    }
    return true;
  }

  void on_devices(std::size_t job) {
    const std::vector<int>& numbers = jobs_[job].rule.numbers;
    if (!known(job, "device", owner_.size())) return;
    if (static_cast<int>(numbers.size()) != jobs_[job].devices) {
      return refuse(job, "job " + in_quotes(jobs_[job].name) + " has " +
                             counted(jobs_[job].devices, "device") +
                             "; expected as many numbers, got " + std::to_string(numbers.size()));
    }
    for (const int device : numbers) {
      if (!is_free(device)) return refuse_taken(job, device);
      take(job, device);
    }
  }

  void refuse_taken(std::size_t job, int device) {
    const UnplacedJob& other =
        jobs_[static_cast<std::size_t>(owner_[static_cast<std::size_t>(device)])];
    refuse(job, "device " + std::to_string(device) + " belongs to job " + in_quotes(other.name) +
                    "; expected devices that no other job has");
  }

  void on_nodes(std::size_t job) {
    const std::vector<int>& numbers = jobs_[job].rule.numbers;
    const int devices = jobs_[job].devices;
    if (!known(job, "node", nodes_.size())) return;
    const int count = static_cast<int>(numbers.size());
    if (devices % count != 0) {
      return refuse(job, "the " + counted(devices, "device") + " of job " +
                             in_quotes(jobs_[job].name) + " cannot be divided evenly among " +
                             counted(count, "node") +
                             "; expected a number of nodes that divides them");
    }
    for (const int node : numbers) {
      int missing = devices / count;
      for (const int device : nodes_[static_cast<std::size_t>(node)]) {
        if (missing == 0) break;
        if (!is_free(device)) continue;
        take(job, device);
        --missing;
      }
      if (missing == 0) continue;
      const int free = devices / count - missing;
      return refuse(job, "node " + std::to_string(node) + " has " + counted(free, "free device") +
                             " of the " + std::to_string(devices / count) + " that job " +
                             in_quotes(jobs_[job].name) +
                             " needs there; expected other nodes, or more of them");
    }
  }

  void pack(std::size_t job) {
    int missing = jobs_[job].devices;
    for (int device = 0; missing > 0 && device < static_cast<int>(owner_.size()); ++device) {
      if (!is_free(device)) continue;
      take(job, device);
      --missing;
    }
    if (missing > 0) refuse_full(job, missing);
  }

  void refuse_full(std::size_t job, int missing) {
    refuse(job, "job " + in_quotes(jobs_[job].name) + " needs " +
                    counted(jobs_[job].devices, "device") + ", and " +
                    counted(jobs_[job].devices - missing, "free one") +
                    " can be had; expected a cluster of more devices, or a smaller job");
  }

  /// Deals whole nodes, one to each spread job in turn.
  void spread() {
    std::vector<std::size_t> wanting;
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      if (jobs_[j].rule.kind == PlacementRule::Kind::Spread) wanting.push_back(j);
    }
    std::size_t turn = 0;
    for (const std::vector<int>& node : nodes_) {
      if (wanting.empty()) return;
      if (!std::all_of(node.begin(), node.end(), [&](int device) { return is_free(device); })) {
        continue;
      }
      turn %= wanting.size();
      const std::size_t job = wanting[turn];
      const auto all = static_cast<std::size_t>(jobs_[job].devices);
      for (const int device : node) {
        if (placed_[job].size() < all) take(job, device);
      }
      if (placed_[job].size() == all) {
        wanting.erase(wanting.begin() + static_cast<std::ptrdiff_t>(turn));
      } else {
        ++turn;
      }
    }
    for (const std::size_t job : wanting) {
      refuse(job, "job " + in_quotes(jobs_[job].name) + " needs " +
                      counted(jobs_[job].devices, "device") + " on whole free nodes, and " +
                      std::to_string(placed_[job].size()) +
                      " are left; expected more nodes, or \"packed\"");
    }
  }

  const std::vector<UnplacedJob>& jobs_;
  Diagnostics& diagnostics_;
  std::vector<int> owner_;               // by device
  std::vector<std::vector<int>> nodes_;  // their devices
  std::vector<std::vector<int>> placed_;
};

}  // namespace

std::vector<std::vector<int>> place_jobs(const Cluster& cluster,
                                         const std::vector<UnplacedJob>& jobs,
                                         Diagnostics& diagnostics) {
  return Placer(cluster, jobs, diagnostics).place();
}

}  // namespace interlock
