#pragma once

#include "expr/expr.h"
#include "ops/definition/attr_field.h"
#include "ops/definition/op_spec.h"

namespace tenon::inline ops {

/// Attributes of local response normalization and of its gradient.
struct LocalResponseAttrs {
  std::int64_t size = 1;
  double alpha = 1e-4, beta = 0.75, bias = 1;
};
std::vector<AttrField<LocalResponseAttrs>> local_response_fields();
/// Refuses images without channels and windows without neighbours.
void require_local_response(std::string_view op, const LocalResponseAttrs& attrs,
                            const TensorType& x);

enum class NeighbourSide : std::uint8_t { Window, Adjoint };
/// Sums x over the `size` neighbouring channels of each element, or (Adjoint) over the channels
/// whose window contains the element. The two differ for even `size`.
Expr sum_of_neighbours(const Expr& x, const TensorType& type, std::int64_t size,
                       NeighbourSide side);
/// Returns bias + alpha / size * the sum of squares over neighbouring channels.
Expr local_scale(const LocalResponseAttrs& attrs, const Expr& x, const TensorType& type);

}  // namespace tenon::inline ops
