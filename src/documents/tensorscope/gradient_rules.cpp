#include "base/error.h"
#include "documents/tensorscope/wiring.h"

#include <algorithm>
#include <unordered_map>

namespace tenon::documents::tensorscope {
namespace {

struct ForwardUse {
  std::int64_t reader = -1;
  std::size_t input = 0;
};

// Reverse-mode accumulation over the forward nodes: the gradient of each forward tensor, from the
// gradients of its readers. Only first outputs have one.
class GradientConnector {
 public:
  explicit GradientConnector(Wiring& wiring)
      : wiring_(wiring), uses_(wiring.table.rows.size()), gradients_(wiring.table.rows.size()) {
    for (std::size_t k = 0; k < wiring.table.rows.size(); ++k) {
      const Row& row = wiring.table.rows[k];
      if (row.kind != RowKind::Node) continue;
      if (const auto gradient = gradient_name(row.node); gradient && !folded_shape(row.node)) {
        scopes_.emplace(gradient->forward, gradient->scope);
      }
      if (wiring.op(static_cast<std::int64_t>(k)) == "AddN" && is_in_gradients(row.node)) {
        sums_.push_back(static_cast<std::int64_t>(k));
      }
    }
    std::sort(sums_.begin(), sums_.end(), [&](std::int64_t a, std::int64_t b) {
      return natural_less(wiring.row(a).node, wiring.row(b).node);
    });
    is_taken_.assign(sums_.size(), 0);
  }

  void find() {
    const std::vector<std::size_t>& order = wiring_.step.order;
    for (const std::size_t at : order) collect_uses(static_cast<std::int64_t>(at));
    for (auto at = order.rbegin(); at != order.rend(); ++at) {
      gradients_[*at] = gradient_from_uses(static_cast<std::int64_t>(*at));
    }
  }
  TensorId gradient_of(std::int64_t forward) const {
    return gradients_[static_cast<std::size_t>(forward)];
  }

 private:
  void collect_uses(std::int64_t reader) {
    if (wiring_.is_layout_transpose(reader)) return;
    for (std::size_t input = 0; input < wiring_.row(reader).inputs.size(); ++input) {
      const DataSource& from = wiring_.source(reader, input);
      if (from.row < 0) continue;
      const TensorId whole = wiring_.root({from.row, from.port});
      if (whole.port == 0) uses_[static_cast<std::size_t>(whole.row)].push_back({reader, input});
    }
  }

  std::int64_t node_in_gradient(const std::string& forward, std::string_view part) const {
    const auto scope = scopes_.find(forward);
    return scope == scopes_.end() ? -1 : wiring_.table.find_node(concat(scope->second, "/", part));
  }

  // Returns the gradient of a reader with respect to its operand; invalid if it has none.
  TensorId handed_back(const ForwardUse& use) const {
    const std::string& op = wiring_.op(use.reader);
    const std::string& name = wiring_.row(use.reader).node;
    const bool is_second = use.input == 1;
    std::vector<std::string> parts;
    if (op == "Conv2D") {
      parts = {is_second ? "Conv2DBackpropFilter" : "Conv2DBackpropInput"};
    } else if (op == "BiasAdd") {
      if (is_second) parts = {"BiasAddGrad"};
    } else if (op == "MatMul") {
      parts = {is_second ? "MatMul_1" : "MatMul"};
    } else if (op == "Add" || op == "AddV2" || op == "Mul" || op == "Sub") {
      if (is_second) parts = {"Reshape_1", "Mul_1", "mul_1", "Neg"};
      if (!is_second) parts = {"Reshape", "Mul", "mul"};
    } else {
      parts = {op + "Grad", op};
    }
    for (const std::string& part : parts) {
      const std::int64_t found = node_in_gradient(name, part);
      if (found >= 0 && !wiring_.row(found).outputs.empty()) return {found, 0};
    }
    // These forward the upstream gradient without a node.
    const bool passes = op == "Identity" || op == "Add" || op == "AddV2" || op == "AddN" ||
                        (op == "BiasAdd" && !is_second);
    return passes ? gradient_of(use.reader) : TensorId();
  }

  TensorId gradient_from_uses(std::int64_t at) {
    std::vector<TensorId> parts;
    for (const ForwardUse& use : uses_[static_cast<std::size_t>(at)]) {
      const TensorId part = handed_back(use);
      if (part.is_valid() && std::find(parts.begin(), parts.end(), part) == parts.end())
        parts.push_back(part);
    }
    if (parts.size() <= 1) return parts.empty() ? TensorId() : parts[0];
    return sum_of(parts);
  }

  TensorId sum_of(const std::vector<TensorId>& parts) {
    for (std::size_t k = 0; k < sums_.size(); ++k) {
      const Row& sum = wiring_.row(sums_[k]);
      if (is_taken_[k] != 0 || sum.inputs.size() != parts.size() || sum.outputs.size() != 1)
        continue;
      std::vector<TensorId> versions;
      for (std::size_t input = 0; input < parts.size(); ++input) {
        versions.push_back(wiring_.version(parts[input], sum.inputs[input]));
      }
      if (!std::ranges::all_of(versions, &TensorId::is_valid)) continue;
      for (std::size_t input = 0; input < parts.size(); ++input) {
        wiring_.connect(sums_[k], input, versions[input], Evidence::Gradient);
      }
      is_taken_[k] = 1;
      return {sums_[k], 0};
    }
    return {};
  }

  Wiring& wiring_;
  std::vector<std::vector<ForwardUse>> uses_;
  std::vector<TensorId> gradients_;
  std::unordered_map<std::string_view, std::string_view> scopes_;
  std::vector<std::int64_t> sums_;
  std::vector<char> is_taken_;
};

}  // namespace

void Wiring::connect_gradients() {
  GradientConnector backward(*this);
  backward.find();
  const auto value_of = [&](std::int64_t forward, GradientOperand meaning) -> TensorId {
    switch (meaning) {
      case GradientOperand::Output:
        return row(forward).outputs.empty() ? TensorId() : TensorId{forward, 0};
      case GradientOperand::Gradient:
        return backward.gradient_of(forward);
      case GradientOperand::Shape:
        return {};
      case GradientOperand::Input0:
      case GradientOperand::Input1: {
        const std::size_t input = meaning == GradientOperand::Input0 ? 0 : 1;
        if (input >= row(forward).inputs.size()) return {};
        return {source(forward, input).row, source(forward, input).port};
      }
    }
    return {};
  };
  for (std::size_t k = 0; k < table.rows.size(); ++k) {
    const auto at = static_cast<std::int64_t>(k);
    if (row(at).kind != RowKind::Node) continue;
    if (op(at) == "ApplyGradientDescent" && row(at).inputs.size() == 3 && is_connected(at, 0)) {
      const std::int64_t read = table.find_node(row(source(at, 0).row).node + "/read");
      const TensorId change = read < 0 ? TensorId() : backward.gradient_of(read);
      connect(at, 2, version(change, row(at).inputs[2]), Evidence::Gradient);
    }
    const std::int64_t forward = forward_of(at);
    if (forward < 0) continue;
    for (std::size_t input = 0; input < row(at).inputs.size(); ++input) {
      const auto meaning = gradient_operand_of(at, input);
      if (!meaning) continue;
      const TensorId value = value_of(forward, *meaning);
      if (!is_connected(at, input)) {
        connect(at, input, version(value, row(at).inputs[input]), Evidence::Gradient);
        continue;
      }
      // A transpose before this input has the role of its own operand.
      const std::int64_t through = source(at, input).row;
      if (!is_layout_transpose(through) || is_connected(through, 0)) continue;
      connect(through, 0, version(value, row(through).inputs[0]), Evidence::Gradient);
    }
  }
}

}  // namespace tenon::documents::tensorscope
