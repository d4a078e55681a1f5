// Tensor cores as plain C++: what kernels use of nvcuda::wmma. Included by kernel_launch.h.
// SPDX-License-Identifier: Apache-2.0
//
// How a fragment's numbers are spread over the threads of a warp is not told, so kernels may not
// depend on it: here the first thread has them all, and does the work of the warp.
#pragma once

namespace nvcuda::wmma {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
enum layout_t { mem_row_major, mem_col_major };

template <class Use, int kM, int kN, int kK, class T, class Layout = void>
struct fragment {
  static_assert(kM == 16 && kN == 16 && kK == 16);
  T numbers[16][16];  // row, column
};

/// Returns whether this thread works on numbers at `at`, in rows `lead` apart. An address that is
/// no multiple of 32 bytes, or rows that are none of 16, are an error of the device.
template <class T>
bool works_at(const T* at, unsigned lead) {
  if (threadIdx.x % 32 != 0) return false;
  if (reinterpret_cast<std::uintptr_t>(at) % 32 == 0 && lead * sizeof(T) % 16 == 0) return true;
  emulated::EmulatedGpus::instance().fail(cudaErrorMisalignedAddress);
  return false;
}

template <class Use, class T, class Layout>
void load_matrix_sync(fragment<Use, 16, 16, 16, T, Layout>& to, const T* from, unsigned lead) {
  if (!works_at(from, lead)) return;
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 16; ++column) {
      const bool by_rows = std::is_same_v<Layout, row_major>;
      to.numbers[row][column] = by_rows ? from[row * lead + column] : from[column * lead + row];
    }
  }
}

inline void load_matrix_sync(fragment<accumulator, 16, 16, 16, float>& to, const float* from,
                             unsigned lead, layout_t) {
  if (!works_at(from, lead)) return;
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 16; ++column) to.numbers[row][column] = from[row * lead + column];
  }
}

inline void store_matrix_sync(float* to, const fragment<accumulator, 16, 16, 16, float>& from,
                              unsigned lead, layout_t) {
  if (!works_at(to, lead)) return;
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 16; ++column) to[row * lead + column] = from.numbers[row][column];
  }
}

template <class T, class LayoutA, class LayoutB>
void mma_sync(fragment<accumulator, 16, 16, 16, float>& to,
              const fragment<matrix_a, 16, 16, 16, T, LayoutA>& a,
              const fragment<matrix_b, 16, 16, 16, T, LayoutB>& b,
              const fragment<accumulator, 16, 16, 16, float>& c) {
  if (threadIdx.x % 32 != 0) return;
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 16; ++column) {
      float sum = c.numbers[row][column];
      for (int k = 0; k < 16; ++k) {
        sum += __bfloat162float(a.numbers[row][k]) * __bfloat162float(b.numbers[k][column]);
      }
      to.numbers[row][column] = sum;
    }
  }
}

}  // namespace nvcuda::wmma
