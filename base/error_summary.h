// ErrorSummary: what a set of relative errors comes to, and how well an order was foreseen.
// SPDX-License-Identifier: Apache-2.0
//
// Example: the errors 0.1, -0.1 and 0.05 have a mape of 0.083, a median of 0.1 and a bias of 0.017.
#pragma once

#include <vector>

namespace interlock {

/// Returns the middle of `values`, of two the mean. REQUIRES: there is one.
double median_of(std::vector<double> values);
/// Returns the value that a share `part` of `values` does not exceed (nearest rank). REQUIRES:
/// there is one; 0 <= part <= 1.
double quantile_of(std::vector<double> values, double part);

/// Relative errors, predicted / measured - 1.
struct ErrorSummary {
  int count = 0;
  double mape = 0;                       // mean of their absolute values
  double median = 0, p95 = 0, most = 0;  // likewise absolute
  double bias = 0;                       // their mean
  double low = 0, high = 0;              // 95 % interval of mape, by bootstrap
};
/// Returns the summary of `errors`; all zero if there is none. The bootstrap draws with `seed`.
ErrorSummary error_summary(const std::vector<double>& errors, int seed = 1);

/// The agreement of two orders. Example: predicted {1, 2, 4} and measured {1, 3, 2} agree on two of
/// three pairs: tau is 1 / 3, clear_pairs 3, clear_pairs_right 2.
struct RankAgreement {
  double tau = 0;             // Kendall's tau-b
  int clear_pairs = 0;        // that are predicted to differ by more than the least gap
  int clear_pairs_right = 0;  // of these, those whose measured order is as predicted
};
/// Compares both orders. `least_gap`: of the larger, a share of the smaller. REQUIRES: as many of
/// both.
RankAgreement rank_agreement(const std::vector<double>& predicted,
                             const std::vector<double>& measured, double least_gap = 0.05);

}  // namespace interlock
