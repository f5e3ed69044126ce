#include "nests/node_exprs.h"

#include "base/error.h"
#include "expr/analysis.h"
#include "expr/fused_groups.h"

#include <unordered_map>

namespace tenon::nests {
namespace {

// Substitutes expressions for operands.
class ExprSubstitution {
 public:
  explicit ExprSubstitution(const std::vector<Expr>& operands) : operands_(operands) {}

  Expr apply(const Expr& expr) {
    const auto found = done_.find(&expr.node());
    if (found != done_.end()) return found->second;
    Expr result;
    if (expr.node().kind == ExprKind::Operand) {
      result = operands_.at(expr.node().operand);
      if (result.dims() != expr.dims()) result = reshape(result, expr.dims());
    } else if (expr.node().args.empty()) {
      result = expr;
    } else {
      ExprNode node = expr.node();
      for (Expr& arg : node.args) arg = apply(arg);
      result = Expr(std::make_shared<const ExprNode>(std::move(node)));
    }
    done_.emplace(&expr.node(), result);
    return result;
  }

 private:
  const std::vector<Expr>& operands_;
  std::unordered_map<const ExprNode*, Expr> done_;
};

// A constant inside a group is a scalar; larger constants are operands of the group.
Expr constant_expr(const Constant& constant) {
  if (constant.kind() == Constant::Kind::Splat || constant.size() == 1) {
    const Tensor stored =
        constant.kind() == Constant::Kind::Splat ? constant.stored() : constant.materialise();
    ExprNode node;
    node.dtype = constant.dtype();
    if (is_float(constant.dtype())) {
      node.real = stored.real_at(0);
    } else {
      node.integer = stored.integer_at(0);
      node.real = static_cast<double>(node.integer);
    }
    const Expr number(std::make_shared<const ExprNode>(std::move(node)));
    const Dims dims(constant.shape().begin(), constant.shape().end());
    return dims.empty() ? number : broadcast(number, dims);
  }
  throw Error("a group holds a constant that is not one number", ErrorKind::Unsupported)
      .got(constant.type());
}

}  // namespace

std::vector<Expr> node_exprs(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (!is_fused_group(graph, id)) return lowered(graph, id);
  const Graph& body = node.bodies.front();
  std::unordered_map<ValueId, Expr> values;
  for (std::size_t k = 0; k < body.inputs().size(); ++k) {
    const Type& type = graph.value(node.operands.at(k)).type;
    if (!type.is_tensor()) return {};
    values[body.inputs()[k]] = operand_expr(k, type.tensor());
  }
  for (NodeId inner : body.nodes_in_order()) {
    const Node& part = body.node(inner);
    if (const Constant* constant = body.constant_of(part.results.front())) {
      values[part.results.front()] = constant_expr(*constant);
      continue;
    }
    std::vector<Expr> operands;
    for (ValueId operand : part.operands) operands.push_back(operand ? values.at(operand) : Expr());
    const std::vector<Expr> exprs = node_exprs(body, inner);
    if (exprs.empty()) return {};
    ExprSubstitution substitution(operands);
    std::size_t k = 0;
    for (ValueId result : part.results) {
      if (result) values[result] = substitution.apply(exprs.at(k++));
    }
  }
  std::vector<Expr> results;
  for (ValueId output : body.outputs()) results.push_back(values.at(output));
  return results;
}

}  // namespace tenon::nests
