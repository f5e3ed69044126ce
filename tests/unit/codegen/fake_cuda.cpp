#include "fake_cuda.h"

#include "base/error.h"
#include "base/text.h"
#include "cuda_emulation.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <set>

namespace tenon::testing {
namespace {

template <class Function>
Function* found(void* library, const char* name) {
  void* address = dlsym(library, name);
  if (address == nullptr) throw Error("the driver of the tests is of another version").got(name);
  return reinterpret_cast<Function*>(address);
}

}  // namespace

// dlopen of a library's name returns the library of that name that is already loaded.
FakeCuda::FakeCuda() {
  const std::string path = new_library_path("libcuda.so.1");
  if (!std::filesystem::exists(path))
    compile_library("-Wl,-soname,libcuda.so.1 tests/fixtures/fake_cuda.cpp", path);
  library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) throw Error(dlerror());
}

void FakeCuda::run_copies_early(bool is_early) {
  found<void(int)>(library_, "fakeCudaCopiesEarly")(is_early ? 1 : 0);
}
void FakeCuda::lose(Lost waits) {
  found<void(int)>(library_, "fakeCudaLoseWaits")(static_cast<int>(waits));
}
void FakeCuda::limit_pinned_bytes(std::size_t bytes) {
  found<void(std::size_t)>(library_, "fakeCudaHostLimit")(bytes);
}
void FakeCuda::limit_device_bytes(std::size_t bytes) {
  found<void(std::size_t)>(library_, "fakeCudaDeviceLimit")(bytes);
}
void FakeCuda::fail(const std::string& symbol, Failure when) {
  found<void(const char*, int)>(library_, "fakeCudaFail")(symbol.c_str(),
                                                          when == Failure::AtLaunch ? 1 : 0);
}
std::size_t FakeCuda::pinned_bytes() const {
  return found<std::size_t()>(library_, "fakeCudaHostBytes")();
}
int FakeCuda::pinned_allocations() const {
  return found<int()>(library_, "fakeCudaHostAllocations")();
}

Program for_fake_cuda(Program emulated) {
  std::string image = concat(
      compiled_kernels({reinterpret_cast<const char*>(emulated.code.data()), emulated.code.size()}),
      "\n");
  std::set<std::uint32_t> described;
  for (const Program::Step& step : emulated.steps) {
    if (described.insert(step.kernel).second)
      image += concat(emulated.kernels[step.kernel].symbol, " ", step.buffers.size(), " ",
                      step.extents.size(), " ", emulated.kernels[step.kernel].maps.size(), "\n");
  }
  const auto* bytes = reinterpret_cast<const std::byte*>(image.c_str());
  emulated.code.assign(bytes, bytes + image.size() + 1);
  return emulated;
}

}  // namespace tenon::testing
