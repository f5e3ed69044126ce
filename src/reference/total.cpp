#include "reference/total.h"

#include <unordered_map>

namespace tenon::reference {
namespace {

bool may_divide_by_zero(const ExprNode& node) {
  if (node.kind != ExprKind::Binary || !is_integer(node.dtype)) return false;
  switch (node.binary) {
    case BinaryOp::Divide:
    case BinaryOp::FloorDivide:
    case BinaryOp::Modulo:
    case BinaryOp::Remainder:
      return true;
    default:
      return false;
  }
}

class Totals {
 public:
  explicit Totals(double default_value) : default_value_(default_value) {}

  Expr of(const Expr& expr) {
    if (!expr.is_defined()) return expr;
    if (const auto made = made_.find(&expr.node()); made != made_.end()) return made->second;
    ExprNode node = expr.node();
    for (Expr& arg : node.args) arg = of(arg);
    if (node.kind == ExprKind::Read && !node.has_fill && node.dtype != DType::String) {
      node.args.push_back(literal(node.dtype, default_value_));
      node.has_fill = true;
    }
    Expr total;
    if (may_divide_by_zero(node)) {
      const Expr divisor = node.args[1], is_zero = equal(divisor, 0.0);
      node.args[1] = select(is_zero, 1.0, divisor);
      total =
          select(is_zero, default_value_, Expr(std::make_shared<const ExprNode>(std::move(node))));
    } else {
      total = Expr(std::make_shared<const ExprNode>(std::move(node)));
    }
    return made_.emplace(&expr.node(), std::move(total)).first->second;
  }

 private:
  double default_value_;
  std::unordered_map<const ExprNode*, Expr> made_;
};

}  // namespace

std::vector<Expr> made_total(const std::vector<Expr>& exprs, double default_value) {
  Totals totals(default_value);
  std::vector<Expr> made;
  made.reserve(exprs.size());
  for (const Expr& expr : exprs) made.push_back(totals.of(expr));
  return made;
}

}  // namespace tenon::reference
