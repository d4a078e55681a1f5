// ProductChoice: which of the algorithms that a library offers for a product is the fastest.
// SPDX-License-Identifier: Apache-2.0
//
// Example: of four algorithms the library refuses to run the third; the others take 30, 20 and 50
// us, so that the second is chosen. One at most 2 % slower than it would be chosen before it, were
// it offered before it: the library's own order decides between equals.
#pragma once

#include <cublasLt.h>

#include <functional>
#include <optional>
#include <vector>

#include "validate/cuda/device/hold.h"

namespace interlock::cuda {

/// Algorithms that cuBLASLt offers for a product, its own favourite first.
using OfferedProducts = std::vector<cublasLtMatmulHeuristicResult_t>;

/// Returns the place in `seconds` of the algorithm to take; nothing: none of them ran.
std::optional<std::size_t> place_of_fastest(const std::vector<std::optional<double>>& seconds);

/// Issues one product by an algorithm to the stream, or says why the library refuses to.
using IssueProduct = std::function<cublasStatus_t(const cublasLtMatmulHeuristicResult_t&)>;

/// Returns how long each algorithm takes on `stream`, in seconds, without the host's part; nothing
/// of those that are refused. Waits for the stream, on which nothing is captured. `hold` is open.
std::vector<std::optional<double>> time_products(const OfferedProducts& offered,
                                                 const IssueProduct& issue, cudaStream_t stream,
                                                 Hold& hold);

}  // namespace interlock::cuda
