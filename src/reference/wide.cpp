#include "reference/wide.h"

#include <unordered_map>

namespace tenon::reference {
namespace {

class Wide {
 public:
  struct WideExpr {
    Expr expr;
    bool reads_operand = false;
  };

  // Returns the f64 version of an f32 expression that reads an operand.
  const WideExpr& of(const Expr& expr) {
    if (const auto made = made_.find(&expr.node()); made != made_.end()) return made->second;
    return made_.emplace(&expr.node(), make(expr)).first->second;
  }

 private:
  WideExpr make(const Expr& expr) {
    if (expr.node().kind == ExprKind::Operand) return {widened(expr), true};
    ExprNode node = expr.node();
    bool reads_operand = false;
    for (Expr& arg : node.args) {
      const WideExpr& made = of(arg);
      arg = made.expr;
      reads_operand |= made.reads_operand;
    }
    if (!reads_operand) return {expr, false};
    for (Expr& arg : node.args) arg = widened(arg);
    if (node.dtype == DType::F32) node.dtype = DType::F64;
    return {Expr(std::make_shared<const ExprNode>(std::move(node))), true};
  }

  static Expr widened(const Expr& expr) {
    return expr.dtype() == DType::F32 ? cast(expr, DType::F64) : expr;
  }

  std::unordered_map<const ExprNode*, WideExpr> made_;
};

}  // namespace

std::vector<Expr> computed_wide(const std::vector<Expr>& exprs) {
  Wide wide;
  std::vector<Expr> made;
  made.reserve(exprs.size());
  for (const Expr& expr : exprs) {
    made.push_back(expr.is_defined() ? cast(wide.of(expr).expr, expr.dtype()) : expr);
  }
  return made;
}

}  // namespace tenon::reference
