#pragma once

#include "runtime/cuda/driver.h"
#include "runtime/device.h"

#include <memory>
#include <vector>

namespace tenon::inline runtime::cuda {

/// A program's code and constants on an NVIDIA GPU. The program must outlive it.
class CudaModel : public DeviceExecutable {
 public:
  /// Throws Error (Device) if no matching device exists.
  explicit CudaModel(const Program& program);
  CudaModel(const CudaModel&) = delete;
  ~CudaModel() override;

  std::unique_ptr<DeviceContext> make_context() const override;
  std::shared_ptr<const StateMemory> state_memory() const override;
  const Program& program() const { return program_; }
  /// Null for a library kernel.
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

/// Creates an execution context: a stream, an arena, launches. The model must outlive it.
std::unique_ptr<DeviceContext> make_context(const CudaModel& model);

}  // namespace tenon::inline runtime::cuda
