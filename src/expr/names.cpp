#include "expr/names.h"

namespace tenon::inline expr {

std::string_view name_of(UnaryOp op) {
  static constexpr std::string_view kNames[] = {
      "-",     "abs",  "sign",   "floor",  "ceil",           "round",
      "trunc", "sqrt", "exp",    "log",    "log1p",          "sin",
      "cos",   "tan",  "asin",   "acos",   "atan",           "sinh",
      "cosh",  "tanh", "asinh",  "acosh",  "atanh",          "erf",
      "!",     "~",    "is_nan", "is_inf", "is_negative_inf"};
  return kNames[static_cast<std::size_t>(op)];
}

std::string_view name_of(BinaryOp op) {
  static constexpr std::string_view kNames[] = {"+",   "-",   "*",   "/",   "//",    "%",   "rem",
                                                "pow", "min", "max", "and", "or",    "xor", "<<",
                                                ">>",  "==",  "<",   "<=",  "atan2", "dp4a"};
  return kNames[static_cast<std::size_t>(op)];
}

std::string_view name_of(Reduction reduction) {
  static constexpr std::string_view kNames[] = {
      "sum", "product", "max", "min", "arg_max", "arg_min", "arg_max_last", "arg_min_last", "last"};
  return kNames[static_cast<std::size_t>(reduction)];
}

bool is_transcendental(UnaryOp op) {
  switch (op) {
    case UnaryOp::Exp:
    case UnaryOp::Log:
    case UnaryOp::Log1p:
    case UnaryOp::Sin:
    case UnaryOp::Cos:
    case UnaryOp::Tan:
    case UnaryOp::Asin:
    case UnaryOp::Acos:
    case UnaryOp::Atan:
    case UnaryOp::Sinh:
    case UnaryOp::Cosh:
    case UnaryOp::Tanh:
    case UnaryOp::Asinh:
    case UnaryOp::Acosh:
    case UnaryOp::Atanh:
    case UnaryOp::Erf:
      return true;
    case UnaryOp::Negate:
    case UnaryOp::Abs:
    case UnaryOp::Sign:
    case UnaryOp::Floor:
    case UnaryOp::Ceil:
    case UnaryOp::RoundEven:
    case UnaryOp::Trunc:
    case UnaryOp::Sqrt:
    case UnaryOp::Not:
    case UnaryOp::BitNot:
    case UnaryOp::IsNan:
    case UnaryOp::IsPositiveInf:
    case UnaryOp::IsNegativeInf:
      break;
  }
  return false;
}

bool is_arg(Reduction reduction) {
  return reduction == Reduction::ArgMax || reduction == Reduction::ArgMin ||
         reduction == Reduction::ArgMaxLast || reduction == Reduction::ArgMinLast;
}

bool is_contraction_expr(const ExprNode& node) {
  if (node.kind != ExprKind::Reduce || node.reduction != Reduction::Sum) return false;
  const ExprNode& body = node.args[0].node();
  return body.kind == ExprKind::Binary && body.binary == BinaryOp::Multiply;
}

}  // namespace tenon::inline expr
