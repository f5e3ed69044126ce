#include "frontends/onnx/recurrent_cell.h"
#include "frontends/torch/import_node.h"
#include "ops/definition/var_ops.h"

namespace tenon::frontends::torch {
namespace {

using onnx::CellInputs;
using onnx::RecurrentCell;

// A kind of cell. `gate_order`: PyTorch's gates in the order of ONNX, which RecurrentCell has.
struct CellKind {
  RecurrentCell::Step step;
  std::vector<std::int64_t> gate_order;
  std::size_t state_count;
  std::vector<std::string> activations;
};

// Imports a stack of recurrent layers: a scan over the steps for each layer and direction.
class Recurrence {
 public:
  Recurrence(NodeImport& import, CellKind cell_kind)
      : n(import), kind(std::move(cell_kind)), params(n.tensors("params")) {
    if (n.overload == "data") n.unsupported("packed sequences");
    if (n.flag("train") && n.real("dropout", 0) > 0)
      n.unsupported("it is in training mode; call eval() before the export");
    batch_first = n.flag("batch_first");
    has_biases = n.flag("has_biases");
    direction_count = n.flag("bidirectional") ? 2 : 1;
    layer_count = n.integer("num_layers");
    states = kind.state_count == 2 ? n.tensors("hx") : std::vector<Var>{n.tensor("hx")};
    const std::size_t per_cell = has_biases ? 4 : 2;
    if (params.size() != per_cell * static_cast<std::size_t>(layer_count * direction_count) ||
        states.size() != kind.state_count)
      n.unsupported("projected states");
  }

  void run() {
    Var x = n.tensor("input");
    if (batch_first) x = n.swapped(x, 0, 1);
    std::vector<std::vector<Var>> last(kind.state_count);
    for (std::int64_t layer = 0; layer < layer_count; ++layer) {
      std::vector<Var> outputs;
      for (std::int64_t direction = 0; direction < direction_count; ++direction) {
        const std::vector<Var> made = scan(x, layer * direction_count + direction, direction == 1);
        for (std::size_t k = 0; k < kind.state_count; ++k) last[k].push_back(made[k]);
        outputs.push_back(made[kind.state_count]);
      }
      x = outputs.size() == 1 ? outputs[0] : n.call("concat", outputs, {{"axis", Dim(-1)}});
    }
    std::vector<Var> results = {batch_first ? n.swapped(x, 0, 1) : x};
    for (const std::vector<Var>& parts : last) results.push_back(stacked(parts));
    // The exporter's own description of bidirectional states has an axis too many.
    n.results(results, false);
  }

 private:
  Var stacked(const std::vector<Var>& parts) const {
    std::vector<Var> layers;
    for (const Var part : parts) {
      Dims dims = n.dims(part);
      dims.insert(dims.begin(), Dim(1));
      layers.push_back(reshape_to(part, dims));
    }
    return layers.size() == 1 ? layers[0] : n.call("concat", layers, {{"axis", Dim(0)}});
  }

  // Brings the gates along axis 0 into the order of RecurrentCell.
  Var ordered(Var weights) const {
    if (kind.gate_order.size() == 1) return weights;
    const std::int64_t hidden = hidden_size();
    std::vector<Var> parts;
    for (const std::int64_t gate : kind.gate_order) {
      parts.push_back(n.call("slice", {weights},
                             {{"starts", Dims{gate * hidden}},
                              {"ends", Dims{(gate + 1) * hidden}},
                              {"axes", Dims{0}}}));
    }
    return n.call("concat", parts, {{"axis", Dim(0)}});
  }

  std::int64_t hidden_size() const {
    const Dims dims = n.dims(states.front());
    if (dims.size() != 3) n.unsupported("states of another rank than 3");
    const Dim hidden = dims.back();
    if (!hidden.is_constant()) n.unsupported("a symbolic number of states");
    return hidden.constant();
  }

  Var initial(std::size_t which, std::int64_t cell) const {
    const Var index = n.build.constant(Tensor::scalar(DType::I64, static_cast<double>(cell)));
    return n.call("gather", {states[which], index}, {{"axis", Dim(0)}});
  }

  CellInputs outer_inputs(Var x, std::int64_t cell) const {
    const std::size_t first = static_cast<std::size_t>(cell) * (has_biases ? 4 : 2);
    CellInputs in;
    in.projected = n.call("matmul", {x, n.swapped(ordered(params[first]), 0, 1)});
    in.recurrent = n.swapped(ordered(params[first + 1]), 0, 1);
    if (!has_biases) return in;
    in.projected = in.projected + ordered(params[first + 2]);
    const Var recurrent_bias = ordered(params[first + 3]);
    if (kind.gate_order.size() == 3) {  // GRU: the reset gate scales the biased product.
      in.recurrent_bias = recurrent_bias;
    } else {
      in.projected = in.projected + recurrent_bias;
    }
    return in;
  }

  std::vector<Var> scan(Var x, std::int64_t which, bool is_reverse) const {
    const CellInputs outer = outer_inputs(x, which);
    RecurrentCell cell;
    cell.hidden = hidden_size();
    cell.activations = onnx::read_activations(kind.activations, {}, {});
    cell.resets_late = kind.gate_order.size() == 3;
    Builder body("step");
    std::vector<Var> operands;
    const auto add_input = [&](const char* name, Var value, bool is_scanned) {
      if (!value.is_valid()) return Var();
      operands.push_back(value);
      TensorType type = n.build.type(value).tensor();
      if (is_scanned) type.dims.erase(type.dims.begin());
      return body.input(name, Type(type));
    };
    std::vector<Var> inner = {add_input("h", initial(0, which), false)};
    if (kind.state_count == 2) inner.push_back(add_input("c", initial(1, which), false));
    CellInputs in;
    in.projected = add_input("projected", outer.projected, true);
    in.recurrent = add_input("recurrent", outer.recurrent, false);
    in.recurrent_bias = add_input("recurrent_bias", outer.recurrent_bias, false);
    const std::vector<Var> next = (cell.*kind.step)(in, inner);
    for (const Var state : next) body.output(state);
    body.output(body.call("identity", {next[0]}));
    std::vector<Graph> bodies;
    bodies.push_back(body.take());
    const std::int64_t reverse = is_reverse ? 1 : 0;
    return n.build.call_all(
        "scan", operands,
        Attributes{{"state_count", Dim(static_cast<std::int64_t>(kind.state_count))},
                   {"input_count", Dim(1)},
                   {"input_reverse", Dims{reverse}},
                   {"output_reverse", Dims{reverse}}},
        std::vector<std::string>(kind.state_count + 1), std::move(bodies));
  }

  NodeImport& n;
  CellKind kind;
  std::vector<Var> params, states;
  bool batch_first = false, has_biases = false;
  std::int64_t direction_count = 1, layer_count = 1;
};

void import_lstm(NodeImport& n) {
  Recurrence(n, {&RecurrentCell::lstm, {0, 3, 1, 2}, 2, {"Sigmoid", "Tanh", "Tanh"}}).run();
}
void import_gru(NodeImport& n) {
  Recurrence(n, {&RecurrentCell::gru, {1, 0, 2}, 1, {"Sigmoid", "Tanh"}}).run();
}
void import_rnn(NodeImport& n) {
  Recurrence(n, {&RecurrentCell::rnn, {0}, 1, {n.op == "rnn_relu" ? "Relu" : "Tanh"}}).run();
}

constexpr Handler recurrent_table[] = {
    {"lstm", import_lstm},
    {"gru", import_gru},
    {"rnn_tanh", import_rnn},
    {"rnn_relu", import_rnn},
};

}  // namespace

std::span<const Handler> recurrent_handlers() { return recurrent_table; }

}  // namespace tenon::frontends::torch
