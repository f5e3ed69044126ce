#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "runtime/cuda/driver.h"

namespace tenon::cuda {

/// A call of one of the vendor's libraries, made ready for extents.
class LibraryStep {
 public:
  virtual ~LibraryStep() = default;
  virtual std::uint64_t workspace_bytes() const = 0;
  void set_workspace(Address address, std::uint64_t bytes) {
    workspace_ = address;
    workspace_size_ = bytes;
  }
  virtual void enqueue(Stream stream, std::span<const std::uint64_t> buffers) = 0;

 protected:
  Address workspace_ = 0;
  std::uint64_t workspace_size_ = 0;
};

/// Throws Error (Device) where the library is missing or has nothing that computes this.
std::unique_ptr<LibraryStep> make_library_step(const std::string& description, std::span<const std::int64_t> extents,
                                               const std::string& name);

}  // namespace tenon::cuda
