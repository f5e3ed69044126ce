#include "base/error.h"
#include "base/text.h"
#include "zoo/layers.h"

#include <cmath>
#include <functional>

namespace tenon::zoo {
namespace {

// The three networks have "base" size: twelve layers of twelve heads.
constexpr std::int64_t kWidth = 768, kHeads = 12, kHeadWidth = kWidth / kHeads;
constexpr int kLayers = 12;
// Each layer adds two residual branches.
constexpr double kBranchGain = 1.0 / (2 * kLayers);

constexpr double kMasked = -1e4;  // large enough for softmax, small enough for f16

Var transposed(Var x, Attr::Integers perm) {
  return x.builder().call("transpose", {x}, {{"perm", std::move(perm)}});
}

// [N, S, width] -> [N, heads, S, head width], or another order of these.
Var heads(Var x, Attr::Integers perm = {0, 2, 1, 3}) {
  const Attr::Integers shape{0, 0, kHeads, kHeadWidth};
  return transposed(x.builder().call("reshape", {x}, {{"shape", shape}}), std::move(perm));
}

using Mask = std::function<Var(Var scores)>;

// q and v: [N, heads, S, head width]; k has the last two swapped.
Var attend(Var q, Var k, Var v, const Mask& mask) {
  Builder& build = q.builder();
  Var scores = build.call("matmul", {q, k}) / std::sqrt(static_cast<double>(kHeadWidth));
  if (mask) scores = mask(scores);
  const Var shares = build.call("softmax", {scores}, {{"axis", -1}});
  const Var y = transposed(build.call("matmul", {shares, v}), {0, 2, 1, 3});
  return build.call("reshape", {y}, {{"shape", Attr::Integers{0, 0, kWidth}}});
}

// With separate projections for queries, keys and values.
Var self_attention(Layers& net, Var x, const std::string& prefix, const Mask& mask) {
  const Var q = heads(net.linear(x, prefix + "query", kWidth));
  const Var k = heads(net.linear(x, prefix + "key", kWidth), {0, 2, 3, 1});
  const Var v = heads(net.linear(x, prefix + "value", kWidth));
  return attend(q, k, v, mask);
}

Var look_up(Builder& build, Var table, Var ids) { return build.call("gather", {table, ids}); }

// Slices rows [first, first + count) of a table; either may be a symbol.
Var rows_of(Builder& build, Var table, const std::string& first, const std::string& count,
            const std::string& name) {
  return build.call("slice", {table},
                    {{"starts", std::vector<std::string>{first}},
                     {"ends", std::vector<std::string>{concat(first, " + ", count)}},
                     {"axes", Attr::Integers{0}}},
                    name);
}

// Checks a static extent against the size of the position table.
void require_positions(const NetworkSettings& settings, std::string_view name,
                       std::int64_t highest) {
  const std::optional<std::int64_t> number = parse_integer(settings.extent(name));
  if (number && *number > highest) {
    settings.refuse(name, concat("at most ", highest, ", or a symbol such as S"));
  }
}

std::string type_text(std::string_view element, const std::vector<std::string>& extents) {
  return concat(element, "[", join(extents, ", "), "]");
}

// ---- BERT: normalization after each branch ----

constexpr std::int64_t kBertVocabulary = 30522, kBertPositions = 512;
constexpr double kBertEpsilon = 1e-12;

Var bert_embeddings(Layers& net, Var ids, Var kinds, const std::string& seq) {
  Builder& build = net.builder();
  const Var words = net.normal("embeddings.word.weight", {kBertVocabulary, kWidth}, 0.5);
  const Var types = net.normal("embeddings.token_type.weight", {2, kWidth}, 0.1);
  const Var places = net.normal("embeddings.position.weight", {kBertPositions, kWidth}, 0.1);
  const Var sum = look_up(build, words, ids) + look_up(build, types, kinds) +
                  rows_of(build, places, "0", seq, "embeddings.position");
  return net.layer_norm(sum, "embeddings.norm", kBertEpsilon);
}

Var bert_layer(Layers& net, Var x, const std::string& prefix, const Mask& mask) {
  Var y = self_attention(net, x, prefix + "attention.", mask);
  x = net.layer_norm(net.linear(y, prefix + "attention.output", kWidth) + x,
                     prefix + "attention.norm", kBertEpsilon);
  y = net.linear(x, prefix + "intermediate", 4 * kWidth, 2);
  y = net.linear(net.builder().call("gelu", {y}), prefix + "output", kWidth);
  return net.layer_norm(y + x, prefix + "norm", kBertEpsilon);
}

Graph make_bert_base(const NetworkSettings& settings) {
  Layers net(settings);
  Builder& build = net.builder();
  require_positions(settings, "seq", kBertPositions);
  const std::string batch = settings.extent("batch"), seq = settings.extent("seq");
  const std::string ids_type = type_text("i64", {batch, seq});
  const Var ids = build.input("input_ids", ids_type);
  const Var attended = build.input("attention_mask", ids_type);
  const Var kinds = build.input("token_type_ids", ids_type);

  const Var wide = build.call("unsqueeze", {attended}, {{"axes", Attr::Integers{1, 2}}});
  const Var shown = build.call("cast", {wide}, {{"to", net.element_type()}});
  const Var hidden = (1.0 - shown) * kMasked;
  const Mask mask = [&](Var scores) { return scores + hidden; };

  Var x = bert_embeddings(net, ids, kinds, seq);
  for (int layer = 0; layer < kLayers; ++layer) {
    x = bert_layer(net, x, concat("encoder.", layer, "."), mask);
  }
  build.output(x, "last_hidden_state");
  if (settings.flag("pooler")) {
    const Var first = build.call("gather", {x, build.constant("i64[] 0")}, {{"axis", 1}});
    build.output(build.call("tanh", {net.linear(first, "pooler", kWidth)}), "pooler_output");
  }
  return net.take();
}

// ---- GPT-2: normalization before each branch, causal attention ----

constexpr std::int64_t kGptVocabulary = 50257, kGptPositions = 1024;
constexpr double kGptEpsilon = 1e-5;

/// KV cache: keys and values of earlier positions are inputs, and outputs together with the new
/// ones.
class Cache {
 public:
  Cache(Layers& layers, const std::string& batch, const std::string& past) : net(layers) {
    if (past == "0") return;
    const std::vector<std::string> shape{batch, std::to_string(kHeads), past,
                                         std::to_string(kHeadWidth)};
    const std::string type = type_text(net.element_type(), shape);
    for (int layer = 0; layer < kLayers; ++layer) {
      for (const char* part : {"key", "value"}) {
        pasts.push_back(net.builder().input(concat("past.", layer, ".", part), type));
      }
    }
  }

  Var extended(Var fresh, int layer, bool is_value) {
    const std::size_t place = 2 * static_cast<std::size_t>(layer) + (is_value ? 1 : 0);
    if (!pasts.empty()) {
      fresh = net.builder().call("concat", {pasts[place], fresh}, {{"axis", 2}});
    }
    presents.push_back(fresh);
    return fresh;
  }

  void output_all() {
    for (std::size_t place = 0; place < presents.size(); ++place) {
      net.builder().output(presents[place],
                           concat("present.", place / 2, place % 2 == 0 ? ".key" : ".value"));
    }
  }

 private:
  Layers& net;
  std::vector<Var> pasts, presents;  // alternating keys and values of each layer
};

Var gpt2_layer(Layers& net, Var x, int layer, Cache& cache, const Mask& mask) {
  Builder& build = net.builder();
  const std::string prefix = concat("h.", layer, ".");
  const Var normal = net.layer_norm(x, prefix + "ln_1", kGptEpsilon);
  const Var joined = net.linear(normal, prefix + "attn.c_attn", 3 * kWidth);
  const std::vector<Attr> last_axis{{"axis", 2}};
  const std::vector<Var> parts =
      build.call_all("split", {joined}, last_axis,
                     {prefix + "attn.query", prefix + "attn.key", prefix + "attn.value"});
  const Var k = cache.extended(heads(parts[1]), layer, false);
  const Var v = cache.extended(heads(parts[2]), layer, true);
  Var y = attend(heads(parts[0]), transposed(k, {0, 1, 3, 2}), v, mask);
  x = net.linear(y, prefix + "attn.c_proj", kWidth, kBranchGain) + x;
  y = net.linear(net.layer_norm(x, prefix + "ln_2", kGptEpsilon), prefix + "mlp.c_fc", 4 * kWidth,
                 2);
  y = build.call("gelu", {y}, {{"approximate", "tanh"}});
  return net.linear(y, prefix + "mlp.c_proj", kWidth, kBranchGain) + x;
}

// Row p of the mask selects the positions up to p; the new rows are the last ones.
Mask causal_mask(Layers& net, const std::string& seq, const std::string& past) {
  if (seq == "1") return {};
  Builder& build = net.builder();
  const std::string square = concat("bool[", kGptPositions, ", ", kGptPositions, "] splat true");
  const Var lower = build.call("trilu", {build.constant(square)}, {{"upper", false}});
  const std::string total = concat(past, " + ", seq);
  const Var shown = build.call("slice", {lower},
                               {{"starts", std::vector<std::string>{past, "0"}},
                                {"ends", std::vector<std::string>{total, total}}},
                               "causal");
  const Var masked = build.constant(concat(net.element_type(), "[] ", format_real(kMasked)));
  return [&build, shown, masked](Var scores) {
    return build.call("where", {shown, scores, masked});
  };
}

Graph make_gpt2(const NetworkSettings& settings) {
  Layers net(settings);
  Builder& build = net.builder();
  require_positions(settings, "seq", kGptPositions);
  const std::string batch = settings.extent("batch"), seq = settings.extent("seq");
  const std::string past = settings.extent_or_zero("past");
  const std::string ids_type = type_text("i64", {batch, seq});
  const Var ids = build.input("input_ids", ids_type);
  const Var places = build.input("position_ids", ids_type);
  Cache cache(net, batch, past);
  const double deviation = std::sqrt(1.0 / kWidth);  // the output projection shares this table
  const Var words = net.normal("wte.weight", {kGptVocabulary, kWidth}, deviation);
  const Var positions = net.normal("wpe.weight", {kGptPositions, kWidth}, deviation);
  Var x = look_up(build, words, ids) + look_up(build, positions, places);
  const Mask mask = causal_mask(net, seq, past);
  for (int layer = 0; layer < kLayers; ++layer) x = gpt2_layer(net, x, layer, cache, mask);
  x = net.layer_norm(x, "ln_f", kGptEpsilon);
  build.output(build.call("matmul", {x, transposed(words, {1, 0})}), "logits");
  cache.output_all();
  return net.take();
}

// ---- ViT: an image as a sequence of patches ----

constexpr std::int64_t kPatch = 16;
constexpr double kVitEpsilon = 1e-6;

Var patches(Layers& net, Var image, const std::string& batch) {
  Builder& build = net.builder();
  const std::int64_t count = (net.rows(image) / kPatch) * (net.rows(image) / kPatch);
  Var x = net.convolution(
      image, "patch_embed",
      {.channels = kWidth, .kernel = kPatch, .stride = kPatch, .has_bias = true, .gain = 1});
  x = build.call("reshape", {x}, {{"shape", Attr::Integers{0, kWidth, count}}});
  Var token = net.normal("cls_token", {1, 1, kWidth}, 0.5);
  if (batch != "1") {
    const std::vector<std::string> shape{batch, "1", std::to_string(kWidth)};
    token = build.call("expand", {token}, {{"shape", shape}});
  }
  x = build.call("concat", {token, transposed(x, {0, 2, 1})}, {{"axis", 1}});
  return x + net.normal("pos_embed", {1, count + 1, kWidth}, 0.1);
}

Graph make_vit_b16(const NetworkSettings& settings) {
  Layers net(settings);
  Builder& build = net.builder();
  const std::string batch = settings.extent("batch");
  const std::int64_t size = settings.number("size", 1, 1 << 12);
  if (size % kPatch != 0) settings.refuse("size", concat("a multiple of ", kPatch));
  Var x = patches(net, net.image("x", batch, 3, size), batch);
  for (int layer = 0; layer < kLayers; ++layer) {
    const std::string prefix = concat("blocks.", layer, ".");
    Var y = net.layer_norm(x, prefix + "norm1", kVitEpsilon);
    y = self_attention(net, y, prefix + "attn.", {});
    x = net.linear(y, prefix + "attn.proj", kWidth, kBranchGain) + x;
    y = net.linear(net.layer_norm(x, prefix + "norm2", kVitEpsilon), prefix + "mlp.fc1", 4 * kWidth,
                   2);
    x = net.linear(build.call("gelu", {y}), prefix + "mlp.fc2", kWidth, kBranchGain) + x;
  }
  x = net.layer_norm(x, "norm", kVitEpsilon);
  x = build.call("gather", {x, build.constant("i64[] 0")}, {{"axis", 1}});
  build.output(net.linear(x, "head", settings.number("classes", 1, 1 << 20)), "logits");
  return net.take();
}

}  // namespace

std::vector<Recipe> transformer_recipes() {
  const Parameter seq{"seq", "128", "tokens: a number, or a symbol such as S"};
  return {
      {{"bert_base", "encoder of text, 12 layers of width 768",
        with_common({seq, {"pooler", "0", "also gives the pooled first token: 0 or 1"}})},
       make_bert_base},
      {{"gpt2", "language model, 12 layers of width 768",
        with_common(
            {seq, {"past", "0", "tokens in the cache of keys and values: a number or a symbol"}})},
       make_gpt2},
      {{"vit_b16", "classifier of images as patches of 16x16, 12 layers of width 768",
        with_common({size_parameter("224"), classes_parameter("1000")})},
       make_vit_b16},
  };
}

}  // namespace tenon::zoo
