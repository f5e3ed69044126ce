// Small patterns that passes match: decomposed norms, chains that cancel, constants that fold.
#include "base/error.h"
#include "ops/definition/registry.h"
#include "testing/random_graph/graph_maker.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tenon::testing {
namespace {

using Integers = Attr::Integers;

class Motifs {
 public:
  explicit Motifs(GraphMaker& maker)
      : maker_(maker), random_(maker.random), build_(maker.build()) {}

  void add_one() {
    using Motif = void (Motifs::*)();
    static const std::vector<Motif> motifs = {
        &Motifs::transposes,
        &Motifs::reshapes,
        &Motifs::casts,
        &Motifs::neutral_elements,
        &Motifs::constant_part,
        &Motifs::twice_the_same,
        &Motifs::clone,
        &Motifs::convolution,
        &Motifs::dense_layer,
        &Motifs::siblings,
        &Motifs::padded_window,
        &Motifs::slice_of_concat,
        &Motifs::split_and_join,
        &Motifs::shape_chain,
        &Motifs::layer_norm,
        &Motifs::softmax,
        &Motifs::gelu,
        &Motifs::elementwise,
        &Motifs::reduced,
        &Motifs::around_and_back,
        &Motifs::branch,
        &Motifs::repeated_calls,
        &Motifs::powers,
        &Motifs::attention,
        &Motifs::loop,
        &Motifs::activations,
        &Motifs::root_mean_square,
        &Motifs::laid_out,
    };
    (this->*random_.pick(motifs))();
  }

 private:
  Var var(ValueId value) { return Var(&build_, value.index()); }
  ValueId id(Var value) { return ValueId(value.id()); }
  const TensorType& type(Var value) {
    const TensorType* found = maker_.tensor_type(id(value));
    if (!found) throw Error("not a tensor of known rank");
    return *found;
  }
  std::size_t rank(Var value) { return type(value).rank(); }
  Var call(std::string_view op, const std::vector<Var>& operands,
           const std::vector<Attr>& attrs = {}) {
    return build_.call(op, operands, attrs);
  }
  Var tensor() { return var(maker_.any_tensor()); }
  Var float_tensor(std::size_t least_rank = 0) {
    if (random_.chance(75)) {
      const auto found = maker_.find(
          [&](const TensorType& t) { return is_float(t.dtype) && t.rank() >= least_rank; });
      if (found) return var(*found);
    }
    Dims dims = maker_.any_dims(4);
    while (dims.size() < least_rank) dims.push_back(maker_.any_extent());
    return var(maker_.value_of(maker_.any_float(), dims));
  }
  Var image() {
    const auto found =
        maker_.find([](const TensorType& t) { return is_float(t.dtype) && t.rank() == 4; });
    if (found && random_.chance(75)) return var(*found);
    return var(maker_.value_of(maker_.any_float(),
                               {maker_.any_extent(), 1 + random_.between(0, 3), 4, 3}));
  }
  // An input if an extent is a symbol.
  Var constant(DType dtype, const Dims& dims) {
    if (!all_constant(dims)) return var(maker_.new_input(TensorType{dtype, dims, {}}));
    return var(maker_.constant_of(dtype, dims,
                                  random_.chance(80) ? TrialKind::Ordinary : TrialKind::Quiet));
  }
  Integers permutation(std::size_t count) {
    Integers perm(count);
    std::iota(perm.begin(), perm.end(), 0);
    for (std::size_t k = perm.size(); k > 1; --k) std::swap(perm[k - 1], perm[random_.below(k)]);
    return perm;
  }
  Var unary(Var x) {
    static const std::vector<std::string> ops = {"relu", "sigmoid", "tanh", "exp", "abs",
                                                 "neg",  "sqrt",    "erf",  "gelu"};
    return call(random_.pick(ops), {x});
  }
  Var binary(Var a, Var b) {
    static const std::vector<std::string> ops = {"add", "mul", "sub", "maximum", "minimum", "div"};
    return call(random_.pick(ops), {a, b});
  }
  Var activation(Var x) {
    switch (random_.below(4)) {
      case 0:
        return x;
      case 1:
        return call("relu", {x});
      case 2:
        return call("gelu", {x});
      default:
        return call("clip", {x, build_.scalar(0, x), build_.scalar(6, x)});
    }
  }

  void transposes() {
    Var x = tensor();
    const std::size_t axes = rank(x);
    const Integers first = permutation(axes);
    x = call("transpose", {x}, {{"perm", first}});
    if (random_.chance(40)) x = unary(x);
    Integers second = permutation(axes);
    if (random_.chance(50)) {
      for (std::size_t k = 0; k < axes; ++k)
        second[static_cast<std::size_t>(first[k])] = static_cast<std::int64_t>(k);
    }
    call("transpose", {x}, {{"perm", second}});
  }

  void reshapes() {
    Var x = tensor();
    const Dims dims = type(x).dims;
    Var flat = call("reshape", {x}, {{"shape", Integers{-1}}});
    if (random_.chance(40)) flat = unary(flat);
    Attributes back;
    back.set("shape", dims);
    if (random_.chance(60))
      build_.call_all("reshape", {flat}, back, {""});
    else
      call("unsqueeze", {flat}, {{"axes", Integers{0}}});
  }

  void casts() {
    Var x = tensor();
    static const std::vector<std::string> types = {"f32", "f64", "f16", "i64", "i32", "bool", "i8"};
    const std::string own = to_string(type(x).dtype);
    const Var there = call("cast", {x}, {{"to", random_.pick(types)}});
    call("cast", {there}, {{"to", random_.chance(60) ? own : random_.pick(types)}});
  }

  void neutral_elements() {
    Var x = tensor();
    if (type(x).dtype == DType::String) throw Error("texts have none");
    static const std::vector<std::pair<std::string, double>> cases = {
        {"add", 0}, {"sub", 0},     {"mul", 1},  {"div", 1}, {"mul", 0}, {"add", -0.0},
        {"div", 2}, {"maximum", 0}, {"mul", -1}, {"div", 3}, {"mul", 2}};
    const auto& [op, element] = random_.pick(cases);
    Var other = build_.scalar(element, x);
    if (random_.chance(40)) {
      const Dims dims(rank(x), 1);
      Attributes shape;
      shape.set("shape", dims);
      other = build_.call_all("reshape", {other}, shape, {""}).front();
    }
    const Var y = random_.chance(70) ? call(op, {x, other}) : call(op, {other, x});
    if (random_.chance(30)) call(op, {y, build_.scalar(element, x)});
  }

  void constant_part() {
    Var x = float_tensor();
    const TensorType t = type(x);
    Dims dims = t.dims;
    if (!all_constant(dims)) dims = {};
    Var folded = binary(constant(t.dtype, dims), constant(t.dtype, {}));
    if (random_.chance(50)) folded = unary(folded);
    binary(x, folded);
  }

  void twice_the_same() {
    Var x = float_tensor();
    static const std::vector<std::string> ops = {"relu",  "abs",      "neg",
                                                 "floor", "identity", "round"};
    const std::string& op = random_.pick(ops);
    Var y = call(op, {x});
    if (random_.chance(70)) y = call(op, {y});
    if (random_.chance(50)) call("sub", {y, y});
  }

  // Duplicates a node, for common-subexpression elimination.
  void clone() {
    std::vector<NodeId> nodes;
    for (NodeId node : maker_.graph().nodes_in_order()) {
      const auto& results = maker_.graph().node(node).results;
      if (!results.empty() && results[0] && maker_.is_usable(results[0])) nodes.push_back(node);
    }
    if (nodes.empty()) throw Error("there is no node yet");
    const Node node = maker_.graph().node(random_.pick(nodes));
    Graph::NewNode again{node.op, node.operands, node.attrs, node.bodies, {}, ""};
    for (ValueId result : node.results) again.results.push_back(result ? "" : "_");
    const NodeId made = maker_.graph().add_node(std::move(again));
    const ValueId result = maker_.graph().node(made).results[0];
    if (random_.chance(60)) binary(var(node.results[0]), var(result));
  }

  // Images with layout NHWC.
  void laid_out() {
    const DType dtype = maker_.any_float();
    const Dim channels = random_.between(1, 3);
    const TensorType t{dtype, {maker_.any_extent(), 3, 4, channels}, Layout("NHWC")};
    Var x;
    if (random_.chance(70) || !all_constant(t.dims)) {
      x = var(maker_.new_input(t));
    } else {
      x = constant(dtype, t.dims);
      maker_.graph().set_type(id(x), t);
    }
    if (random_.chance(60)) {
      x = call("conv", {x, constant(dtype, {2, channels, 2, 2}), constant(dtype, {2})});
      if (random_.chance(50)) x = activation(x);
    }
    switch (random_.below(4)) {
      case 0:
        x = call("max_pool", {x}, {{"kernel_shape", Integers{2, 2}}});
        break;
      case 1:
        x = call("average_pool", {x}, {{"kernel_shape", Integers{2, 3}}});
        break;
      case 2:
        x = call("transpose", {x}, {{"perm", Integers{0, 3, 1, 2}}});
        break;
      default:
        x = call("add", {x, unary(x)});
    }
    if (random_.chance(40)) call("transpose", {x}, {{"perm", permutation(4)}});
  }

  Var convolve(Var x, const Dim& outputs, std::int64_t kernel) {
    const TensorType t = type(x);
    const Var w = constant(t.dtype, {outputs, t.dims[1], kernel, kernel});
    std::vector<Var> operands = {x, w};
    if (random_.chance(50)) operands.push_back(constant(t.dtype, {outputs}));
    return call("conv", operands, {{"pads", Integers(4, kernel / 2)}});
  }

  void convolution() {
    const Var x = image();
    const TensorType t = type(x);
    const Dim outputs = random_.chance(50) ? t.dims[1] : Dim(random_.between(1, 4));
    Var y = convolve(x, outputs, random_.chance(50) ? 1 : 3);
    const Dims channel = {outputs, 1, 1};
    if (random_.chance(30)) y = call("mul", {y, constant(t.dtype, channel)});
    if (random_.chance(40)) {
      const Var positive = call("abs", {constant(t.dtype, {outputs})});
      y = call("batch_norm", {y, constant(t.dtype, {outputs}), constant(t.dtype, {outputs}),
                              constant(t.dtype, {outputs}), positive});
    }
    if (random_.chance(40)) y = call("add", {y, constant(t.dtype, channel)});
    if (random_.chance(40)) y = call("add", {y, x});
    y = activation(y);
    if (random_.chance(30)) {
      y = call("mul", {y, constant(t.dtype, channel)});
      y = convolve(y, outputs, 1);
    }
    if (random_.chance(30)) call("max_pool", {y}, {{"kernel_shape", Integers{2, 2}}});
  }

  void dense_layer() {
    Var x = float_tensor(2);
    const TensorType t = type(x);
    const Dim outputs = random_.between(1, 4);
    Var y = call("matmul", {x, constant(t.dtype, {t.dims.back(), outputs})});
    if (random_.chance(70)) y = call("add", {y, constant(t.dtype, {outputs})});
    if (random_.chance(30)) y = call("mul", {y, constant(t.dtype, {outputs})});
    y = activation(y);
    if (random_.chance(40))
      call("matmul", {y, constant(t.dtype, {outputs, Dim(random_.between(1, 3))})});
  }

  void siblings() {
    Var x = float_tensor(2);
    const TensorType t = type(x);
    const int count = 2 + static_cast<int>(random_.below(2));
    for (int k = 0; k < count; ++k) {
      const Var y =
          call("matmul", {x, constant(t.dtype, {t.dims.back(), Dim(random_.between(1, 3))})});
      if (random_.chance(50)) activation(y);
    }
  }

  void padded_window() {
    const Var x = image();
    static const std::vector<Integers> pads = {
        {0, 0, 1, 1, 0, 0, 1, 1}, {0, 0, 0, 1, 0, 0, 2, 0}, {0, 1, 0, 0, 0, 0, 1, 1}};
    const Var padded = call("pad", {x}, {{"pads", random_.pick(pads)}});
    const std::vector<Attr> window = {{"kernel_shape", Integers{2, 2}}};
    switch (random_.below(3)) {
      case 0:
        call("max_pool", {padded}, window);
        break;
      case 1:
        call("average_pool", {padded}, window);
        break;
      default:
        convolve(padded, 2, random_.chance(50) ? 1 : 3);
    }
  }

  void slice_of_concat() {
    const Var a = float_tensor(1);
    const TensorType t = type(a);
    const Var b = var(maker_.value_of(t.dtype, t.dims));
    const auto axis = static_cast<std::int64_t>(random_.below(t.rank()));
    const Var joined = call("concat", {a, b}, {{"axis", axis}});
    const std::int64_t start = random_.between(0, 3);
    call("slice", {joined},
         {{"starts", Integers{start}},
          {"ends", Integers{start + random_.between(1, 4)}},
          {"axes", Integers{axis}}});
  }

  void split_and_join() {
    const Var x = var(maker_.value_of(maker_.any_dtype(), {4, maker_.any_extent()}));
    std::vector<Var> parts =
        build_.call_all("split", {x}, std::vector<Attr>{{"axis", 0}}, {"", ""});
    if (random_.chance(30)) std::swap(parts[0], parts[1]);
    call("concat", parts, {{"axis", 0}});
  }

  // shape -> gather -> concat -> reshape, as exporters write it.
  void shape_chain() {
    const Var x = float_tensor(2);
    const Var extents = call("shape", {x});
    const Var first = call("slice", {extents}, {{"starts", Integers{0}}, {"ends", Integers{1}}});
    const Var rest = build_.integers({-1});
    const Var shape = call("concat", {first, rest}, {{"axis", 0}});
    if (random_.chance(60)) build_.call_all("reshape", {x, shape}, std::vector<Attr>{}, {""});
    const Var last = call("gather", {extents, build_.constant("i64[] -1")});
    call("mul", {call("cast", {last}, {{"to", to_string(type(x).dtype)}}), x});
  }

  void layer_norm() {
    const Var x = float_tensor(1);
    const TensorType t = type(x);
    const std::vector<Attr> last = {{"axes", Integers{-1}}, {"keep_axes", true}};
    const Var centred = call("sub", {x, call("reduce_mean", {x}, last)});
    const Var squared = random_.chance(50) ? call("mul", {centred, centred})
                                           : call("pow", {centred, build_.scalar(2, x)});
    const Var variance = call("reduce_mean", {squared}, last);
    const Var deviation = call("sqrt", {call("add", {variance, build_.scalar(1e-5, x)})});
    Var y = call("div", {centred, deviation});
    if (!t.dims.back().is_constant()) return;
    if (random_.chance(70)) y = call("mul", {y, constant(t.dtype, {t.dims.back()})});
    if (random_.chance(70)) call("add", {y, constant(t.dtype, {t.dims.back()})});
  }

  void root_mean_square() {
    const Var x = float_tensor(1);
    const TensorType t = type(x);
    const std::vector<Attr> last = {{"axes", Integers{-1}}, {"keep_axes", true}};
    const Var mean = call("reduce_mean", {call("mul", {x, x})}, last);
    const Var root = call("sqrt", {call("add", {mean, build_.scalar(1e-6, x)})});
    const Var y =
        random_.chance(50) ? call("div", {x, root}) : call("mul", {x, call("reciprocal", {root})});
    if (t.dims.back().is_constant()) call("mul", {y, constant(t.dtype, {t.dims.back()})});
  }

  void softmax() {
    const Var x = float_tensor(1);
    const std::vector<Attr> last = {{"axes", Integers{-1}}, {"keep_axes", true}};
    const Var e = call("exp", {call("sub", {x, call("reduce_max", {x}, last)})});
    call("div", {e, call("reduce_sum", {e}, last)});
  }

  // Returns a coefficient of a formula: exact, rounded to f32, truncated, or a different one
  // nearby.
  double nearly(double value) {
    switch (random_.below(5)) {
      case 0:
        return static_cast<double>(static_cast<float>(value));
      case 1:
        return std::round(value * 1e3) / 1e3;
      case 2:
        return value * 1.0004;
      default:
        return value;
    }
  }

  void gelu() {
    const Var x = float_tensor();
    if (random_.chance(50)) {
      const Var inner = call("erf", {call("div", {x, build_.scalar(nearly(std::sqrt(2.0)), x)})});
      const Var share = call("add", {inner, build_.scalar(1, x)});
      call("mul", {call("mul", {x, share}), build_.scalar(nearly(0.5), x)});
      return;
    }
    const Var cube = call("pow", {x, build_.scalar(3, x)});
    const Var cubic = x + call("mul", {cube, build_.scalar(nearly(0.044715), x)});
    const Var inner =
        call("tanh", {call("mul", {cubic, build_.scalar(nearly(0.7978845608028654), x)})});
    call("mul",
         {call("mul", {x, build_.scalar(0.5, x)}), call("add", {inner, build_.scalar(1, x)})});
  }

  void activations() {
    const Var x = float_tensor();
    switch (random_.below(4)) {
      case 0:
        call("mul", {x, call("sigmoid", {x * nearly(1.702)})});
        break;
      case 1:
        call("div", {x, call("add", {call("exp", {call("neg", {x})}), build_.scalar(1, x)})});
        break;
      case 2: {
        const Var held = call("clip", {x + 3.0, build_.scalar(0, x), build_.scalar(6, x)});
        call("div", {call("mul", {x, held}), build_.scalar(nearly(6), x)});
        break;
      }
      default:
        call("mul",
             {x, call("hard_sigmoid", {x}, {{"alpha", nearly(1.0 / 6)}, {"beta", nearly(0.5)}})});
    }
  }

  void elementwise() {
    std::vector<Var> values = {float_tensor()};
    const int count = 3 + static_cast<int>(random_.below(4));
    for (int k = 0; k < count; ++k) {
      const Var a = random_.pick(values);
      values.push_back(random_.chance(50) ? unary(a) : binary(a, random_.pick(values)));
    }
  }

  void reduced() {
    Var x = float_tensor(1);
    if (random_.chance(60)) x = unary(x);
    static const std::vector<std::string> ops = {"reduce_sum", "reduce_mean", "reduce_max",
                                                 "reduce_l2", "reduce_prod"};
    const std::int64_t axis = random_.between(0, static_cast<std::int64_t>(rank(x)) - 1);
    const bool keeps = random_.chance(60);
    const Var y = call(random_.pick(ops), {x}, {{"axes", Integers{axis}}, {"keep_axes", keeps}});
    if (keeps)
      binary(x, y);
    else
      unary(y);
  }

  void around_and_back() {
    Var x = tensor();
    const std::int64_t axis = random_.between(0, static_cast<std::int64_t>(rank(x)));
    Var y = call("unsqueeze", {x}, {{"axes", Integers{axis}}});
    if (random_.chance(40)) y = unary(y);
    if (random_.chance(70))
      call("squeeze", {y}, {{"axes", Integers{axis}}});
    else
      call("tile", {y}, {{"repeats", Integers(rank(y), 1)}});
  }

  void branch() {
    const Var x = float_tensor();
    const Type t = build_.type(x);
    Var condition;
    switch (random_.below(3)) {
      case 0:
        condition = build_.constant(random_.chance(50) ? "bool[] true" : "bool[] false");
        break;
      case 1:
        condition = var(maker_.value_of(DType::Bool, {}));
        break;
      default:
        condition = call("logical_not", {build_.constant("bool[] true")});
        break;
    }
    std::vector<Graph> bodies;
    for (int k = 0; k < 2; ++k) {
      Builder body(k == 0 ? "then" : "else");
      Var y = body.input("x", t);
      if (k == 0) {
        y = body.call("relu", {y});
      } else {
        y = y + body.call("mul", {body.scalar(2, y), body.scalar(3, y)});
      }
      body.output(y, "y");
      bodies.push_back(body.take());
    }
    build_.call_all("if", {condition, x}, std::vector<Attr>{}, {""}, std::move(bodies));
  }

  void loop() {
    const Var x = float_tensor();
    Builder body("body");
    body.input("iteration", "i64[]");
    const Var going = body.input("going", "bool[]");
    const Var carried = body.input("carried", build_.type(x));
    body.output(body.call("identity", {going}), "again");
    body.output(
        carried * body.call("add", {body.scalar(0.25, carried), body.scalar(0.25, carried)}),
        "next");
    std::vector<Graph> bodies;
    bodies.push_back(body.take());
    const Var count =
        random_.chance(50) ? build_.constant("i64[] 2") : var(maker_.value_of(DType::I64, {}));
    build_.call_all("loop", {count, Var(), x}, std::vector<Attr>{{"carried_count", 1}}, {""},
                    std::move(bodies));
  }

  void repeated_calls() {
    const Var x = float_tensor();
    std::vector<Var> results;
    for (int k = 0; k < 2; ++k) {
      results.push_back(call("tanh", {call("mul", {x, build_.scalar(0.5, x)})}));
    }
    binary(results[0], results[1]);
  }

  void powers() {
    const Var x = float_tensor();
    static const std::vector<double> exponents = {2, 3, 0.5, 1, 0, -1, 4};
    call("pow", {x, build_.scalar(random_.pick(exponents), x)});
  }

  void attention() {
    const DType dtype = maker_.any_float();
    const Dim batch = maker_.any_extent(), length = random_.between(1, 4);
    const Dims dims = {batch, 2, length, 3};
    const Var q = var(maker_.value_of(dtype, dims)), k = var(maker_.value_of(dtype, dims));
    const Var v = var(maker_.value_of(dtype, dims));
    Var scores = call("matmul", {q, call("transpose", {k}, {{"perm", Integers{0, 1, 3, 2}}})});
    scores = random_.chance(50) ? scores * 0.5 : scores / nearly(std::sqrt(3.0));
    if (random_.chance(40)) scores = scores + var(maker_.value_of(dtype, {length, length}));
    call("matmul", {call("softmax", {scores}, {{"axis", -1}}), v});
  }

  GraphMaker& maker_;
  Random& random_;
  Builder& build_;
};

}  // namespace

void add_motif(GraphMaker& maker) { Motifs(maker).add_one(); }

}  // namespace tenon::testing
