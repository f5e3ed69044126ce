#include "base/error.h"
#include "documents/tensorscope/wiring.h"

#include <algorithm>
#include <map>
#include <span>

namespace tenon::documents::tensorscope {
namespace {

constexpr std::size_t max_in_layer = 64;

// Returns the layer in a name. Other frameworks separate scopes by dots.
std::string_view layer_of(std::string_view name) {
  const std::size_t end = name.find_last_of("/.");
  return end == std::string_view::npos ? std::string_view() : name.substr(0, end);
}

// Rows by scope.
class NameScopes {
 public:
  explicit NameScopes(const Wiring& wiring) {
    for (std::size_t k = 0; k < wiring.table.rows.size(); ++k) {
      const Row& row = wiring.table.rows[k];
      if (row.kind != RowKind::Node || row.outputs.empty()) continue;
      const auto at = static_cast<std::int64_t>(k);
      const std::string_view name = row.node;
      const std::string key =
          concat(layer_of(name), "\n", wiring.op(at), "\n", numbered(last_part(name)).number);
      // Ambiguous names are dropped.
      if (const auto [found, is_new] = nodes_.emplace(key, at); !is_new) found->second = -1;
      if (wiring.op_class(at) != OpClass::Source) {
        if (last_part(name) != "read") continue;
        variables_[std::string(layer_of(scope_of(name)))].push_back(at);
      } else {
        constants_[std::string(scope_of(name))].push_back(at);
        if (wiring.table.find_node(row.node + "/read") < 0) {
          variables_[std::string(layer_of(name))].push_back(at);
        }
      }
    }
  }

  // Returns the node of an operator in a scope; `number` distinguishes Conv2D from Conv2D_1.
  std::int64_t find(std::string_view scope, std::string_view op, std::int64_t number) const {
    const auto found = nodes_.find(concat(scope, "\n", op, "\n", number));
    return found == nodes_.end() ? -1 : found->second;
  }
  // Variables of a layer: "conv1/weights/read" and "conv1.weight/read" belong to conv1. A scope
  // with very many variables is not a layer, and is ignored.
  std::span<const std::int64_t> variables(std::string_view layer) const {
    return in(variables_, layer);
  }
  std::span<const std::int64_t> constants(std::string_view scope) const {
    return in(constants_, scope);
  }

 private:
  using ByScope = std::map<std::string, std::vector<std::int64_t>, std::less<>>;

  static std::span<const std::int64_t> in(const ByScope& lists, std::string_view scope) {
    const auto found = lists.find(scope);
    if (found == lists.end() || found->second.size() > max_in_layer) return {};
    return found->second;
  }

  std::map<std::string, std::int64_t, std::less<>> nodes_;
  ByScope variables_, constants_;
};

void connect_optimiser_row(Wiring& wiring, std::int64_t at) {
  const std::string& name = wiring.row(at).node;
  if (const auto transpose = layout_transpose(name); transpose && wiring.is_layout_transpose(at)) {
    const std::int64_t node = wiring.table.find_node(transpose->node);
    wiring.connect(at, 1, {wiring.table.find_node(permutation_name(transpose->to_nchw)), 0},
                   Evidence::Name);
    if (transpose->to_nchw) {
      wiring.connect(node, static_cast<std::size_t>(transpose->input), {at, 0}, Evidence::Name);
    } else {
      wiring.connect(at, 0, {node, 0}, Evidence::Name);
    }
  } else if (const auto constant = permuted_constant(name)) {
    wiring.connect(wiring.table.find_node(constant->node),
                   static_cast<std::size_t>(constant->input), {at, 0}, Evidence::Name);
  }
}

// Connects the image or filter shape that a convolution's gradient reads.
void connect_folded_shape(Wiring& wiring, std::int64_t at) {
  const auto folded = folded_shape(wiring.row(at).node);
  const auto gradient = folded ? gradient_name(folded->node) : std::nullopt;
  if (!gradient) return;
  const auto reader = [&](std::string_view op) {
    return wiring.table.find_node(concat(gradient->scope, "/", op));
  };
  if (folded->port == 0) {
    wiring.connect(reader("Conv2DBackpropInput"), 0, {at, 0}, Evidence::Name);
    wiring.connect(reader("AvgPoolGrad"), 0, {at, 0}, Evidence::Name);
  } else if (folded->port == 1) {
    wiring.connect(reader("Conv2DBackpropFilter"), 1, {at, 0}, Evidence::Name);
  }
}

// Returns the scope with the parts of a layer: a node named like a scope is the scope's result.
std::string_view layer_scope(const Wiring& wiring, const NameScopes& scopes, std::int64_t at) {
  const std::string& name = wiring.row(at).node;
  const bool is_scope = !scopes.variables(name).empty() || scopes.find(name, "Conv2D", 0) >= 0 ||
                        scopes.find(name, "MatMul", 0) >= 0 ||
                        scopes.find(name, "DepthwiseConv2dNative", 0) >= 0;
  return is_scope ? std::string_view(name) : layer_of(name);
}

// "conv1.relu" follows a node named conv1, unless that is an activation.
std::int64_t end_of_layer(const Wiring& wiring, std::string_view scope, std::int64_t at) {
  const std::int64_t whole = scope == wiring.row(at).node ? -1 : wiring.table.find_node(scope);
  if (whole < 0 || wiring.row(whole).outputs.empty()) return -1;
  const bool may_precede = wiring.op(whole) == "BiasAdd" || wiring.op(whole) == "FusedBatchNorm" ||
                           wiring.op_class(whole) == OpClass::Contraction;
  return may_precede && wiring.row(whole).outputs[0] == wiring.row(at).inputs[0] ? whole : -1;
}

// TensorFlow's layer functions create operators in this order within one scope.
void connect_in_layer(Wiring& wiring, const NameScopes& scopes, std::int64_t at) {
  const bool adds_bias = wiring.op(at) == "BiasAdd", normalizes = wiring.op(at) == "FusedBatchNorm";
  if (wiring.op_class(at) != OpClass::Same || wiring.row(at).inputs.empty()) return;
  const std::string_view scope = layer_scope(wiring, scopes, at);
  if (scope.empty()) return;
  const std::int64_t number = numbered(last_part(wiring.row(at).node)).number;
  if (const std::int64_t whole = end_of_layer(wiring, scope, at); whole >= 0) {
    wiring.connect(at, 0, {whole, 0}, Evidence::Name);
    return;
  }
  std::vector<std::string_view> before;
  if (!adds_bias && !normalizes) before = {"FusedBatchNorm"};
  if (!adds_bias) before.insert(before.end(), {"BiasAdd", "Add"});
  before.insert(before.end(), {"Conv2D", "MatMul", "DepthwiseConv2dNative", "BatchMatMul"});
  for (const std::string_view op : before) {
    for (const std::int64_t count : {number, std::int64_t{0}}) {
      const std::int64_t found = scopes.find(scope, op, count);
      if (found < 0 || found == at || wiring.row(found).outputs[0] != wiring.row(at).inputs[0])
        continue;
      if (wiring.connect(at, 0, {found, 0}, Evidence::Name)) return;
    }
  }
}

void connect_variables(Wiring& wiring, const NameScopes& scopes, std::int64_t at) {
  const Row& row = wiring.row(at);
  const bool normalizes = wiring.op(at) == "FusedBatchNorm";
  if (!normalizes && wiring.op_class(at) != OpClass::Contraction && wiring.op(at) != "BiasAdd")
    return;
  constexpr std::string_view words[][3] = {{"gamma", "scale", "weight"},
                                           {"beta", "offset", "bias"},
                                           {"mean", "mean", "mean"},
                                           {"var", "var", "var"}};
  for (std::size_t input = 1; input < row.inputs.size() && input < 5; ++input) {
    std::vector<std::int64_t> fitting;
    for (const std::int64_t variable : scopes.variables(layer_scope(wiring, scopes, at))) {
      if (wiring.row(variable).outputs[0] != row.inputs[input]) continue;
      std::string_view name = wiring.row(variable).node;
      if (last_part(name) == "read") name = scope_of(name);
      const bool has_word = std::ranges::any_of(words[input - 1], [&](std::string_view word) {
        return name.find(word) != std::string_view::npos;
      });
      if (!normalizes || has_word) fitting.push_back(variable);
    }
    if (fitting.size() == 1) wiring.connect(at, input, {fitting[0], 0}, Evidence::Name);
  }
}

// "Mean/reduction_indices", "concat/axis": constants that a function created for its own node.
void connect_own_constants(Wiring& wiring, const NameScopes& scopes, std::int64_t at) {
  const Row& row = wiring.row(at);
  std::vector<std::int64_t> left;
  for (const std::int64_t constant : scopes.constants(row.node)) {
    if (wiring.table.find_node(wiring.row(constant).node + "/read") < 0) left.push_back(constant);
  }
  for (std::size_t input = 0; input < row.inputs.size() && !left.empty(); ++input) {
    if (wiring.is_connected(at, input)) continue;
    const auto fits = [&](std::int64_t constant) {
      return wiring.row(constant).outputs[0] == row.inputs[input];
    };
    const auto found = std::find_if(left.begin(), left.end(), fits);
    if (found == left.end() || row.inputs[input].element == "float32") continue;
    wiring.connect(at, input, {*found, 0}, Evidence::Name);
    left.erase(found);
  }
}

void connect_update(Wiring& wiring, std::int64_t at) {
  const std::string& name = wiring.row(at).node;
  const std::string_view scope = scope_of(name);
  const std::size_t mark = scope.find("/update_");
  if (!wiring.op(at).starts_with("Apply") || mark == std::string_view::npos) return;
  wiring.connect(at, 0, {wiring.table.find_node(scope.substr(mark + 8)), 0}, Evidence::Name);
  const std::string rate = concat(scope.substr(0, mark), "/learning_rate");
  wiring.connect(at, 1, {wiring.table.find_node(rate), 0}, Evidence::Name);
}

}  // namespace

void Wiring::connect_by_name() {
  const auto count = static_cast<std::int64_t>(table.rows.size());
  const NameScopes scopes(*this);
  for (std::int64_t at = 0; at < count; ++at) {
    if (row(at).kind == RowKind::Node) connect_optimiser_row(*this, at);
  }
  for (std::int64_t at = 0; at < count; ++at) {
    if (row(at).kind != RowKind::Node) continue;
    connect_folded_shape(*this, at);
    if (row(at).inputs.empty()) continue;
    if (last_part(row(at).node) == "read") {
      connect(at, 0, {table.find_node(scope_of(row(at).node)), 0}, Evidence::Name);
    }
    connect_update(*this, at);
    if (is_in_gradients(row(at).node)) continue;
    connect_in_layer(*this, scopes, at);
    connect_variables(*this, scopes, at);
    connect_own_constants(*this, scopes, at);
  }
}

// A gradient operator reads operands of its forward node: an edge known for one is transferred to
// the other.
void Wiring::connect_by_gradient_inputs() {
  for (std::size_t k = 0; k < table.rows.size(); ++k) {
    const auto at = static_cast<std::int64_t>(k);
    const Row& each = row(at);
    if (each.kind != RowKind::Node || each.inputs.empty()) continue;
    const std::int64_t forward = forward_of(at);
    if (forward < 0) continue;
    for (std::size_t input = 0; input < each.inputs.size(); ++input) {
      const auto meaning = gradient_operand_of(at, input);
      if (meaning != GradientOperand::Input0 && meaning != GradientOperand::Input1) continue;
      const std::size_t same = meaning == GradientOperand::Input0 ? 0 : 1;
      if (!is_connected(at, input) || same >= row(forward).inputs.size()) continue;
      if (row(forward).inputs[same] != each.inputs[input]) continue;
      connect(forward, same, {source(at, input).row, source(at, input).port}, Evidence::Gradient);
    }
  }
}

// A folded shape keeps control edges from its node's operands, which are the forward convolution's
// operands.
void Wiring::connect_by_controls() {
  for (const Row& each : table.rows) {
    if (each.kind != RowKind::Node || each.controls.empty()) continue;
    std::string_view node;
    if (const auto folded = folded_shape(each.node)) node = folded->node;
    if (const auto constant = permuted_constant(each.node)) node = constant->node;
    const auto gradient = gradient_name(node);
    const std::int64_t forward = gradient ? table.find_node(gradient->forward) : -1;
    if (forward < 0) continue;
    for (const std::string& control : each.controls) {
      const TensorId from{table.find_node(control), 0};
      if (row(from.row).outputs.empty()) continue;
      for (std::size_t input = 0; input < row(forward).inputs.size(); ++input) {
        if (!is_connected(forward, input)) {
          connect(forward, input, version(from, row(forward).inputs[input]), Evidence::Control);
          continue;
        }
        const std::int64_t through = source(forward, input).row;
        if (!is_layout_transpose(through) || is_connected(through, 0)) continue;
        if (row(through).inputs[0] == shape(from)) connect(through, 0, from, Evidence::Control);
      }
    }
  }
}

}  // namespace tenon::documents::tensorscope
