#include "diagnose/logical_order.h"

#include <cctype>
#include <cstring>
#include <string_view>
#include <vector>

namespace tenon::diagnose {

Tensor in_logical_order(const Tensor& tensor, const Layout& layout) {
  constexpr std::string_view kOrder = "NOCIDHW";
  if (layout.is_empty() || layout.rank() != tensor.shape().size() ||
      tensor.dtype() == DType::String)
    return tensor;
  // Memory axis of each logical axis, and of its inner block.
  struct Axis {
    std::size_t at = 0;
    std::optional<std::size_t> inner;
    std::int64_t block = 1;
  };
  std::vector<Axis> axes;
  std::size_t found = 0;
  for (const char letter : kOrder) {
    const auto at = layout.axis(letter);
    if (!at) continue;
    Axis axis{*at, layout.axis(static_cast<char>(std::tolower(letter))), layout.block(letter)};
    found += 1 + (axis.inner ? 1 : 0);
    axes.push_back(axis);
  }
  if (found != tensor.shape().size()) return tensor;
  Shape shape;
  for (const Axis& axis : axes)
    shape.push_back(tensor.shape()[axis.at] * (axis.inner ? tensor.shape()[*axis.inner] : 1));
  // Stride in the result of each memory axis.
  std::vector<std::int64_t> strides(tensor.shape().size(), 0);
  std::int64_t stride = 1;
  for (std::size_t k = axes.size(); k-- > 0;) {
    if (axes[k].inner) strides[*axes[k].inner] = stride;
    strides[axes[k].at] = stride * (axes[k].inner ? tensor.shape()[*axes[k].inner] : 1);
    stride *= shape[k];
  }
  Tensor plain(tensor.dtype(), shape);
  if (tensor.size() == 0) return plain;
  const std::size_t bytes = tensor.byte_size() / static_cast<std::size_t>(tensor.size());
  const std::byte* from = tensor.bytes().data();
  std::byte* to = plain.mutable_bytes().data();
  std::vector<std::int64_t> index(strides.size(), 0);
  for (std::int64_t k = 0, at = 0; k < tensor.size(); ++k) {
    std::memcpy(to + static_cast<std::size_t>(at) * bytes,
                from + static_cast<std::size_t>(k) * bytes, bytes);
    for (std::size_t axis = index.size(); axis-- > 0;) {
      at += strides[axis];
      if (++index[axis] < tensor.shape()[axis]) break;
      at -= strides[axis] * index[axis];
      index[axis] = 0;
    }
  }
  return plain;
}

}  // namespace tenon::diagnose
