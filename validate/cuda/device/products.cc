// Products: descriptors, heuristics and calls of cuBLASLt.
// SPDX-License-Identifier: Apache-2.0
//
// cuBLASLt thinks in columns: row-major c = a b is column-major c' = b' a', so operands change
// places and keep their transposition.
#include "validate/cuda/device/products.h"

#include <array>
#include <cstdint>
#include <mutex>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "validate/cuda/kernels/cuda_call.h"

namespace interlock::cuda {

namespace {

struct Preference {
  cublasLtMatmulPreference_t preference = nullptr;

  Preference() { require(cublasLtMatmulPreferenceCreate(&preference), "describe preferences"); }
  ~Preference() { cublasLtMatmulPreferenceDestroy(preference); }
  Preference(const Preference&) = delete;
  Preference& operator=(const Preference&) = delete;

  template <class Value>
  void set(cublasLtMatmulPreferenceAttributes_t attribute, Value value) const {
    require(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
            "describe preferences");
  }
};

template <class Value>
Value algorithm_value(const cublasLtMatmulAlgo_t& algorithm,
                      cublasLtMatmulAlgoConfigAttributes_t attribute) {
  Value value{};
  std::size_t written = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof value, &written);
  return status == CUBLAS_STATUS_SUCCESS ? value : Value{};  // older libraries know fewer
}

ExecutedProduct record_of(const ProductShape& shape,
                          const cublasLtMatmulHeuristicResult_t& chosen) {
  const cublasLtMatmulAlgo_t& algo = chosen.algo;
  ExecutedProduct one = {.shape = describe(shape),
                         .waves = chosen.wavesCount,
                         .workspace = static_cast<std::int64_t>(chosen.workspaceSize)};
  one.algorithm = algorithm_value<std::int32_t>(algo, CUBLASLT_ALGO_CONFIG_ID);
  one.tile = algorithm_value<std::int32_t>(algo, CUBLASLT_ALGO_CONFIG_TILE_ID);
  one.stages = algorithm_value<std::int32_t>(algo, CUBLASLT_ALGO_CONFIG_STAGES_ID);
  one.split_k = algorithm_value<std::int32_t>(algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
  one.cluster = algorithm_value<std::uint16_t>(algo, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID);
  return one;
}

constexpr int kAskedFor = 8;  // algorithms that are asked for

/// The kind of a GPU: its capability and multiprocessors.
using GpuKind = std::array<int, 3>;

GpuKind current_kind() {
  int device = 0;
  require(cudaGetDevice(&device), "describe a device");
  GpuKind kind{};
  require(cudaDeviceGetAttribute(kind.data(), cudaDevAttrComputeCapabilityMajor, device),
          "describe a device");
  require(cudaDeviceGetAttribute(&kind[1], cudaDevAttrComputeCapabilityMinor, device),
          "describe a device");
  require(cudaDeviceGetAttribute(&kind[2], cudaDevAttrMultiProcessorCount, device),
          "describe a device");
  return kind;
}

/// The algorithms that this process has timed: equal products stay bitwise equal, whichever run,
/// device or partition asks for them.
class KnownAlgorithms {
 public:
  using Key = std::pair<GpuKind, ProductShape>;
  const cublasLtMatmulHeuristicResult_t* find(const Key& key) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = known_.find(key);
    return found == known_.end() ? nullptr : &found->second;
  }
  void keep(const Key& key, const cublasLtMatmulHeuristicResult_t& algorithm) {
    const std::lock_guard<std::mutex> lock(mutex_);
    known_.emplace(key, algorithm);
  }

 private:
  std::mutex mutex_;
  std::map<Key, cublasLtMatmulHeuristicResult_t> known_;
};

KnownAlgorithms& known_algorithms() {
  static KnownAlgorithms known;
  return known;
}

/// Holds results that are never read. No room is no error.
class Unread {
 public:
  explicit Unread(std::size_t bytes) {
    if (cudaMalloc(&data_, bytes) != cudaSuccess) {
      data_ = nullptr;
      cudaGetLastError();
    }
  }
  ~Unread() { cudaFree(data_); }
  Unread(const Unread&) = delete;
  Unread& operator=(const Unread&) = delete;
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

/// Returns the bytes from the first number of c to behind its last.
std::size_t bytes_of_result(const ProductShape& s) {
  const std::int64_t numbers = (s.batch - 1) * s.step_c + s.m * s.lead_c;
  return static_cast<std::size_t>(numbers * bytes_of(s.element));
}

const char* name_of_role(ProductRole role) {
  switch (role) {
    case ProductRole::Forward:
      return "forward";
    case ProductRole::InputGradient:
      return "input gradient";
    case ProductRole::WeightGradient:
      return "weight gradient";
    case ProductRole::Attention:
      return "attention";
  }
  return "";
}

}  // namespace

/// A matrix as cuBLASLt sees it: columns of `rows` numbers, `lead` apart.
struct Products::Layout {
  cublasLtMatrixLayout_t layout = nullptr;

  Layout(Element element, std::int64_t rows, std::int64_t columns, std::int64_t lead) {
    const cudaDataType_t type = element == Element::Fp32 ? CUDA_R_32F : CUDA_R_16BF;
    require(cublasLtMatrixLayoutCreate(&layout, type, static_cast<std::uint64_t>(rows),
                                       static_cast<std::uint64_t>(columns), lead),
            "describe a matrix");
  }
  ~Layout() { cublasLtMatrixLayoutDestroy(layout); }
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;

  void repeat(std::int32_t batch, std::int64_t step) const {
    require(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
                                             sizeof batch),
            "describe a batch");
    require(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                             &step, sizeof step),
            "describe a batch");
  }
};

struct Products::Plan {
  cublasLtMatmulDesc_t operation = nullptr;
  std::unique_ptr<Layout> a, b, c;  // in cuBLASLt's places
  OfferedProducts offered;          // that are not timed yet
  cublasLtMatmulHeuristicResult_t chosen{};
  bool found = false;
  std::int64_t calls = 0;

  explicit Plan(const ProductShape& s) {
    require(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F), "describe");
    set(CUBLASLT_MATMUL_DESC_TRANSA, s.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, s.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, std::int32_t{s.sms});
    if (s.bias) set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    a = std::make_unique<Layout>(s.element, s.transpose_b ? s.k : s.n, s.transpose_b ? s.n : s.k,
                                 s.lead_b);
    b = std::make_unique<Layout>(s.element, s.transpose_a ? s.m : s.k, s.transpose_a ? s.k : s.m,
                                 s.lead_a);
    c = std::make_unique<Layout>(s.element, s.n, s.m, s.lead_c);
    if (s.batch == 1) return;
    a->repeat(s.batch, s.step_b);
    b->repeat(s.batch, s.step_a);
    c->repeat(s.batch, s.step_c);
  }
  ~Plan() { cublasLtMatmulDescDestroy(operation); }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  template <class Value>
  void set(cublasLtMatmulDescAttributes_t attribute, Value value) const {
    require(cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof value), "describe");
  }

  /// Asks for algorithms; `found` says whether there is one. The library's favourite is chosen
  /// until they are timed.
  void ask(cublasLtHandle_t handle, int alignment) {
    const Preference preference;
    const auto bytes = static_cast<std::uint32_t>(alignment);
    preference.set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::size_t{kWorkspace});
    preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, bytes);
    preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, bytes);
    preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, bytes);
    preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, bytes);
    int count = 0;
    offered.resize(kAskedFor);
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        handle, operation, a->layout, b->layout, c->layout, c->layout, preference.preference,
        kAskedFor, offered.data(), &count);
    offered.resize(status == CUBLAS_STATUS_SUCCESS ? static_cast<std::size_t>(count) : 0);
    std::erase_if(offered, [](const auto& one) { return one.state != CUBLAS_STATUS_SUCCESS; });
    found = !offered.empty();
    if (found) chosen = offered.front();
  }
};

std::string describe(const ProductShape& shape) {
  std::string text =
      std::to_string(shape.m) + " x " + std::to_string(shape.n) + " x " + std::to_string(shape.k);
  if (shape.batch > 1) text += ", " + std::to_string(shape.batch) + " of them";
  text += shape.element == Element::Fp32 ? " fp32, " : " bf16, ";
  text += name_of_role(shape.role);
  if (shape.bias) text += ", bias in the product";
  if (shape.accumulate) text += ", added";
  return text + ", on " + std::to_string(shape.sms) + " multiprocessors";
}

int alignment_of(const ProductShape& shape, const ProductOperands& operands) {
  constexpr std::int64_t kMost = 16;
  const std::int64_t element = bytes_of(shape.element);
  std::int64_t alignment = kMost;
  for (const std::int64_t size :
       {shape.lead_a, shape.lead_b, shape.lead_c, shape.step_a, shape.step_b, shape.step_c}) {
    alignment = std::gcd(alignment, size * element);
  }
  for (const void* tensor : {operands.a, operands.b, static_cast<const void*>(operands.c)}) {
    alignment = std::gcd(alignment, reinterpret_cast<std::intptr_t>(tensor) % kMost);
  }
  return static_cast<int>(alignment);
}

Products::Products(int device) {
  const CurrentDevice current(device);
  require(cublasLtCreate(&handle_), "begin");
  try {
    workspace_ = allocate(kWorkspace, "the workspace of products");
  } catch (...) {
    cublasLtDestroy(handle_);
    throw;
  }
}

Products::~Products() {
  plans_.clear();
  cudaFree(workspace_);
  cublasLtDestroy(handle_);
}

Products::Plan& Products::plan_of(const ProductShape& shape) {
  std::unique_ptr<Plan>& plan = plans_[shape];
  if (plan) return *plan;
  auto fresh = std::make_unique<Plan>(shape);
  // An address of the right alignment: the algorithm may depend on it.
  if (shape.bias) fresh->set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, workspace_);
  fresh->ask(handle_, shape.alignment);
  plan = std::move(fresh);
  return *plan;
}

void Products::run(const Stream& stream, ProductShape shape, const ProductOperands& operands) {
  shape.alignment = alignment_of(shape, operands);
  if (listener) listener(shape, operands);
  // A bias goes into the product only where it lies as one expects of it.
  const bool aside = shape.bias && reinterpret_cast<std::uintptr_t>(operands.bias) % 16 != 0;
  if (aside || (shape.bias && !plan_of(shape).found)) {
    shape.bias = false;
    run_planned(stream, shape, operands);
    return add_rows(stream, operands.c, operands.c, operands.bias,
                    {shape.m, static_cast<int>(shape.n)});
  }
  run_planned(stream, shape, operands);
}

void Products::run_planned(const Stream& stream, const ProductShape& shape,
                           const ProductOperands& operands) {
  Plan& plan = plan_of(shape);
  if (!plan.found) throw Error("cuBLASLt has no algorithm for " + describe(shape));
  if (shape.bias) plan.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias);
  if (!plan.offered.empty()) settle(stream, shape, operands, plan);
  require(issue(stream, shape, operands, plan, plan.chosen.algo), describe(shape).c_str());
  ++plan.calls;
  last_ = &plan;
}

cublasStatus_t Products::issue(const Stream& stream, const ProductShape& shape,
                               const ProductOperands& operands, const Plan& plan,
                               const cublasLtMatmulAlgo_t& algorithm) const {
  const float alpha = 1, beta = shape.accumulate ? 1 : 0;
  return cublasLtMatmul(handle_, plan.operation, &alpha, operands.b, plan.a->layout, operands.a,
                        plan.b->layout, &beta, operands.c, plan.c->layout, operands.c,
                        plan.c->layout, &algorithm, workspace_, kWorkspace, stream.handle);
}

/// Takes the fastest of the offered algorithms, or the one that equal products already have.
void Products::settle(const Stream& stream, const ProductShape& shape,
                      const ProductOperands& operands, Plan& plan) {
  const OfferedProducts offered = std::exchange(plan.offered, {});
  const KnownAlgorithms::Key key = {current_kind(), shape};
  if (const auto* known = known_algorithms().find(key)) {
    plan.chosen = *known;
    return;
  }
  if (offered.size() > 1) {
    const Unread unread(bytes_of_result(shape));
    if (unread.data() == nullptr) return;
    require(cudaMemsetAsync(unread.data(), 0, bytes_of_result(shape), stream.handle), "clear");
    ProductOperands trial = operands;
    trial.c = unread.data();
    if (!hold_) hold_ = std::make_unique<Hold>();
    const auto seconds = time_products(
        offered,
        [&](const cublasLtMatmulHeuristicResult_t& one) {
          return issue(stream, shape, trial, plan, one.algo);
        },
        stream.handle, *hold_);
    if (const auto fastest = place_of_fastest(seconds)) plan.chosen = offered[*fastest];
  }
  known_algorithms().keep(key, plan.chosen);
}

void Products::count_again() {
  for (const auto& [shape, plan] : plans_) plan->calls = 0;
}

std::vector<ExecutedProduct> Products::record() const {
  std::vector<ExecutedProduct> products;
  for (const auto& [shape, plan] : plans_) {
    if (plan->calls == 0) continue;
    products.push_back(record_of(shape, plan->chosen));
    products.back().calls = plan->calls;
  }
  return products;
}

std::string Products::last_algorithm() const {
  if (last_ == nullptr) return "";
  const ExecutedProduct one = record_of({}, last_->chosen);
  const auto part = [](const char* name, int value) {
    return std::string(" ") + name + " " + std::to_string(value);
  };
  return "cublasLt" + part("algorithm", one.algorithm) + part("tile", one.tile) +
         part("stages", one.stages) + part("split-k", one.split_k) + part("cluster", one.cluster);
}

}  // namespace interlock::cuda
