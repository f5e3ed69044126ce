#include "codegen/cuda/nvrtc.h"

#include "base/error.h"
#include "base/shared_library.h"

#include <vector>

namespace tenon::codegen::cuda {
namespace {

// The NVRTC functions in use, declared here so that its headers are not needed.
using Program = struct NvrtcProgram*;
struct Nvrtc {
  SharedLibrary library{"compiling CUDA C++ (NVRTC)",
                        {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"},
                        cuda_folders()};
  int (*version)(int*, int*) = nullptr;
  int (*create)(Program*, const char*, const char*, int, const char* const*,
                const char* const*) = nullptr;
  int (*destroy)(Program*) = nullptr;
  int (*compile)(Program, int, const char* const*) = nullptr;
  int (*log_size)(Program, std::size_t*) = nullptr;
  int (*log)(Program, char*) = nullptr;
  int (*code_size)(Program, std::size_t*) = nullptr;
  int (*code)(Program, char*) = nullptr;

  Nvrtc() {
    library.find(version, "nvrtcVersion");
    library.find(create, "nvrtcCreateProgram");
    library.find(destroy, "nvrtcDestroyProgram");
    library.find(compile, "nvrtcCompileProgram");
    library.find(log_size, "nvrtcGetProgramLogSize");
    library.find(log, "nvrtcGetProgramLog");
    library.find(code_size, "nvrtcGetCUBINSize");
    library.find(code, "nvrtcGetCUBIN");
  }
};

const Nvrtc& nvrtc() {
  static const Nvrtc loaded;
  return loaded;
}

}  // namespace

std::string compiler_name() {
  int major = 0, minor = 0;
  nvrtc().version(&major, &minor);
  return concat("NVRTC ", major, ".", minor);
}

std::vector<std::byte> compile_source(const std::string& source, const std::string& architecture) {
  const Nvrtc& library = nvrtc();
  Program program = nullptr;
  if (library.create(&program, source.c_str(), "tenon.cu", 0, nullptr, nullptr) != 0) {
    throw Error("NVRTC takes no program", ErrorKind::Device);
  }
  struct Destroyer {
    const Nvrtc& library;
    Program* program;
    ~Destroyer() { library.destroy(program); }
  } const destroyer{library, &program};
  const std::string target = concat("--gpu-architecture=", architecture);
  // Multiply-adds are fused only where a nest says so, as on the processor (--fmad=false). Generic
  // lambdas must compile for the device.
  std::vector<const char*> options = {target.c_str(), "--std=c++17", "--fmad=false",
                                      "--extra-device-vectorization",
                                      "--device-as-default-execution-space"};
  // Compiles kernels on all cores; the generated code is the same.
  int major = 0, minor = 0;
  library.version(&major, &minor);
  if (major >= 13) options.push_back("--split-compile=0");
  const int status = library.compile(program, static_cast<int>(options.size()), options.data());
  if (status != 0) {
    std::size_t size = 0;
    library.log_size(program, &size);
    std::string log(size, '\0');
    if (size > 0) library.log(program, log.data());
    if (log.find("gpu-architecture") != std::string::npos) {
      throw Error("NVRTC does not know this device", ErrorKind::Usage)
          .got(architecture)
          .expected("as sm_90a");
    }
    throw InternalError("compile_source",
                        concat("generated CUDA C++ compiles: ", log.substr(0, 4000)), __FILE__,
                        __LINE__);
  }
  std::size_t size = 0;
  library.code_size(program, &size);
  std::vector<std::byte> code(size);
  library.code(program, reinterpret_cast<char*>(code.data()));
  return code;
}

}  // namespace tenon::codegen::cuda
