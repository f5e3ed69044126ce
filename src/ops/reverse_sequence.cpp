#include "ir/assumptions.h"
#include "ops/families/indexing.h"
#include "ops/families/movement.h"

namespace tenon::inline ops::reverse_sequence_op {
namespace {

struct Attrs {
  std::int64_t time_axis = 0;
  std::int64_t batch_axis = 1;
};

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  const TensorType &x = in["x"], &lengths = in["lengths"];
  require_integer("reverse_sequence", "lengths", lengths);
  require_rank("reverse_sequence", "lengths", lengths, 1);
  const std::size_t time = normal_axis("reverse_sequence", attrs.time_axis, x.rank());
  const std::size_t batch = normal_axis("reverse_sequence", attrs.batch_axis, x.rank());
  if (time == batch) throw Error("reverse_sequence: time and batch are one axis").got(time);
  if (!assume_equal(lengths.dims[0], x.dims[batch])) {
    throw Error("reverse_sequence: each sequence of the batch needs a length")
        .got("x: ", x, ", lengths: ", lengths);
  }
  return x;
}

void lower(const Attrs& attrs, Lowering& op) {
  const Expr x = op.operand("x");
  const Space space(x.dims());
  const std::size_t time = normal_axis("reverse_sequence", attrs.time_axis, x.rank());
  const std::size_t batch = normal_axis("reverse_sequence", attrs.batch_axis, x.rank());
  const Expr length = cast(op.operand("lengths"), DType::I64).at({space[batch]});
  const Expr step = space[time];
  const Expr source = select(step < length, length - 1.0 - step, step);
  op.define("y", x.at(with_coordinate(space, time, source)));
}

void gradient(const Attrs& attrs, Gradient& op) {
  op.add("x", op.build().call("reverse_sequence", {op.upstream("y"), op.operand("lengths")},
                              {{"time_axis", attrs.time_axis}, {"batch_axis", attrs.batch_axis}}));
}

}  // namespace

TENON_DEFINE_OP(reverse_sequence) = OpSpec<Attrs>{
    .name = "reverse_sequence",
    .summary = "the first lengths[b] steps of each sequence in reverse, the rest as they are",
    .operands = {"x", "lengths"},
    .results = {"y"},
    .attrs = {{"time_axis", &Attrs::time_axis}, {"batch_axis", &Attrs::batch_axis}},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = logical_order(),
    .precision = Precision::MovesOnly,
    .examples = {"x: T s b; lengths: i64 b"},
};

}  // namespace tenon::inline ops::reverse_sequence_op
