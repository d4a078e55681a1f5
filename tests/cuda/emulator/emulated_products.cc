// cuBLASLt on the emulated machine: what the module asks of it, with Eigen.
// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda/emulator/emulated_products.h"

#include <cublasLt.h>
#include <cuda_bf16.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/cuda/emulator/emulated_gpu.h"
#include "tests/cuda/emulator/refusals.h"

using emulated::EmulatedGpus;

namespace {

struct Operation {
  cublasOperation_t a = CUBLAS_OP_N, b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
};

/// Columns of `rows` numbers, `lead` apart.
struct Layout {
  cudaDataType_t type = CUDA_R_32F;
  std::int64_t rows = 0, columns = 0, lead = 0, step = 0;
  std::int32_t batch = 1;
};

struct Preference {
  std::uint32_t alignment = 256;
};

template <class To, class Opaque>
To* as(Opaque* opaque) {
  return reinterpret_cast<To*>(opaque);
}
template <class To, class Opaque>
const To* as(const Opaque* opaque) {
  return reinterpret_cast<const To*>(opaque);
}

float number_at(cudaDataType_t type, const void* begin, std::int64_t i) {
  if (type == CUDA_R_32F) return static_cast<const float*>(begin)[i];
  return __bfloat162float(static_cast<const __nv_bfloat16*>(begin)[i]);
}

void put_at(cudaDataType_t type, void* begin, std::int64_t i, float number) {
  if (type == CUDA_R_32F) {
    static_cast<float*>(begin)[i] = number;
  } else {
    static_cast<__nv_bfloat16*>(begin)[i] = __float2bfloat16_rn(number);
  }
}

Eigen::MatrixXf read(const Layout& layout, const void* begin, int which, bool transposed) {
  Eigen::MatrixXf matrix(layout.rows, layout.columns);
  for (std::int64_t c = 0; c < layout.columns; ++c) {
    for (std::int64_t r = 0; r < layout.rows; ++r) {
      matrix(r, c) = number_at(layout.type, begin, which * layout.step + c * layout.lead + r);
    }
  }
  return transposed ? Eigen::MatrixXf(matrix.transpose()) : matrix;
}

struct Product {
  Operation operation;
  Layout a, b, c, d;
  float alpha = 1, beta = 0;
  const void *at_a = nullptr, *at_b = nullptr, *at_c = nullptr;
  void* at_d = nullptr;

  void run() const {
    for (int i = 0; i < d.batch; ++i) {
      const Eigen::MatrixXf left = read(a, at_a, i, operation.a == CUBLAS_OP_T);
      const Eigen::MatrixXf right = read(b, at_b, i, operation.b == CUBLAS_OP_T);
      Eigen::MatrixXf made(d.rows, d.columns);
      made.noalias() = left * right;
      const Eigen::MatrixXf added = beta == 0 ? Eigen::MatrixXf() : read(c, at_c, i, false);
      for (std::int64_t column = 0; column < d.columns; ++column) {
        for (std::int64_t row = 0; row < d.rows; ++row) {
          float x = alpha * made(row, column);
          if (beta != 0) x += beta * added(row, column);
          if (operation.epilogue == CUBLASLT_EPILOGUE_BIAS) {
            x += number_at(d.type, operation.bias, row);
          }
          put_at(d.type, at_d, i * d.step + column * d.lead + row, x);
        }
      }
    }
  }
};

bool lies(const void* address, std::uint32_t alignment) {
  return reinterpret_cast<std::uintptr_t>(address) % alignment == 0;
}

bool fits(const Operation& o, const Layout& a, const Layout& b, const Layout& d) {
  const std::int64_t m = o.a == CUBLAS_OP_T ? a.columns : a.rows;
  const std::int64_t k = o.a == CUBLAS_OP_T ? a.rows : a.columns;
  const std::int64_t k2 = o.b == CUBLAS_OP_T ? b.columns : b.rows;
  const std::int64_t n = o.b == CUBLAS_OP_T ? b.rows : b.columns;
  return m == d.rows && n == d.columns && k == k2 && a.lead >= a.rows && b.lead >= b.rows &&
         d.lead >= d.rows && a.batch == d.batch && b.batch == d.batch;
}

}  // namespace

std::vector<emulated::OfferedAlgorithm>& emulated::offered_algorithms() {
  static std::vector<OfferedAlgorithm> offered = {
      {.longer = 200e-6}, {}, {.refused = true}, {.longer = 400e-6}};
  return offered;
}

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = reinterpret_cast<cublasLtHandle_t>(new int(EmulatedGpus::instance().current));
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete as<int>(handle);
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasLtGetStatusString(cublasStatus_t) { return "the emulated library refuses"; }
std::size_t cublasLtGetVersion() { return 0; }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* operation, cublasComputeType_t,
                                        cudaDataType_t) {
  *operation = reinterpret_cast<cublasLtMatmulDesc_t>(new Operation);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t operation) {
  delete as<Operation>(operation);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t operation,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t bytes) {
  auto& o = *as<Operation>(operation);
  const auto take = [&](auto& to) {
    if (bytes != sizeof to) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&to, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  };
  std::int32_t unused = 0;
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return take(o.a);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return take(o.b);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return take(o.epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return take(o.bias);
    case CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET:
      return take(unused);
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t columns,
                                          std::int64_t lead) {
  *layout = reinterpret_cast<cublasLtMatrixLayout_t>(
      new Layout{type, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns), lead});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete as<Layout>(layout);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* value, std::size_t bytes) {
  auto& l = *as<Layout>(layout);
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT && bytes == sizeof l.batch) {
    std::memcpy(&l.batch, value, bytes);
  } else if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET && bytes == sizeof l.step) {
    std::memcpy(&l.step, value, bytes);
  } else {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete as<Preference>(preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, std::size_t bytes) {
  if (attribute == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES) {
    std::memcpy(&as<Preference>(preference)->alignment, value, bytes);
  }
  return CUBLAS_STATUS_SUCCESS;
}

/// The algorithm remembers the alignment that it was chosen for.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int most,
                                              cublasLtMatmulHeuristicResult_t* results,
                                              int* count) {
  const Operation& asked = *as<Operation>(operation);
  const Layout& made = *as<Layout>(d);
  if (!fits(asked, *as<Layout>(a), *as<Layout>(b), made)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  *count = 0;
  const auto shape = static_cast<std::uint64_t>(made.rows * 65536 + made.columns);
  const std::uint32_t alignment = as<Preference>(preference)->alignment;
  const bool bias = asked.epilogue == CUBLASLT_EPILOGUE_BIAS;
  if (bias && emulated::refuses(emulated::Refusal::Epilogue, shape)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (alignment < 16 && emulated::refuses(emulated::Refusal::Alignment, shape ^ alignment)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  *count = std::min(most, static_cast<int>(emulated::offered_algorithms().size()));
  for (int i = 0; i < *count; ++i) {
    results[i] = {};
    results[i].algo.data[0] = alignment;
    results[i].algo.data[1] = static_cast<std::uint64_t>(i);
    results[i].wavesCount = 1;
  }
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algorithm,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute,
                                                    void* value, std::size_t bytes,
                                                    std::size_t* written) {
  std::memset(value, 0, bytes);
  if (attribute == CUBLASLT_ALGO_CONFIG_ID) {
    const auto number = static_cast<std::int32_t>(10 + algorithm->data[1]);
    std::memcpy(value, &number, sizeof number);
  }
  *written = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                              const void* alpha, const void* a, cublasLtMatrixLayout_t a_layout,
                              const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,
                              const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace, std::size_t,
                              cudaStream_t stream) {
  EmulatedGpus& gpus = EmulatedGpus::instance();
  const Product product = {*as<Operation>(operation),
                           *as<Layout>(a_layout),
                           *as<Layout>(b_layout),
                           *as<Layout>(c_layout),
                           *as<Layout>(d_layout),
                           *static_cast<const float*>(alpha),
                           *static_cast<const float*>(beta),
                           a,
                           b,
                           c,
                           d};
  const auto alignment = static_cast<std::uint32_t>(algorithm->data[0]);
  for (const void* operand : {a, b, c, static_cast<const void*>(d)}) {
    if (!gpus.on_device(operand) || !lies(operand, alignment)) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
  }
  const bool own = *as<int>(handle) == gpus.current && gpus.on_device(workspace);
  if (!own || !fits(product.operation, product.a, product.b, product.d)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  emulated::Stream* const to = gpus.stream(stream);
  if (to == nullptr || to->device != gpus.current) return CUBLAS_STATUS_EXECUTION_FAILED;
  emulated::OfferedAlgorithm& taken = emulated::offered_algorithms().at(algorithm->data[1]);
  if (taken.refused) return CUBLAS_STATUS_NOT_SUPPORTED;
  ++taken.ran;
  gpus.enqueue(to, [product, longer = taken.longer] {
    product.run();
    emulated::pass(longer);
  });
  return CUBLAS_STATUS_SUCCESS;
}
}
