#pragma once

#include "passes/rewrite/rewriter.h"

// Properties of values derived from their producers, and the rule conditions that use them.
namespace tenon::passes::rewrite {

/// Returns whether no element is below zero (NaN and negative zero may occur).
bool is_never_negative(const Graph& graph, ValueId value);
/// Returns whether no element is a negative zero.
bool is_never_minus_zero(const Graph& graph, ValueId value);
/// Returns whether every value of `from` is representable in `to`.
bool holds_exactly(DType to, DType from);
/// Returns whether each element of the node's result depends only on the operands' elements at the
/// same index.
bool is_pointwise(const Graph& graph, NodeId node);
/// Returns the axes counted from the front; nullopt if one is out of range or not a number.
std::optional<std::vector<std::int64_t>> counted_axes(const Dims& axes, std::size_t rank);

/// floats, not integers or complex numbers
Condition is_real(std::string variable);
Condition is_integer(std::string variable);
Condition is_not_complex(std::string variable);
/// `x + 0` equals x unless x is a negative zero.
Condition keeps_sign_of_zero(std::string variable);
Condition never_negative(std::string variable);
/// The value has a single reader and is not an output, so that a rewrite repeats no work.
Condition read_once(std::string variable);
/// A float type that networks compute in: f16, bf16, f32, f64.
Condition is_common_float(std::string variable);
/// Intermediate values of the match have no readers outside of it.
Condition alone();

}  // namespace tenon::passes::rewrite
