// Fused attention on the CPU against attention that stores its scores, in one range and several.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "base/random.h"
#include "validate/cpu/layers/attention_kernels.h"

namespace interlock::attention_test {
namespace {

template <class T>
Matrix<T> random_matrix(Eigen::Index rows, Eigen::Index columns, std::uint64_t stream) {
  Random random(3, stream);
  Matrix<T> made(rows, columns);
  for (Eigen::Index i = 0; i < made.size(); ++i) {
    made.data()[i] = static_cast<T>(4 * random.uniform() - 2);
  }
  return made;
}

template <class T>
MatrixView<T> view(Matrix<T>& matrix) {
  return {matrix.data(), matrix.rows(), matrix.cols()};
}
template <class T>
ConstMatrixView<T> read(const Matrix<T>& matrix) {
  return {matrix.data(), matrix.rows(), matrix.cols()};
}

/// Compares outputs and gradients for two samples of `tokens` tokens.
template <class T>
void compare(int tokens, T tolerance) {
  constexpr Eigen::Index kSamples = 2;
  const AttentionShape shape = {.positions = tokens, .heads = 3, .size = 5};
  const Eigen::Index rows = kSamples * tokens, width = 15, blocks = kSamples * 3;
  const Matrix<T> qkv = random_matrix<T>(rows, 3 * width, 1), dy = random_matrix<T>(rows, width, 2);
  Matrix<T> p(blocks * tokens, tokens), y(rows, width), dqkv(rows, 3 * width);
  attention_forward<T>(shape, read(qkv), view(p), view(y));
  std::vector<T> scratch(static_cast<std::size_t>(tokens) * static_cast<std::size_t>(tokens));
  attention_backward_input<T>(shape, {read(qkv), read(p), read(dy), view(dqkv), scratch.data()});

  Matrix<T> fused_y(rows, width), beside(rows, 3 * width), in_place = qkv;
  std::vector<T> statistics(static_cast<std::size_t>(blocks * tokens));
  fused_attention_forward<T>(shape, read(qkv), statistics.data(), view(fused_y));
  fused_attention_backward_input<T>(shape, {read(qkv), read(dy), statistics.data(), view(beside)});
  fused_attention_backward_input<T>(shape,
                                    {read(in_place), read(dy), statistics.data(), view(in_place)});
  INFO(tokens, " tokens, numbers of ", sizeof(T), " bytes");
  CHECK((fused_y - y).norm() <= tolerance * y.norm());
  CHECK((beside - dqkv).norm() <= tolerance * dqkv.norm());
  CHECK(in_place == beside);
}

TEST_CASE("fused attention makes what attention makes that stores its scores") {
  for (const int tokens : {1, 2, 31, 32, 33, 70}) {
    compare<double>(tokens, 1e-13);
    compare<float>(tokens, 1e-5F);
  }
}

}  // namespace
}  // namespace interlock::attention_test
