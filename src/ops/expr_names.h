#pragma once

#include "ops/expr.h"

#include <string_view>

namespace tenon {

/// What an operator of expressions is called: "exp", "+", "max". Functions of one real number go by
/// their names in the C library.
std::string_view name_of(UnaryOp op);
std::string_view name_of(BinaryOp op);
std::string_view name_of(Reduction reduction);

/// Whether it is computed by a polynomial or a function of the C library: `exp`, `tan`, `erf`.
bool is_transcendental(UnaryOp op);
/// Whether the reduction gives the place of an extreme.
bool is_arg(Reduction reduction);
/// Whether the node sums products.
bool is_sum_of_products(const ExprNode& node);

}  // namespace tenon
