#include "ops/definition/var_ops.h"

#include "base/error.h"
#include "ir/dim_broadcast.h"
#include "ir/graph.h"

namespace tenon::inline ops {
namespace {

Var call_with(std::string_view op, Var value, Attributes attrs) {
  return value.builder().call_all(op, {value}, std::move(attrs), {""}).front();
}

Dims dims_of(Var value) { return value.builder().type(value).tensor().dims; }

}  // namespace

Var sum_to_shape(Var value, const Dims& shape) {
  const Dims dims = dims_of(value);
  if (dims.size() < shape.size()) return value;
  const std::size_t skipped = dims.size() - shape.size();
  std::vector<std::int64_t> leading, repeated;
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    if (axis < skipped) {
      leading.push_back(static_cast<std::int64_t>(axis));
    } else if (shape[axis - skipped] == Dim(1) && dims[axis] != Dim(1)) {
      repeated.push_back(static_cast<std::int64_t>(axis));
    } else if (may_repeat(shape[axis - skipped], dims[axis])) {
      throw Error("only a run tells whether this axis is repeated: it has no gradient yet",
                  ErrorKind::Unsupported)
          .expected("extents of which it is known whether they are 1, as by a symbol's range")
          .got("axis ", axis - skipped, " of ", shape, ", broadcast to ", dims);
    }
  }
  Builder& build = value.builder();
  if (!repeated.empty()) value = build.call("reduce_sum", {value}, {{"axes", repeated}});
  if (leading.empty()) return value;
  return build.call("reduce_sum", {value}, {{"axes", leading}, {"keep_axes", false}});
}

Var expand_to(Var value, const Dims& shape) {
  return dims_of(value) == shape ? value : call_with("expand", value, {{"shape", shape}});
}

// A symbol may be 0 at run time, which means an empty axis here.
Var reshape_to(Var value, const Dims& shape) {
  if (dims_of(value) == shape) return value;
  return call_with("reshape", value, {{"shape", shape}, {"allow_zero", true}});
}

Var cast_to(Var value, DType dtype) {
  if (value.builder().type(value).tensor().dtype == dtype) return value;
  return call_with("cast", value, {{"to", dtype}});
}

}  // namespace tenon::inline ops
