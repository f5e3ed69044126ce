#pragma once

#include <string_view>

#include "ops/expr.h"

namespace tenon {

/// What an operator of expressions is called: "exp", "+", "max". Functions of one real number go by
/// their names in the C library.
std::string_view name_of(UnaryOp op);
std::string_view name_of(BinaryOp op);
std::string_view name_of(Reduction reduction);

}  // namespace tenon
