#include "ops/families/optimizer_step.h"

#include "base/error.h"
#include "ir/assumptions.h"
#include "ops/definition/elements.h"

namespace tenon::inline ops {

std::vector<Type> optimizer_types(const OperandTypes& in,
                                  const std::vector<std::string_view>& state,
                                  std::size_t result_count) {
  for (const char* name : {"rate", "step"}) {
    if (assume_equal(element_count(in[name]), 1)) continue;
    throw Error(concat(in.op_name(), ": operand '", name, "' must be one number")).got(in[name]);
  }
  const TensorType& x = require_elements(in, "x", floats);
  std::vector<std::string_view> others = {"gradient"};
  others.insert(others.end(), state.begin(), state.end());
  for (std::string_view name : others) {
    bool fits = in[name].dtype == x.dtype && in[name].rank() == x.rank();
    for (std::size_t axis = 0; fits && axis < x.rank(); ++axis) {
      fits = assume_equal(x.dims[axis], in[name].dims[axis]);
    }
    if (!fits) {
      throw Error(concat(in.op_name(), ": operand '", name, "' must have the type of x"))
          .expected(x)
          .got(in[name]);
    }
  }
  return std::vector<Type>(result_count, x);
}

Expr optimizer_number(const Lowering& op, std::string_view operand) {
  return cast(reshape(op.operand(operand), {}), op.operand_type("x").dtype);
}

Expr regularised_gradient(const Lowering& op, double decay) {
  return decay == 0 ? op.operand("gradient") : op.operand("gradient") + op.operand("x") * decay;
}

}  // namespace tenon::inline ops
