#include "runtime/cuda/describe.h"

#include "base/error.h"
#include "base/text.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/nccl.h"

namespace tenon::inline runtime::cuda {

std::string device_name() { return driver().device_name; }

std::string device_text() {
  const Driver& cuda = driver();
  std::size_t free = 0, total = 0;
  cuda.memory_info(&free, &total);
  return concat(cuda.device_name, ", sm_", cuda.major, cuda.minor, ", ", cuda.multiprocessors,
                " multiprocessors, ", format_bytes(free), " free of ", format_bytes(total),
                "; driver for CUDA ", cuda.version / 1000, ".", cuda.version % 1000 / 10);
}

std::string blas_text() {
  const SharedLibrary library("matrix products (cuBLASLt)",
                              {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"},
                              cuda_folders());
  std::size_t (*version)() = nullptr;
  library.find(version, "cublasLtGetVersion");
  const std::size_t number = version();
  return concat("cuBLASLt ", number / 10000, ".", number % 10000 / 100, ".", number % 100);
}

std::string dnn_text() {
  const SharedLibrary library("convolutions (cuDNN)", {"libcudnn.so.9", "libcudnn.so"},
                              cuda_folders());
  std::size_t (*version)() = nullptr;
  library.find(version, "cudnnGetVersion");
  const std::size_t number = version();
  return concat("cuDNN ", number / 10000, ".", number % 10000 / 100, ".", number % 100);
}

std::string nccl_text() { return concat("NCCL ", Nccl().version()); }

}  // namespace tenon::inline runtime::cuda
