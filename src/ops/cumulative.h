#pragma once

#include "ops/gradient.h"
#include "ops/lowering.h"
#include "ops/op_spec.h"

#include <string>

namespace tenon {

/// What running folds along an axis have in common.
struct CumulativeAttrs {
  std::int64_t axis = 0;
  /// each element leaves itself out; the first is the fold of nothing
  bool exclusive = false;
  /// from the end of the axis to its start
  bool reverse = false;
};

/// The op of that name: operand x, result y.
OpSpec<CumulativeAttrs> cumulative_op(std::string name, std::string summary,
                                      void (*lower)(const CumulativeAttrs&, Lowering&),
                                      GradientRule<CumulativeAttrs> gradient);
void define_cumulative(const CumulativeAttrs& attrs, Lowering& op, Reduction reduction);
/// The running sum of `x` in the other direction.
Var reversed_cumsum(const CumulativeAttrs& attrs, Var x);

}  // namespace tenon
