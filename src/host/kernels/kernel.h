#pragma once

#include "ir/attribute.h"
#include "ir/tensor.h"

#include <functional>
#include <string_view>
#include <vector>

namespace tenon {

/// A call of an operator that no loop nest describes: what it reads, and where its results go.
struct HostCall {
  /// numbers only
  const Attributes& attributes;
  /// by position; null where missing
  const std::vector<const Tensor*>& operands;
  /// by result
  const std::vector<bool>& wanted;
  int thread_count = 1;
  /// The memory of a result, once its shape is known. Throws Error where it does not fit the
  /// program.
  std::function<std::byte*(std::size_t result, const Shape& shape)> make;

  /// Memory until the call ends. Throws Error where there is none.
  std::function<std::byte*(std::uint64_t bytes)> scratch;

  const Tensor* operand(std::size_t position) const {
    return position < operands.size() ? operands[position] : nullptr;
  }
  bool wants(std::size_t result) const { return result < wanted.size() && wanted[result]; }
  /// The memory of a result that is wanted, else null.
  template <class T>
  T* result(std::size_t position, const Shape& shape) const {
    return wants(position) ? reinterpret_cast<T*>(make(position, shape)) : nullptr;
  }
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  bool flag(std::string_view name, bool otherwise) const;
};

/// Computes what the reference computes, bit for bit and for any number of threads, as fast as the
/// machine allows. False, with no result made, for a call that it leaves to the reference: rare
/// element types, and whatever the reference refuses.
using HostKernel = bool (*)(const HostCall& call);

/// The kernel of an operator; null where it has none but the reference.
HostKernel host_kernel(std::string_view op);

}  // namespace tenon
