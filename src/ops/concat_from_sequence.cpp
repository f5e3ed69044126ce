#include "ops/definition/op_spec.h"
#include "ops/families/body_types.h"
#include "ops/families/sequences.h"
#include "ops/families/tensor_parts.h"

namespace tenon::inline ops::concat_from_sequence_op {
namespace {

struct Attrs {
  std::int64_t axis = 0;
  bool new_axis = false;
};

ResultTypes infer(const Attrs& attrs, const OperandTypes& in) {
  const Type item = item_type(in, "sequence");
  if (!item.is_known() || attrs.new_axis) {
    return stacked_type("concat_from_sequence", item, attrs.axis, in.unknown());
  }
  if (!item.is_tensor()) throw Error("concat_from_sequence: the items must be tensors").got(item);
  TensorType type = item.tensor();
  type.dims[normal_axis("concat_from_sequence", attrs.axis, type.rank())] = in.unknown();
  return Type(type);
}

void evaluate(const Attrs& attrs, Evaluation& op) {
  std::vector<Tensor> parts;
  for (const Datum& item : items_of(op, "sequence")) parts.push_back(item.tensor());
  if (parts.empty()) throw Error("concat_from_sequence: the sequence has no item");
  const std::size_t rank = parts.front().rank() + (attrs.new_axis ? 1 : 0);
  const std::size_t axis = normal_axis("concat_from_sequence", attrs.axis, rank);
  op.set("y", attrs.new_axis ? stack_along("concat_from_sequence", parts, axis)
                             : join_along("concat_from_sequence", parts, axis));
}

}  // namespace

TENON_DEFINE_OP(concat_from_sequence) = OpSpec<Attrs>{
    .name = "concat_from_sequence",
    .summary = "the items of a sequence end to end along `axis`, or stacked along a new one",
    .operands = {"sequence"},
    .results = {"y"},
    .attrs = {{"axis", &Attrs::axis, required}, {"new_axis", &Attrs::new_axis}},
    .infer = infer,
    .evaluate = evaluate,
    .gradient = not_differentiable("it reads a sequence"),
    .layout = logical_order(),
    .precision = Precision::MovesOnly,
};

}  // namespace tenon::inline ops::concat_from_sequence_op
