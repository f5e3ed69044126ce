#include "ops/definition/evaluation.h"
#include "ops/definition/op_spec.h"
#include "ops/families/tensor_parts.h"

namespace tenon::inline ops::split_to_sequence_op {
namespace {

struct Attrs {
  std::int64_t axis = 0;
  bool keep_axis = true;
};

// Without sizes every position is an item, and only then may the axis be dropped.
ResultTypes infer(const Attrs& attrs, const OperandTypes& in) {
  TensorType item{in["x"].dtype, in["x"].dims, {}};
  const std::size_t axis = normal_axis("split_to_sequence", attrs.axis, item.rank());
  const auto at_axis = item.dims.begin() + static_cast<std::ptrdiff_t>(axis);
  if (in.has("sizes")) {
    *at_axis = in.unknown();
  } else if (attrs.keep_axis) {
    *at_axis = 1;
  } else {
    item.dims.erase(at_axis);
  }
  return Type::sequence(item);
}

// A scalar is the size of every item but the last.
std::vector<std::int64_t> item_sizes(const Evaluation& op, std::int64_t extent) {
  if (!op.has("sizes")) return std::vector<std::int64_t>(static_cast<std::size_t>(extent), 1);
  const Tensor& given = op.tensor("sizes");
  std::vector<std::int64_t> sizes = given.integers();
  if (given.rank() == 0) {
    const std::int64_t size = sizes.front();
    sizes.clear();
    for (std::int64_t rest = extent; size > 0 && rest > 0; rest -= size) {
      sizes.push_back(std::min(size, rest));
    }
  }
  std::int64_t total = 0;
  for (std::int64_t size : sizes) total += size < 0 || size > extent ? extent + 1 : size;
  if (total != extent) {
    throw Error("split_to_sequence: the sizes do not add up to the extent")
        .expected("sizes that sum to ", extent)
        .got(to_string(Dims(sizes.begin(), sizes.end())));
  }
  return sizes;
}

void evaluate(const Attrs& attrs, Evaluation& op) {
  const Tensor& x = op.tensor("x");
  const std::size_t axis = normal_axis("split_to_sequence", attrs.axis, x.rank());
  std::vector<Datum> items;
  std::int64_t start = 0;
  for (std::int64_t size : item_sizes(op, x.shape()[axis])) {
    const bool drops_axis = !attrs.keep_axis && !op.has("sizes");
    items.emplace_back(drops_axis ? slice_at(x, axis, start) : slice_of(x, axis, start, size));
    start += size;
  }
  op.set("y", items.empty() ? Datum::empty_sequence(x.dtype()) : Datum::sequence(std::move(items)));
}

}  // namespace

TENON_DEFINE_OP(split_to_sequence) = OpSpec<Attrs>{
    .name = "split_to_sequence",
    .summary =
        "parts of a tensor along `axis` as a sequence: of the given sizes (a scalar: of that size "
        "each), or of one position each",
    .operands = {"x", optional("sizes")},
    .results = {"y"},
    .attrs = {{"axis", &Attrs::axis}, {"keep_axis", &Attrs::keep_axis}},
    .infer = infer,
    .evaluate = evaluate,
    .gradient = not_differentiable("its result is a sequence"),
    .layout = logical_order(),
    .precision = Precision::MovesOnly,
};

}  // namespace tenon::inline ops::split_to_sequence_op
