#include "documents/tensorscope/wiring.h"

#include "documents/native_node.h"

namespace tenon::documents::tensorscope {

Wiring::Wiring(const TensorScopeTable& given)
    : table(given), transposes_(given.rows.size(), 0), is_placed_(given.rows.size(), 0) {
  find_ops(table, step);
  step.sources.resize(table.rows.size());
  for (std::size_t k = 0; k < table.rows.size(); ++k) {
    const Row& each = table.rows[k];
    step.sources[k].resize(each.inputs.size());
    transposes_[k] = each.kind == RowKind::Node && each.inputs.size() == 2 &&
                     each.outputs.size() == 1 && layout_transpose(each.node).has_value();
    if (each.kind == RowKind::Copy && each.edge) copied_.insert(each.node);
    if (step.ops[k] == kOwnOp) connect_noted(static_cast<std::int64_t>(k));
    if (each.kind != RowKind::Fetch) continue;
    connect(static_cast<std::int64_t>(k), 0,
            {table.find_node(each.node), static_cast<std::size_t>(each.port)}, Evidence::Name);
  }
}

// Notes name operands by their rows: ROW, or ROW:PORT.
void Wiring::connect_noted(std::int64_t at) {
  const Graph record = parse_native(table.note(row(at).node));
  for (std::size_t input = 0; input < record.inputs().size(); ++input) {
    const std::string& name = record.value(record.inputs()[input]).name;
    const std::size_t colon = name.rfind(':');
    const std::int64_t port =
        colon == std::string::npos
            ? 0
            : plain_number(std::string_view(name).substr(colon + 1)).value_or(-1);
    if (port >= 0)
      connect(at, input, {table.find_node(name.substr(0, colon)), static_cast<std::size_t>(port)},
              Evidence::Name);
  }
}

OpClass Wiring::op_class(std::int64_t at) const {
  if (row(at).kind == RowKind::Feed) return OpClass::Source;
  const OpInfo* known = find_tf_op(op(at));
  return known == nullptr ? OpClass::Other : known->op_class;
}

bool Wiring::is_connected(std::int64_t reader, std::size_t input) const {
  return step.sources[static_cast<std::size_t>(reader)][input].row >= 0;
}

bool Wiring::connect(std::int64_t reader, std::size_t input, TensorId from, Evidence evidence,
                     std::size_t candidates) {
  if (reader < 0 || from.row < 0 || reader == from.row) return false;
  if (input >= row(reader).inputs.size() || from.port >= row(from.row).outputs.size()) return false;
  if (is_connected(reader, input)) return false;
  source(reader, input) = {from.row, from.port, evidence, candidates};
  if (is_layout_transpose(reader) && input == 0) {
    const TensorId whole = root(from);
    if (whole.port == 0 && whole.row != reader) versions_[whole.row].push_back(reader);
  }
  return true;
}

TensorId Wiring::root(TensorId id) const {
  // A malformed table may chain transposes in a cycle.
  for (std::size_t steps = 0; steps < 8 && is_layout_transpose(id.row); ++steps) {
    const DataSource& from = step.sources[static_cast<std::size_t>(id.row)][0];
    if (from.row < 0) break;
    id = {from.row, from.port};
  }
  return id;
}

TensorId Wiring::version(TensorId id, const TensorShape& wanted) const {
  if (!id.is_valid()) return {};
  const TensorId whole = root(id);
  if (shape(whole) == wanted) return whole;
  if (const auto found = versions_.find(whole.row); found != versions_.end() && whole.port == 0) {
    for (const std::int64_t transpose : found->second) {
      if (row(transpose).outputs[0] == wanted) return {transpose, 0};
    }
  }
  return {};
}

bool Wiring::is_copied(std::int64_t from, std::int64_t reader) const {
  const DeviceName &here = row(from).device, &there = row(reader).device;
  if (here == there || (here.type != "GPU" && there.type != "GPU")) return true;
  return copied_.empty() || copied_.contains(row(from).name());
}

std::int64_t Wiring::forward_of(std::int64_t at) const {
  const auto gradient = gradient_name(row(at).node);
  return gradient ? table.find_node(gradient->forward) : -1;
}

std::optional<GradientOperand> Wiring::gradient_operand_of(std::int64_t reader,
                                                           std::size_t input) const {
  const auto gradient = gradient_name(row(reader).node);
  if (!gradient) return std::nullopt;
  const std::int64_t forward = table.find_node(gradient->forward);
  if (forward < 0) return std::nullopt;
  const auto meanings = gradient_signature(op(reader), op(forward), gradient->part);
  if (input >= meanings.size()) return std::nullopt;
  return meanings[input];
}

bool Wiring::is_forward(std::int64_t at) const {
  const Row& each = row(at);
  if (op_class(at) == OpClass::Source) return true;
  if (const auto transpose = layout_transpose(each.node)) {
    const std::int64_t node = table.find_node(transpose->node);
    if (node < 0) return true;
    if (!transpose->to_nchw) return node == at || !is_in_gradients(transpose->node);
    const auto meaning = gradient_operand_of(node, static_cast<std::size_t>(transpose->input));
    return meaning ? *meaning != GradientOperand::Gradient : !is_in_gradients(transpose->node);
  }
  if (op(at).starts_with("Apply")) return false;  // an optimizer's update reads gradients
  return !is_in_gradients(each.node);
}

std::vector<GradientOperand> gradient_signature(std::string_view op, std::string_view forward_op,
                                                std::string_view part) {
  using enum GradientOperand;
  if (op == "ReluGrad" || op == "Relu6Grad" || op == "EluGrad") return {Gradient, Output};
  if (op == "TanhGrad" || op == "SigmoidGrad" || op == "SqrtGrad" || op == "RsqrtGrad")
    return {Output, Gradient};
  if (op == "MaxPoolGrad") return {Input0, Output, Gradient};
  if (op == "AvgPoolGrad") return {Shape, Gradient};
  if (op == "LRNGrad") return {Gradient, Input0, Output};
  if (op == "BiasAddGrad") return {Gradient};
  if (op == "Conv2DBackpropFilter") return {Input0, Shape, Gradient};
  if (op == "Conv2DBackpropInput") return {Shape, Input1, Gradient};
  if ((op == "MatMul" && forward_op == "MatMul") || (op == "Mul" && forward_op == "Mul")) {
    const bool is_second = numbered(part).number == 1;
    return is_second ? std::vector<GradientOperand>{Input0, Gradient}
                     : std::vector<GradientOperand>{Gradient, Input1};
  }
  if (op == "Reshape" && forward_op == "Reshape") return {Gradient, Shape};
  return {};
}

DataFlow reconstruct(const TensorScopeTable& table) {
  Wiring wiring(table);
  wiring.connect_by_name();
  wiring.connect_by_gradient_inputs();
  wiring.connect_by_controls();
  std::vector<char> belongs(table.rows.size(), 0);
  for (std::size_t k = 0; k < table.rows.size(); ++k) {
    const RowKind kind = table.rows[k].kind;
    const bool flows = kind == RowKind::Node || kind == RowKind::Feed;
    belongs[k] = flows && wiring.is_forward(static_cast<std::int64_t>(k));
  }
  wiring.grow(belongs);
  wiring.connect_gradients();
  for (std::size_t k = 0; k < table.rows.size(); ++k) {
    const RowKind kind = table.rows[k].kind;
    belongs[k] = kind == RowKind::Node || kind == RowKind::Feed;
  }
  wiring.grow(belongs);
  return std::move(wiring.step);
}

bool is_compute(const TensorScopeTable& table, const DataFlow& step, std::size_t row) {
  if (table.rows[row].kind != RowKind::Node) return false;
  const OpInfo* known = find_tf_op(step.ops[row]);
  if (known != nullptr && known->op_class == OpClass::Source) return false;
  return last_part(table.rows[row].node) != "read";
}

}  // namespace tenon::documents::tensorscope
