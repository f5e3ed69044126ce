#include "ir/assumptions.h"
#include "ops/families/indexing.h"
#include "ops/families/movement.h"

#include <algorithm>

namespace tenon::inline ops::gather_op {
namespace {

struct Attrs {
  std::int64_t axis = 0;
};

// Passes rewrite a gather of constant indices to a slice, which would truncate silently at a short
// axis: the constraint that the axis is long enough is checked before a run. Other indices are
// checked when they are read.
void require_places(const OperandTypes& in, const Dim& extent) {
  const Tensor* indices = in.value("indices");
  constexpr std::int64_t kMaxIndices = 4096;
  if (extent.is_constant() || !indices || indices->size() == 0 || indices->size() > kMaxIndices)
    return;
  const std::vector<std::int64_t> places = indices->integers();
  const auto [least, greatest] = std::ranges::minmax(places);
  if (assume_at_most(greatest + 1, extent) && assume_at_most(-least, extent)) return;
  throw Error("gather: an index lies outside its tensor")
      .expected("less than ", extent)
      .got(least, " to ", greatest);
}

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  const TensorType &x = in["x"], &indices = in["indices"];
  require_integer("gather", "indices", indices);
  const auto axis = static_cast<std::ptrdiff_t>(normal_axis("gather", attrs.axis, x.rank()));
  require_places(in, x.dims[static_cast<std::size_t>(axis)]);
  Dims dims(x.dims.begin(), x.dims.begin() + axis);
  dims.insert(dims.end(), indices.dims.begin(), indices.dims.end());
  dims.insert(dims.end(), x.dims.begin() + axis + 1, x.dims.end());
  return {x.dtype, std::move(dims), {}};
}

void lower(const Attrs& attrs, Lowering& op) {
  const Expr x = op.operand("x"), indices = op.operand("indices");
  const std::size_t axis = normal_axis("gather", attrs.axis, x.rank());
  const std::vector<Expr> own = Space(op.result_type("y").dims).indices();
  const auto at = own.begin() + static_cast<std::ptrdiff_t>(axis);
  const auto after = at + static_cast<std::ptrdiff_t>(indices.rank());
  std::vector<Expr> coordinates(own.begin(), at);
  coordinates.push_back(wrap_negative(indices.at({at, after}), x.dims()[axis]));
  coordinates.insert(coordinates.end(), after, own.end());
  op.define("y", x.at(std::move(coordinates)));
}

// Scatter-adds the upstream gradient at the indices, whose axes are moved to the front.
void gradient(const Attrs& attrs, Gradient& op) {
  const Var indices = op.operand("indices");
  const std::size_t rank = op.operand_type("x").rank(),
                    index_rank = op.operand_type("indices").rank();
  const std::size_t axis = normal_axis("gather", attrs.axis, rank);
  Attr::Integers to_front, back;
  for (std::size_t k = 0; k < index_rank; ++k)
    to_front.push_back(static_cast<std::int64_t>(axis + k));
  for (std::size_t k = 0; k < rank - 1; ++k) {
    to_front.push_back(static_cast<std::int64_t>(k < axis ? k : k + index_rank));
  }
  for (std::size_t k = 0; k < rank; ++k) {
    back.push_back(static_cast<std::int64_t>(k < axis ? k + 1 : k == axis ? 0 : k));
  }
  Attr::Integers front(rank);
  for (std::size_t k = 0; k < rank; ++k)
    front[static_cast<std::size_t>(back[k])] = static_cast<std::int64_t>(k);
  Builder& build = op.build();
  const Var zeros = build.call("transpose", {zeros_like(op.operand("x"))}, {{"perm", front}});
  const Var updates = build.call("transpose", {op.upstream("y")}, {{"perm", to_front}});
  const Var places = build.call("unsqueeze", {indices}, {{"axes", Attr::Integers{-1}}});
  const Var sums = build.call("scatter_nd", {zeros, places, updates}, {{"reduction", "add"}});
  op.add("x", build.call("transpose", {sums}, {{"perm", back}}));
}

}  // namespace

TENON_DEFINE_OP(gather) = OpSpec<Attrs>{
    .name = "gather",
    .summary =
        "the slices of x along `axis` that `indices` names; negative ones count from the end",
    .operands = {"x", "indices"},
    .results = {"y"},
    .attrs = {{"axis", &Attrs::axis}},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = logical_order(),
    .precision = Precision::MovesOnly,
    .examples = {"x: T a b; indices: I c", "x: T a b c; indices: I; axis = 1"},
};

}  // namespace tenon::inline ops::gather_op
