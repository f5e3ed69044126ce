#pragma once

#include "expr/lowering.h"
#include "ops/definition/gradient.h"
#include "ops/definition/op_spec.h"
#include "ops/definition/var_ops.h"

#include <string>
#include <vector>

namespace tenon::inline ops {

/// Defines an op x → y that keeps the elements in row-major order and only has its own type rule.
template <class Attrs>
OpSpec<Attrs> same_elements_op(std::string name, std::string summary,
                               std::vector<AttrField<Attrs>> attrs, InferRule<Attrs> infer) {
  return {
      .name = std::move(name),
      .summary = std::move(summary),
      .operands = {"x"},
      .results = {"y"},
      .attrs = std::move(attrs),
      .infer = std::move(infer),
      .lower =
          [](const Attrs&, Lowering& op) {
            op.define("y", reshape(op.operand("x"), op.result_type("y").dims));
          },
      .gradient = GradientRule<Attrs>(+[](const Attrs&, Gradient& op) {
        op.add("x", reshape_to(op.upstream("y"), op.operand_type("x").dims));
      }),
      .layout = logical_order(),
      .precision = Precision::MovesOnly,
  };
}

}  // namespace tenon::inline ops
