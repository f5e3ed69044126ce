#include "base/error.h"
#include "frontends/onnx/import_node.h"
#include "ops/var_ops.h"

namespace tenon::onnx {
namespace {

const Dims& known_dims(const NodeImport& node, Var value) {
  if (!node.type(value).is_tensor()) {
    node.unsupported("it needs the rank of its inputs before the model runs");
  }
  return node.type(value).tensor().dims;
}

Var swap_heads(Var x) {
  return x.builder().call("transpose", {x}, {{"perm", Attr::Integers{0, 2, 1, 3}}});
}

// [batch, length, heads * size] to [batch, heads, length, size].
Var split_heads(NodeImport& node, Var x, std::string_view heads_attr) {
  const Dims dims = known_dims(node, x);
  if (dims.size() == 4) return x;
  const std::int64_t heads = node.integer(heads_attr, 0);
  if (dims.size() != 3 || heads < 1 || provably_different(mod(dims[2], heads), 0)) {
    throw Error(concat(node.op_type(), ": the input cannot be split into heads"))
        .expected("rank 4, or rank 3 with a last extent that is a multiple of ", heads_attr)
        .got(node.type(x), " and ", heads_attr, " = ", heads);
  }
  return swap_heads(reshape_to(x, {dims[0], dims[1], heads, floor_div(dims[2], heads)}));
}

Var merge_heads(NodeImport& node, Var x) {
  const Var swapped = swap_heads(x);
  const Dims dims = known_dims(node, swapped);
  return reshape_to(swapped, {dims[0], dims[1], dims[2] * dims[3]});
}

Attributes attention_attributes(const NodeImport& node) {
  Attributes attrs;
  if (node.has_attr("scale")) attrs.set("scale", node.real("scale"));
  attrs.set("softcap", node.real("softcap", 0));
  attrs.set("causal", node.integer("is_causal", 0) != 0);
  if (node.has_input(4)) attrs.set("causal_offset", known_dims(node, node.input(4)).at(2));
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
  const Var q = split_heads(node, node.input(0), "q_num_heads");
  Var k = split_heads(node, node.input(1), "kv_num_heads");
  Var v = split_heads(node, node.input(2), "kv_num_heads");
  if (node.has_input(4)) k = node.call("concat", {node.input(4), k}, {{"axis", 2}});
  if (node.has_input(5)) v = node.call("concat", {node.input(5), v}, {{"axis", 2}});
  const std::vector<Var> results =
      node.build.call_all("attention", {q, k, v, node.input_or_none(3), node.input_or_none(6)},
                          attention_attributes(node), {"", node.wants_output(3) ? "" : "_"});
  const bool is_merged = known_dims(node, node.input(0)).size() == 3;
  node.output(0, is_merged ? merge_heads(node, results[0]) : results[0]);
  if (node.wants_output(1)) node.output(1, k);
  if (node.wants_output(2)) node.output(2, v);
  if (node.wants_output(3)) node.output(3, results[1]);
}

void import_rotary_embedding(NodeImport& node) {
  const Var x = split_heads(node, node.input(0), "num_heads");
  const Var y =
      node.call("rotary_embedding", {x, node.input(1), node.input(2), node.input_or_none(3)},
                {{"interleaved", node.integer("interleaved", 0) != 0},
                 {"rotary_size", node.integer("rotary_embedding_dim", 0)}});
  const bool is_merged = known_dims(node, node.input(0)).size() == 3;
  node.output(is_merged ? merge_heads(node, y) : y);
}

constexpr Handler handlers[] = {
    {"Attention", import_attention},
    {"RotaryEmbedding", import_rotary_embedding},
};

}  // namespace

std::span<const Handler> attention_handlers() { return handlers; }

}  // namespace tenon::onnx
