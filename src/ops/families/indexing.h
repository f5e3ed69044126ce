#pragma once

#include "expr/lowering.h"
#include "ops/definition/gradient.h"
#include "ops/definition/op_spec.h"

#include <string_view>
#include <vector>

namespace tenon::inline ops {

/// Throws Error unless the operand's elements are integers.
void require_integer(std::string_view op, std::string_view operand, const TensorType& type);

/// Returns the number of axes that the last axis of `indices` addresses. Throws NotKnownYet if it
/// is symbolic.
std::size_t index_depth(std::string_view op, const TensorType& indices);
/// Returns coordinates into `dims`: the first `batch` and the last ones are the space's own
/// positions, the middle ones are read along the last axis of `indices`.
std::vector<Expr> indexed_coordinates(const Space& space, const Expr& indices, const Dims& dims,
                                      std::size_t batch);

/// Combination of a scatter update with the existing element.
enum class ScatterReduction { None, Add, Mul, Max, Min };
FieldOptions scatter_words();
Expr scatter_by(ScatterReduction reduction, const Expr& base, std::vector<Expr> coordinates,
                const Expr& updates);
/// Adds the gradient of a scatter of `updates` into `x`; `gather_op` reads the positions that
/// `scatter_op` writes. `attrs` are the attributes that both ops share.
void scatter_gradient(ScatterReduction reduction, Gradient& op, std::string_view gather_op,
                      std::string_view scatter_op, const std::vector<Attr>& attrs);

}  // namespace tenon::inline ops
