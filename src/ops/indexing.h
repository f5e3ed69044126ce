#pragma once

#include "ops/gradient.h"
#include "ops/lowering.h"
#include "ops/op_spec.h"

#include <string_view>
#include <vector>

namespace tenon {

/// Throws Error unless the operand's elements are integers.
void require_integer(std::string_view op, std::string_view operand, const TensorType& type);

/// How many axes the last axis of `indices` names. Throws NotKnownYet where that is not a number.
std::size_t index_depth(std::string_view op, const TensorType& indices);
/// Coordinates into `dims`: the first `batch` and the last are the space's own, those between lie
/// along the last axis of `indices`.
std::vector<Expr> indexed_coordinates(const Space& space, const Expr& indices, const Dims& dims,
                                      std::size_t batch);

/// How a scatter joins an update with what is there.
enum class ScatterReduction { None, Add, Mul, Max, Min };
FieldOptions scatter_words();
Expr scatter_by(ScatterReduction reduction, const Expr& base, std::vector<Expr> coordinates,
                const Expr& updates);
/// The gradient of a scatter of `updates` into `x`; `gather_op` reads what `scatter_op` writes.
/// `attrs` are those both ops share.
void scatter_gradient(ScatterReduction reduction, Gradient& op, std::string_view gather_op,
                      std::string_view scatter_op, const std::vector<Attr>& attrs);

}  // namespace tenon
