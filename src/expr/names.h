#pragma once

#include "expr/expr.h"

#include <string_view>

namespace tenon::inline expr {

/// Returns the name of an expression operator: "exp", "+", "max". Functions of one real number have
/// their C library names.
std::string_view name_of(UnaryOp op);
std::string_view name_of(BinaryOp op);
std::string_view name_of(Reduction reduction);

/// Returns whether the target computes the function by a polynomial or a C library call: `exp`,
/// `tan`, `erf`.
bool is_transcendental(UnaryOp op);
/// Returns whether the reduction returns the position of an extreme.
bool is_arg(Reduction reduction);
/// Returns whether the node is a sum of products.
bool is_contraction_expr(const ExprNode& node);

}  // namespace tenon::inline expr
