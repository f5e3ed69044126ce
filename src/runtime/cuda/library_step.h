#pragma once

#include "program/library_call.h"
#include "runtime/cuda/driver.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace tenon::inline runtime::cuda {

/// A library call prepared for fixed extents. The library may offer several algorithms (variants),
/// ordered by its own heuristic. Equal calls of a program share one object.
class LibraryStep {
 public:
  virtual ~LibraryStep() = default;
  /// At least 1.
  virtual std::size_t variant_count() const = 0;
  virtual std::uint64_t workspace_bytes(std::size_t variant) const = 0;
  virtual void enqueue(Stream stream, std::span<const std::uint64_t> buffers, Address workspace,
                       std::size_t variant) = 0;
};

/// Workspace limit of algorithms.
inline constexpr std::uint64_t kMostWorkspaceBytes = std::uint64_t{64} << 20;

/// Each throws Error (Device) if the library is missing or does not support the call.
std::unique_ptr<LibraryStep> make_matmul(const LibraryCall& call,
                                         std::span<const std::int64_t> extents);
std::unique_ptr<LibraryStep> make_convolution(const LibraryCall& call,
                                              std::span<const std::int64_t> extents);

inline std::unique_ptr<LibraryStep> make_library_step(const LibraryCall& call,
                                                      std::span<const std::int64_t> extents) {
  return call.kind == LibraryCall::Kind::Matmul ? make_matmul(call, extents)
                                                : make_convolution(call, extents);
}

}  // namespace tenon::inline runtime::cuda
