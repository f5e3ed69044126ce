#include "base/error.h"
#include "frontends/onnx/import_node.h"
#include "frontends/onnx/recurrent_cell.h"
#include "ops/definition/var_ops.h"

namespace tenon::frontends::onnx {
namespace {

struct CellKind {
  RecurrentCell::Step step;
  std::int64_t gates;
  std::size_t states;
  std::vector<std::string> default_activations;
  /// DynamicQuantizeLSTM: weights are bytes, transposed, with scales and zero points in inputs 8-11
  bool is_quantized = false;
};

Var transposed(Var x, Attr::Integers perm) {
  return x.builder().call("transpose", {x}, {{"perm", std::move(perm)}});
}

/// Imports one RNN, GRU or LSTM node: a scan over the steps for each direction.
class Recurrence {
 public:
  Recurrence(NodeImport& import, const CellKind& cell_kind);
  void run();

 private:
  struct Direction {
    std::int64_t index;
    bool is_reverse;
  };
  // Returns a scan's results: the last states, then h of every step if it is used.
  std::vector<Var> scan(const Direction& direction);
  Var given(std::size_t input, Dims dims) const;
  Var given(std::size_t input) const;
  RecurrentCell cell_of(const Direction& direction) const;
  Var part(std::size_t input, const Direction& direction, std::int64_t axis = 0) const;
  Var initial_state(std::size_t input, const Direction& direction) const;
  std::pair<CellInputs, Var> outer_inputs(const RecurrentCell& cell,
                                          const Direction& direction) const;
  Var steps_inside_lengths() const;
  void output_states(const std::vector<std::vector<Var>>& by_direction);

  NodeImport& node;
  const CellKind& kind;
  std::vector<Direction> directions;
  bool batch_first;  // layout 1
  Var x;             // [steps, batch, size]
  Dim steps, batch;
  std::int64_t hidden = 0;
};

Recurrence::Recurrence(NodeImport& import, const CellKind& cell_kind)
    : node(import), kind(cell_kind), batch_first(import.integer("layout", 0) != 0) {
  const std::string direction = node.text("direction", "forward");
  if (direction == "forward") {
    directions = {{0, false}};
  } else if (direction == "reverse") {
    directions = {{0, true}};
  } else if (direction == "bidirectional") {
    directions = {{0, false}, {1, true}};
  } else {
    throw Error(concat(node.op_type(), ": no such direction"))
        .expected("forward, reverse or bidirectional")
        .got(direction);
  }
  Dims dims;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    dims.push_back(Dim::symbol(concat(node.name_of(node.input(0)), "#", axis)));
  }
  x = given(0, dims);
  if (batch_first) x = transposed(x, {1, 0, 2});
  dims = node.dims(x);
  const Dims recurrent = node.rank(node.input(2)) ? node.dims(node.input(2)) : Dims(3, Dim(0));
  if (dims.size() != 3 || recurrent.size() != 3) {
    throw Error(concat(node.op_type(), ": inputs have the wrong rank"))
        .expected("X: [steps, batch, size], R: [directions, gates, hidden]")
        .got("X: ", dims, ", R: ", recurrent);
  }
  steps = dims[0];
  batch = dims[1];
  const std::int64_t declared = node.integer("hidden_size", 0);
  hidden = declared > 0 ? declared : recurrent[kind.is_quantized ? 1 : 2].value().value_or(0);
  if (hidden < 1) node.unsupported("it needs its hidden size before the model runs");
}

// The operator fixes the ranks of its inputs, so that those of an unknown type have one, too.
Var Recurrence::given(std::size_t input, Dims dims) const {
  const DType dtype = input == 4 ? DType::I32 : node.dtype(node.input(kind.is_quantized ? 0 : 1));
  return node.with_extents(node.input(input), dtype, std::move(dims));
}

Var Recurrence::given(std::size_t input) const {
  const bool is_of_weights = input == 1 || input == 2 || input > 7;
  if (kind.is_quantized && is_of_weights) return node.input(input);
  const auto count = static_cast<std::int64_t>(directions.size());
  const std::int64_t width = kind.gates * hidden;
  switch (input) {
    case 1:
      return given(input, {count, width, node.dims(x)[2]});
    case 2:
      return given(input, {count, width, hidden});
    case 3:
      return given(input, {count, 2 * width});
    case 4:
      return given(input, Dims{batch});
    case 7:
      return given(input, {count, 3 * hidden});
    default:
      return given(input, batch_first ? Dims{batch, count, hidden} : Dims{count, batch, hidden});
  }
}

RecurrentCell Recurrence::cell_of(const Direction& direction) const {
  std::vector<std::string> names = node.texts("activations");
  const std::size_t each = kind.default_activations.size();
  while (names.size() < each * directions.size()) {
    names.push_back(kind.default_activations[names.size() % each]);
  }
  const std::vector<RecurrentActivation> all =
      read_activations(names, node.reals("activation_alpha"), node.reals("activation_beta"));
  RecurrentCell cell;
  cell.hidden = hidden;
  const auto first = all.begin() + direction.index * static_cast<std::ptrdiff_t>(each);
  cell.activations.assign(first, first + static_cast<std::ptrdiff_t>(each));
  cell.clip = node.real("clip", 0);
  cell.resets_late = node.integer("linear_before_reset", 0) != 0;
  cell.couples_forget = node.integer("input_forget", 0) != 0;
  return cell;
}

// Slices one direction out of an input along the axis of directions.
Var Recurrence::part(std::size_t input, const Direction& direction, std::int64_t axis) const {
  const auto position = static_cast<double>(direction.index);
  const Var index = node.build.constant(Tensor::scalar(DType::I64, position));
  return node.call("gather", {given(input), index}, {{"axis", axis}});
}

Var Recurrence::initial_state(std::size_t input, const Direction& direction) const {
  if (!node.has_input(input)) return expand_to(node.build.scalar(0, x), {batch, hidden});
  return part(input, direction, batch_first ? 1 : 0);
}

// Returns the operands of every step, and for each step a mask of the batch elements that are still
// running.
std::pair<CellInputs, Var> Recurrence::outer_inputs(const RecurrentCell& cell,
                                                    const Direction& direction) const {
  const std::int64_t width = kind.gates * hidden;
  const auto slice = [&](Var value, std::int64_t axis, std::int64_t from, std::int64_t to) {
    return node.call("slice", {value},
                     {{"starts", Attr::Integers{from}},
                      {"ends", Attr::Integers{to}},
                      {"axes", Attr::Integers{axis}}});
  };
  CellInputs in;
  if (kind.is_quantized) {
    const auto optional_part = [&](std::size_t input) {
      return node.has_input(input) ? part(input, direction) : Var();
    };
    in.projected = dynamic_product(x, {part(1, direction), part(8, direction), optional_part(9)});
    in.recurrent = part(2, direction);
    in.recurrent_scale = part(10, direction);
    in.recurrent_zero_point = optional_part(11);
  } else {
    in.projected = node.call("matmul", {x, transposed(part(1, direction), {1, 0})});
    in.recurrent = transposed(part(2, direction), {1, 0});
  }
  const bool is_gru = kind.gates == 3;
  if (node.has_input(3)) {
    const Var biases = part(3, direction);
    in.projected = in.projected + slice(biases, 0, 0, width);
    const Var recurrent_bias = slice(biases, 0, width, 2 * width);
    if (is_gru && cell.resets_late) {
      in.recurrent_bias = recurrent_bias;
    } else {
      in.projected = in.projected + recurrent_bias;
    }
  }
  if (is_gru && !cell.resets_late) {
    in.recurrent_reset = slice(in.recurrent, 1, 2 * hidden, width);
    in.recurrent = slice(in.recurrent, 1, 0, 2 * hidden);
  }
  if (kind.states == 2 && node.has_input(7)) in.peepholes = part(7, direction);
  return {in, node.has_input(4) ? steps_inside_lengths() : Var()};
}

// Returns [steps, batch, 1]: whether the step is inside the batch element's sequence.
Var Recurrence::steps_inside_lengths() const {
  const Var lengths = cast_to(given(4), DType::I64);
  const Var ones = expand_to(node.build.scalar(1, lengths), {steps});
  const Var step = node.call("cumsum", {ones}, {{"axis", 0}, {"exclusive", true}});
  return node.call("less", {reshape_to(step, {steps, 1, 1}), reshape_to(lengths, {batch, 1})});
}

std::vector<Var> Recurrence::scan(const Direction& direction) {
  const RecurrentCell cell = cell_of(direction);
  const auto [outer, is_running] = outer_inputs(cell, direction);
  Builder body("step");
  std::vector<Var> operands;
  const auto add_input = [&](const char* name, Var value, bool is_scanned) {
    if (!value.is_valid()) return Var();
    operands.push_back(value);
    TensorType type = node.type(value).tensor();
    if (is_scanned) type.dims.erase(type.dims.begin());
    return body.input(name, Type(type));
  };
  std::vector<Var> states{add_input("h", initial_state(5, direction), false)};
  if (kind.states == 2) states.push_back(add_input("c", initial_state(6, direction), false));
  CellInputs in;
  in.projected = add_input("projected", outer.projected, true);
  const Var runs = add_input("runs", is_running, true);
  in.recurrent = add_input("recurrent", outer.recurrent, false);
  in.recurrent_scale = add_input("recurrent_scale", outer.recurrent_scale, false);
  in.recurrent_zero_point = add_input("recurrent_zero_point", outer.recurrent_zero_point, false);
  in.recurrent_reset = add_input("recurrent_reset", outer.recurrent_reset, false);
  in.recurrent_bias = add_input("recurrent_bias", outer.recurrent_bias, false);
  in.peepholes = add_input("peepholes", outer.peepholes, false);

  const std::vector<Var> next = (cell.*kind.step)(in, states);
  for (std::size_t k = 0; k < next.size(); ++k) {
    body.output(runs.is_valid() ? body.call("where", {runs, next[k], states[k]}) : next[k]);
  }
  std::vector<std::string> names(kind.states, "");
  if (node.wants_output(0)) {
    // Steps past the end of a sequence give zeros.
    body.output(runs.is_valid() ? body.call("where", {runs, next[0], body.scalar(0, next[0])})
                                : body.call("identity", {next[0]}));
    names.emplace_back("");
  }
  const std::int64_t input_count = is_running.is_valid() ? 2 : 1;
  const std::int64_t reverse = direction.is_reverse ? 1 : 0;
  std::vector<Graph> bodies;
  bodies.push_back(body.take());
  return node.build.call_all(
      "scan", operands,
      {{"state_count", static_cast<std::int64_t>(kind.states)},
       {"input_count", input_count},
       {"input_reverse", Attr::Integers(static_cast<std::size_t>(input_count), reverse)},
       {"output_reverse", Attr::Integers{reverse}}},
      names, std::move(bodies));
}

void Recurrence::output_states(const std::vector<std::vector<Var>>& by_direction) {
  for (std::size_t k = 0; k < kind.states; ++k) {
    if (!node.wants_output(k + 1)) continue;
    std::vector<Var> parts;
    for (const std::vector<Var>& results : by_direction) {
      parts.push_back(reshape_to(results[k], {1, batch, hidden}));
    }
    const Var all = parts.size() == 1 ? parts[0] : node.call("concat", parts, {{"axis", 0}});
    node.output(k + 1, batch_first ? transposed(all, {1, 0, 2}) : all);
  }
}

void Recurrence::run() {
  std::vector<std::vector<Var>> by_direction;
  for (const Direction& direction : directions) by_direction.push_back(scan(direction));
  output_states(by_direction);
  if (!node.wants_output(0)) return;
  std::vector<Var> parts;
  for (const std::vector<Var>& results : by_direction) {
    parts.push_back(reshape_to(results[kind.states], {steps, 1, batch, hidden}));
  }
  const Var all = parts.size() == 1 ? parts[0] : node.call("concat", parts, {{"axis", 1}});
  node.output(0, batch_first ? transposed(all, {2, 0, 1, 3}) : all);
}

void import_rnn(NodeImport& node) {
  const CellKind kind{&RecurrentCell::rnn, 1, 1, {"Tanh"}};
  Recurrence(node, kind).run();
}
void import_gru(NodeImport& node) {
  const CellKind kind{&RecurrentCell::gru, 3, 1, {"Sigmoid", "Tanh"}};
  Recurrence(node, kind).run();
}
void import_lstm(NodeImport& node) {
  const CellKind kind{&RecurrentCell::lstm, 4, 2, {"Sigmoid", "Tanh", "Tanh"}};
  Recurrence(node, kind).run();
}
void import_quantized_lstm(NodeImport& node) {
  const CellKind kind{&RecurrentCell::lstm, 4, 2, {"Sigmoid", "Tanh", "Tanh"}, true};
  Recurrence(node, kind).run();
}

constexpr Handler recurrent_table[] = {
    {"DynamicQuantizeLSTM", import_quantized_lstm, "com.microsoft"},
    {"GRU", import_gru},
    {"LSTM", import_lstm},
    {"RNN", import_rnn},
};

}  // namespace

std::span<const Handler> recurrent_handlers() { return recurrent_table; }

}  // namespace tenon::frontends::onnx
