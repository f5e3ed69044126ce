#include "codegen/cuda/cuda_target.h"

#include "base/error.h"
#include "base/text.h"
#include "codegen/compile.h"
#include "codegen/cuda/binding.h"
#include "codegen/cuda/candidates.h"
#include "codegen/cuda/device_tasks.h"
#include "codegen/cuda/nest_passes.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/cuda/source_writer.h"
#include "target/gpu_facts.h"

namespace tenon::codegen::cuda {
namespace {

// Tensor-core instruction set of a kernel: wgmma reads tiles through tensor maps; mma.sync
// fragments use the kernel's own copies to shared memory.
std::string_view instructions_of(const TaskList::Kernel& kernel) {
  if (!kernel.maps.empty()) return kWgmma;
  return kernel.shared_bytes > 0 ? kMma : "";
}

// Loops and library calls of one candidate, as the interface of targets has them.
std::vector<MadeKernel> made_kernels(std::vector<DeviceKernel> kernels) {
  std::vector<MadeKernel> made;
  for (DeviceKernel& kernel : kernels) {
    made.push_back({std::move(kernel.part), std::move(kernel.packings), std::move(kernel.library),
                    std::move(kernel.library_extents)});
  }
  return made;
}

class GpuTarget : public Target {
 public:
  GpuTarget(CudaTarget device, DeviceNames names)
      : device_(std::move(device)), names_(std::move(names)) {
    facts_ = gpu_facts(device_.architecture);
    if (device_.has_int8_multiply_add) facts_ = with_int8_tensor_cores(std::move(facts_));
  }

  TargetSpec spec() const override {
    using enum TargetSpec::Precision;
    return {"cuda", device_.architecture,
            device_.has_int8_multiply_add ? Int8
            : device_.allows_tf32         ? Tf32
                                          : F32};
  }
  const TargetFacts& facts() const override { return facts_; }

  std::vector<PassChange> graph_pipeline() const override {
    std::vector<PassChange> changes;
    if (!device_.has_int8_multiply_add)
      changes.push_back({"lower-qdq", "", "libraries multiply floats"});
    changes.push_back(
        {"fold-batch-reductions", "", "a single product has too few results to keep a GPU busy"});
    changes.push_back({"fuse-horizontal", "fold-scales",
                       "after scale folding, before layouts: the merged weights are constants"});
    return changes;
  }

  std::span<const nests::NestPassInfo> nest_pass_list() const override {
    return cuda::nest_pass_list();
  }
  std::vector<nests::NestPass> nest_passes(bool) const override { return node_passes(device_); }

  std::vector<Candidate> candidates(const KernelWork& work) const override {
    std::vector<Candidate> list;
    for (DeviceCandidate& each :
         device_candidates(work.sequence, work.part, work.is_constant, device_)) {
      Candidate& candidate = list.emplace_back(std::move(each.name), std::move(each.verdict));
      if (!candidate.verdict.accepts) continue;
      candidate.make = [part = work.part, is_constant = work.is_constant, target = each.target](
                           NestSequence& sequence, auto&) {
        return made_kernels(select_kernels(sequence, part, is_constant, target));
      };
    }
    return list;
  }
  std::vector<std::string> candidate_names() const override {
    return {kWgmma, kMma, "library", "cublaslt", "cudnn", "loops"};
  }
  // Loops are bound to blocks and threads when code is written.
  void schedule(LoopNest&) const override {}
  std::shared_ptr<TaskWriter> task_writer(const TaskContext& context) const override {
    return device_tasks(context, device_);
  }

  bool specialises_kernels_to_extents() const override { return true; }
  bool has_packed_lookups() const override { return false; }
  bool writes_results_in_bodies() const override { return false; }
  bool reorders_tasks() const override { return false; }
  bool runs_nests_as_written() const override { return false; }
  int working_units(int) const override { return static_cast<int>(facts_.units); }

  std::string program_target(std::span<const TaskList::Kernel>) const override {
    return facts_.name;
  }
  Module emit(std::span<const TaskList::Kernel> kernels, bool keeps_text) const override {
    const std::vector<BoundNest> bound = generated(kernels);
    Module module;
    if (keeps_text) {
      module.text = write_source(bound);
    } else if (device_.is_emulated) {
      const std::string source = write_emulation(bound);
      const auto* bytes = reinterpret_cast<const std::byte*>(source.data());
      module.code.assign(bytes, bytes + source.size());
    } else if (!bound.empty()) {
      module.code = compile_source(write_source(bound), device_.architecture);
    }
    return module;
  }

  std::string machine_name() const override {
    if (!names_.device) throw Error("no device is known", ErrorKind::Device).got(facts_.name);
    return names_.device();
  }
  std::string generator_name() const override {
    const std::string libraries = names_.libraries ? names_.libraries() : "";
    return concat(source_name(), libraries.empty() ? "" : ", ", libraries);
  }

 private:
  std::vector<BoundNest> generated(std::span<const TaskList::Kernel> kernels) const {
    std::vector<BoundNest> bound;
    for (const TaskList::Kernel& kernel : kernels) {
      if (!kernel.library.empty()) continue;
      bound.push_back({&kernel.nest, kernel.nest.name,
                       bind_selected(kernel.nest, device_, instructions_of(kernel))});
    }
    return bound;
  }

  CudaTarget device_;
  DeviceNames names_;
  TargetFacts facts_;
};

}  // namespace

std::shared_ptr<const Target> cuda_target(CudaTarget device, DeviceNames names) {
  return std::make_shared<const GpuTarget>(std::move(device), std::move(names));
}

TargetKind cuda_kind(DeviceNames names) {
  using enum TargetSpec::Precision;
  return {"cuda",
          {"sm_90a", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100a", "sm_120a"},
          is_gpu_architecture,
          {F32, Tf32, F16, BF16, Int8},
          [names = std::move(names)](const TargetSpec& spec) {
            CudaTarget device{spec.architecture};
            device.allows_tf32 = spec.precision == Tf32;
            device.has_int8_multiply_add = spec.precision == Int8;
            return cuda_target(std::move(device), names);
          }};
}

}  // namespace tenon::codegen::cuda
