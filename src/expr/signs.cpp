#include "expr/signs.h"

#include <cmath>
#include <unordered_map>

namespace tenon::inline expr {
namespace {

constexpr Signs kBoth = {true, true};

bool is_unsigned(DType dtype) {
  return dtype == DType::Bool || (is_integer(dtype) && lowest_integer(dtype) == 0);
}

Signs both_of(const Signs& a, const Signs& b) {
  return {a.is_never_negative && b.is_never_negative,
          a.is_never_minus_zero && b.is_never_minus_zero};
}

// Signs of a function with f(0) = 0 that is negative only for negative operands. A tiny negative
// value may round to a negative zero.
Signs kept_by_sign(const Signs& x) {
  return {x.is_never_negative, x.is_never_negative && x.is_never_minus_zero};
}

class Walk {
 public:
  explicit Walk(const OperandSigns& operands) : operands_(operands) {}

  Signs of(const Expr& expr) {
    if (!expr.is_defined()) return {};
    const ExprNode& node = expr.node();
    if (is_complex(node.dtype) || node.dtype == DType::String) return {};
    const auto [known, is_new] = known_.try_emplace(&node);
    if (!is_new) return known->second;
    Signs signs = computed(node);
    if (is_unsigned(node.dtype)) signs.is_never_negative = true;
    if (!is_float(node.dtype)) signs.is_never_minus_zero = true;
    known_[&node] = signs;
    return signs;
  }

 private:
  Signs computed(const ExprNode& node) {
    switch (node.kind) {
      case ExprKind::Operand:
        return operands_.signs(node.operand);
      case ExprKind::Literal:
        if (!is_float(node.dtype)) return {node.integer >= 0, true};
        return {node.real >= 0, node.real != 0 || !std::signbit(node.real)};
      case ExprKind::Extent:
      case ExprKind::Index:
        return kBoth;
      case ExprKind::Unary:
        return of_unary(node);
      case ExprKind::Binary:
        return of_binary(node);
      case ExprKind::Select:
        return both_of(of(node.args[1]), of(node.args[2]));
      case ExprKind::Cast: {
        const Signs x = of(node.args[0]);
        if (!is_float(node.dtype)) return {};  // integers may wrap
        return is_float(node.args[0].dtype()) ? kept_by_sign(x) : Signs{x.is_never_negative, true};
      }
      case ExprKind::Read:
        return node.has_fill ? both_of(of(node.args[0]), of(node.args.back())) : of(node.args[0]);
      case ExprKind::Reshape:
        return of(node.args[0]);
      case ExprKind::Concat: {
        Signs all = kBoth;
        for (const Expr& part : node.args) all = both_of(all, of(part));
        return all;
      }
      case ExprKind::Reduce:
      case ExprKind::Scan:
        return of_fold(node);
      case ExprKind::Scatter: {
        const Signs all = both_of(of(node.args[0]), of(node.args[1]));
        const bool may_wrap =
            node.reduction == Reduction::Sum || node.reduction == Reduction::Product;
        return may_wrap && !is_float(node.dtype) ? Signs{} : all;
      }
    }
    return {};
  }

  Signs of_unary(const ExprNode& node) {
    const Signs x = of(node.args[0]);
    switch (node.unary) {
      case UnaryOp::Abs:
      case UnaryOp::Exp:
      case UnaryOp::Cosh:
        return is_float(node.dtype) ? kBoth : Signs{};
      case UnaryOp::Sqrt:
        return {true, x.is_never_minus_zero};
      case UnaryOp::Sign:
      case UnaryOp::Floor:
      case UnaryOp::Ceil:
      case UnaryOp::RoundEven:
      case UnaryOp::Trunc:
      case UnaryOp::Tanh:
      case UnaryOp::Sinh:
      case UnaryOp::Asinh:
      case UnaryOp::Asin:
      case UnaryOp::Atan:
      case UnaryOp::Atanh:
      case UnaryOp::Erf:
      case UnaryOp::Log1p:
        return kept_by_sign(x);
      default:
        return {};
    }
  }

  bool is_same(const Expr& a, const Expr& b) const {
    if (&a.node() == &b.node()) return true;
    return a.node().kind == ExprKind::Operand && b.node().kind == ExprKind::Operand &&
           operands_.is_same(a.node().operand, b.node().operand);
  }

  // The value of a splat: every element is this number.
  std::optional<double> number_of(const Expr& expr) const {
    const ExprNode& node = expr.node();
    if (node.kind == ExprKind::Literal)
      return is_float(node.dtype) ? node.real : static_cast<double>(node.integer);
    if (node.kind == ExprKind::Operand) return operands_.number(node.operand);
    if (node.kind == ExprKind::Cast || node.kind == ExprKind::Reshape)
      return number_of(node.args[0]);
    return std::nullopt;
  }

  Signs of_binary(const ExprNode& node) {
    const Signs a = of(node.args[0]), b = of(node.args[1]);
    switch (node.binary) {
      case BinaryOp::Minimum:
        return both_of(a, b);
      case BinaryOp::Maximum:
        return {a.is_never_negative || b.is_never_negative,
                a.is_never_minus_zero && b.is_never_minus_zero};
      default:
        break;
    }
    // Integers may wrap below zero.
    if (!is_float(node.dtype)) return {};
    switch (node.binary) {
      case BinaryOp::Add:  // a negative zero only if both are
        return {a.is_never_negative && b.is_never_negative,
                a.is_never_minus_zero || b.is_never_minus_zero};
      case BinaryOp::Multiply:
        if (is_same(node.args[0], node.args[1])) return kBoth;
        return {a.is_never_negative && b.is_never_negative,
                a.is_never_negative && b.is_never_negative && a.is_never_minus_zero &&
                    b.is_never_minus_zero};
      case BinaryOp::Divide: {  // a negative zero as divisor would change the sign
        const bool is_kept = b.is_never_negative && b.is_never_minus_zero;
        return {a.is_never_negative && is_kept,
                a.is_never_negative && a.is_never_minus_zero && is_kept};
      }
      case BinaryOp::Power: {
        const std::optional<double> exponent = number_of(node.args[1]);
        if (exponent && std::fmod(*exponent, 2) == 0) return kBoth;
        return a.is_never_negative && a.is_never_minus_zero ? kBoth : Signs{};
      }
      default:
        return {};
    }
  }

  Signs of_fold(const ExprNode& node) {
    const Signs x = of(node.args[0]);
    const bool is_reduce = node.kind == ExprKind::Reduce;
    switch (node.reduction) {
      case Reduction::Sum:  // starts from +0, so that negative zeros sum to +0
        return is_float(node.dtype) ? Signs{x.is_never_negative, is_reduce || x.is_never_minus_zero}
                                    : Signs{};
      case Reduction::Product:
        return is_float(node.dtype) ? kept_by_sign(x) : Signs{};
      case Reduction::Min:
        return x;
      case Reduction::Max:
        return {false, x.is_never_minus_zero};  // the maximum of an empty set is minus infinity
      case Reduction::ArgMax:
      case Reduction::ArgMin:
      case Reduction::ArgMaxLast:
      case Reduction::ArgMinLast:
        return kBoth;
      default:
        return {};
    }
  }

  const OperandSigns& operands_;
  std::unordered_map<const ExprNode*, Signs> known_;
};

}  // namespace

Signs signs_of(const Expr& expr, const OperandSigns& operands) { return Walk(operands).of(expr); }

}  // namespace tenon::inline expr
