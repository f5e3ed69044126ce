#include "base/error.h"
#include "zoo/layers.h"

#include <cmath>

namespace tenon::zoo {
namespace {

/// Extents of an LSTM layer, and the element type with its opening bracket: "f32[".
struct CellShape {
  std::string element, batch;
  std::int64_t hidden;

  std::string state_type() const { return concat(element, batch, ", ", hidden, "]"); }
  std::string gates_type() const { return concat(element, batch, ", ", 4 * hidden, "]"); }
  std::string recurrent_type() const { return concat(element, hidden, ", ", 4 * hidden, "]"); }
};

// One step; gates are in the order input, output, forget, cell.
Graph step(const CellShape& shape) {
  Builder build("step");
  const Var h = build.input("h", shape.state_type()), c = build.input("c", shape.state_type());
  const Var projected = build.input("projected", shape.gates_type());
  const Var recurrent = build.input("recurrent", shape.recurrent_type());
  const Var gates = projected + build.call("matmul", {h, recurrent});
  const std::vector<Attr> last_axis{{"axis", -1}};
  const std::vector<Var> parts = build.call_all(
      "split", {gates}, last_axis, {"input_gate", "output_gate", "forget_gate", "cell_gate"});
  const Var input = build.call("sigmoid", {parts[0]}), forget = build.call("sigmoid", {parts[2]});
  const Var cell = forget * c + input * build.call("tanh", {parts[3]});
  const Var next = build.call("sigmoid", {parts[1]}) * build.call("tanh", {cell});
  build.output(next, "next_h");
  build.output(cell, "next_c");
  build.output(build.call("identity", {next}), "y");
  return build.take();
}

Graph make_lstm(const NetworkSettings& settings) {
  Layers net(settings);
  Builder& build = net.builder();
  const std::string batch = settings.extent("batch"), seq = settings.extent("seq");
  const std::int64_t size = settings.number("size", 1, 1 << 20);
  const std::int64_t hidden = settings.number("hidden", 1, 1 << 16);
  const CellShape shape{net.element_type() + "[", batch, hidden};
  const double bound = 1 / std::sqrt(static_cast<double>(hidden));
  const auto weight = [&](const char* name, const Attr::Integers& extents) {
    return net.uniform(name, extents, -bound, bound);
  };

  const Var x = build.input("x", concat(shape.element, seq, ", ", batch, ", ", size, "]"));
  // The input projection does not depend on the previous step and is computed for all steps at
  // once.
  Var projected = build.call("matmul", {x, weight("weight_input", {size, 4 * hidden})});
  projected = projected + weight("bias_input", {4 * hidden}) + weight("bias_hidden", {4 * hidden});
  const Var zeros =
      build.call("expand", {build.scalar(0, x)},
                 {{"shape", std::vector<std::string>{batch, std::to_string(hidden)}}}, "zeros");
  const std::vector<Attr> counts{{"state_count", 2}, {"input_count", 1}};
  std::vector<Graph> bodies;
  bodies.push_back(step(shape));
  const std::vector<Var> results = build.call_all(
      "scan", {zeros, zeros, projected, weight("weight_hidden", {hidden, 4 * hidden})}, counts,
      {"last_h", "last_c", "y"}, std::move(bodies));
  build.output(results[2]);
  build.output(build.call("unsqueeze", {results[0]}, {{"axes", Attr::Integers{0}}}, "h"));
  return net.take();
}

}  // namespace

std::vector<Recipe> recurrent_recipes() {
  return {{{"lstm", "one layer of LSTM cells over a sequence [seq, batch, size]",
            with_common({{"seq", "64", "steps: a number, or a symbol such as S"},
                         {"size", "256", "extent of an input"},
                         {"hidden", "512", "extent of the state"}})},
           make_lstm}};
}

}  // namespace tenon::zoo
