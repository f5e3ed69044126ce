#pragma once

#include "ops/definition/op_spec.h"

#include <string>

namespace tenon::inline ops {

/// Attributes of ops that work along one axis and keep the type.
struct AxisAttrs {
  std::int64_t axis = -1;
};

/// Defines an op with operand x and a result y of the same type.
OpSpec<AxisAttrs> along_axis_op(std::string name, std::string summary,
                                void (*lower)(const AxisAttrs&, Lowering&),
                                GradientRule<AxisAttrs> gradient);

}  // namespace tenon::inline ops
