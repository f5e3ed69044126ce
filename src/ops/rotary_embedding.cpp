#include "expr/lowering.h"
#include "ir/assumptions.h"
#include "ops/definition/elements.h"
#include "ops/definition/gradient.h"
#include "ops/definition/op_spec.h"
#include "ops/definition/operand_limits.h"
#include "ops/definition/operand_shapes.h"

namespace tenon::inline ops::rotary_embedding_op {
namespace {

struct Attrs {
  bool interleaved = false;      // pairs are adjacent instead of half a head apart
  std::int64_t rotary_size = 0;  // 0: the whole head
};

Dim rotary_size(const Attrs& attrs, const Dims& x) {
  return attrs.rotary_size == 0 ? x[3] : Dim(attrs.rotary_size);
}

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  const TensorType& x = in["x"];
  require_rank("rotary_embedding", "x", x, 4);
  require_elements(in, "x", floats);
  const Dim size = rotary_size(attrs, x.dims);
  require_at_least("rotary_embedding", "attribute 'rotary_size'", size, 0);
  if (!assume_at_most(size, x.dims[3])) {
    throw Error("rotary_embedding: attribute 'rotary_size' exceeds the head")
        .expected("at most ", x.dims[3])
        .got(size);
  }
  const bool has_positions = in.has("positions");
  for (const char* cache : {"cosine", "sine"}) {
    require_rank("rotary_embedding", cache, in[cache], has_positions ? 2 : 3);
    require_same_dtype("rotary_embedding", x, in[cache]);
    if (!assume_equal(in[cache].dims.back() * 2, size)) {
      throw Error(concat("rotary_embedding: operand '", cache, "' has the wrong extent"))
          .expected("one angle for two of ", size, " rotated elements")
          .got(in[cache]);
    }
    if (!has_positions) {
      require_dims("rotary_embedding", cache, in[cache], {x.dims[0], x.dims[2], in[cache].dims[2]});
    }
  }
  if (has_positions) {
    require_dims("rotary_embedding", "sine", in["sine"], in["cosine"].dims);
    require_elements(in, "positions", integers);
    require_dims("rotary_embedding", "positions", in["positions"], {x.dims[0], x.dims[2]});
  }
  return x;
}

void lower(const Attrs& attrs, Lowering& op) {
  const Expr x = op.operand("x");
  const Dim size = rotary_size(attrs, x.dims()), half = floor_div(size, 2);
  const Space s(x.dims());
  const Expr d = s[3];
  const Expr is_rotated = d < size;
  // The rotation pair of an element, whether it is the second of the pair, and the position of its
  // partner.
  const Expr pair = attrs.interleaved ? floor_div(d, 2.0) : mod(d, half);
  const Expr is_second = attrs.interleaved ? equal(mod(d, 2.0), 1.0) : d >= half;
  const Expr step = attrs.interleaved ? integer(1) : extent_expr(half);
  const Expr partner = select(is_second, d - step, d + step);
  const auto angle = [&](const char* name) {
    const Expr cache = op.operand(name);
    const Expr column = select(is_rotated, pair, 0.0);
    if (!op.has("positions")) return cache.at({s[0], s[2], column});
    const Expr position = cast(op.operand("positions"), DType::I64).at({s[0], s[2]});
    return cache.at({position, column});
  };
  const Expr other = x.at({s[0], s[1], s[2], select(is_rotated, partner, d)});
  const Expr turned = other * angle("sine");
  const Expr rotated = x * angle("cosine") + select(is_second, turned, -turned);
  op.define("y", select(is_rotated, rotated, x));
}

// Selects elements `from`, `from + step`, … of the last axis.
Var strided(Var x, const Dim& from, const Dim& to, std::int64_t step) {
  const Attributes attrs{
      {"starts", Dims{from}}, {"ends", Dims{to}}, {"axes", Dims{3}}, {"steps", Dims{step}}};
  return x.builder().call_all("slice", {x}, attrs, {""}).front();
}

// Accumulates the gradients of the angles in the table rows that the positions select.
Var gathered_by_position(Gradient& op, Var by_angle) {
  Builder& build = op.build();
  const Dims table = op.operand_type("cosine").dims, positions = op.operand_type("positions").dims;
  const Dim count = product(positions);
  const Var off_on = build.call("cast", {build.integers({0, 1})},
                                {{"to", to_string(op.operand_type("cosine").dtype)}});
  const Attributes attrs{{"depth", table[0]}, {"axis", Dim(-1)}};
  const Var picked =
      build.call_all("one_hot", {op.operand("positions"), off_on}, attrs, {""}).front();
  const Var rows = build.call("transpose", {reshape_to(picked, {count, table[0]})},
                              {{"perm", Attr::Integers{1, 0}}});
  return build.call("matmul", {rows, reshape_to(by_angle, {count, table[1]})});
}

// The inverse of a rotation has the opposite angle.
void gradient(const Attrs& attrs, Gradient& op) {
  Builder& build = op.build();
  const Var x = op.operand("x"), dy = op.upstream("y");
  const Var positions = op.has("positions") ? op.operand("positions") : Var();
  op.add("x",
         build.call("rotary_embedding", {dy, op.operand("cosine"), -op.operand("sine"), positions},
                    {{"interleaved", attrs.interleaved}, {"rotary_size", attrs.rotary_size}}));
  const Dim size = rotary_size(attrs, op.operand_type("x").dims), half = floor_div(size, 2);
  const auto firsts = [&](Var v) {
    return attrs.interleaved ? strided(v, 0, size, 2) : strided(v, 0, half, 1);
  };
  const auto seconds = [&](Var v) {
    return attrs.interleaved ? strided(v, 1, size, 2) : strided(v, half, size, 1);
  };
  const auto add_angles = [&](const char* name, Var by_head) {
    const std::vector<Attr> heads{{"axes", Attr::Integers{1}}, {"keep_axes", false}};
    const Var by_angle = build.call("reduce_sum", {by_head}, heads);
    op.add(name, positions.is_valid() ? gathered_by_position(op, by_angle) : by_angle);
  };
  add_angles("cosine", firsts(dy) * firsts(x) + seconds(dy) * seconds(x));
  add_angles("sine", seconds(dy) * firsts(x) - firsts(dy) * seconds(x));
}

}  // namespace

TENON_DEFINE_OP(rotary_embedding) = OpSpec<Attrs>{
    .name = "rotary_embedding",
    .summary =
        "turns pairs of elements of x [batch, heads, length, size] by the angles whose cosine "
        "and sine are given: [batch, length, angles], or [position, angles] read at "
        "`positions` [batch, length]",
    .operands = {"x", "cosine", "sine", optional("positions")},
    .results = {"y"},
    .attrs = {{"interleaved", &Attrs::interleaved}, {"rotary_size", &Attrs::rotary_size}},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = logical_order(),
    .examples = {"x: F b h s 4; cosine: F b s 2; sine: F b s 2"},
};

}  // namespace tenon::inline ops::rotary_embedding_op
