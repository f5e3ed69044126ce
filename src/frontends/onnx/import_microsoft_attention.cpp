// com.microsoft's attention operators, each imported as heads, a mask and Tenon's attention.
#include "base/error.h"
#include "frontends/onnx/attention_heads.h"
#include "ops/definition/var_ops.h"

#include <limits>

namespace tenon::frontends::onnx {
namespace {

Var integer_scalar(NodeImport& node, std::int64_t value) {
  return node.build.constant(Tensor::of<std::int64_t>(DType::I64, {}, {value}));
}

Var joined(NodeImport& node, Var past, Var now) {
  return past.is_valid() ? node.call("concat", {past, now}, {{"axis", 2}}) : now;
}

/// Queries, keys and values by heads [batch, heads, length, size], and their masking.
struct AttentionHeads {
  Var q, k, v;
  /// added to scores
  Var mask{};
  /// by batch
  Var key_counts{};
  bool is_causal = false;
  /// keys before the first query
  Dim past = 0;
};

Var attend(NodeImport& node, const AttentionHeads& heads) {
  Attributes attrs;
  if (const double scale = node.real("scale", 0); scale != 0) attrs.set("scale", scale);
  attrs.set("softcap", node.real("softcap", 0));
  attrs.set("causal", heads.is_causal);
  attrs.set("causal_offset", heads.past);
  return node.build
      .call_all("attention", {heads.q, heads.k, heads.v, heads.mask, heads.key_counts}, attrs,
                {"", "_"})
      .front();
}

// Converts a bool mask to an additive one.
Var filtered(NodeImport& node, Var keep, DType dtype) {
  const double filter = node.real("mask_filter_value", -10000);
  return node.call("where", {keep, node.build.constant(Tensor::scalar(dtype, 0)),
                             node.build.constant(Tensor::scalar(dtype, filter))});
}

Var first_of(NodeImport& node, Var x, std::int64_t axis, const Dim& start, const Dim& end) {
  const Attributes part{{"starts", Dims{start}}, {"ends", Dims{end}}, {"axes", Dims{axis}}};
  return node.build.call_all("slice", {x}, part, {""}).front();
}

// Masks are lengths [batch], ends and starts [2 * batch], per key [batch, keys], per query and key
// [batch, queries, keys], or [batch, 1, length, length], which is sliced.
void add_mask(NodeImport& node, AttentionHeads& heads, Var mask) {
  const Dims q = node.dims(heads.q), dims = node.dims(mask);
  const Dim batch = q[0], queries = q[2], keys = node.dims(heads.k)[2];
  const DType dtype = node.dtype(heads.q);
  const bool has_starts = dims.size() == 1 && dims[0] == batch * 2;
  if (dims.size() == 1 && !has_starts && provably_different(dims[0], batch)) {
    node.unsupported("a mask of this shape");
  }
  if (dims.size() == 1 && !has_starts && !heads.is_causal) {
    heads.key_counts = mask;
    return;
  }
  Var keep;
  if (dims.size() == 1) {
    const Var lists = cast_to(mask, DType::I64);
    const Var at = positions_along(node, heads.k, 2);
    const auto column = [&](Var list) { return reshape_to(list, {batch, 1, 1, 1}); };
    keep = node.call("less", {at, column(has_starts ? first_of(node, lists, 0, 0, batch) : lists)});
    if (has_starts) {
      const Var starts = column(first_of(node, lists, 0, batch, batch * 2));
      keep = node.call("logical_and", {keep, node.call("greater_equal", {at, starts})});
    }
  } else {
    Var whole = node.call("logical_not", {node.call("equal", {mask, node.build.scalar(0, mask)})});
    if (dims.size() == 4) {
      whole = first_of(node, whole, 2, heads.past, heads.past + queries);
      keep = first_of(node, whole, 3, 0, keys);
    } else if (dims.size() == 3) {
      keep = reshape_to(whole, {batch, 1, queries, keys});
    } else if (dims.size() == 2) {
      keep = reshape_to(whole, {batch, 1, 1, keys});
    } else {
      node.unsupported("a mask of this shape");
    }
  }
  heads.mask = filtered(node, keep, dtype);
}

void add_bias(NodeImport& node, AttentionHeads& heads, std::size_t input) {
  if (!node.has_input(input)) return;
  const Var bias = node.input(input);
  heads.mask = heads.mask.is_valid() ? heads.mask + bias : bias;
}

/// Input positions of Attention and QAttention, in addition to the projected values.
struct AttentionInputs {
  std::size_t mask, past;
  std::optional<std::size_t> bias;
};

void output_attention(NodeImport& node, Var projected, const AttentionInputs& inputs) {
  if (node.integer("do_rotary", 0) != 0) node.unsupported("do_rotary");
  if (node.integer("past_present_share_buffer", 0) != 0)
    node.unsupported("past_present_share_buffer");
  const std::int64_t count = node.integer("num_heads", 0);
  const std::vector<std::int64_t> sizes = node.integers("qkv_hidden_sizes");
  std::vector<Attr> attrs{{"axis", -1}};
  if (!sizes.empty()) attrs.emplace_back("sizes", sizes);
  const std::vector<Var> parts = node.build.call_all("split", {projected}, attrs, {"", "", ""});
  AttentionHeads heads{split_heads(node, parts[0], count), split_heads(node, parts[1], count),
                       split_heads(node, parts[2], count)};
  heads.is_causal = node.integer("unidirectional", 0) != 0;
  if (node.has_input(inputs.past)) {
    const std::vector<Var> past = node.build.call_all("split", {node.input(inputs.past)},
                                                      std::vector<Attr>{{"axis", 0}}, {"", ""});
    const auto one = [&](Var x) {
      return node.call("squeeze", {x}, {{"axes", Attr::Integers{0}}});
    };
    heads.past = node.dims(past[0]).at(3);
    heads.k = joined(node, one(past[0]), heads.k);
    heads.v = joined(node, one(past[1]), heads.v);
  }
  if (node.has_input(inputs.mask)) add_mask(node, heads, node.input(inputs.mask));
  if (inputs.bias) add_bias(node, heads, *inputs.bias);
  node.output(0, merge_heads(node, attend(node, heads)));
  if (!node.wants_output(1)) return;
  const auto stacked = [&](Var x) {
    return node.call("unsqueeze", {x}, {{"axes", Attr::Integers{0}}});
  };
  node.output(1, node.call("concat", {stacked(heads.k), stacked(heads.v)}, {{"axis", 0}}));
}

void import_microsoft_attention(NodeImport& node) {
  const Var product = node.call("matmul", {node.input(0), node.input(1)});
  node.ignore_input(6);
  output_attention(node, node.has_input(2) ? product + node.input(2) : product, {3, 4, 5});
}

void import_quantized_attention(NodeImport& node) {
  const Var x =
      node.call("dequantize_linear", {node.input(0), node.input(3), node.input_or_none(6)});
  const Var weights = node.call(
      "dequantize_linear", {node.input(1), node.input(4), node.input_or_none(7)}, {{"axis", 1}});
  const Var projected = node.call("matmul", {x, weights}) + node.input(2);
  output_attention(node, projected, {5, 8, std::nullopt});
}

// Splits an axis of [batch, length, heads, parts, size] into tensors [batch, heads, length, size].
std::vector<Var> unpacked(NodeImport& node, Var packed, std::size_t count) {
  const std::vector<Var> parts = node.build.call_all(
      "split", {packed}, std::vector<Attr>{{"axis", 3}}, std::vector<std::string>(count));
  std::vector<Var> heads;
  for (Var part : parts) {
    const Var flat = node.call("squeeze", {part}, {{"axes", Attr::Integers{3}}});
    heads.push_back(node.call("transpose", {flat}, {{"perm", Attr::Integers{0, 2, 1, 3}}}));
  }
  return heads;
}

void import_multi_head_attention(NodeImport& node) {
  const std::int64_t count = node.integer("num_heads", 0);
  const Var query = node.input(0), key = node.input_or_none(1), value = node.input_or_none(2);
  const Var bias = node.input_or_none(3);
  for (std::size_t input : {8, 9}) {
    if (node.has_input(input)) node.unsupported("the cache of a decoder");
  }
  AttentionHeads heads;
  heads.is_causal = node.integer("unidirectional", 0) != 0;
  if (node.dims(query).size() == 5) {
    if (bias.is_valid()) node.unsupported("a bias of packed queries, keys and values");
    const std::vector<Var> parts = unpacked(node, query, 3);
    heads = {parts[0], parts[1], parts[2], {}, {}, heads.is_causal};
  } else {
    Var q = query, k = key, v = value;
    if (!k.is_valid()) node.unsupported("queries without keys");
    if (node.dims(k).size() == 5) {
      const std::vector<Var> parts = unpacked(node, k, 2);
      k = parts[0];
      v = parts[1];
    }
    if (!v.is_valid()) throw Error("MultiHeadAttention: there are keys without values");
    if (bias.is_valid()) {
      // Biases of queries, keys and values in this order; operands that are already split into
      // heads include theirs.
      const Dim q_size = node.dims(q)[2], total = node.dims(bias)[0];
      q = q + first_of(node, bias, 0, 0, q_size);
      if (node.dims(k).size() == 3) {
        const Dim k_size = node.dims(k)[2];
        k = k + first_of(node, bias, 0, q_size, q_size + k_size);
        v = v + first_of(node, bias, 0, q_size + k_size, total);
      }
    }
    heads.q = split_heads(node, q, count);
    heads.k = split_heads(node, k, count);
    heads.v = split_heads(node, v, count);
  }
  if (node.has_input(6)) heads.past = node.dims(node.input(6)).at(2);
  heads.k = joined(node, node.input_or_none(6), heads.k);
  heads.v = joined(node, node.input_or_none(7), heads.v);
  if (node.has_input(4)) add_mask(node, heads, node.input(4));
  add_bias(node, heads, 5);
  node.output(0, merge_heads(node, attend(node, heads)));
  if (node.wants_output(1)) node.output(1, heads.k);
  if (node.wants_output(2)) node.output(2, heads.v);
}

// Rotates the part of each head that has angles; all of it if their number is symbolic.
Var rotated(NodeImport& node, Var x, Var positions, Var cosine, Var sine, const char* interleaved) {
  const Dim angles = node.dims(cosine).at(1);
  const std::int64_t size = angles.is_constant() ? 2 * angles.constant() : 0;
  return node.call("rotary_embedding", {x, cosine, sine, positions},
                   {{"interleaved", node.integer(interleaved, 0) != 0}, {"rotary_size", size}});
}

// Grouped-query attention with a KV cache. The new keys of a batch follow its past ones, whose
// number may be less than the cache's capacity.
class GroupedAttention {
 public:
  explicit GroupedAttention(NodeImport& import) : node(import) {
    count = node.integer("num_heads", 0);
    key_count = node.integer("kv_num_heads", 0);
    if (count < 1 || key_count < 1 || count % key_count != 0) {
      throw Error("GroupQueryAttention: the heads do not fit")
          .expected("num_heads that is a multiple of kv_num_heads")
          .got(count, " and ", key_count);
    }
  }

  void run() {
    refuse_variants();
    AttentionHeads heads = split();
    const Dim batch = node.dims(heads.q)[0], queries = node.dims(heads.q)[2];
    const Var past = past_lengths(batch, queries, heads.q);
    if (node.integer("do_rotary", 0) != 0) rotate(heads, past, batch, queries);
    heads.k = cached(heads.k, 3, past);
    heads.v = cached(heads.v, 4, past);
    // Key j is valid and not after the query: j <= past + query.
    heads.is_causal = node.integer("causal", 1) != 0;
    heads.key_counts = past + length_of(heads.q, 2);
    if (const std::int64_t window = node.integer("local_window_size", -1); window > 0) {
      limit_window(heads, past, batch, window);
    }
    add_bias(node, heads, 10);
    node.output(0, merge_heads(node, attend(node, with_sink(heads, batch, queries))));
    if (node.wants_output(1)) node.output(1, heads.k);
    if (node.wants_output(2)) node.output(2, heads.v);
  }

 private:
  void refuse_variants() const {
    for (std::size_t input : {12, 13}) {
      if (node.has_input(input)) node.unsupported("a quantized cache");
    }
    if (node.integer("sliding_window_cache", 0) != 0) node.unsupported("a cache of one window");
  }

  // Attention sink: an additional score per head with zero weight, implemented as a leading key and
  // value of zeros. Smooth softmax has a score of 0.
  AttentionHeads with_sink(const AttentionHeads& heads, const Dim& batch,
                           const Dim& queries) const {
    const bool has_scores = node.has_input(11);
    if (!has_scores && node.integer("smooth_softmax", 0) <= 0) return heads;
    const DType dtype = node.dtype(heads.q);
    const Var zero = node.build.constant(Tensor::scalar(dtype, 0));
    const Dim keys = node.dims(heads.k)[2];
    const auto behind = [&](Var x) {
      const Dims dims = node.dims(x);
      return node.call("concat", {expand_to(zero, {dims[0], dims[1], 1, dims[3]}), x},
                       {{"axis", 2}});
    };
    const Var score =
        has_scores ? reshape_to(cast_to(node.input(11), dtype), {1, count, 1, 1}) : zero;
    const Var mask = heads.mask.is_valid() ? heads.mask : zero;
    AttentionHeads made = heads;
    made.k = behind(heads.k);
    made.v = behind(heads.v);
    made.mask = node.call("concat",
                          {expand_to(score, {batch, count, queries, 1}),
                           expand_to(mask, {batch, count, queries, keys})},
                          {{"axis", 3}});
    made.key_counts = heads.key_counts + 1.0;
    return made;
  }

  AttentionHeads split() const {
    if (node.has_input(1)) {
      return {split_heads(node, node.input(0), count), split_heads(node, node.input(1), key_count),
              split_heads(node, node.input(2), key_count)};
    }
    // Queries, keys and values of all heads in one.
    const Dim size = floor_div(node.dims(node.input(0)).at(2), count + 2 * key_count);
    if (!size.is_constant()) node.unsupported("it needs its head size before the model runs");
    const std::int64_t width = size.constant();
    const std::vector<Var> parts = node.build.call_all(
        "split", {node.input(0)},
        {{"axis", -1},
         {"sizes", Attr::Integers{count * width, key_count * width, key_count * width}}},
        {"", "", ""});
    return {split_heads(node, parts[0], count), split_heads(node, parts[1], key_count),
            split_heads(node, parts[2], key_count)};
  }

  Var length_of(Var x, std::int64_t axis) const {
    return node.call("gather", {node.call("shape", {x}), integer_scalar(node, axis)});
  }

  // Returns the number of past keys of each batch element; the input is the total after this call
  // minus one.
  Var past_lengths(const Dim& batch, const Dim&, Var q) const {
    const Var last = cast_to(reshape_to(node.input(5), {batch}), DType::I64);
    if (!node.has_input(3)) return last * 0.0;
    const Var past = last + 1.0 - length_of(q, 2);
    return node.call("maximum", {past, integer_scalar(node, 0)});
  }

  void rotate(AttentionHeads& heads, Var past, const Dim& batch, const Dim& queries) const {
    const Var at = node.has_input(9)
                       ? cast_to(node.input(9), DType::I64)
                       : reshape_to(past, {batch, 1}) + positions_along(node, heads.q, 2);
    const Var cosine = node.input(7), sine = node.input(8);
    const Var positions = expand_to(at, {batch, queries});
    heads.q = rotated(node, heads.q, positions, cosine, sine, "rotary_interleaved");
    heads.k = rotated(node, heads.k, positions, cosine, sine, "rotary_interleaved");
  }

  // Returns the cache with the new keys written after the past ones. The cache grows unless its
  // length is static and has capacity.
  Var cached(Var now, std::size_t input, Var past) const {
    if (!node.has_input(input)) return now;
    const Var cache = node.input(input);
    const Dim room = node.dims(cache).at(2);
    const std::optional<Tensor> total = node.constant_input(6);
    const bool has_room =
        total && total->size() == 1 && provably_at_most(total->integer_at(0), room);
    return node.call("tensor_scatter", {has_room ? cache : joined(node, cache, now), now, past},
                     {{"axis", 2}});
  }

  void limit_window(AttentionHeads& heads, Var past, const Dim& batch, std::int64_t window) const {
    const Var key = positions_along(node, heads.k, 2);
    const Var query =
        node.call("unsqueeze", {positions_along(node, heads.q, 2)}, {{"axes", Attr::Integers{1}}});
    const Var first = reshape_to(past, {batch, 1, 1, 1}) + query - static_cast<double>(window);
    const Var keep = node.call("greater", {key, first});
    const DType dtype = node.dtype(heads.q);
    const double nothing = -std::numeric_limits<double>::infinity();
    heads.mask = node.call("where", {keep, node.build.constant(Tensor::scalar(dtype, 0)),
                                     node.build.constant(Tensor::scalar(dtype, nothing))});
  }

  NodeImport& node;
  std::int64_t count = 0, key_count = 0;
};

void import_grouped_attention(NodeImport& node) {
  node.ignore_input(6);
  GroupedAttention(node).run();
  node.ignore_input(9);  // positions and angles are unused without rotation
}

void import_microsoft_rotary_embedding(NodeImport& node) {
  if (node.integer("is_packed_batching", 0) != 0) node.unsupported("is_packed_batching");
  if (node.real("scale", 1) != 1) node.unsupported("a scale");
  const Var x = node.input(0), cosine = node.input(2), sine = node.input(3);
  const Dims dims = node.dims(x);
  std::int64_t heads = node.integer("num_heads", 0);
  if (dims.size() == 3 && heads == 0) {
    const Dim angles = node.dims(cosine).at(1);
    if (!dims[2].is_constant() || !angles.is_constant()) {
      node.unsupported("it needs its number of heads before the model runs");
    }
    heads = dims[2].constant() / std::max<std::int64_t>(1, 2 * angles.constant());
  }
  const Var split = split_heads(node, x, heads);
  const Dims by_head = node.dims(split);
  Var at = cast_to(node.input(1), DType::I64);
  // A single number is the position of the first step.
  if (node.dims(at).size() == 1) at = at + positions_along(node, split, 2);
  const Var y =
      rotated(node, split, expand_to(at, {by_head[0], by_head[2]}), cosine, sine, "interleaved");
  node.output(dims.size() == 3 ? merge_heads(node, y) : y);
}

constexpr Handler microsoft_attention_table[] = {
    {"Attention", import_microsoft_attention, "com.microsoft"},
    {"GroupQueryAttention", import_grouped_attention, "com.microsoft"},
    {"MultiHeadAttention", import_multi_head_attention, "com.microsoft"},
    {"QAttention", import_quantized_attention, "com.microsoft"},
    {"RotaryEmbedding", import_microsoft_rotary_embedding, "com.microsoft"},
};

}  // namespace

std::span<const Handler> microsoft_attention_handlers() { return microsoft_attention_table; }

}  // namespace tenon::frontends::onnx
