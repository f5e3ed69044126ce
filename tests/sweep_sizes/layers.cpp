#include "layers.h"

#include "base/error.h"
#include "zoo/zoo.h"

namespace tenon::testing {
namespace {

const std::vector<std::string> kActivations = {
    "relu", "sigmoid", "tanh",       "gelu", "swish",           "hard_swish", "hard_sigmoid",
    "elu",  "erf",     "leaky_relu", "mish", "softplus",        "abs",        "exp",
    "sqrt", "neg",     "reciprocal", "celu", "thresholded_relu"};

Graph images(testing::Random& random, bool is_fixed) {
  Chain chain(random, is_fixed);
  std::size_t rank = random.chance(70) ? 2 : random.chance(70) ? 1 : 3;
  std::string extents =
      concat(chain.extent("N", chain.batch()), ", ", std::to_string(chain.channels()));
  const std::int64_t size = chain.pixels();
  for (const char* symbol : {"H", "W", "D"}) {
    if (rank-- == 0) break;
    extents += ", " + chain.extent(symbol, random.chance(50) ? size : chain.pixels());
  }
  chain.input(extents);
  chain.repeat(random.between(1, 5), [&](Var x) { return image_layer(chain, x); });
  return chain.finish();
}

// A float tensor as the bytes of a quantized model.
Var bytes(Chain& chain, Var x, bool is_signed) {
  const Var scale = chain.builder().constant("f32[] 0.05");
  const Var zero = chain.builder().constant(is_signed ? "i8[] 0" : "u8[] 113");
  return chain.call("dequantize_linear",
                    {chain.call("quantize_linear", {x, scale, zero}), scale, zero});
}

Var weight_bytes(Chain& chain, const std::string& extents) {
  const Var stored = chain.builder().constant(concat("i8", extents, " splat 3"));
  return chain.call("dequantize_linear", {stored, chain.builder().constant("f32[] 0.01")});
}

Var quantized_layer(Chain& chain, Var x, bool is_image) {
  testing::Random& random = chain.random();
  const Attr::Integers shape = chain.shape(x);
  const bool is_signed = random.chance(50);
  const Var from = bytes(chain, x, is_signed);
  Var y;
  if (is_image) {
    const std::int64_t k = random.between(1, 5), channels = shape[1];
    const bool is_depthwise = random.chance(25);
    const std::int64_t outputs = is_depthwise ? channels : chain.channels();
    const std::int64_t pad = random.between(0, k / 2), stride = random.chance(70) ? 1 : 2;
    y = chain.call(
        "conv",
        {from, weight_bytes(chain, concat("[", outputs, ", ", is_depthwise ? 1 : channels, ", ", k,
                                          ", ", k, "]"))},
        {{"pads", Attr::Integers{pad, pad, pad, pad}},
         {"strides", Attr::Integers{stride, stride}},
         {"groups", is_depthwise ? channels : 1}});
  } else {
    y = chain.call(
        "matmul",
        {from, weight_bytes(chain, concat("[", shape.back(), ", ", chain.channels(), "]"))});
  }
  if (random.chance(50)) y = chain.call("relu", {y});
  return random.chance(70) ? bytes(chain, y, is_signed) : y;
}

Graph quantized(testing::Random& random, bool is_fixed) {
  Chain chain(random, is_fixed);
  chain.use_f32();
  const bool is_image = random.chance(60);
  std::string extents = chain.extent("N", chain.batch());
  if (is_image) {
    extents += concat(", ", chain.channels(), ", ", chain.extent("H", chain.pixels()), ", ",
                      chain.extent("W", chain.pixels()));
  } else {
    extents += concat(", ", chain.channels());
  }
  chain.input(extents);
  chain.repeat(random.between(1, 3), [&](Var x) { return quantized_layer(chain, x, is_image); });
  return chain.finish();
}

Graph sequences(testing::Random& random, bool is_fixed) {
  Chain chain(random, is_fixed);
  const std::int64_t width = chain.channels() * (random.chance(30) ? 8 : 1);
  chain.input(concat(chain.extent("B", chain.batch()), ", ", chain.extent("S", chain.pixels()),
                     ", ", width));
  chain.repeat(random.between(1, 5), [&](Var x) { return sequence_layer(chain, x); });
  return chain.finish();
}

// Products of two inputs, with batches, transposed operands and an epilogue.
Graph products(testing::Random& random, bool is_fixed) {
  Chain chain(random, is_fixed);
  const auto size = [&](const std::string& symbol) {
    return chain.extent(symbol, random.chance(50) ? chain.channels() : chain.batch());
  };
  const std::string m = size("M"), n = size("N"), k = size("K");
  std::string left, right;
  for (std::int64_t axis = random.between(0, 2); axis > 0; --axis) {
    const std::string extent = chain.extent(concat("B", axis), chain.pixels());
    left += extent + ", ";
    right += (random.chance(20) ? "1" : extent) + ", ";
  }
  const bool is_turned = random.chance(40), is_constant = random.chance(40);
  const Var a = chain.input(left + m + ", " + k);
  Var b;
  if (is_constant && n != "N" && k != "K") {
    b = chain.weight({std::stoll(k), std::stoll(n)});
  } else {
    b = chain.input(is_turned ? right + n + ", " + k : right + k + ", " + n);
    const auto rank = static_cast<std::int64_t>(chain.shape(b).size());
    Attr::Integers perm;
    for (std::int64_t axis = 0; axis < rank; ++axis) perm.push_back(axis);
    if (is_turned) std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    if (is_turned) b = chain.call("transpose", {b}, {{"perm", perm}});
  }
  const Var product = chain.call("matmul", {a, b});
  chain.repeat(random.between(1, 2), [&](Var x) {
    Var y = x.id() == a.id() || x.id() == b.id() ? product : x;
    if (random.chance(30)) y = y * 0.125;
    if (random.chance(40) && n != "N") y = y + chain.weight({std::stoll(n)});
    if (random.chance(40)) y = chain.activation(y);
    return random.chance(30) ? chain.call("softmax", {y}) : y;
  });
  return chain.finish();
}

Graph reductions(testing::Random& random, bool is_fixed) {
  Chain chain(random, is_fixed);
  std::string extents = chain.extent("N", chain.batch());
  for (std::int64_t k = random.between(0, 3); k > 0; --k)
    extents +=
        ", " + chain.extent(concat("D", k), random.chance(50) ? chain.channels() : chain.pixels());
  chain.input(extents);
  static const std::vector<std::string> reduces = {
      "reduce_sum",        "reduce_mean", "reduce_max",        "reduce_min",
      "reduce_prod",       "reduce_l2",   "reduce_l1",         "reduce_log_sum_exp",
      "reduce_sum_square", "arg_max",     "arg_min",           "softmax",
      "log_softmax",       "cumsum",      "mean_variance_norm"};
  chain.repeat(random.between(1, 4), [&](Var x) {
    const auto rank = static_cast<std::int64_t>(chain.shape(x).size());
    if (rank == 0 || random.chance(30)) return chain.activation(x);
    const std::string& op = random.pick(reduces);
    const std::int64_t axis = random.between(0, rank - 1);
    if (op.starts_with("arg")) {
      return chain.call("cast",
                        {chain.call(op, {x}, {{"axis", axis}, {"keep_axes", random.chance(70)}})},
                        {{"to", chain.element_type()}});
    }
    if (op == "mean_variance_norm") return chain.call(op, {x}, {{"axes", Attr::Integers{axis}}});
    if (!op.starts_with("reduce")) return chain.call(op, {x}, {{"axis", axis}});
    Attr::Integers axes{axis};
    if (random.chance(40) && axis + 1 < rank) axes.push_back(axis + 1);
    return chain.call(op, {x}, {{"axes", axes}, {"keep_axes", random.chance(50)}});
  });
  return chain.finish();
}

// A gated recurrent unit as a scan.
Graph gru(testing::Random& random, bool is_fixed) {
  Chain chain(random, is_fixed);
  chain.use_f32();
  const std::string batch = chain.extent("B", chain.batch());
  const std::int64_t size = chain.channels(), hidden = chain.channels();
  const std::string state = concat("f32[", batch, ", ", hidden, "]");
  Builder body("step");
  const Var h = body.input("h", state);
  const Var projected = body.input("projected", concat("f32[", batch, ", ", 3 * hidden, "]"));
  const Var recurrent = body.input("recurrent", concat("f32[", hidden, ", ", 3 * hidden, "]"));
  const std::vector<Attr> last{{"axis", -1}};
  const std::vector<Var> x = body.call_all("split", {projected}, last, {"xz", "xr", "xn"});
  const std::vector<Var> r =
      body.call_all("split", {body.call("matmul", {h, recurrent})}, last, {"hz", "hr", "hn"});
  const Var update = body.call("sigmoid", {x[0] + r[0]}),
            reset = body.call("sigmoid", {x[1] + r[1]});
  const Var fresh = body.call("tanh", {x[2] + reset * r[2]});
  const Var next = (1.0 - update) * fresh + update * h;
  body.output(next, "next_h");
  body.output(body.call("identity", {next}), "y");
  std::vector<Graph> bodies;
  bodies.push_back(body.take());

  const Var input = chain.input(concat(chain.extent("S", chain.pixels()), ", ", batch, ", ", size));
  Builder& build = chain.builder();
  const Var wide = chain.call("matmul", {input, chain.weight({size, 3 * hidden})});
  const Var zeros =
      build.call("expand", {build.constant("f32[] 0")},
                 {{"shape", std::vector<std::string>{batch, std::to_string(hidden)}}});
  const std::vector<Attr> counts{{"state_count", 1}, {"input_count", 1}};
  const std::vector<Var> results = build.call_all(
      "scan",
      {zeros, wide,
       build.normal("recurrent_weight", concat("f32[", hidden, ", ", 3 * hidden, "]"), 7, 0.1)},
      counts, {"last_h", "y"}, std::move(bodies));
  build.output(results[1]);
  build.output(results[0]);
  return build.take();
}

Graph recurrent(testing::Random& random, bool is_fixed) {
  if (random.chance(50)) return gru(random, is_fixed);
  Chain sizes(random, is_fixed);
  return zoo::build(concat("lstm?batch=", sizes.extent("B", sizes.batch()),
                           ",seq=", sizes.extent("S", sizes.pixels()), ",size=", sizes.channels(),
                           ",hidden=", sizes.channels()));
}

}  // namespace

Chain::Chain(testing::Random& random, bool is_fixed) : random_(random), build_("sizes") {
  const unsigned shares[] = {0, 0, 40, 100};
  symbol_share_ = is_fixed ? 0 : shares[random.below(4)];
  const std::vector<std::string> types = {"f32", "f32", "f32",  "f32", "f32",
                                          "f32", "f16", "bf16", "f64"};
  element_type_ = random.pick(types);
}

std::int64_t Chain::batch() {
  static const std::vector<std::int64_t> usual = {1, 1, 2, 4, 8, 16, 32, 64, 100, 128, 256, 300};
  return random_.chance(60) ? random_.pick(usual) : random_.between(1, 300);
}
std::int64_t Chain::channels() {
  static const std::vector<std::int64_t> usual = {1, 3, 8, 16, 24, 32, 48, 64};
  return random_.chance(50) ? random_.pick(usual) : random_.between(1, 70);
}
std::int64_t Chain::pixels() {
  static const std::vector<std::int64_t> usual = {1, 2, 4, 7, 8, 14, 16, 28, 32};
  return random_.chance(40) ? random_.pick(usual) : random_.between(1, 40);
}

std::string Chain::extent(const std::string& symbol, std::int64_t number) {
  return random_.chance(symbol_share_) ? symbol : std::to_string(number);
}

Var Chain::input(const std::string& extents) {
  const Var x = build_.input(concat("x", input_count_++), concat(element_type_, "[", extents, "]"));
  values_.push_back(x);
  return x;
}

Var Chain::weight(const Attr::Integers& extents) {
  const std::string type = concat(element_type_, Dims(extents.begin(), extents.end()));
  if (random_.chance(6)) return build_.input(concat("w", input_count_++), type);
  ++weight_count_;
  return build_.normal(concat("c", weight_count_), type, weight_count_, 0.1);
}

Var Chain::activation(Var x) {
  if (random_.chance(15)) return x * call("sigmoid", {x});
  if (random_.chance(15)) return call("gelu", {x}, {{"approximate", "tanh"}});
  return call(random_.pick(kActivations), {x});
}

Var Chain::earlier_like(Var x) {
  for (const Var value : values_) {
    if (build_.type(value) == build_.type(x) && value.id() != x.id()) return value;
  }
  return x;
}

void Chain::repeat(std::int64_t count, const std::function<Var(Var x)>& layer) {
  for (std::int64_t k = 0; k < count; ++k) {
    try {
      const Var made = layer(values_.back());
      if (made.id() != values_.back().id()) values_.push_back(made);
    } catch (const Error&) {  // The layer does not fit the sizes.
    }
  }
}

Graph Chain::finish() {
  const auto identity = [&](Var x) { return build_.call("identity", {x}); };
  build_.output(values_.size() == 1 ? identity(values_.back()) : values_.back(), "y");
  if (values_.size() > 2 && random_.chance(20))
    build_.output(identity(values_[1 + random_.below(values_.size() - 2)]), "z");
  return build_.take();
}

const std::vector<Family>& layer_families() {
  static const std::vector<Family> families = {
      {"images", images},     {"quantized", quantized},   {"sequences", sequences},
      {"products", products}, {"reductions", reductions}, {"recurrent", recurrent}};
  return families;
}

}  // namespace tenon::testing
