#include "ops/homogeneous.h"

#include <optional>
#include <unordered_map>

namespace tenon {
namespace {

// How a part of the expression grows with the operand: not at all, in proportion, or, being zero,
// either way.
enum class Growth : std::uint8_t { Other, None, Linear, Zero };

bool is_constant(Growth growth) { return growth == Growth::None || growth == Growth::Zero; }

// Both grow alike.
Growth common(Growth a, Growth b) {
  if (a == Growth::Zero) return b;
  if (b == Growth::Zero || a == b) return a;
  return Growth::Other;
}

class Walk {
 public:
  explicit Walk(std::size_t operand) : operand_(operand) {}

  Growth of(const Expr& expr) {
    const ExprNode& node = expr.node();
    const auto known = known_.find(&node);
    if (known != known_.end()) return known->second;
    const Growth growth = computed(node);
    known_.emplace(&node, growth);
    return growth;
  }

 private:
  Growth computed(const ExprNode& node) {
    switch (node.kind) {
      case ExprKind::Operand:
        return node.operand == operand_ ? Growth::Linear : Growth::None;
      case ExprKind::Literal: {
        const bool is_zero = is_float(node.dtype) ? node.real == 0 : node.integer == 0;
        return is_zero ? Growth::Zero : Growth::None;
      }
      case ExprKind::Extent:
        return Growth::None;
      case ExprKind::Unary: {
        const Growth x = of(node.args[0]);
        if (node.unary == UnaryOp::Negate || node.unary == UnaryOp::Abs) return x;
        return is_constant(x) ? Growth::None : Growth::Other;
      }
      case ExprKind::Binary:
        return of_binary(node);
      case ExprKind::Select:
        return is_constant(of(node.args[0])) ? common(of(node.args[1]), of(node.args[2]))
                                             : Growth::Other;
      default:
        return Growth::Other;  // reads of other places, conversions that round
    }
  }

  Growth of_binary(const ExprNode& node) {
    const Growth a = of(node.args[0]), b = of(node.args[1]);
    if (a == Growth::Other || b == Growth::Other) return Growth::Other;
    switch (node.binary) {
      case BinaryOp::Add:
      case BinaryOp::Subtract:
      case BinaryOp::Minimum:
      case BinaryOp::Maximum:
        return common(a, b);
      case BinaryOp::Multiply:
        if (a == Growth::Linear && b == Growth::Linear) return Growth::Other;
        return a == Growth::Linear || b == Growth::Linear ? Growth::Linear : Growth::None;
      case BinaryOp::Divide:
        return b != Growth::Linear ? a : a == Growth::Linear ? Growth::None : Growth::Other;
      case BinaryOp::Equal:
      case BinaryOp::Less:
      case BinaryOp::LessEqual:
        return common(a, b) == Growth::Other ? Growth::Other : Growth::None;
      default:
        return is_constant(a) && is_constant(b) ? Growth::None : Growth::Other;
    }
  }

  const std::size_t operand_;
  std::unordered_map<const ExprNode*, Growth> known_;
};

}  // namespace

bool is_homogeneous(const Expr& expr, std::size_t operand) {
  return Walk(operand).of(expr) == Growth::Linear;
}

}  // namespace tenon
