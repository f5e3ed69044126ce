#pragma once

#include "ops/expr.h"
#include "ops/op_spec.h"

#include <string>

namespace tenon {

/// What arg_max and arg_min have in common.
struct ArgExtremeAttrs {
  std::int64_t axis = 0;
  /// the axis stays, with extent 1
  bool keep_axes = true;
  /// of equal elements the last rather than the first
  bool select_last = false;
};

/// The op of that name: operand x, result y of i64.
OpSpec<ArgExtremeAttrs> arg_extreme_op(std::string name, std::string summary,
                                       void (*lower)(const ArgExtremeAttrs&, Lowering&));
/// Defines y by the fold that gives the first position, or the last, as the attributes say.
void define_arg_extreme(const ArgExtremeAttrs& attrs, Lowering& op, Reduction first,
                        Reduction last);

}  // namespace tenon
