#pragma once

#include "expr/lowering.h"
#include "ops/definition/gradient.h"
#include "ops/definition/op_spec.h"

#include <string>

namespace tenon::inline ops {

/// Attributes of running reductions along an axis.
struct CumulativeAttrs {
  std::int64_t axis = 0;
  /// Excludes each element from its own result; the first result is the neutral element.
  bool exclusive = false;
  /// Runs from the end of the axis to its start.
  bool reverse = false;
};

/// Defines an op with operand x and result y.
OpSpec<CumulativeAttrs> cumulative_op(std::string name, std::string summary,
                                      void (*lower)(const CumulativeAttrs&, Lowering&),
                                      GradientRule<CumulativeAttrs> gradient);
void define_cumulative(const CumulativeAttrs& attrs, Lowering& op, Reduction reduction);
/// Returns the running sum of `x` in the opposite direction.
Var reversed_cumsum(const CumulativeAttrs& attrs, Var x);

}  // namespace tenon::inline ops
