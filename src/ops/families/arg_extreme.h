#pragma once

#include "expr/expr.h"
#include "ops/definition/op_spec.h"

#include <string>

namespace tenon::inline ops {

/// Attributes of arg_max and arg_min.
struct ArgExtremeAttrs {
  std::int64_t axis = 0;
  /// Keeps the axis with extent 1.
  bool keep_axes = true;
  /// Selects the last of equal elements instead of the first.
  bool select_last = false;
};

/// Defines an op with operand x and result y of i64.
OpSpec<ArgExtremeAttrs> arg_extreme_op(std::string name, std::string summary,
                                       void (*lower)(const ArgExtremeAttrs&, Lowering&));
/// Defines y by the `first` or `last` reduction, as `select_last` says.
void define_arg_extreme(const ArgExtremeAttrs& attrs, Lowering& op, Reduction first,
                        Reduction last);

}  // namespace tenon::inline ops
