#pragma once

#include "nests/loop_nest.h"
#include "nests/stride.h"

#include <optional>

namespace tenon::codegen::cuda {

/// Returns the stride along a loop in elements, or nullopt if it is not constant.
inline std::optional<Dim> distance(const std::vector<nests::Scalar>& indices, const Dims& view,
                                   std::size_t loop) {
  Dim total = 0, stride = 1;
  for (std::size_t axis = view.size(); axis-- > 0; stride = stride * view[axis]) {
    const auto step = nests::growth(indices[axis], loop);
    if (!step) return std::nullopt;
    total = total + Dim(*step) * stride;
  }
  return total;
}
inline std::optional<Dim> distance(const nests::Scalar& load, std::size_t loop) {
  return distance(
      {load->args.begin(), load->args.begin() + static_cast<std::ptrdiff_t>(load->view.size())},
      load->view, loop);
}
inline std::optional<Dim> distance(const nests::Statement& store, std::size_t loop) {
  return distance(store.indices, store.view, loop);
}

}  // namespace tenon::codegen::cuda
