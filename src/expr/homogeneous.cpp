#include "expr/homogeneous.h"

#include <optional>
#include <unordered_map>

namespace tenon::inline expr {
namespace {

// Degree of a subexpression in the operand: constant (None), proportional (Linear), zero (both), or
// any other.
enum class DegreeGrowth : std::uint8_t { Other, None, Linear, Zero };

bool is_constant(DegreeGrowth growth) {
  return growth == DegreeGrowth::None || growth == DegreeGrowth::Zero;
}

// Returns the common degree of both.
DegreeGrowth common(DegreeGrowth a, DegreeGrowth b) {
  if (a == DegreeGrowth::Zero) return b;
  if (b == DegreeGrowth::Zero || a == b) return a;
  return DegreeGrowth::Other;
}

class DegreeWalk {
 public:
  explicit DegreeWalk(std::size_t operand) : operand_(operand) {}

  DegreeGrowth of(const Expr& expr) {
    const ExprNode& node = expr.node();
    const auto known = known_.find(&node);
    if (known != known_.end()) return known->second;
    const DegreeGrowth growth = computed(node);
    known_.emplace(&node, growth);
    return growth;
  }

 private:
  DegreeGrowth computed(const ExprNode& node) {
    switch (node.kind) {
      case ExprKind::Operand:
        return node.operand == operand_ ? DegreeGrowth::Linear : DegreeGrowth::None;
      case ExprKind::Literal: {
        const bool is_zero = is_float(node.dtype) ? node.real == 0 : node.integer == 0;
        return is_zero ? DegreeGrowth::Zero : DegreeGrowth::None;
      }
      case ExprKind::Extent:
        return DegreeGrowth::None;
      case ExprKind::Unary: {
        const DegreeGrowth x = of(node.args[0]);
        if (node.unary == UnaryOp::Negate || node.unary == UnaryOp::Abs) return x;
        return is_constant(x) ? DegreeGrowth::None : DegreeGrowth::Other;
      }
      case ExprKind::Binary:
        return of_binary(node);
      case ExprKind::Select:
        return is_constant(of(node.args[0])) ? common(of(node.args[1]), of(node.args[2]))
                                             : DegreeGrowth::Other;
      default:
        return DegreeGrowth::Other;  // reads of other positions, rounding conversions
    }
  }

  DegreeGrowth of_binary(const ExprNode& node) {
    const DegreeGrowth a = of(node.args[0]), b = of(node.args[1]);
    if (a == DegreeGrowth::Other || b == DegreeGrowth::Other) return DegreeGrowth::Other;
    switch (node.binary) {
      case BinaryOp::Add:
      case BinaryOp::Subtract:
      case BinaryOp::Minimum:
      case BinaryOp::Maximum:
        return common(a, b);
      case BinaryOp::Multiply:
        if (a == DegreeGrowth::Linear && b == DegreeGrowth::Linear) return DegreeGrowth::Other;
        return a == DegreeGrowth::Linear || b == DegreeGrowth::Linear ? DegreeGrowth::Linear
                                                                      : DegreeGrowth::None;
      case BinaryOp::Divide:
        return b != DegreeGrowth::Linear   ? a
               : a == DegreeGrowth::Linear ? DegreeGrowth::None
                                           : DegreeGrowth::Other;
      case BinaryOp::Equal:
      case BinaryOp::Less:
      case BinaryOp::LessEqual:
        return common(a, b) == DegreeGrowth::Other ? DegreeGrowth::Other : DegreeGrowth::None;
      default:
        return is_constant(a) && is_constant(b) ? DegreeGrowth::None : DegreeGrowth::Other;
    }
  }

  const std::size_t operand_;
  std::unordered_map<const ExprNode*, DegreeGrowth> known_;
};

}  // namespace

bool is_homogeneous(const Expr& expr, std::size_t operand) {
  return DegreeWalk(operand).of(expr) == DegreeGrowth::Linear;
}

}  // namespace tenon::inline expr
