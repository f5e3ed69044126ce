#pragma once

#include <string>

namespace tenon::cuda {

/// What there is to run programs on NVIDIA's devices with, each with its version. Each throws Error
/// (Device) where there is none.
/// "NVIDIA H200"
std::string device_name();
/// "NVIDIA H200, sm_90, 132 multiprocessors, …"
std::string device_text();
/// "cuBLASLt 13.1.0"
std::string blas_text();
/// "cuDNN 9.19.0"
std::string dnn_text();
/// "NCCL 2.27.3"
std::string nccl_text();

}  // namespace tenon::cuda
