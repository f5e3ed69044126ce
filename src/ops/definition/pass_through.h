#pragma once

#include "expr/lowering.h"
#include "ops/definition/gradient.h"
#include "ops/definition/op_spec.h"

/// For identity ops that annotate their operand.
namespace tenon::inline ops::pass_through {

template <class Attrs>
TensorType infer(const Attrs&, const OperandTypes& in) {
  return in["x"];
}

template <class Attrs>
void lower(const Attrs&, Lowering& op) {
  op.define("y", op.operand("x"));
}

template <class Attrs>
void gradient(const Attrs&, Gradient& op) {
  op.add("x", op.upstream("y"));
}

}  // namespace tenon::inline ops::pass_through
