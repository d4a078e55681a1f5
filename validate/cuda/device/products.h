// Products: matrix products by cuBLASLt, each with the algorithm that was chosen for it once.
// SPDX-License-Identifier: Apache-2.0
//
// When a shape is first seen, the algorithms that the library offers for it are timed, and the
// fastest is pinned from then on, for the whole process: equal products are bitwise equal, and
// nothing is asked for while a graph is captured or a run is measured (run everything once before).
// fp32 is strict, without TF32; bf16 adds up in fp32.
#pragma once

#include <cublasLt.h>

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "reports/result/execution_record.h"
#include "validate/cuda/device/product_choice.h"
#include "validate/cuda/kernels/kernels.h"

namespace interlock::cuda {

/// Names what a product is for; records are by role.
enum class ProductRole { Forward, InputGradient, WeightGradient, Attention };

/// c (m, n) = a b, or c += a b; row-major. `a` is stored (m, k), or (k, m) if transposed; `b` is
/// stored (k, n), or (n, k). A leading size is the distance between rows as stored.
/// Example: dw += x' dy of x (1024, 4096) and dy (1024, 512): m 4096, n 512, k 1024, transpose_a,
/// lead_a 4096, lead_b and lead_c 512, accumulate.
struct ProductShape {
  ProductRole role = ProductRole::Forward;
  std::int64_t m = 1, n = 1, k = 1;
  bool transpose_a = false, transpose_b = false;
  std::int64_t lead_a = 1, lead_b = 1, lead_c = 1;
  int batch = 1;
  std::int64_t step_a = 0, step_b = 0, step_c = 0;  // numbers between matrices of a batch
  bool accumulate = false;
  bool bias = false;  // a row of n numbers is added
  Element element = Element::Fp32;
  int sms = 1;         // that it is planned for
  int alignment = 16;  // bytes that addresses are multiples of
  bool operator==(const ProductShape&) const = default;
  auto operator<=>(const ProductShape&) const = default;
};

/// Returns the shape in words, m x n x k: "4096 x 512 x 1024 bf16, weight gradient, added, on 32
/// multiprocessors".
std::string describe(const ProductShape& shape);

struct ProductOperands {
  const void *a = nullptr, *b = nullptr;
  void* c = nullptr;
  const void* bias = nullptr;
};
/// Returns the bytes, 16 at most, that every row and every matrix of a batch begins at a multiple
/// of.
int alignment_of(const ProductShape& shape, const ProductOperands& operands);

/// The products of one device of a program. Its workspace serves one stream.
class Products {
 public:
  static constexpr std::int64_t kWorkspace = 32 << 20;  // as much as cuBLAS takes on Hopper

  /// `device`: of CUDA, current whenever products run.
  explicit Products(int device);
  ~Products();
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  /// Runs a product. Tensors may lie anywhere: the shape's alignment is found out.
  void run(const Stream& stream, ProductShape shape, const ProductOperands& operands);
  /// Returns the products that have run, and how often since they were counted again.
  std::vector<ExecutedProduct> record() const;
  /// Forgets how often products have run, but not by what.
  void count_again();
  /// Returns the algorithm that ran last, as the library calls it: "cublasLt 66 tile 18 ...";
  /// empty: nothing has run.
  std::string last_algorithm() const;
  /// Is told of every product before it runs, if there is one.
  std::function<void(const ProductShape&, const ProductOperands&)> listener;

 private:
  struct Layout;
  struct Plan;
  Plan& plan_of(const ProductShape& shape);
  void run_planned(const Stream& stream, const ProductShape& shape,
                   const ProductOperands& operands);
  cublasStatus_t issue(const Stream& stream, const ProductShape& shape,
                       const ProductOperands& operands, const Plan& plan,
                       const cublasLtMatmulAlgo_t& algorithm) const;
  void settle(const Stream& stream, const ProductShape& shape, const ProductOperands& operands,
              Plan& plan);

  cublasLtHandle_t handle_ = nullptr;
  void* workspace_ = nullptr;
  std::map<ProductShape, std::unique_ptr<Plan>> plans_;
  const Plan* last_ = nullptr;
  std::unique_ptr<Hold> hold_;  // of algorithms that are timed
};

}  // namespace interlock::cuda
