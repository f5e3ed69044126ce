#include "passes/rewrite/facts.h"

#include "base/error.h"
#include "expr/analysis.h"
#include "expr/signs.h"

#include <algorithm>
#include <cmath>

namespace tenon::passes::rewrite {
namespace {

// Limit of the backward search; rules ask about values made a few nodes ago.
constexpr int kMaxSteps = 6;
constexpr std::int64_t kMaxScanned = 1 << 14;

// Returns whether every element of a small constant passes the test.
template <class Test>
bool all_elements(const Constant& constant, const Test& test) {
  if (constant.kind() != Constant::Kind::Dense && constant.kind() != Constant::Kind::Splat)
    return false;
  if (is_complex(constant.dtype()) || constant.dtype() == DType::String) return false;
  const Tensor& tensor = constant.stored();
  if (tensor.size() > kMaxScanned) return false;
  for (std::int64_t k = 0; k < tensor.size(); ++k) {
    if (!test(tensor.real_at(k))) return false;
  }
  return true;
}

bool is_unsigned(DType dtype) {
  return dtype == DType::Bool || (tenon::is_integer(dtype) && lowest_integer(dtype) == 0);
}

// Derives signs from the node's expressions and the signs of its operands.
Signs value_signs(const Graph& graph, ValueId value, int steps) {
  Signs signs;
  const Type& type = graph.value(value).type;
  if (!type.is_tensor() || is_complex(type.tensor().dtype)) return signs;
  signs.is_never_negative = is_unsigned(type.tensor().dtype);
  signs.is_never_minus_zero = !is_float(type.tensor().dtype);
  const NodeId id = graph.value(value).producer;
  if (!id || steps == 0) return signs;
  if (const Constant* constant = graph.constant_of(value)) {
    signs.is_never_negative |= all_elements(*constant, [](double x) { return x >= 0; });
    signs.is_never_minus_zero |=
        all_elements(*constant, [](double x) { return x != 0 || !std::signbit(x); });
    return signs;
  }
  const Node& node = graph.node(id);
  if (!node.bodies.empty()) return signs;
  // Counts present results only.
  const auto result = static_cast<std::size_t>(
      std::count_if(node.results.begin(), std::ranges::find(node.results, value),
                    [](ValueId each) { return each.is_valid(); }));
  try {
    const std::vector<Expr> exprs = lowered(graph, id);
    if (result >= exprs.size() || !exprs[result].is_defined()) return signs;
    const OperandSigns operands{
        [&](std::size_t k) { return value_signs(graph, node.operands.at(k), steps - 1); },
        [&](std::size_t k) { return uniform_value(graph, node.operands.at(k)); },
        [&](std::size_t a, std::size_t b) { return node.operands.at(a) == node.operands.at(b); }};
    const Signs computed = signs_of(exprs[result], operands);
    return {signs.is_never_negative || computed.is_never_negative,
            signs.is_never_minus_zero || computed.is_never_minus_zero};
  } catch (const Error&) {
    return signs;
  }
}

// Returns the number of integer bits that a float represents exactly.
int exact_bits(DType dtype) {
  switch (dtype) {
    case DType::F64:
      return 53;
    case DType::F32:
      return 24;
    case DType::F16:
      return 11;
    case DType::BF16:
      return 8;
    default:
      return 0;
  }
}

}  // namespace

bool is_never_negative(const Graph& graph, ValueId value) {
  return value_signs(graph, value, kMaxSteps).is_never_negative;
}

bool is_never_minus_zero(const Graph& graph, ValueId value) {
  return value_signs(graph, value, kMaxSteps).is_never_minus_zero;
}

bool holds_exactly(DType to, DType from) {
  if (to == from) return true;
  if (from == DType::Bool) return tenon::is_integer(to) || exact_bits(to) > 0;
  if (is_float(from)) {
    if (to == DType::F64) return exact_bits(from) > 0;
    return to == DType::F32 && (from == DType::F16 || from == DType::BF16);
  }
  if (!tenon::is_integer(from)) return false;
  const int bits = info(from).bits;
  if (is_float(to)) {
    const int magnitude = is_unsigned(from) ? bits : bits - 1;
    return magnitude <= exact_bits(to);
  }
  if (!tenon::is_integer(to)) return false;
  if (is_unsigned(to)) return is_unsigned(from) && bits <= info(to).bits;
  return is_unsigned(from) ? bits < info(to).bits : bits <= info(to).bits;
}

bool is_pointwise(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (!node.bodies.empty() || node.results.size() != 1 || node.operands.empty()) return false;
  if (node.op->is_random || node.op->layout.kind == LayoutRule::Kind::LogicalOrder) return false;
  try {
    std::vector<Expr> left = lowered(graph, id);
    if (left.empty()) return false;
    std::vector<const ExprNode*> seen;
    while (!left.empty()) {
      const Expr expr = left.back();
      left.pop_back();
      const ExprNode& part = expr.node();
      if (std::find(seen.begin(), seen.end(), &part) != seen.end()) continue;
      seen.push_back(&part);
      switch (part.kind) {
        case ExprKind::Operand:
        case ExprKind::Literal:
          break;
        case ExprKind::Unary:
        case ExprKind::Binary:
        case ExprKind::Select:
        case ExprKind::Cast:
          left.insert(left.end(), part.args.begin(), part.args.end());
          break;
        default:
          return false;
      }
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::optional<std::vector<std::int64_t>> counted_axes(const Dims& axes, std::size_t rank) {
  std::vector<std::int64_t> counted;
  for (const Dim& axis : axes) {
    if (!axis.is_constant()) return {};
    const auto end = static_cast<std::int64_t>(rank);
    const std::int64_t place = axis.constant() < 0 ? axis.constant() + end : axis.constant();
    if (place < 0 || place >= end) return {};
    counted.push_back(place);
  }
  return counted;
}

Condition is_real(std::string variable) {
  return [=](const Match& match) {
    const TensorType* type = match.type(variable);
    return type && is_float(type->dtype);
  };
}

Condition is_common_float(std::string variable) {
  return [=](const Match& match) {
    const TensorType* type = match.type(variable);
    return type && exact_bits(type->dtype) > 0;
  };
}

Condition is_integer(std::string variable) {
  return [=](const Match& match) {
    const TensorType* type = match.type(variable);
    return type && tenon::is_integer(type->dtype);
  };
}

Condition is_not_complex(std::string variable) {
  return [=](const Match& match) {
    const TensorType* type = match.type(variable);
    return type && !is_complex(type->dtype);
  };
}

Condition keeps_sign_of_zero(std::string variable) {
  return [=](const Match& match) {
    return is_never_minus_zero(match.graph(), match.value(variable)) ||
           match.refuse(concat("'", match.graph().value(match.value(variable)).name,
                               "' may be a negative zero, which adding 0 makes positive"));
  };
}

Condition never_negative(std::string variable) {
  return [=](const Match& match) {
    const ValueId value = match.value(variable);
    return (is_never_negative(match.graph(), value) && is_never_minus_zero(match.graph(), value)) ||
           match.refuse(concat("'", match.graph().value(value).name, "' may be negative"));
  };
}

Condition read_once(std::string variable) {
  return [=](const Match& match) {
    return match.is_read_once(match.value(variable)) ||
           match.refuse(
               concat("'", match.graph().value(match.value(variable)).name, "' has other readers"));
  };
}

Condition alone() {
  return [](const Match& match) { return match.is_alone(); };
}

}  // namespace tenon::passes::rewrite
