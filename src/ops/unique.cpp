#include "ops/definition/evaluation.h"
#include "ops/definition/op_spec.h"
#include "ops/families/element_order.h"
#include "ops/families/tensor_parts.h"

#include <numeric>

namespace tenon::inline ops::unique_op {
namespace {

struct Attrs {
  std::optional<std::int64_t> axis;
  bool sorted = true;
};

ResultTypes infer(const Attrs& attrs, const OperandTypes& in) {
  TensorType y{in["x"].dtype, in["x"].dims, {}};
  const Dim count = in.unknown();
  Dim slices = product(y.dims);
  if (attrs.axis) {
    Dim& along = y.dims[normal_axis("unique", *attrs.axis, y.rank())];
    slices = along;
    along = count;
  } else {
    y.dims = {count};
  }
  const TensorType counts{DType::I64, {count}, {}};
  return {y, counts, TensorType{DType::I64, {slices}, {}}, counts};
}

using Positions = std::vector<std::int64_t>;

// Groups equal slices along an axis, in ascending order; within a group by position.
std::vector<Positions> groups_of_equals(const Tensor& x, std::size_t axis) {
  const ElementOrder order(x);
  const Rows rows = rows_around(x.shape(), axis);
  const std::int64_t extent = x.shape()[axis];
  const auto compare = [&](std::int64_t a, std::int64_t b) {
    for (std::int64_t row = 0; row < rows.count; ++row) {
      for (std::int64_t inner = 0; inner < rows.inner; ++inner) {
        const int result = order.compare((row * extent + a) * rows.inner + inner,
                                         (row * extent + b) * rows.inner + inner);
        if (result != 0) return result;
      }
    }
    return 0;
  };
  Positions positions(static_cast<std::size_t>(extent));
  std::iota(positions.begin(), positions.end(), std::int64_t{0});
  std::stable_sort(positions.begin(), positions.end(),
                   [&](std::int64_t a, std::int64_t b) { return compare(a, b) < 0; });
  std::vector<Positions> groups;
  for (std::int64_t position : positions) {
    if (groups.empty() || compare(groups.back().front(), position) != 0) groups.emplace_back();
    groups.back().push_back(position);
  }
  return groups;
}

void evaluate(const Attrs& attrs, Evaluation& op) {
  const Tensor& given = op.tensor("x");
  const Tensor x = attrs.axis ? given : given.reshaped({given.size()});
  const std::size_t axis = attrs.axis ? normal_axis("unique", *attrs.axis, x.rank()) : 0;
  std::vector<Positions> groups = groups_of_equals(x, axis);
  if (!attrs.sorted) {
    std::sort(groups.begin(), groups.end(),
              [](const Positions& a, const Positions& b) { return a.front() < b.front(); });
  }
  std::vector<Tensor> slices;
  Positions first, counts, inverse(static_cast<std::size_t>(x.shape()[axis]));
  for (std::size_t group = 0; group < groups.size(); ++group) {
    slices.push_back(slice_of(x, axis, groups[group].front(), 1));
    first.push_back(groups[group].front());
    counts.push_back(static_cast<std::int64_t>(groups[group].size()));
    for (std::int64_t position : groups[group]) {
      inverse[static_cast<std::size_t>(position)] = static_cast<std::int64_t>(group);
    }
  }
  op.set("y", slices.empty() ? x : join_along("unique", slices, axis));
  op.set("indices", Tensor::of_integers(first));
  op.set("inverse", Tensor::of_integers(inverse));
  op.set("counts", Tensor::of_integers(counts));
}

}  // namespace

TENON_DEFINE_OP(unique) = OpSpec<Attrs>{
    .name = "unique",
    .summary =
        "the different elements (or slices along `axis`), sorted or as they first appear; where "
        "each "
        "first appears, which of them each position holds, and how often each appears",
    .operands = {"x"},
    .results = {"y", optional("indices"), optional("inverse"), optional("counts")},
    .attrs = {{"axis", &Attrs::axis}, {"sorted", &Attrs::sorted}},
    .infer = infer,
    .evaluate = evaluate,
    .gradient = not_differentiable("it sorts out duplicates"),
    .layout = logical_order(),
    .precision = Precision::MovesOnly,
};

}  // namespace tenon::inline ops::unique_op
