#pragma once

#include <string>

namespace tenon::inline runtime::cuda {

// Descriptions of the device and of the vendor libraries with their versions. Each throws Error
// (Device) if the component is missing.

/// E.g. "NVIDIA H200".
std::string device_name();
/// E.g. "NVIDIA H200, sm_90, 132 multiprocessors, …".
std::string device_text();
/// E.g. "cuBLASLt 13.1.0".
std::string blas_text();
/// E.g. "cuDNN 9.19.0".
std::string dnn_text();
/// E.g. "NCCL 2.27.3".
std::string nccl_text();

}  // namespace tenon::inline runtime::cuda
