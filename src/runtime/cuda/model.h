#pragma once

#include "runtime/cuda/driver.h"
#include "runtime/device.h"

#include <memory>
#include <vector>

namespace tenon::cuda {

/// A program's code and constants on one of NVIDIA's devices. The program must outlive it.
class CudaModel : public DeviceExecutable {
 public:
  /// Throws Error (Device) where there is no such device.
  explicit CudaModel(const Program& program);
  CudaModel(const CudaModel&) = delete;
  ~CudaModel() override;

  std::unique_ptr<DeviceContext> make_context() const override;
  const Program& program() const { return program_; }
  /// Null of a kernel that is a library's.
  Function function(std::size_t kernel) const { return functions_[kernel]; }
  Address constants() const { return constants_.address(); }
  std::uint64_t device_bytes() const { return constants_.bytes() + program_.code.size(); }

 private:
  void require_architecture(const Driver& cuda) const;

  const Program& program_;
  Module module_ = nullptr;
  std::vector<Function> functions_;
  DeviceMemory constants_;
};

/// What runs it: a stream, an arena, launches. The model must outlive it.
std::unique_ptr<DeviceContext> make_context(const CudaModel& model);

}  // namespace tenon::cuda
