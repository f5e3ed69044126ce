#pragma once

#include "ir/attribute.h"
#include "ir/tensor.h"

#include <functional>
#include <string_view>
#include <vector>

namespace tenon::inline host {

/// A call of an operator without loop nest: its operands, and the memory of its results.
struct HostCall {
  /// Attributes without symbols.
  const Attributes& attributes;
  /// By position; null if omitted.
  const std::vector<const Tensor*>& operands;
  /// By result: true if it is used.
  const std::vector<bool>& wanted;
  int thread_count = 1;
  /// Allocates a result of known shape. Throws Error if the shape does not match the program.
  std::function<std::byte*(std::size_t result, const Shape& shape)> make;

  /// Allocates memory until the end of the call. Throws Error on failure.
  std::function<std::byte*(std::uint64_t bytes)> scratch;

  const Tensor* operand(std::size_t position) const {
    return position < operands.size() ? operands[position] : nullptr;
  }
  bool wants(std::size_t result) const { return result < wanted.size() && wanted[result]; }
  /// Allocates a used result; returns null if unused.
  template <class T>
  T* result(std::size_t position, const Shape& shape) const {
    return wants(position) ? reinterpret_cast<T*>(make(position, shape)) : nullptr;
  }
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  bool flag(std::string_view name, bool otherwise) const;
};

/// Computes the reference's result, bit-identical for any number of threads, with vectors and
/// threads. Returns false, without results, for calls left to the reference: rare element types and
/// invalid operands.
using HostKernel = bool (*)(const HostCall& call);

/// Returns the kernel of an operator; null if only the reference implements it.
HostKernel host_kernel(std::string_view op);

}  // namespace tenon::inline host
