#include "expr/lowering.h"

#include "base/error.h"
#include "ir/dim_broadcast.h"

#include <algorithm>

namespace tenon::inline expr {
namespace {

// Extents that were assumed equal may have several expressions. If `own` is already the broadcast
// of both, it is at least as wide as the result.
bool is_same_by_promise(const Dims& value, const Dims& result) {
  return std::ranges::equal(value, result, [](const Dim& own, const Dim& whole) {
    return own == whole || (!(own == Dim(1)) && broadcast(own, whole) == own);
  });
}

}  // namespace

Lowering::Lowering(const OpDef& op, std::vector<Type> operands, std::vector<Type> results)
    : op_(op),
      operands_(std::move(operands)),
      results_(std::move(results)),
      definitions_(results_.size()) {}

std::size_t Lowering::position_of(std::string_view operand) const {
  const auto index = op_.operand_index(operand);
  TENON_ASSERT(index.has_value(), concat(op_.name, " has an operand called ", operand));
  return *index;
}

bool Lowering::has(std::string_view name) const {
  const std::size_t position = position_of(name);
  return position < operands_.size() && operands_[position].is_known();
}

Expr Lowering::operand(std::string_view name) const {
  return operand_expr(position_of(name), operand_type(name));
}

std::vector<Expr> Lowering::variadic(std::string_view name) const {
  std::vector<Expr> all;
  for (std::size_t k = position_of(name); k < operands_.size(); ++k) {
    all.push_back(operand_expr(k, operands_[k].tensor()));
  }
  return all;
}

const TensorType& Lowering::operand_type(std::string_view name) const {
  TENON_ASSERT(has(name), concat("operand ", name, " of ", op_.name, " is given"));
  return operands_[position_of(name)].tensor();
}

const TensorType& Lowering::result_type(std::string_view name) const {
  const auto index = op_.result_index(name);
  TENON_ASSERT(index.has_value(), concat(op_.name, " has a result called ", name));
  return result_type(*index);
}

const TensorType& Lowering::result_type(std::size_t position) const {
  TENON_ASSERT(position < results_.size(), "the result exists");
  return results_[position].tensor();
}

bool Lowering::wants(std::string_view result) const {
  const auto index = op_.result_index(result);
  return index && *index < results_.size() && results_[*index].is_known();
}

void Lowering::define(std::string_view result, const Expr& value) {
  if (!wants(result)) return;
  define(*op_.result_index(result), value);
}

void Lowering::define(std::size_t position, const Expr& value) {
  const TensorType& type = result_type(position);
  TENON_ASSERT(value.dtype() == type.dtype,
               concat(op_.name, " defines a result of its inferred dtype: ", value.dtype(), " for ",
                      type.dtype));
  if (value.dims() == type.dims) {
    definitions_[position] = value;
  } else if (is_same_by_promise(value.dims(), type.dims)) {
    definitions_[position] = reshape(value, type.dims);
  } else {
    TENON_ASSERT(value.rank() <= type.rank(),
                 concat(op_.name, " defines a result of its inferred shape: ", value.dims(),
                        " for ", type.dims));
    definitions_[position] = broadcast(value, type.dims);
  }
}

std::vector<Expr> lower_op(const OpDef& op, const Attributes& attrs, std::vector<Type> operands,
                           std::vector<Type> results) {
  TENON_ASSERT(op.lower, concat(op.name, " has a lowering"));
  Lowering lowering(op, std::move(operands), std::move(results));
  op.lower(attrs, lowering);
  return lowering.definitions();
}

Attributes bind_dynamic_attributes(const OpDef& op, Attributes attrs,
                                   const std::vector<const Tensor*>& values) {
  for (std::size_t k = 0; k < op.operands.size() && k < values.size(); ++k) {
    if (!op.operands[k].is_dynamic_attribute || !values[k]) continue;
    const Tensor& value = *values[k];
    const std::string& name = op.operands[k].name;
    const auto need_one = [&] {
      if (value.size() != 1) {
        throw Error(concat(op.name, ": operand '", name, "' must hold one element"))
            .got(value.type());
      }
    };
    switch (op.find_attr(name)->kind) {
      case AttrKind::Bool:
        need_one();
        attrs.set(name, value.real_at(0) != 0);
        break;
      case AttrKind::Integer:
        need_one();
        attrs.set(name, Dim(value.integer_at(0)));
        break;
      case AttrKind::Real:
        need_one();
        attrs.set(name, value.real_at(0));
        break;
      case AttrKind::Integers: {
        const std::vector<std::int64_t> integers = value.integers();
        attrs.set(name, Dims(integers.begin(), integers.end()));
        break;
      }
      case AttrKind::Reals:
        attrs.set(name, value.reals());
        break;
      default:
        TENON_ASSERT(false, "dynamic attributes are numbers");
    }
  }
  return attrs;
}

}  // namespace tenon::inline expr
