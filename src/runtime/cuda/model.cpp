#include "runtime/cuda/model.h"

#include "base/error.h"
#include "base/text.h"
#include "program/target.h"

#include <algorithm>

namespace tenon::inline runtime::cuda {

CudaModel::CudaModel(const Program& program) : program_(program) {
  const Driver& cuda = driver();
  require_architecture(cuda);
  if (!program.code.empty())
    cuda.require(cuda.load_module(&module_, program.code.data()), "loading a program's code");
  for (const Program::Kernel& kernel : program.kernels) {
    Function function = nullptr;
    if (kernel.library.empty())
      cuda.require(cuda.get_function(&function, module_, kernel.symbol.c_str()),
                   "finding a kernel");
    constexpr int kMostSharedBytes = 8;
    if (kernel.shared_bytes > 0) {
      const auto bytes = static_cast<int>(kernel.shared_bytes);
      cuda.require(cuda.set_function(function, kMostSharedBytes, bytes),
                   "giving a kernel its shared memory");
    }
    functions_.push_back(function);
  }
  if (program.constant_bytes == 0) return;
  constants_.allocate(program.constant_bytes, "constants");
  cuda.require(cuda.to_device(constants_.address(), program.constants.get(), program.constant_bytes,
                              nullptr),
               "copying constants");
  cuda.require(cuda.synchronise(nullptr), "copying constants");
}

CudaModel::~CudaModel() {
  if (module_ != nullptr) driver().unload_module(module_);
}

namespace {

class CudaStateMemory : public StateMemory {
 public:
  std::shared_ptr<std::byte> allocate(std::uint64_t bytes) const override {
    const auto block = std::make_shared<DeviceMemory>();
    block->allocate(std::max<std::uint64_t>(bytes, 1), "a state");
    return {block, reinterpret_cast<std::byte*>(block->address())};
  }
  void copy(void* to, const void* from, std::uint64_t bytes) const override {
    if (bytes == 0) return;
    const Driver& cuda = driver();
    const auto target = reinterpret_cast<Address>(to), source = reinterpret_cast<Address>(from);
    const bool to_device = cuda.is_on_device(to), from_device = cuda.is_on_device(from);
    if (!to_device && !from_device) return StateMemory::copy(to, from, bytes);
    cuda.require(to_device && from_device ? cuda.copy(target, source, bytes, nullptr)
                 : to_device              ? cuda.to_device(target, from, bytes, nullptr)
                                          : cuda.to_host(to, source, bytes, nullptr),
                 "copying a state");
    cuda.require(cuda.synchronise(nullptr), "copying a state");
  }
  void fill_zeros(void* to, std::uint64_t bytes) const override {
    if (bytes == 0) return;
    const Driver& cuda = driver();
    cuda.require(cuda.fill(reinterpret_cast<Address>(to), 0, bytes, nullptr), "clearing a state");
    cuda.require(cuda.synchronise(nullptr), "clearing a state");
  }
  bool is_remote(const void* address) const override { return driver().is_on_device(address); }
};

}  // namespace

std::shared_ptr<const StateMemory> CudaModel::state_memory() const {
  return std::make_shared<CudaStateMemory>();
}

std::unique_ptr<DeviceContext> CudaModel::make_context() const { return cuda::make_context(*this); }

// Machine code runs on devices of one major version; with the suffix `a` only on that exact
// version.
void CudaModel::require_architecture(const Driver& cuda) const {
  const std::string here = concat("sm_", cuda.major, cuda.minor);
  std::string wanted(gpu_architecture(program_));
  if (wanted.ends_with('a')) wanted.pop_back();
  if (wanted == here || (wanted.size() == here.size() &&
                         wanted.substr(0, wanted.size() - 1) == here.substr(0, here.size() - 1) &&
                         wanted < here && !program_.target.ends_with('a'))) {
    return;
  }
  throw Error("the program is for another GPU", ErrorKind::Device)
      .expected(program_.target)
      .got(cuda.device_name, ", ", here)
      .hint("compile it with --target=cuda:", here);
}

}  // namespace tenon::inline runtime::cuda

namespace tenon::inline runtime {

bool is_for_device(const Program& program) { return !gpu_architecture(program).empty(); }

std::shared_ptr<const DeviceExecutable> load_on_device(const Program& program) {
  return std::make_shared<cuda::CudaModel>(program);
}

}  // namespace tenon::inline runtime
