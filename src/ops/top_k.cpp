#include "ir/assumptions.h"
#include "ops/definition/evaluation.h"
#include "ops/definition/gradient.h"
#include "ops/definition/op_spec.h"
#include "ops/families/element_order.h"
#include "ops/families/movement.h"
#include "ops/families/tensor_parts.h"

#include <numeric>

namespace tenon::inline ops::top_k_op {
namespace {

struct Attrs {
  Dim k = 1;
  std::int64_t axis = -1;
  bool largest = true;
  bool sorted = true;
};

ResultTypes infer(const Attrs& attrs, const OperandTypes& in) {
  TensorType values{in["x"].dtype, in["x"].dims, {}};
  const std::size_t axis = normal_axis("top_k", attrs.axis, values.rank());
  if (!assume_at_most(0, attrs.k) || !assume_at_most(attrs.k, values.dims[axis])) {
    throw Error("top_k: k is more than there are")
        .expected("k in [0, ", values.dims[axis], "]")
        .got(attrs.k);
  }
  values.dims[axis] = attrs.k;
  TensorType indices = values;
  indices.dtype = DType::I64;
  return {values, indices};
}

// Always sorted, which satisfies `sorted = false` too.
void evaluate(const Attrs& attrs, Evaluation& op) {
  const Tensor& x = op.tensor("x");
  const std::size_t axis = normal_axis("top_k", attrs.axis, x.rank());
  const std::int64_t extent = x.shape()[axis], k = attrs.k.constant();
  if (k < 0 || k > extent) {
    throw Error("top_k: k is more than there are").expected("k in [0, ", extent, "]").got(k);
  }
  Shape shape = x.shape();
  shape[axis] = k;
  Tensor values(x.dtype(), shape), indices(DType::I64, shape);
  const ElementOrder order(x);
  const Rows rows = rows_around(shape, axis);
  std::vector<std::int64_t> positions(static_cast<std::size_t>(extent));
  for (std::int64_t row = 0; row < rows.count; ++row) {
    for (std::int64_t inner = 0; inner < rows.inner; ++inner) {
      const auto element = [&](std::int64_t position) {
        return (row * extent + position) * rows.inner + inner;
      };
      std::iota(positions.begin(), positions.end(), std::int64_t{0});
      std::partial_sort(positions.begin(), positions.begin() + k, positions.end(),
                        [&](std::int64_t a, std::int64_t b) {
                          const int ascending = order.compare(element(a), element(b));
                          const int wanted = attrs.largest ? -ascending : ascending;
                          return wanted != 0 ? wanted < 0 : a < b;
                        });
      for (std::int64_t rank = 0; rank < k; ++rank) {
        const std::int64_t position = positions[static_cast<std::size_t>(rank)];
        const std::int64_t at = (row * k + rank) * rows.inner + inner;
        copy_elements(values, at, x, element(position));
        indices.set_integer(at, position);
      }
    }
  }
  op.set("values", std::move(values));
  op.set("indices", std::move(indices));
}

void gradient(const Attrs& attrs, Gradient& op) {
  op.add("x",
         op.build().call("scatter_elements",
                         {zeros_like(op.operand("x")), op.result("indices"), op.upstream("values")},
                         {{"axis", attrs.axis}}));
}

}  // namespace

TENON_DEFINE_OP(top_k) = OpSpec<Attrs>{
    .name = "top_k",
    .summary =
        "the k largest (or smallest) elements along `axis` and their positions; of equal ones, "
        "those "
        "that come first",
    .operands = {"x"},
    .results = {"values", "indices"},
    .attrs = {{"k", &Attrs::k, dynamic_required},
              {"axis", &Attrs::axis},
              {"largest", &Attrs::largest},
              {"sorted", &Attrs::sorted}},
    .infer = infer,
    .evaluate = evaluate,
    .gradient = gradient,
    .layout = logical_order(),
    .precision = Precision::MovesOnly,
    .examples = {"x: F a b; k = _"},
};

}  // namespace tenon::inline ops::top_k_op
