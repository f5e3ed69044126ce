// Matrix products with cuBLASLt.
#include "base/error.h"
#include "runtime/cuda/library_step.h"

#include <array>
#include <utility>
#include <vector>

namespace tenon::inline runtime::cuda {
namespace {

// The cuBLASLt functions in use, declared here. Constants are those of its enumerations.
using Handle = struct LtContext*;
using Description = struct LtMatmulDesc*;
using Layout = struct LtMatrixLayout*;
using Preference = struct LtMatmulPreference*;
struct Algorithm {
  std::array<std::uint64_t, 8> data;
};
struct FoundAlgorithm {
  Algorithm algorithm;
  std::size_t workspace_bytes;
  int state;
  float waves;
  std::array<int, 4> reserved;
};

struct Blas {
  SharedLibrary library{"matrix products on NVIDIA GPUs (cuBLASLt)",
                        {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"},
                        cuda_folders()};
  int (*create)(Handle*) = nullptr;
  int (*create_description)(Description*, int compute, int scale) = nullptr;
  int (*destroy_description)(Description) = nullptr;
  int (*set_description)(Description, int attribute, const void*, std::size_t) = nullptr;
  int (*create_layout)(Layout*, int type, std::uint64_t rows, std::uint64_t columns,
                       std::int64_t leading) = nullptr;
  int (*destroy_layout)(Layout) = nullptr;
  int (*set_layout)(Layout, int attribute, const void*, std::size_t) = nullptr;
  int (*create_preference)(Preference*) = nullptr;
  int (*destroy_preference)(Preference) = nullptr;
  int (*set_preference)(Preference, int attribute, const void*, std::size_t) = nullptr;
  int (*find_algorithms)(Handle, Description, Layout, Layout, Layout, Layout, Preference, int,
                         FoundAlgorithm*, int*) = nullptr;
  int (*multiply)(Handle, Description, const void*, const void*, Layout, const void*, Layout,
                  const void*, const void*, Layout, void*, Layout, const Algorithm*, void*,
                  std::size_t, Stream) = nullptr;
  Handle handle = nullptr;

  Blas() {
    library.find(create, "cublasLtCreate");
    library.find(create_description, "cublasLtMatmulDescCreate");
    library.find(destroy_description, "cublasLtMatmulDescDestroy");
    library.find(set_description, "cublasLtMatmulDescSetAttribute");
    library.find(create_layout, "cublasLtMatrixLayoutCreate");
    library.find(destroy_layout, "cublasLtMatrixLayoutDestroy");
    library.find(set_layout, "cublasLtMatrixLayoutSetAttribute");
    library.find(create_preference, "cublasLtMatmulPreferenceCreate");
    library.find(destroy_preference, "cublasLtMatmulPreferenceDestroy");
    library.find(set_preference, "cublasLtMatmulPreferenceSetAttribute");
    library.find(find_algorithms, "cublasLtMatmulAlgoGetHeuristic");
    library.find(multiply, "cublasLtMatmul");
    require(create(&handle), "starting");
  }
  static void require(int status, const char* what) {
    if (status != 0)
      throw Error(concat("cuBLASLt failed: ", what), ErrorKind::Device).got("status ", status);
  }
};

const Blas& blas() {
  driver();
  static const Blas loaded;
  return loaded;
}

int type_of(const std::string& dtype) {
  return dtype == "f16" ? 2 : dtype == "bf16" ? 14 : dtype == "f64" ? 1 : 0;
}

constexpr int kTransposeA = 3, kTransposeB = 4, kEpilogue = 7, kBiasPointer = 8, kBiasType = 26;
constexpr int kBatchCount = 5, kBatchOffset = 6;
constexpr int kMostWorkspace = 1, kReductionMask = 3;

// cuBLASLt matrices are column-major, Tenon's are row-major: the library computes the transposed
// product yᵀ = bᵀ aᵀ.
class Matmul : public LibraryStep {
 public:
  Matmul(const LibraryCall& call, std::span<const std::int64_t> e) : call_(call) {
    const Blas& library = blas();
    const int operand = type_of(call.dtype), result = type_of(call.result_dtype);
    constexpr int kFloat = 68, kTf32 = 77;
    library.require(library.create_description(&description_, call.allows_tf32 ? kTf32 : kFloat, 0),
                    "describing a product");
    const int left = call.is_b_transposed ? 1 : 0, right = call.is_a_transposed ? 1 : 0;
    set(kTransposeA, left);
    set(kTransposeB, right);
    const int epilogue = (call.is_rectified ? 2 : 0) | (call.has_bias ? 4 : 0);
    set(kEpilogue, epilogue == 0 ? 1 : epilogue);
    if (call.has_bias) {
      set(kBiasType, result);
      const void* aligned =
          reinterpret_cast<const void*>(std::uintptr_t{256});  // only the alignment matters
      set(kBiasPointer, aligned);
    }
    const std::int64_t batch = e[0], m = e[1], n = e[2], k = e[3];
    const auto layout = [&](Layout& made, int type, std::int64_t rows, std::int64_t columns,
                            std::int64_t leading, std::int64_t step) {
      library.require(library.create_layout(&made, type, static_cast<std::uint64_t>(rows),
                                            static_cast<std::uint64_t>(columns), leading),
                      "describing a matrix");
      const auto count = static_cast<std::int32_t>(batch);
      if (count != batch) {
        throw Error("cuBLASLt multiplies fewer matrices", ErrorKind::Unsupported)
            .expected("at most 2147483647")
            .got(batch);
      }
      library.require(library.set_layout(made, kBatchCount, &count, sizeof count),
                      "describing a matrix");
      library.require(library.set_layout(made, kBatchOffset, &step, sizeof step),
                      "describing a matrix");
    };
    // The matrices as column-major.
    layout(left_, operand, left != 0 ? k : n, left != 0 ? n : k, e[6], e[7]);
    layout(right_, operand, right != 0 ? m : k, right != 0 ? k : m, e[4], e[5]);
    layout(result_, result, n, m, e[8], e[9]);
    layout(residual_, result, n, m, e[10], e[11]);
    Preference preference = nullptr;
    library.require(library.create_preference(&preference), "describing a product");
    library.set_preference(preference, kMostWorkspace, &kMostWorkspaceBytes,
                           sizeof kMostWorkspaceBytes);
    // Deterministic reductions only: no split-K, or a separate kernel that adds the partial sums.
    const std::uint32_t reductions = 2 | 4;
    library.set_preference(preference, kReductionMask, &reductions, sizeof reductions);
    std::array<FoundAlgorithm, 16> found{};
    int count = 0;
    const int status =
        library.find_algorithms(library.handle, description_, left_, right_, residual_, result_,
                                preference, static_cast<int>(found.size()), found.data(), &count);
    library.destroy_preference(preference);
    for (int index = 0; status == 0 && index < count; ++index) {
      if (found[static_cast<std::size_t>(index)].state == 0)
        variants_.push_back(found[static_cast<std::size_t>(index)]);
    }
    if (variants_.empty()) {
      throw Error("cuBLASLt has no kernel for a product", ErrorKind::Device)
          .got(to_string(call), ": ", batch, " of ", m, " x ", n, " x ", k);
    }
  }
  Matmul(const Matmul&) = delete;
  ~Matmul() override {
    const Blas& library = blas();
    for (Layout made : {left_, right_, result_, residual_}) {
      if (made != nullptr) library.destroy_layout(made);
    }
    if (description_ != nullptr) library.destroy_description(description_);
  }

  std::size_t variant_count() const override { return variants_.size(); }
  std::uint64_t workspace_bytes(std::size_t variant) const override {
    return variants_[variant].workspace_bytes;
  }

  void enqueue(Stream stream, std::span<const std::uint64_t> buffers, Address workspace,
               std::size_t variant) override {
    const Blas& library = blas();
    std::size_t next = 2;
    if (call_.has_bias) {
      const Address bias = buffers[next++];
      library.require(library.set_description(description_, kBiasPointer, &bias, sizeof bias),
                      "running");
    }
    const Address residual = call_.has_residual ? buffers[next] : buffers.back();
    const float alpha = static_cast<float>(call_.alpha), beta = call_.has_residual ? 1.0F : 0.0F;
    const auto pointer = [](Address address) { return reinterpret_cast<void*>(address); };
    library.require(
        library.multiply(library.handle, description_, &alpha, pointer(buffers[1]), left_,
                         pointer(buffers[0]), right_, &beta, pointer(residual), residual_,
                         pointer(buffers.back()), result_, &variants_[variant].algorithm,
                         pointer(workspace), variants_[variant].workspace_bytes, stream),
        "running");
  }

 private:
  template <class T>
  void set(int attribute, const T& value) {
    blas().require(blas().set_description(description_, attribute, &value, sizeof value),
                   "describing a product");
  }

  LibraryCall call_;
  Description description_ = nullptr;
  Layout left_ = nullptr, right_ = nullptr, result_ = nullptr, residual_ = nullptr;
  std::vector<FoundAlgorithm> variants_;
};

// Result of a product over an empty reduction, for which cuBLASLt has no layouts: zeros.
class EmptySum : public LibraryStep {
 public:
  EmptySum(const LibraryCall& call, std::span<const std::int64_t> e) : batches_(e[0]), rows_(e[1]) {
    const std::int64_t element_bytes = call.result_dtype == "f32" ? 4 : 2;
    row_bytes_ = e[2] * element_bytes;
    row_step_ = e[8] * element_bytes;
    batch_step_ = e[9] * element_bytes;
    // Contiguous rows and batches are one fill.
    if (row_step_ == row_bytes_) row_bytes_ *= std::exchange(rows_, 1);
    if (rows_ == 1 && batch_step_ == row_bytes_) row_bytes_ *= std::exchange(batches_, 1);
  }
  std::size_t variant_count() const override { return 1; }
  std::uint64_t workspace_bytes(std::size_t) const override { return 0; }
  void enqueue(Stream stream, std::span<const std::uint64_t> buffers, Address,
               std::size_t) override {
    const Driver& cuda = driver();
    for (std::int64_t batch = 0; batch < batches_; ++batch) {
      for (std::int64_t row = 0; row < rows_; ++row) {
        const auto at = static_cast<Address>(batch * batch_step_ + row * row_step_);
        cuda.require(
            cuda.fill(buffers.back() + at, 0, static_cast<std::size_t>(row_bytes_), stream),
            "running");
      }
    }
  }

 private:
  std::int64_t batches_, rows_, row_bytes_ = 0, row_step_ = 0, batch_step_ = 0;
};

}  // namespace

std::unique_ptr<LibraryStep> make_matmul(const LibraryCall& call,
                                         std::span<const std::int64_t> extents) {
  constexpr std::size_t kReduction = 3;
  if (extents[kReduction] == 0) return std::make_unique<EmptySum>(call, extents);
  return std::make_unique<Matmul>(call, extents);
}

}  // namespace tenon::inline runtime::cuda
