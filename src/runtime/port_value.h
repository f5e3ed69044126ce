#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tenon::inline runtime {

/// A value at an input or output of a program.
struct PortValue {
  std::vector<std::int64_t> shape = {};
  /// Row-major elements. Null for an output that gets memory from the run, for the ports of a
  /// state, and for a value that is no tensor of numbers.
  const std::byte* data = nullptr;
  /// Keeps `data` alive; null: the caller does.
  std::shared_ptr<const void> owner = {};
  /// The value as host operators hold it; null for a tensor in the caller's memory.
  std::shared_ptr<const void> object = {};
};

}  // namespace tenon::inline runtime
