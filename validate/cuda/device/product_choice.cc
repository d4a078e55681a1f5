// Times algorithms of products behind a gate, so that no launch counts.
// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/device/product_choice.h"

#include <algorithm>

#include "validate/cuda/kernels/cuda_call.h"

namespace interlock::cuda {

namespace {

constexpr double kAsFast = 1.02;        // times that count as equal
constexpr double kLeastTrial = 300e-6;  // s, that a reading should take at least
constexpr int kMostOfTrial = 20;        // in a reading, whatever it takes
constexpr int kTrials = 3;              // of which the shortest counts

class TrialMark {
 public:
  TrialMark() { require(cudaEventCreate(&event_), "make an event"); }
  ~TrialMark() { cudaEventDestroy(event_); }
  TrialMark(const TrialMark&) = delete;
  TrialMark& operator=(const TrialMark&) = delete;

  void record(cudaStream_t stream) const {
    require(cudaEventRecord(event_, stream), "mark a time");
  }
  double since(const TrialMark& begin) const {
    float milliseconds = 0;
    require(cudaEventElapsedTime(&milliseconds, begin.event_, event_), "read a time");
    return milliseconds / 1e3;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Returns the seconds of one of `repeats` products; nothing where one is refused.
std::optional<double> read_once(const std::function<cublasStatus_t()>& issue, int repeats,
                                cudaStream_t stream, Hold& hold) {
  const TrialMark begin, end;
  hold.close(stream);
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  try {
    begin.record(stream);
    for (int i = 0; i < repeats && status == CUBLAS_STATUS_SUCCESS; ++i) status = issue();
    end.record(stream);
  } catch (...) {
    hold.open();
    throw;
  }
  hold.open();
  require(cudaStreamSynchronize(stream), "time a product");
  if (status != CUBLAS_STATUS_SUCCESS) return std::nullopt;
  return end.since(begin) / repeats;
}

std::optional<double> time_one(const std::function<cublasStatus_t()>& issue, cudaStream_t stream,
                               Hold& hold) {
  if (!read_once(issue, 1, stream, hold)) return std::nullopt;  // its kernel is loaded with it
  std::optional<double> best = read_once(issue, 1, stream, hold);
  if (!best) return best;
  const int repeats =
      static_cast<int>(std::clamp(kLeastTrial / std::max(*best, 1e-9), 1.0, double{kMostOfTrial}));
  for (int i = 0; i < kTrials; ++i) {
    const std::optional<double> next = read_once(issue, repeats, stream, hold);
    if (!next) return next;
    best = i == 0 ? *next : std::min(*best, *next);
  }
  return best;
}

}  // namespace

std::optional<std::size_t> place_of_fastest(const std::vector<std::optional<double>>& seconds) {
  std::optional<double> least;
  for (const std::optional<double>& one : seconds) {
    if (one && (!least || *one < *least)) least = one;
  }
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    if (seconds[i] && *seconds[i] <= *least * kAsFast) return i;
  }
  return std::nullopt;
}

std::vector<std::optional<double>> time_products(const OfferedProducts& offered,
                                                 const IssueProduct& issue, cudaStream_t stream,
                                                 Hold& hold) {
  std::vector<std::optional<double>> seconds;
  seconds.reserve(offered.size());
  for (const cublasLtMatmulHeuristicResult_t& one : offered) {
    seconds.push_back(time_one([&] { return issue(one); }, stream, hold));
  }
  return seconds;
}

}  // namespace interlock::cuda
