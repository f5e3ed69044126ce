#include "expr/broadcasting.h"
#include "expr/lowering.h"
#include "ir/assumptions.h"
#include "ops/definition/elements.h"
#include "ops/definition/op_spec.h"
#include "ops/definition/operand_limits.h"
#include "ops/definition/operand_shapes.h"
#include "ops/families/normalization.h"

#include <limits>

namespace tenon::inline ops::attention_op {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Stage of the `scores` result.
enum class AttentionStage { Product, Capped, Masked, Softmax };

// Result of a fully masked row: zero weights, or the NaN of the plain softmax.
enum class MaskedRows { Zero, Nan };

struct Attrs {
  std::optional<double> scale;  // default: 1 / sqrt(head size)
  double softcap = 0;
  bool causal = false;
  Dim causal_offset = 0;  // number of keys before the first query
  // Sliding window: number of keys before and after a query's own that it sees; -1: all.
  std::int64_t left_window = -1, right_window = -1;
  std::optional<DType> softmax_dtype;
  AttentionStage scores = AttentionStage::Product;
  MaskedRows masked_rows = MaskedRows::Zero;
};

// Named extents of scaled dot-product attention. With grouped-query attention (GQA), a key head
// serves `group` query heads.
struct AttentionExtents {
  Dim batch, heads, queries, head_size, key_heads, keys, value_size;
  explicit AttentionExtents(const TensorType& q, const TensorType& k, const TensorType& v)
      : batch(q.dims[0]),
        heads(q.dims[1]),
        queries(q.dims[2]),
        head_size(q.dims[3]),
        key_heads(k.dims[1]),
        keys(k.dims[2]),
        value_size(v.dims[3]) {}
  Dim group() const { return floor_div(heads, key_heads); }
  /// Returns the leading axes [batch, key heads], with a group axis for grouped-query attention,
  /// followed by `rest`.
  Dims lead(const Dims& rest) const {
    Dims dims = heads == key_heads ? Dims{batch, heads} : Dims{batch, key_heads, group()};
    dims.insert(dims.end(), rest.begin(), rest.end());
    return dims;
  }
};

void require_equal(const Dim& a, const Dim& b, std::string_view what, const OperandTypes& in) {
  if (assume_equal(a, b)) return;
  throw Error(concat("attention: ", what))
      .expected("q: [batch, heads, queries, size], k and v: [batch, key heads, keys, size]")
      .got("q: ", in["q"], ", k: ", in["k"], ", v: ", in["v"]);
}

ResultTypes infer(const Attrs& attrs, const OperandTypes& in) {
  for (const char* operand : {"q", "k", "v"}) require_rank("attention", operand, in[operand], 4);
  const AttentionExtents extents(in["q"], in["k"], in["v"]);
  const Dims &k = in["k"].dims, &v = in["v"].dims;
  for (const char* operand : {"q", "k", "v"}) require_elements(in, operand, floats);
  require_equal(extents.batch, k[0], "batches of queries and keys differ", in);
  require_equal(extents.batch, v[0], "batches of queries and values differ", in);
  require_equal(extents.head_size, k[3], "queries and keys differ in size", in);
  require_equal(k[1], v[1], "keys and values differ in heads", in);
  require_equal(k[2], v[2], "keys and values differ in number", in);
  require_at_least("attention", "the number of key heads", extents.key_heads, 1);
  require_equal(mod(extents.heads, extents.key_heads), 0, "heads are no multiple of key heads", in);
  const Dims scores{extents.batch, extents.heads, extents.queries, extents.keys};
  if (in.has("mask")) {
    require_elements(in, "mask", reals | bools);
    // The mask may have fewer keys than the operands.
    Dims masked = scores;
    if (in["mask"].rank() > 0) masked.back() = in["mask"].dims.back();
    require_broadcasts_to("attention", "mask", in["mask"], masked);
  }
  if (in.has("key_counts")) {
    require_elements(in, "key_counts", integers);
    require_rank("attention", "key_counts", in["key_counts"], 1);
    require_equal(extents.batch, in["key_counts"].dims[0], "batches and 'key_counts' differ", in);
  }
  require_at_least("attention", "attribute 'left_window'", attrs.left_window, -1);
  require_at_least("attention", "attribute 'right_window'", attrs.right_window, -1);
  if (attrs.softmax_dtype && !is_float(*attrs.softmax_dtype)) {
    throw Error("attention: attribute 'softmax_dtype' must be a float").got(*attrs.softmax_dtype);
  }
  const DType dtype = in["q"].dtype;
  return {
      TensorType{dtype, {extents.batch, extents.heads, extents.queries, extents.value_size}, {}},
      TensorType{dtype, scores, {}}};
}

// Coordinates: the first `lead` axes of the space, then `rest`.
std::vector<Expr> under(const Space& s, std::size_t lead, const std::vector<Expr>& rest) {
  std::vector<Expr> at;
  for (std::size_t axis = 0; axis < lead; ++axis) at.push_back(s[axis]);
  at.insert(at.end(), rest.begin(), rest.end());
  return at;
}

// QK^T: sums q · k over the head size, one key head per group of query heads. Shape [batch, key
// heads, group, …].
Expr products(const AttentionExtents& e, const Expr& q, const Expr& k) {
  const std::size_t lead = e.lead({}).size();
  const Space s(e.lead({e.queries, e.keys, e.head_size}));
  const Expr query = s[lead], key = s[lead + 1], along = s[lead + 2];
  const Expr grouped = reshape(q, e.lead({e.queries, e.head_size}));
  return sum_out(grouped.at(under(s, lead, {query, along})) * k.at(under(s, 2, {key, along})),
                 {static_cast<int>(lead) + 2});
}

Expr weighted_values(const AttentionExtents& e, const Expr& weights, const Expr& v) {
  const std::size_t lead = e.lead({}).size();
  const Space s(e.lead({e.queries, e.value_size, e.keys}));
  const Expr query = s[lead], column = s[lead + 1], key = s[lead + 2];
  const Expr sum =
      sum_out(weights.at(under(s, lead, {query, key})) * v.at(under(s, 2, {key, column})),
              {static_cast<int>(lead) + 2});
  return reshape(sum, {e.batch, e.heads, e.queries, e.value_size});
}

// Reads the mask at a score; `at` holds batch, head, query and key. Keys past the end of the mask
// are masked.
Expr widened_mask(const Expr& mask, const std::vector<Expr>& at, const Dims& extents) {
  std::vector<Expr> coordinates;
  for (std::size_t axis = 0; axis < mask.rank(); ++axis) {
    const std::size_t which = 4 - mask.rank() + axis;
    coordinates.push_back(broadcast_index(at[which], mask.dims()[axis], extents[which]));
  }
  if (coordinates.empty()) return mask;
  const bool is_short = mask.dims().back() != Dim(1) && mask.dims().back() != extents.back();
  if (!is_short) return mask.at(std::move(coordinates));
  return mask.at_or(std::move(coordinates), mask.dtype() == DType::Bool ? 0.0 : -infinity);
}

// Causal mask and sliding window, by the key of the same position as the query.
Expr windowed(const Attrs& attrs, const Expr& key, const Expr& position, Expr scores) {
  if (attrs.causal) {
    scores = select(key <= position, scores, -infinity);
  } else if (attrs.right_window >= 0) {
    scores = select(key <= position + Dim(attrs.right_window), scores, -infinity);
  }
  if (attrs.left_window < 0) return scores;
  return select(position <= key + Dim(attrs.left_window), scores, -infinity);
}

Expr masked(const Attrs& attrs, const Lowering& op, const AttentionExtents& e, Expr scores) {
  const Space s(scores.dims());
  const bool is_grouped = s.dims().size() == 5;
  const Expr batch = s[0], head = is_grouped ? s[1] * e.group() + s[2] : s[1];
  const Expr query = s[s.dims().size() - 2], key = s[s.dims().size() - 1];
  if (op.has("mask")) {
    const Expr mask = op.operand("mask");
    const std::vector<Expr> at{batch, head, query, key};
    const Dims extents{e.batch, e.heads, e.queries, e.keys};
    if (mask.dtype() == DType::Bool) {
      scores = select(widened_mask(mask, at, extents), scores, -infinity);
    } else {
      scores = scores + widened_mask(cast(mask, scores.dtype()), at, extents);
    }
  }
  if (op.has("key_counts")) {
    const Expr count = cast(op.operand("key_counts"), DType::I64).at({batch});
    scores = select(key < count, scores, -infinity);
    return windowed(attrs, key, query + count - e.queries, scores);
  }
  return windowed(attrs, key, query + attrs.causal_offset, scores);
}

// A fully masked row has neither a maximum nor a sum: its weights are all 0, or NaN.
Expr masked_softmax(const Expr& scores, MaskedRows masked_rows) {
  const Expr highest = max_over(scores, -1);
  if (masked_rows == MaskedRows::Nan) {
    const Expr e = exp(scores - highest);
    return e / sum_over(e, -1);
  }
  const Expr peak = select(equal(highest, -infinity), 0.0, highest);
  const Expr e = exp(scores - peak);
  const Expr total = sum_over(e, -1);
  return e / select(equal(total, 0.0), 1.0, total);
}

void lower(const Attrs& attrs, Lowering& op) {
  const DType dtype = op.operand_type("q").dtype, wide = statistics_dtype({}, dtype);
  const AttentionExtents extents(op.operand_type("q"), op.operand_type("k"), op.operand_type("v"));
  const Expr q = cast(op.operand("q"), wide), k = cast(op.operand("k"), wide);
  const Expr product = products(extents, q, k);
  const Expr scaled = attrs.scale ? product * *attrs.scale
                                  : product / sqrt(cast(extent_expr(extents.head_size), wide));
  const Expr capped = attrs.softcap == 0 ? scaled : tanh(scaled / attrs.softcap) * attrs.softcap;
  const Expr biased = masked(attrs, op, extents, capped);
  const Expr shares =
      masked_softmax(cast(biased, attrs.softmax_dtype.value_or(wide)), attrs.masked_rows);
  const Expr weights = cast(shares, wide);
  op.define("y", cast(weighted_values(extents, weights, cast(op.operand("v"), wide)), dtype));
  const Expr stages[] = {scaled, capped, biased, weights};
  const Expr scores = stages[static_cast<std::size_t>(attrs.scores)];
  op.define(
      "scores",
      cast(reshape(scores, {extents.batch, extents.heads, extents.queries, extents.keys}), dtype));
}

/// Backward pass of attention. Recomputes the scores instead of storing them.
class AttentionGradient {
 public:
  AttentionGradient(const Attrs& node_attrs, Gradient& gradient)
      : attrs(node_attrs),
        op(gradient),
        build(gradient.build()),
        extents(op.operand_type("q"), op.operand_type("k"), op.operand_type("v")),
        dtype(op.operand_type("q").dtype) {}

  void run() const {
    const Var weights = scores_at("softmax"), dy = op.upstream("y");
    const Var v = cast_to(op.operand("v"), dtype);
    op.add("v", cast_to(over_queries(weights, dy), op.operand_type("v").dtype));
    const Var dweights = over_keys_transposed(dy, v) + flow_at(AttentionStage::Softmax);
    const Var along =
        build.call("reduce_sum", {dweights * weights}, {{"axes", Attr::Integers{-1}}});
    const Var dmasked = weights * (dweights - along) + flow_at(AttentionStage::Masked);
    add_mask(dmasked);
    Var dproduct = dmasked + flow_at(AttentionStage::Capped);
    if (attrs.softcap != 0) {
      const Var ratio = scores_at("capped") / attrs.softcap;
      dproduct = dproduct * (1.0 - ratio * ratio);
    }
    const Var dscores = (dproduct + flow_at(AttentionStage::Product)) * scale();
    op.add("q", over_keys(dscores, op.operand("k")));
    op.add("k", over_queries(dscores, op.operand("q")));
  }

 private:
  Var scores_at(const char* stage) const {
    Attributes values{{"softcap", attrs.softcap},
                      {"causal", attrs.causal},
                      {"causal_offset", attrs.causal_offset},
                      {"left_window", attrs.left_window},
                      {"right_window", attrs.right_window},
                      {"scores", std::string(stage)}};
    if (attrs.scale) values.set("scale", *attrs.scale);
    if (attrs.softmax_dtype) values.set("softmax_dtype", *attrs.softmax_dtype);
    if (attrs.masked_rows == MaskedRows::Nan) values.set("masked_rows", std::string("nan"));
    std::vector<Var> operands;
    for (const char* name : {"q", "k", "v", "mask", "key_counts"}) {
      operands.push_back(op.has(name) ? op.operand(name) : Var());
    }
    return build.call_all("attention", operands, values, {"", ""})[1];
  }
  // Returns the gradient of the `scores` result if it was taken at this stage; else 0.
  Var flow_at(AttentionStage stage) const {
    if (attrs.scores == stage && op.has_upstream("scores")) return op.upstream("scores");
    return build.constant(Tensor::scalar(dtype, 0));
  }
  Var scale() const {
    if (attrs.scale) return build.constant(Tensor::scalar(dtype, *attrs.scale));
    const Var ones = expand_to(build.constant(Tensor::scalar(dtype, 1)), {extents.head_size});
    return 1.0 / build.call("sqrt", {build.call("reduce_sum", {ones}, {{"keep_axes", false}})});
  }
  // Splits heads into groups of query heads: [batch, key heads, group, …] and [batch, key heads, 1,
  // …].
  Var grouped(Var x, const Dim& length, const Dim& size) const {
    return reshape_to(x, {extents.batch, extents.key_heads, extents.group(), length, size});
  }
  Var shared(Var x, const Dim& size) const {
    return reshape_to(x, {extents.batch, extents.key_heads, 1, extents.keys, size});
  }
  Var swapped(Var x) const {
    return build.call("transpose", {x}, {{"perm", Attr::Integers{0, 1, 2, 4, 3}}});
  }
  Dim size_of(Var x) const { return build.type(x).tensor().dims[3]; }
  // Computes scores · x, for x with a row per key.
  Var over_keys(Var scores, Var x) const {
    const Var rows = grouped(scores, extents.queries, extents.keys);
    const Var product = build.call("matmul", {rows, shared(x, size_of(x))});
    return reshape_to(product, {extents.batch, extents.heads, extents.queries, size_of(x)});
  }
  // Computes scores^T · x, for x with a row per query; sums over the query heads of each key head.
  Var over_queries(Var scores, Var x) const {
    const Var columns = swapped(grouped(scores, extents.queries, extents.keys));
    const Var product = build.call("matmul", {columns, grouped(x, extents.queries, size_of(x))});
    return build.call("reduce_sum", {product}, {{"axes", Attr::Integers{2}}, {"keep_axes", false}});
  }
  // Computes x · y^T, the scores of the rows of x and y.
  Var over_keys_transposed(Var x, Var y) const {
    const Var rows = grouped(x, extents.queries, size_of(x));
    const Var product = build.call("matmul", {rows, swapped(shared(y, size_of(y)))});
    return reshape_to(product, {extents.batch, extents.heads, extents.queries, extents.keys});
  }
  void add_mask(Var dmasked) const {
    if (!op.has("mask") || !is_float(op.operand_type("mask").dtype)) return;
    const TensorType mask = op.operand_type("mask");
    if (mask.rank() > 0 && mask.dims.back() != Dim(1) && mask.dims.back() != extents.keys) {
      const Attributes first{
          {"starts", Dims{0}}, {"ends", Dims{mask.dims.back()}}, {"axes", Dims{3}}};
      dmasked = build.call_all("slice", {dmasked}, first, {""}).front();
    }
    op.add("mask", cast_to(dmasked, mask.dtype));
  }

  const Attrs& attrs;
  Gradient& op;
  Builder& build;
  AttentionExtents extents;
  DType dtype;
};

void gradient(const Attrs& attrs, Gradient& op) { AttentionGradient(attrs, op).run(); }

}  // namespace

TENON_DEFINE_OP(attention) = OpSpec<Attrs>{
    .name = "attention",
    .summary =
        "softmax(scale * q k^T + mask) v for each head; a key head serves equally many query "
        "heads; `mask` is added, or keeps where true; `key_counts` says how many keys of "
        "each batch count",
    .operands = {"q", "k", "v", optional("mask"), optional("key_counts")},
    .results = {"y", optional("scores")},
    .attrs = {{"scale", &Attrs::scale},
              {"softcap", &Attrs::softcap},
              {"causal", &Attrs::causal},
              {"causal_offset", &Attrs::causal_offset},
              {"left_window", &Attrs::left_window},
              {"right_window", &Attrs::right_window},
              {"softmax_dtype", &Attrs::softmax_dtype},
              {"scores", &Attrs::scores, words("product capped masked softmax")},
              {"masked_rows", &Attrs::masked_rows, words("zero nan")}},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = logical_order(),
    .examples = {"q: F b h s d; k: F b h t d; v: F b h t e",
                 "q: F b h s d; k: F b h t d; v: F b h t e; mask: F s t",
                 "q: F b h s d; k: F b h t d; v: F b h t e; mask: B b h s t",
                 "q: F b 4 s d; k: F b 2 t d; v: F b 2 t e"},
};

}  // namespace tenon::inline ops::attention_op
