#include "random_gradients.h"

#include "base/error.h"
#include "check_gradient.h"
#include "driver/compile.h"
#include "host/compiled.h"
#include "ir/text.h"
#include "numbers.h"
#include "reference/evaluate.h"
#include "tenon/builder.h"

#include <cmath>
#include <functional>
#include <iostream>
#include <random>

namespace tenon::testing {
namespace {

using Extents = std::vector<std::int64_t>;
using Integers = Attr::Integers;

constexpr std::int64_t kMostElements = 96;

class Maker {
 public:
  explicit Maker(std::uint64_t seed) : random_(seed), build_("random") {}

  Graph run() {
    const bool is_image = chance(2);
    values_.push_back(fresh(is_image
                                ? Extents{1 + below(2), 1 + below(3), 3 + below(3), 3 + below(3)}
                                : Extents{1 + below(4), 1 + below(4), 2 + below(3)}));
    const std::int64_t count = 3 + below(6);
    for (std::int64_t made = 0, tried = 0; made < count && tried < 60; ++tried)
      made += add_node() ? 1 : 0;
    build_.output(values_.back(), "y");
    if (chance(3)) build_.output(pick(), "z");
    return build_.take();
  }

 private:
  std::int64_t below(std::int64_t count) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(count));
  }
  bool chance(std::int64_t of) { return below(of) == 0; }
  Var pick() {
    return values_[static_cast<std::size_t>(below(static_cast<std::int64_t>(values_.size())))];
  }
  Extents shape(Var x) const { return build_.shape(x); }
  static std::int64_t elements(const Extents& extents) {
    std::int64_t count = 1;
    for (const std::int64_t extent : extents) count *= extent;
    return count;
  }

  Var fresh(const Extents& extents) {
    return build_.input(concat("x", inputs_++),
                        concat("f64", Dims(extents.begin(), extents.end())));
  }

  Var call(std::string_view op, const std::vector<Var>& operands,
           const std::vector<Attr>& attrs = {}) {
    return build_.call(op, operands, attrs);
  }

  // Keeps a value that is small enough to be an operand.
  bool keep(Var made) {
    if (elements(shape(made)) > kMostElements || shape(made).empty()) return false;
    values_.push_back(made);
    return true;
  }

  bool add_node() {
    switch (below(6)) {
      case 0:
        return keep(pointwise(pick()));
      case 1:
        return keep(arithmetic(pick()));
      case 2:
        return product(pick());
      case 3:
        return keep(norm(pick()));
      case 4:
        return keep(reduction(pick()));
      default:
        return keep(moved(pick()));
    }
  }

  Var pointwise(Var x) {
    static const char* const ops[] = {"tanh",
                                      "sigmoid",
                                      "softplus",
                                      "erf",
                                      "gelu",
                                      "swish",
                                      "mish",
                                      "sin",
                                      "cos",
                                      "softsign",
                                      "relu",
                                      "leaky_relu",
                                      "elu",
                                      "selu",
                                      "celu",
                                      "abs",
                                      "hard_sigmoid",
                                      "hard_swish",
                                      "thresholded_relu",
                                      "atan",
                                      "sinh",
                                      "asinh",
                                      "neg"};
    return call(ops[below(std::size(ops))], {x});
  }

  Var arithmetic(Var x) {
    Extents other = shape(x);
    for (std::int64_t& extent : other) extent = chance(3) ? 1 : extent;
    if (chance(3)) other.erase(other.begin());
    const Var y = chance(3) ? call("tanh", {x}) : fresh(other);
    switch (below(6)) {
      case 0:
        return x + y;
      case 1:
        return x - y;
      case 2:
        return x * y;
      case 3:
        return x / (call("tanh", {y}) + 2.0);
      case 4:
        return call("maximum", {x, y});
      default:
        return call("pow", {call("sigmoid", {x}) + 0.5, y});
    }
  }

  bool product(Var x) {
    const Extents from = shape(x);
    if (from.size() == 4 && !chance(4)) return keep(window(x, from));
    if (from.size() < 2) return false;
    return keep(call("matmul", {x, fresh({from.back(), 1 + below(4)})}));
  }

  Var window(Var x, const Extents& from) {
    const std::int64_t rows = 1 + below(std::min<std::int64_t>(3, from[2])),
                       columns = 1 + below(std::min<std::int64_t>(3, from[3]));
    const Integers strides{1 + below(2), 1 + below(2)},
        pads{below(rows), below(columns), below(rows), below(columns)};
    const std::vector<Attr> placed{{"strides", strides}, {"pads", pads}};
    std::vector<Attr> pooled = placed;
    pooled.emplace_back("kernel_shape", Integers{rows, columns});
    switch (below(6)) {
      case 0:
        return call("conv", {x, fresh({1 + below(3), from[1], rows, columns})}, placed);
      case 1:
        return call("conv", {x, fresh({from[1], 1, rows, columns})},
                    {{"strides", strides}, {"pads", pads}, {"groups", from[1]}});
      case 2:
        return call("conv_transpose", {x, fresh({from[1], 1 + below(2), rows, columns})},
                    {{"strides", strides}});
      case 3:
        return call("max_pool", {x}, pooled);
      case 4:
        return call("average_pool", {x}, pooled);
      default:
        return call("lp_pool", {call("sigmoid", {x})}, pooled);
    }
  }

  Var norm(Var x) {
    const Extents from = shape(x);
    const auto rank = static_cast<std::int64_t>(from.size());
    const Attr axis{"axis", below(rank)};
    const Extents last{from.back()};
    switch (below(7)) {
      case 0:
        return call("softmax", {x}, {axis});
      case 1:
        return call("log_softmax", {x}, {axis});
      case 2:
        return call("layer_norm", {x, fresh(last), fresh(last)}, {{"epsilon", 0.1}});
      case 3:
        return call("rms_norm", {x, fresh(last)}, {{"epsilon", 0.1}});
      case 4:
        return call("lp_norm", {x + 3.0}, {axis});
      case 5:
        if (rank < 3) return call("tanh", {x});
        return call("instance_norm", {x, fresh({from[1]}), fresh({from[1]})}, {{"epsilon", 0.1}});
      default:
        if (rank != 4) return call("sigmoid", {x});
        return call("lrn", {x}, {{"size", 3}, {"alpha", 0.3}, {"beta", 0.75}, {"bias", 1.5}});
    }
  }

  Var reduction(Var x) {
    static const char* const ops[] = {"reduce_sum",         "reduce_mean",       "reduce_l2",
                                      "reduce_log_sum_exp", "reduce_sum_square", "reduce_max",
                                      "reduce_min",         "reduce_prod",       "reduce_l1"};
    const auto rank = static_cast<std::int64_t>(shape(x).size());
    if (chance(5)) return call("cumsum", {x, build_.constant(concat("i64[] ", below(rank)))});
    const bool keeps = rank == 1 || chance(2);
    return call(ops[below(std::size(ops))], {x},
                {{"axes", Integers{below(rank)}}, {"keep_axes", keeps}});
  }

  Var moved(Var x) {
    const Extents from = shape(x);
    const auto rank = static_cast<std::int64_t>(from.size());
    const std::int64_t axis = below(rank), extent = from[static_cast<std::size_t>(axis)];
    switch (below(8)) {
      case 0: {
        Integers perm;
        for (std::int64_t k = 0; k < rank; ++k) perm.push_back((k + 1 + axis) % rank);
        return call("transpose", {x}, {{"perm", perm}});
      }
      case 1:
        return call("reshape", {x}, {{"shape", Integers{from[0], elements(from) / from[0]}}});
      case 2: {
        const std::int64_t start = below(extent);
        return call("slice", {x},
                    {{"starts", Integers{start}},
                     {"ends", Integers{start + 1 + below(extent - start)}},
                     {"axes", Integers{axis}}});
      }
      case 3:
        return call("concat", {x, call("sin", {x})}, {{"axis", axis}});
      case 4: {
        Integers pads(static_cast<std::size_t>(2 * rank), 0);
        pads[static_cast<std::size_t>(below(2 * rank))] = 1;
        return call("pad", {x}, {{"pads", pads}});
      }
      case 5:
        return call("gather", {x, build_.integers({below(extent), below(extent), 0})},
                    {{"axis", axis}});
      case 6:
        return call("unsqueeze", {x}, {{"axes", Integers{axis}}});
      default:
        return call("tile",
                    {x, build_.integers(Integers(static_cast<std::size_t>(rank), 1 + below(2)))});
    }
  }

  std::mt19937_64 random_;
  Builder build_;
  std::vector<Var> values_;
  int inputs_ = 0;
};

std::vector<Datum> inputs_for(const Graph& graph, std::uint64_t seed) {
  std::vector<Datum> inputs;
  for (const ValueId input : graph.inputs()) {
    const TensorType& type = graph.value(input).type.tensor();
    Shape shape;
    for (const Dim& dim : type.dims) shape.push_back(dim.constant());
    inputs.emplace_back(random_tensor(DType::F64, shape, seed * 100 + inputs.size(), -1.5, 1.5));
  }
  return inputs;
}

// Finite differences require finite values whose magnitude leaves digits for the difference.
bool is_tame(const Graph& graph, const std::vector<Datum>& inputs) {
  constexpr double kLarge = 1e3;
  for (const Datum& output : reference::evaluate(graph, inputs)) {
    for (const double value : output.tensor().reals()) {
      if (!(std::abs(value) < kLarge)) return false;
    }
  }
  return true;
}

std::string compiled_failure(const Graph& graph, const std::vector<Datum>& inputs) {
  const Graph gradients = with_gradients(graph, inputs);
  const std::vector<Datum> expected = reference::evaluate(gradients, inputs);
  CompiledModel model(driver::compile_graph(gradients), 2);
  const std::vector<Datum> actual = model.run(inputs);
  for (std::size_t k = 0; k < actual.size(); ++k) {
    const std::string found = difference(actual[k].tensor(), expected[k].tensor(), {1e-8, 1e-8});
    if (!found.empty()) return concat("compiled, gradient ", k, ": ", found);
  }
  return "";
}

}  // namespace

Graph random_differentiable_graph(std::uint64_t seed) { return Maker(seed).run(); }

int check_random_gradients(std::uint64_t first_seed, std::uint64_t count, bool compiles_all) {
  const std::uint64_t compiled_every = compiles_all ? 1 : 10;
  std::uint64_t passed = 0, failed = 0, left_out = 0;
  for (std::uint64_t seed = first_seed; passed + failed < count; ++seed) {
    std::string failure, text;
    try {
      const Graph graph = random_differentiable_graph(seed);
      text = print(graph);
      const std::vector<Datum> inputs = inputs_for(graph, seed);
      if (!is_tame(graph, inputs)) {
        ++left_out;
        continue;
      }
      failure = gradient_failure(graph, inputs, Kinks::LeftOut);
      if (failure.empty() && seed % compiled_every == 0) failure = compiled_failure(graph, inputs);
    } catch (const std::exception& error) {
      failure = error.what();
    }
    ++(failure.empty() ? passed : failed);
    if (!failure.empty())
      std::cout << "FAILED random gradient " << seed << "\n" << text << failure << "\n";
  }
  std::cout << left_out << " graphs left out: their numbers are too large\n";
  std::cout << passed << " passed, " << failed << " failed\n";
  return failed == 0 ? 0 : 1;
}

}  // namespace tenon::testing
