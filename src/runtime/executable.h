#pragma once

#include "base/error.h"
#include "program/program.h"
#include "runtime/code_image.h"
#include "runtime/device.h"
#include "runtime/host_steps.h"
#include "runtime/segments.h"

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

namespace tenon::inline runtime {

/// A linked, immutable program. Any number of executors in any threads run it concurrently.
class Executable {
 public:
  /// Throws Error if the code does not fit this machine: of kind Device, by feature, if another
  /// machine could run it.
  explicit Executable(Program program);
  /// Loads a program for a device; not called for a program that targets the CPU.
  using MakeDevice = std::shared_ptr<const DeviceExecutable> (*)(const Program& program);
  /// Resolves the operators of a program with host steps; not called without them.
  using LoadOperators = std::shared_ptr<const HostOperators> (*)(const Executable& model);
  /// As above, with other loaders than `load_on_device` and none.
  Executable(Program program, MakeDevice make_device, LoadOperators load_operators = nullptr);
  Executable(const Executable&) = delete;

  const Program& program() const { return program_; }
  /// Returns the code of a kernel of the program; only on the CPU.
  KernelFunction kernel(std::size_t index) const { return kernels_[index]; }
  /// Returns the maximal runs of kernel steps without a host step between them, in order. A
  /// kernel-only program is one segment.
  const std::vector<Segment>& segments() const { return segments_; }
  /// Null unless the program is for a device.
  const DeviceExecutable* device() const { return device_.get(); }
  /// Null for a kernel-only program, and without a loader of operators.
  const HostOperators* operators() const { return operators_.get(); }

  /// True if the constants from byte `begin` up to `end` are already verified.
  bool is_compared(std::uint64_t begin, std::uint64_t end) const;
  /// Verifies the checksums of constants from byte `begin` up to `end`, by whole blocks, unless
  /// done before or not loaded from a file; returns true if it verified any. Sets `is_altered` on a
  /// mismatch. Verification is lazy, not part of loading, because it reads the bytes: at first use
  /// it leaves them in the cache.
  bool compare(std::uint64_t begin, std::uint64_t end, std::atomic<bool>& is_altered) const;

 private:
  Program program_;
  std::vector<Segment> segments_;
  std::optional<CodeImage> code_;
  std::vector<KernelFunction> kernels_;
  std::shared_ptr<const DeviceExecutable> device_;
  std::shared_ptr<const HostOperators> operators_;
  mutable std::vector<std::atomic<bool>> is_intact_;  // by block with a checksum
};

/// Returns the error for constants that differ from the compiler's, and the step that reads them.
Error altered_constants(const Program& program, std::optional<std::size_t> step = std::nullopt);

}  // namespace tenon::inline runtime
