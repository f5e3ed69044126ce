// Convolutions with cuDNN's operation graphs.
#include "base/error.h"
#include "runtime/cuda/library_step.h"

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace tenon::inline runtime::cuda {
namespace {

// The cuDNN functions in use, declared here. Constants are those of its enumerations.
using Handle = struct DnnContext*;
using Descriptor = void*;
using PlainTensor = struct DnnTensor*;
using Activation = struct DnnActivation*;

struct Dnn {
  SharedLibrary library{
      "convolutions on NVIDIA GPUs (cuDNN)", {"libcudnn.so.9", "libcudnn.so"}, cuda_folders()};
  int (*create)(Handle*) = nullptr;
  int (*set_stream)(Handle, Stream) = nullptr;
  int (*make)(int, Descriptor*) = nullptr;
  int (*destroy)(Descriptor) = nullptr;
  int (*finalise)(Descriptor) = nullptr;
  int (*set)(Descriptor, int, int, std::int64_t, const void*) = nullptr;
  int (*get)(Descriptor, int, int, std::int64_t, std::int64_t*, void*) = nullptr;
  int (*execute)(Handle, Descriptor, Descriptor) = nullptr;
  // Legacy API without a graph: in-place addition and activation.
  int (*make_plain)(PlainTensor*) = nullptr;
  int (*set_plain)(PlainTensor, int, int, int, int, int, int, int, int, int) = nullptr;
  int (*destroy_plain)(PlainTensor) = nullptr;
  int (*make_activation)(Activation*) = nullptr;
  int (*set_activation)(Activation, int, int, double) = nullptr;
  int (*destroy_activation)(Activation) = nullptr;
  int (*add)(Handle, const void*, PlainTensor, const void*, const void*, PlainTensor,
             void*) = nullptr;
  int (*activate)(Handle, Activation, const void*, PlainTensor, const void*, const void*,
                  PlainTensor, void*) = nullptr;
  Handle handle = nullptr;
  /// The handle has one stream, so contexts use it one at a time.
  mutable std::mutex in_use;

  Dnn() {
    library.find(create, "cudnnCreate");
    library.find(set_stream, "cudnnSetStream");
    library.find(make, "cudnnBackendCreateDescriptor");
    library.find(destroy, "cudnnBackendDestroyDescriptor");
    library.find(finalise, "cudnnBackendFinalize");
    library.find(set, "cudnnBackendSetAttribute");
    library.find(get, "cudnnBackendGetAttribute");
    library.find(execute, "cudnnBackendExecute");
    library.find(make_plain, "cudnnCreateTensorDescriptor");
    library.find(set_plain, "cudnnSetTensor4dDescriptorEx");
    library.find(destroy_plain, "cudnnDestroyTensorDescriptor");
    library.find(make_activation, "cudnnCreateActivationDescriptor");
    library.find(set_activation, "cudnnSetActivationDescriptor");
    library.find(destroy_activation, "cudnnDestroyActivationDescriptor");
    library.find(add, "cudnnAddTensor");
    library.find(activate, "cudnnActivationForward");
    require(create(&handle), "starting");
  }
  static void require(int status, const char* what) {
    if (status != 0)
      throw Error(concat("cuDNN failed: ", what), ErrorKind::Device).got("status ", status);
  }
};

const Dnn& dnn() {
  driver();
  static const Dnn loaded;
  return loaded;
}

enum DnnKind {
  kPointwise = 0,
  kConvolution = 1,
  kEngine = 2,
  kEngineConfig = 3,
  kHeuristics = 4,
  kPlan = 5,
  kConvolutionForward = 10,
  kWeightGradient = 11,
  kDataGradient = 12,
  kPointwiseOperation = 13,
  kOperationGraph = 15,
  kVariantPack = 16,
  kTensor = 17
};
enum DnnType {
  kHandleType = 0,
  kDataType = 1,
  kBoolean = 2,
  kInt64 = 3,
  kFloat = 4,
  kPointer = 6,
  kConvolutionMode = 7,
  kHeuristicMode = 8,
  kNanPropagation = 10,
  kNote = 11,
  kPointwiseMode = 14,
  kDescriptorType = 15
};

// A backend descriptor: set attributes, then finalize.
class DnnDescriptor {
 public:
  explicit DnnDescriptor(DnnKind kind) {
    Dnn::require(dnn().make(kind, &handle_), "making a descriptor");
  }
  DnnDescriptor(DnnDescriptor&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  DnnDescriptor& operator=(DnnDescriptor&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~DnnDescriptor() {
    if (handle_ != nullptr) dnn().destroy(handle_);
  }
  template <class T>
  DnnDescriptor& set(int attribute, DnnType type, const T& value) {
    return set(attribute, type, 1, &value);
  }
  DnnDescriptor& set(int attribute, DnnType type, std::int64_t count, const void* values) {
    Dnn::require(dnn().set(handle_, attribute, type, count, values), "describing a convolution");
    return *this;
  }
  DnnDescriptor& refer(int attribute, const DnnDescriptor& other) {
    return set(attribute, kDescriptorType, other.handle_);
  }
  bool finish() { return dnn().finalise(handle_) == 0; }
  Descriptor handle() const { return handle_; }

 private:
  Descriptor handle_ = nullptr;
};

constexpr int kAdd = 0, kRelu = 100;  // modes of pointwise operations

int type_of(const std::string& dtype) { return dtype == "f16" ? 2 : dtype == "bf16" ? 9 : 0; }

using Four = std::array<std::int64_t, 4>;

// Channels-last tensor; dims in the library's order: batch, channels, rows, columns.
DnnDescriptor tensor(std::int64_t id, int type, const Four& dims, bool is_virtual) {
  const Four strides = {dims[1] * dims[2] * dims[3], 1, dims[3] * dims[1], dims[1]};
  DnnDescriptor made(kTensor);
  const std::int64_t alignment = 16;
  made.set(900, kInt64, alignment)
      .set(901, kDataType, type)
      .set(902, kInt64, 4, dims.data())
      .set(903, kInt64, 4, strides.data());
  made.set(906, kInt64, id).set(907, kBoolean, is_virtual);
  if (!made.finish())
    throw Error("cuDNN refuses a tensor", ErrorKind::Device)
        .got(dims[0], " x ", dims[1], " x ", dims[2], " x ", dims[3]);
  return made;
}

// Epilogue operations of a convolution.
enum class DnnEpilogue { Bias, Residual, Relu };

// Unfused epilogue: separate operations after a convolution, if no plan fuses them. Each rounds to
// the result's type.
class UnfusedEpilogue {
 public:
  UnfusedEpilogue(std::vector<DnnEpilogue> terms, int type, const Four& result)
      : terms_(std::move(terms)) {
    bias_ = plain(type, {1, result[1], 1, 1});
    result_ = plain(type, result);
    Dnn::require(dnn().make_activation(&relu_), "describing relu");
    constexpr int kRectified = 1, kPropagatesNan = 1;
    Dnn::require(dnn().set_activation(relu_, kRectified, kPropagatesNan, 0), "describing relu");
  }
  UnfusedEpilogue(const UnfusedEpilogue&) = delete;
  ~UnfusedEpilogue() {
    for (PlainTensor made : {bias_, result_}) {
      if (made != nullptr) dnn().destroy_plain(made);
    }
    if (relu_ != nullptr) dnn().destroy_activation(relu_);
  }

  /// Enqueues on the stream of the library's handle. `others`: bias and residual, if present, in
  /// the order of the call.
  void enqueue(std::span<const std::uint64_t> others, Address result) const {
    const auto pointer = [](Address address) { return reinterpret_cast<void*>(address); };
    const float one = 1, zero = 0;
    for (const DnnEpilogue term : terms_) {
      if (term == DnnEpilogue::Relu) {
        Dnn::require(dnn().activate(dnn().handle, relu_, &one, result_, pointer(result), &zero,
                                    result_, pointer(result)),
                     "running");
        continue;
      }
      const bool is_bias = term == DnnEpilogue::Bias;
      Dnn::require(dnn().add(dnn().handle, &one, is_bias ? bias_ : result_,
                             pointer(is_bias ? others.front() : others.back()), &one, result_,
                             pointer(result)),
                   "running");
    }
  }

 private:
  static PlainTensor plain(int type, const Four& dims) {
    std::array<int, 4> d{};
    for (std::size_t k = 0; k < 4; ++k) d[k] = static_cast<int>(dims[k]);
    PlainTensor made = nullptr;
    Dnn::require(dnn().make_plain(&made), "describing a tensor");
    Dnn::require(dnn().set_plain(made, type, d[0], d[1], d[2], d[3], d[1] * d[2] * d[3], 1,
                                 d[3] * d[1], d[1]),
                 "describing a tensor");
    return made;
  }

  std::vector<DnnEpilogue> terms_;
  PlainTensor bias_ = nullptr, result_ = nullptr;
  Activation relu_ = nullptr;
};

class DnnConvolution : public LibraryStep {
 public:
  DnnConvolution(const LibraryCall& call, std::span<const std::int64_t> extents)
      : call_(call), extents_(extents.begin(), extents.end()) {
    const std::lock_guard hold(dnn().in_use);
    std::vector<DnnEpilogue> terms;
    if (call.has_bias) terms.push_back(DnnEpilogue::Bias);
    if (call.has_residual) terms.push_back(DnnEpilogue::Residual);
    if (call.is_rectified) terms.push_back(DnnEpilogue::Relu);
    bool is_found = find_plans(terms, Workspace::Limited);
    // Precompiled engines expect the residual before the bias.
    if (!is_found && call.has_bias && call.has_residual) {
      std::vector<DnnEpilogue> others = terms;
      std::swap(others[0], others[1]);
      is_found = find_plans(others, Workspace::Limited);
    }
    if (!is_found && (terms.empty() || !find_plans({}, Workspace::Limited)))
      find_plans({}, Workspace::Least);
    if (plans_.empty()) throw refused();
    if (!is_found && !terms.empty())
      epilogue_ = std::make_unique<UnfusedEpilogue>(terms, type_of(call.dtype), result_dims());
  }

  std::size_t variant_count() const override { return plans_.size(); }
  std::uint64_t workspace_bytes(std::size_t variant) const override {
    return plans_[variant].workspace_bytes;
  }

  void enqueue(Stream stream, std::span<const std::uint64_t> buffers, Address workspace,
               std::size_t variant) override {
    const Dnn& library = dnn();
    const std::lock_guard hold(library.in_use);
    Dnn::require(library.set_stream(library.handle, stream), "running");
    std::vector<std::int64_t> ids = {kImage, kWeights};
    if (call_.kind == LibraryCall::Kind::DataGradient) ids = {kResult, kWeights, kImage};
    if (call_.kind == LibraryCall::Kind::WeightGradient) ids = {kImage, kResult, kWeights};
    std::vector<std::uint64_t> places(buffers.begin(), buffers.end());
    if (epilogue_) {
      places = {buffers[0], buffers[1], buffers.back()};
    } else {
      if (call_.has_bias) ids.push_back(kBias);
      if (call_.has_residual) ids.push_back(kResidual);
    }
    if (call_.kind == LibraryCall::Kind::Convolution) ids.push_back(kResult);
    DnnDescriptor pack(kVariantPack);
    const auto count = static_cast<std::int64_t>(ids.size());
    pack.set(1000, kInt64, count, ids.data())
        .set(1001, kPointer, count, places.data())
        .set(1003, kPointer, workspace);
    if (!pack.finish()) throw Error("cuDNN refuses a convolution's buffers", ErrorKind::Device);
    Dnn::require(library.execute(library.handle, plans_[variant].plan.handle(), pack.handle()),
                 "running");
    if (epilogue_) epilogue_->enqueue(buffers.subspan(2, buffers.size() - 3), buffers.back());
  }

 private:
  static constexpr std::int64_t kImage = 1, kWeights = 2, kBias = 3, kResidual = 4, kResult = 5;
  struct Plan {
    DnnDescriptor plan;
    std::uint64_t workspace_bytes = 0;
  };

  Error refused() const {
    const std::vector<std::int64_t>& e = extents_;
    return Error("cuDNN has no kernel for a convolution", ErrorKind::Device)
        .got(to_string(call_), ": ", e[0], " images of ", e[1], " x ", e[2], " x ", e[3], ", ",
             e[4], " windows of ", e[5], " x ", e[6]);
  }

  Four result_dims() const { return {extents_[0], extents_[4], extents_[7], extents_[8]}; }

  // Builds the convolution and its epilogue over virtual tensors. Returns nullopt if the library
  // refuses.
  std::optional<DnnDescriptor> graph(const std::vector<DnnEpilogue>& terms) {
    const std::vector<std::int64_t>& e = extents_;
    const int type = type_of(call_.dtype), single = 0;
    const Four image = {e[0], e[3], e[1], e[2]}, weights = {e[4], e[3] / e[17], e[5], e[6]},
               result = result_dims();
    DnnDescriptor convolution(kConvolution);
    const std::int64_t axes = 2;
    const std::array<std::int64_t, 2> before = {e[9], e[11]}, behind = {e[10], e[12]},
                                      strides = {e[13], e[14]}, dilations = {e[15], e[16]};
    const int cross_correlation = 1;
    convolution.set(100, kDataType, single)
        .set(101, kConvolutionMode, cross_correlation)
        .set(102, kInt64, 2, dilations.data());
    convolution.set(103, kInt64, 2, strides.data())
        .set(104, kInt64, 2, behind.data())
        .set(105, kInt64, 2, before.data())
        .set(106, kInt64, axes);
    if (!convolution.finish()) return std::nullopt;

    std::vector<DnnDescriptor> kept, operations;
    std::int64_t next_id = 100;
    std::size_t left = terms.size();
    const auto value = [&] {
      return left == 0 ? tensor(kResult, type, result, false)
                       : tensor(next_id++, single, result, true);
    };
    DnnDescriptor x = tensor(kImage, type, image, false),
                  w = tensor(kWeights, type, weights, false);
    kept.push_back(value());
    {
      // Each kind has its own attribute numbers for scale factors, convolution and tensors.
      const float one = 1, zero = 0;
      const bool is_forward = call_.kind == LibraryCall::Kind::Convolution,
                 is_data = call_.kind == LibraryCall::Kind::DataGradient;
      DnnDescriptor sum(is_forward ? kConvolutionForward
                        : is_data  ? kDataGradient
                                   : kWeightGradient);
      const int first = is_forward ? 700 : is_data ? 706 : 712;
      sum.set(first, kFloat, one).set(first + 1, kFloat, zero).refer(first + 2, convolution);
      sum.refer(first + 3, w).refer(first + 4, x).refer(first + 5, kept.back());
      if (!sum.finish()) return std::nullopt;
      operations.push_back(std::move(sum));
    }
    DnnDescriptor bias = tensor(kBias, type, {1, e[4], 1, 1}, false),
                  residual = tensor(kResidual, type, result, false);
    for (const DnnEpilogue term : terms) {
      --left;
      DnnDescriptor description(kPointwise);
      const int mode = term == DnnEpilogue::Relu ? kRelu : kAdd;
      description.set(0, kPointwiseMode, mode).set(1, kDataType, single);
      const int propagates = 1;
      if (term == DnnEpilogue::Relu) description.set(2, kNanPropagation, propagates);
      if (!description.finish()) return std::nullopt;
      DnnDescriptor operation(kPointwiseOperation);
      kept.push_back(value());
      const DnnDescriptor& before_it = kept[kept.size() - 2];
      operation.refer(750, description).refer(751, before_it).refer(753, kept.back());
      if (term != DnnEpilogue::Relu)
        operation.refer(752, term == DnnEpilogue::Bias ? bias : residual);
      if (!operation.finish()) return std::nullopt;
      operations.push_back(std::move(operation));
      others_.push_back(std::move(description));
    }
    DnnDescriptor made(kOperationGraph);
    std::vector<Descriptor> list;
    for (const DnnDescriptor& operation : operations) list.push_back(operation.handle());
    made.set(800, kHandleType, dnn().handle)
        .set(801, kDescriptorType, static_cast<std::int64_t>(list.size()), list.data());
    if (!made.finish()) return std::nullopt;
    // Plans refer to these descriptors, so they stay alive.
    for (std::vector<DnnDescriptor>* parts : {&kept, &operations}) {
      for (DnnDescriptor& part : *parts) others_.push_back(std::move(part));
    }
    for (DnnDescriptor* part : {&convolution, &x, &w, &bias, &residual})
      others_.push_back(std::move(*part));
    return made;
  }

  // Limited: plans within the workspace limit. Least: the plan with the smallest workspace.
  enum class Workspace { Limited, Least };

  // Tries the library's heuristic first, then its fallback engines.
  bool find_plans(const std::vector<DnnEpilogue>& terms, Workspace workspace) {
    const std::optional<DnnDescriptor> described = graph(terms);
    if (!described) return false;
    constexpr int kModeA = 3, kFallback = 2;
    constexpr std::size_t kMostPlans = 12;
    for (const int mode : {kModeA, kFallback}) {
      if (mode == kFallback && !plans_.empty()) break;
      DnnDescriptor heuristics(kHeuristics);
      heuristics.refer(201, *described).set(200, kHeuristicMode, mode);
      if (!heuristics.finish()) continue;
      std::int64_t count = 0;
      if (dnn().get(heuristics.handle(), 202, kDescriptorType, 0, &count, nullptr) != 0) continue;
      std::vector<DnnDescriptor> configs;
      std::vector<Descriptor> list;
      for (std::int64_t k = 0; k < count; ++k)
        list.push_back(configs.emplace_back(kEngineConfig).handle());
      std::int64_t found = 0;
      if (dnn().get(heuristics.handle(), 202, kDescriptorType, count, &found, list.data()) != 0)
        continue;
      for (std::size_t k = 0; k < static_cast<std::size_t>(found) && plans_.size() < kMostPlans;
           ++k) {
        if (!is_wanted(configs[k])) continue;
        DnnDescriptor plan(kPlan);
        plan.set(400, kHandleType, dnn().handle).refer(401, configs[k]);
        if (!plan.finish()) continue;
        std::int64_t bytes = 0, given = 0;
        if (dnn().get(plan.handle(), 402, kInt64, 1, &given, &bytes) != 0) continue;
        const auto wanted = static_cast<std::uint64_t>(bytes);
        if (workspace == Workspace::Limited && wanted > kMostWorkspaceBytes) continue;
        if (workspace == Workspace::Least && !plans_.empty()) {
          if (wanted >= plans_.front().workspace_bytes) continue;
          plans_.clear();
        }
        plans_.push_back({std::move(plan), wanted});
        others_.push_back(std::move(configs[k]));
      }
    }
    return !plans_.empty();
  }

  // Accepts only deterministic engines without reduced precision.
  bool is_wanted(const DnnDescriptor& config) const {
    DnnDescriptor engine(kEngine);
    Descriptor handle = engine.handle();
    std::int64_t count = 0;
    if (dnn().get(config.handle(), 300, kDescriptorType, 1, &count, &handle) != 0) return false;
    std::array<int, 16> notes{};
    if (dnn().get(engine.handle(), 1303, kNote, static_cast<std::int64_t>(notes.size()), &count,
                  notes.data()) != 0)
      return false;
    constexpr int kTensorCore = 0, kDownConvert = 1, kReduced = 2, kUnordered = 4,
                  kLargeWinograd = 8;
    for (std::size_t k = 0; k < static_cast<std::size_t>(count); ++k) {
      if (notes[k] == kUnordered || notes[k] == kReduced || notes[k] == kLargeWinograd)
        return false;
      const bool rounds_to_tf32 = notes[k] == kTensorCore || notes[k] == kDownConvert;
      if (call_.dtype == "f32" && !call_.allows_tf32 && rounds_to_tf32) return false;
    }
    return true;
  }

  LibraryCall call_;
  std::vector<std::int64_t> extents_;
  std::vector<Plan> plans_;
  std::unique_ptr<UnfusedEpilogue> epilogue_;  // for plans without fused epilogue
  std::vector<DnnDescriptor> others_;          // descriptors that plans refer to
};

}  // namespace

std::unique_ptr<LibraryStep> make_convolution(const LibraryCall& call,
                                              std::span<const std::int64_t> extents) {
  return std::make_unique<DnnConvolution>(call, extents);
}

}  // namespace tenon::inline runtime::cuda
