#pragma once

#include "passes/rewrite/rewriter.h"

// What can be said about values from how they are made, and the conditions of rules that ask it.
namespace tenon::rewrite {

/// Whether no element is below zero (NaN and negative zero may be).
bool is_never_negative(const Graph& graph, ValueId value);
/// Whether no element is a negative zero.
bool is_never_minus_zero(const Graph& graph, ValueId value);
/// Whether every value of `from` is one of `to`.
bool holds_exactly(DType to, DType from);
/// Whether each element of the node's result follows from the operands' elements at its own place.
bool is_pointwise(const Graph& graph, NodeId node);
/// Axes counted from the front. Nothing where one is not in the rank or not a number.
std::optional<std::vector<std::int64_t>> counted_axes(const Dims& axes, std::size_t rank);

/// floats, not integers or complex numbers
Condition is_real(std::string variable);
Condition is_integer(std::string variable);
Condition is_not_complex(std::string variable);
/// `x + 0` is x unless x is a negative zero.
Condition keeps_sign_of_zero(std::string variable);
Condition never_negative(std::string variable);
/// The value has no other reader and is no output: taking it apart repeats no work.
Condition read_once(std::string variable);
/// One of the floats that networks compute in: f16, bf16, f32, f64.
Condition is_common_float(std::string variable);
/// Nothing outside of the match reads what its nodes make on the way.
Condition alone();

}  // namespace tenon::rewrite
