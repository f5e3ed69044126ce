#include "frontends/onnx/attention_heads.h"

#include "base/error.h"
#include "ops/definition/var_ops.h"

#include <numeric>

namespace tenon::frontends::onnx {
namespace {

Var swap_heads(Var x) {
  return x.builder().call("transpose", {x}, {{"perm", Attr::Integers{0, 2, 1, 3}}});
}

}  // namespace

Var split_heads(NodeImport& node, Var x, std::int64_t heads) {
  const Dims dims = node.dims(x);
  if (dims.size() == 4) return x;
  if (dims.size() != 3 || heads < 1 || provably_different(mod(dims[2], heads), 0)) {
    throw Error(concat(node.op_type(), ": the input cannot be split into heads"))
        .expected("rank 4, or rank 3 with a last extent that is a multiple of the number of heads")
        .got(node.type(x), " and ", heads, " heads");
  }
  return swap_heads(reshape_to(x, {dims[0], dims[1], heads, floor_div(dims[2], heads)}));
}

Var merge_heads(NodeImport& node, Var x) {
  const Var swapped = swap_heads(x);
  const Dims dims = node.dims(swapped);
  return reshape_to(swapped, {dims[0], dims[1], dims[2] * dims[3]});
}

Var inverse_root(NodeImport& node, Var x, std::int64_t axis, std::int64_t heads, DType dtype) {
  const Var extent = node.call("shape", {x}, {{"start", axis}, {"end", axis + 1}});
  const Var size = cast_to(reshape_to(extent, {}), dtype) / static_cast<double>(heads);
  return node.call("reciprocal", {node.call("sqrt", {size})});
}

Var positions_along(NodeImport& node, Var value, std::size_t axis) {
  const Dim extent = node.dims(value).at(axis);
  constexpr std::int64_t kMaxListed = 1 << 16;
  if (extent.is_constant() && extent.constant() <= kMaxListed) {
    Attr::Integers list(static_cast<std::size_t>(extent.constant()));
    std::iota(list.begin(), list.end(), 0);
    return node.build.integers(list);
  }
  const auto number = [&](std::int64_t k) {
    return node.build.constant(Tensor::of<std::int64_t>(DType::I64, {}, {k}));
  };
  const Var count =
      node.call("gather", {node.call("shape", {value}), number(static_cast<std::int64_t>(axis))});
  return node.call("range", {number(0), count, number(1)});
}

}  // namespace tenon::frontends::onnx
