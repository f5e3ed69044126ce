#include "base/error.h"
#include "frontends/onnx/attention_heads.h"
#include "frontends/onnx/import_node.h"
#include "frontends/onnx/type_proto.h"
#include "ops/definition/var_ops.h"

#include <cmath>
#include <map>

namespace tenon::frontends::onnx {
namespace {

Dims dims_of_three(const NodeImport& node, std::size_t input) {
  Dims dims = node.dims(node.input(input));
  if (dims.size() == 3) return dims;
  throw Error(concat(node.op_type(), ": input ", input, " has the wrong rank"))
      .expected("[batch, steps, heads * size]")
      .got(dims);
}

Attributes attention_attributes(const NodeImport& node) {
  Attributes attrs;
  if (node.has_attr("scale")) attrs.set("scale", node.real("scale"));
  attrs.set("softcap", node.real("softcap", 0));
  const bool is_causal = node.integer("is_causal", 0) != 0;
  const std::int64_t left = node.integer("left_window_size", -1),
                     right = node.integer("right_window_size", -1);
  attrs.set("causal", is_causal);
  attrs.set("left_window", left);
  attrs.set("right_window", right);
  if ((is_causal || left >= 0 || right >= 0) && node.has_input(4)) {
    attrs.set("causal_offset", node.dims(node.input(4)).at(2));
  }
  if (node.integer("softmax_precision", 0) != 0) {
    attrs.set("softmax_dtype", node.element("softmax_precision", DType::F32));
  }
  constexpr const char* stages[] = {"product", "capped", "masked", "softmax"};
  const std::int64_t mode = node.integer("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3) {
    throw Error("Attention: no such qk_matmul_output_mode").expected("0, 1, 2 or 3").got(mode);
  }
  attrs.set("scores", std::string(stages[mode]));
  return attrs;
}

void import_attention(NodeImport& node) {
  const Var q = split_heads(node, node.input(0), node.integer("q_num_heads", 0));
  Var k = split_heads(node, node.input(1), node.integer("kv_num_heads", 0));
  Var v = split_heads(node, node.input(2), node.integer("kv_num_heads", 0));
  if (node.has_input(4)) k = node.call("concat", {node.input(4), k}, {{"axis", 2}});
  if (node.has_input(5)) v = node.call("concat", {node.input(5), v}, {{"axis", 2}});
  const std::vector<Var> results =
      node.build.call_all("attention", {q, k, v, node.input_or_none(3), node.input_or_none(6)},
                          attention_attributes(node), {"", node.wants_output(3) ? "" : "_"});
  const bool is_merged = node.dims(node.input(0)).size() == 3;
  node.output(0, is_merged ? merge_heads(node, results[0]) : results[0]);
  if (node.wants_output(1)) node.output(1, k);
  if (node.wants_output(2)) node.output(2, v);
  if (node.wants_output(3)) node.output(3, results[1]);
}

void import_rotary_embedding(NodeImport& node) {
  const Var x = split_heads(node, node.input(0), node.integer("num_heads", 0));
  const Var y =
      node.call("rotary_embedding", {x, node.input(1), node.input(2), node.input_or_none(3)},
                {{"interleaved", node.integer("interleaved", 0) != 0},
                 {"rotary_size", node.integer("rotary_embedding_dim", 0)}});
  const bool is_merged = node.dims(node.input(0)).size() == 3;
  node.output(is_merged ? merge_heads(node, y) : y);
}

// The node's bodies may modify scores and weights; both have the type in which softmax is computed.
// A body that declares another float receives it.
void import_flex_attention(NodeImport& node) {
  const Var q = node.input(0), k = node.input(1), v = node.input(2);
  for (Var x : {q, k, v}) {
    if (node.dims(x).size() == 4) continue;
    throw Error("FlexAttention: an input has the wrong rank")
        .expected("[batch, heads, length, size]")
        .got(node.type(x));
  }
  const bool has_body = node.has_attr("score_mod") || node.has_attr("prob_mod");
  const DType dtype = node.dtype(q);
  const DType softmax_dtype =
      node.element("softmax_precision", dtype == DType::F64 ? DType::F64 : DType::F32);
  if (!has_body) {
    std::vector<Attr> attrs;
    if (node.has_attr("scale")) attrs.emplace_back("scale", node.real("scale"));
    node.output(node.call("attention", {q, k, v}, attrs));
    return;
  }
  const Dims queries = node.dims(q), keys = node.dims(k), values = node.dims(v);
  const Dim heads = keys[1], group = floor_div(queries[1], heads);
  const Var grouped =
      cast_to(reshape_to(q, {queries[0], heads, group, queries[2], queries[3]}), softmax_dtype);
  const auto shared = [&](Var x, const Dims& dims) {
    return cast_to(reshape_to(x, {dims[0], dims[1], 1, dims[2], dims[3]}), softmax_dtype);
  };
  const Var turned =
      node.call("transpose", {shared(k, keys)}, {{"perm", Attr::Integers{0, 1, 2, 4, 3}}});
  Var scores = node.call("matmul", {grouped, turned});
  if (node.has_attr("scale")) {
    scores = scores * node.real("scale");
  } else if (queries[3].is_constant()) {
    scores = scores / std::sqrt(static_cast<double>(queries[3].constant()));
  } else {
    scores = scores * inverse_root(node, q, 3, 1, softmax_dtype);
  }
  const Dims flat{queries[0], queries[1], queries[2], keys[2]};
  scores = reshape_to(scores, flat);
  const auto changed = [&](const char* body, Var x) {
    if (!node.has_attr(body)) return x;
    const std::vector<Var> results = node.inlined_body(body, {x});
    const bool is_one = results.size() == 1 && is_float(node.dtype(results[0]));
    const Var result = is_one ? cast_to(results[0], softmax_dtype) : x;
    if (is_one && may_be_equal(node.type(result), node.type(x))) return result;
    throw Error(concat("FlexAttention: '", body, "' gives something else than it takes"))
        .expected(node.type(x));
  };
  const Var shares = changed("prob_mod", node.call("softmax", {changed("score_mod", scores)}));
  const Var weights = reshape_to(shares, {flat[0], heads, group, flat[2], flat[3]});
  const Var y = node.call("matmul", {weights, shared(v, values)});
  node.output(cast_to(reshape_to(y, {flat[0], flat[1], flat[2], values[3]}), dtype));
}

/// Linear attention: a state [batch, key heads, key size, value size] that every token updates and
/// then reads. All arithmetic is in f32.
class LinearAttention {
 public:
  explicit LinearAttention(NodeImport& import);
  void run();

 private:
  // Returns an input [batch, steps, heads * size] in f32, with its last axis split into `tail`.
  Var heads_of(std::size_t input, Dims tail) const;
  Var scaled(Var query) const;
  void add_scanned(const char* name, Var value);
  Var initial_state() const;
  Graph body_graph();

  NodeImport& node;
  bool is_gated, is_delta;
  Dim batch, steps, heads, key_heads, key_size, value_size;
  std::vector<std::pair<std::string, Var>> scanned;
};

LinearAttention::LinearAttention(NodeImport& import) : node(import) {
  const std::string rule = node.text("update_rule", "gated_delta");
  is_gated = rule == "gated" || rule == "gated_delta";
  is_delta = rule == "delta" || rule == "gated_delta";
  if (!is_gated && !is_delta && rule != "linear") {
    throw Error("LinearAttention: no such update_rule")
        .expected("linear, gated, delta or gated_delta")
        .got(rule);
  }
  const std::int64_t query_count = node.integer("q_num_heads"),
                     key_count = node.integer("kv_num_heads");
  if (query_count < 1 || key_count < 1 || query_count % key_count != 0) {
    throw Error("LinearAttention: the heads do not fit")
        .expected("q_num_heads that is a multiple of kv_num_heads")
        .got(query_count, " and ", key_count);
  }
  heads = query_count;
  key_heads = key_count;
  const Dims query = dims_of_three(node, 0);
  batch = query[0];
  steps = query[1];
  key_size = floor_div(query[2], heads);
  value_size = floor_div(dims_of_three(node, 2)[2], key_heads);
}

Var LinearAttention::heads_of(std::size_t input, Dims tail) const {
  tail.insert(tail.begin(), {batch, steps});
  return reshape_to(cast_to(node.input(input), DType::F32), tail);
}

Var LinearAttention::scaled(Var query) const {
  if (const double scale = node.real("scale", 0); scale != 0) return query * scale;
  if (const auto size = key_size.value(); size && *size > 0)
    return query * (1 / std::sqrt(static_cast<double>(*size)));
  return query * inverse_root(node, node.input(0), 2, heads.constant(), DType::F32);
}

void LinearAttention::add_scanned(const char* name, Var value) {
  scanned.emplace_back(name, value);
}

Var LinearAttention::initial_state() const {
  const Dims dims{batch, key_heads, key_size, value_size};
  if (node.has_input(3)) return cast_to(node.input(3), DType::F32);
  return expand_to(node.build.constant(Tensor::scalar(DType::F32, 0)), dims);
}

Graph LinearAttention::body_graph() {
  Builder body("token");
  Var state = body.input(
      "state", Type(TensorType{DType::F32, {batch, key_heads, key_size, value_size}, {}}));
  std::map<std::string, Var> in;
  for (const auto& [name, value] : scanned) {
    TensorType type = node.type(value).tensor();
    type.dims.erase(type.dims.begin() + 1);
    in[name] = body.input(name, Type(type));
  }
  if (is_gated) state = state * in["decay"];
  Var value = in["value"];
  if (is_delta) value = in["beta"] * (value - body.call("matmul", {in["erased"], state}));
  state = state + in["key"] * value;
  body.output(state);
  body.output(body.call("matmul", {in["query"], state}));
  return body.take();
}

void LinearAttention::run() {
  add_scanned("query", scaled(heads_of(0, {key_heads, floor_div(heads, key_heads), key_size})));
  add_scanned("key", heads_of(1, {key_heads, key_size, 1}));
  add_scanned("value", heads_of(2, {key_heads, 1, value_size}));
  if (is_gated) {
    const Dim size = floor_div(dims_of_three(node, 4)[2], key_heads);
    add_scanned("decay", node.call("exp", {heads_of(4, {key_heads, size, 1})}));
  }
  if (is_delta) {
    add_scanned("beta", heads_of(5, {dims_of_three(node, 5)[2], 1, 1}));
    Var erased = heads_of(1, {key_heads, 1, key_size});
    if (node.has_input(6)) erased = erased * heads_of(6, {key_heads, 1, key_size});
    add_scanned("erased", erased);
  }
  std::vector<Var> operands{initial_state()};
  for (const auto& entry : scanned) operands.push_back(entry.second);
  const auto count = static_cast<std::int64_t>(scanned.size());
  std::vector<Graph> bodies;
  bodies.push_back(body_graph());
  const std::vector<Var> results =
      node.build.call_all("scan", operands,
                          {{"state_count", 1},
                           {"input_count", count},
                           {"input_axes", Attr::Integers(scanned.size(), 1)},
                           {"output_axes", Attr::Integers{1}}},
                          {"", ""}, std::move(bodies));
  const DType dtype = node.dtype(node.input(0));
  node.output(0, cast_to(reshape_to(results[1], {batch, steps, heads * value_size}), dtype));
  if (!node.wants_output(1)) return;
  node.output(1, cast_to(results[0], node.has_input(3) ? node.dtype(node.input(3)) : dtype));
}

void import_linear_attention(NodeImport& node) { LinearAttention(node).run(); }

constexpr Handler attention_table[] = {
    {"Attention", import_attention},
    {"FlexAttention", import_flex_attention, "ai.onnx.preview"},
    {"LinearAttention", import_linear_attention},
    {"RotaryEmbedding", import_rotary_embedding},
};

}  // namespace

std::span<const Handler> attention_handlers() { return attention_table; }

}  // namespace tenon::frontends::onnx
