#include "base/error.h"
#include "expr/lowering.h"

#include <map>

namespace tenon::inline expr {
namespace {

// Evaluates an expression one element at a time, with dims in place of the reference's numbers.
class KnownElements {
 public:
  explicit KnownElements(const std::vector<const Dims*>& known) : known_(known) {}

  using Position = std::vector<std::int64_t>;

  // Returns nullopt for numbers that are not representable as extents.
  std::optional<Dim> element_or_nothing(const Expr& expr, const Position& outer) {
    try {
      return element(expr, outer);
    } catch (const Error&) {
      return std::nullopt;
    }
  }

 private:
  std::optional<Dim> element(const Expr& expr, const Position& outer) {
    const std::optional<Position> at = project(expr.dims(), outer);
    if (!at) return std::nullopt;
    if (expr.node().args.empty()) return held_element(expr, *at);
    const auto known = elements_.find({&expr.node(), *at});
    if (known != elements_.end()) return known->second;
    return elements_[{&expr.node(), *at}] = held_element(expr, *at);
  }

  static constexpr int kMaxSteps = 20000;

  // Numbers that overflow the element type would wrap, which dims do not model. Symbols are
  // extents, which fit every element type that they are stored in.
  std::optional<Dim> held_element(const Expr& expr, const Position& at) {
    std::optional<Dim> found = unwrapped_element(expr, at);
    if (!found || !found->is_constant() || expr.dtype() == DType::I64) return found;
    const DType dtype = expr.dtype();
    if (!is_integer(dtype) && dtype != DType::Bool) return found;
    const std::int64_t value = found->constant();
    const bool is_held = value >= lowest_integer(dtype) &&
                         (value < 0 || static_cast<std::uint64_t>(value) <= highest_integer(dtype));
    return is_held ? found : std::nullopt;
  }

  std::optional<Dim> unwrapped_element(const Expr& expr, const Position& at) {
    if (++steps_ > kMaxSteps) return std::nullopt;
    const ExprNode& node = expr.node();
    switch (node.kind) {
      case ExprKind::Operand: {
        const Dims* elements = node.operand < known_.size() ? known_[node.operand] : nullptr;
        const std::optional<std::size_t> flat = flatten(node.dims, at);
        if (!elements || !flat || *flat >= elements->size()) return std::nullopt;
        return (*elements)[*flat];
      }
      case ExprKind::Literal:
        if (is_float(node.dtype)) return std::nullopt;
        return Dim(node.integer);
      case ExprKind::Extent:
        return node.extent;
      case ExprKind::Index:
        return Dim(at[node.axes.front()]);
      case ExprKind::Unary:
        return unary(node, at);
      case ExprKind::Binary:
        return binary(node, at);
      case ExprKind::Select: {
        const std::optional<Dim> condition = element(node.args[0], at);
        if (!condition || !condition->is_constant()) return std::nullopt;
        return element(node.args[condition->constant() != 0 ? 1 : 2], at);
      }
      case ExprKind::Cast:
        if (is_float(node.args[0].dtype()) || is_float(node.dtype)) return std::nullopt;
        return node.dtype == DType::Bool ? truth(node.args[0], at) : element(node.args[0], at);
      case ExprKind::Read:
        return read(node, at);
      case ExprKind::Reshape: {
        const std::optional<std::size_t> flat = flatten(node.dims, at);
        if (!flat) return std::nullopt;
        const std::optional<Position> source = unflatten(node.args[0].dims(), *flat);
        return source ? element(node.args[0], *source) : std::nullopt;
      }
      case ExprKind::Concat:
        return concatenated(node, at);
      case ExprKind::Reduce:
        return reduced(node, at);
      case ExprKind::Scan:
      case ExprKind::Scatter:
        return std::nullopt;
    }
    return std::nullopt;
  }

  // Maps `outer` to the position in a broadcast operand.
  static std::optional<Position> project(const Dims& dims, const Position& outer) {
    if (dims.size() > outer.size()) return std::nullopt;
    Position at(outer.end() - static_cast<std::ptrdiff_t>(dims.size()), outer.end());
    for (std::size_t axis = 0; axis < dims.size(); ++axis) {
      if (!dims[axis].is_constant()) return std::nullopt;
      if (dims[axis].constant() == 1) at[axis] = 0;
    }
    return at;
  }

  static std::optional<std::size_t> flatten(const Dims& dims, const Position& at) {
    std::int64_t flat = 0;
    for (std::size_t axis = 0; axis < dims.size(); ++axis) {
      if (!dims[axis].is_constant()) return std::nullopt;
      flat = flat * dims[axis].constant() + at[axis];
    }
    return static_cast<std::size_t>(flat);
  }

  static std::optional<Position> unflatten(const Dims& dims, std::size_t flat) {
    Position at(dims.size());
    auto rest = static_cast<std::int64_t>(flat);
    for (std::size_t axis = dims.size(); axis-- > 0;) {
      if (!dims[axis].is_constant() || dims[axis].constant() == 0) return std::nullopt;
      at[axis] = rest % dims[axis].constant();
      rest /= dims[axis].constant();
    }
    return at;
  }

  std::optional<Dim> truth(const Expr& expr, const Position& at) {
    const std::optional<Dim> x = element(expr, at);
    if (!x || !x->is_constant()) return std::nullopt;
    return Dim(x->constant() != 0);
  }

  std::optional<Dim> unary(const ExprNode& node, const Position& at) {
    const std::optional<Dim> x = element(node.args[0], at);
    if (!x) return std::nullopt;
    if (node.unary == UnaryOp::Negate) return Dim(0) - *x;
    if (node.unary == UnaryOp::Not && x->is_constant()) return Dim(x->constant() == 0);
    if (node.unary == UnaryOp::Abs && x->range().lo >= 0) return x;
    return std::nullopt;
  }

  std::optional<Dim> binary(const ExprNode& node, const Position& at) {
    const std::optional<Dim> a = element(node.args[0], at);
    const std::optional<Dim> b = element(node.args[1], at);
    if (!a || !b) return std::nullopt;
    const bool divides = (b->is_constant() && b->constant() != 0) || b->range().lo > 0;
    switch (node.binary) {
      case BinaryOp::Add:
        return *a + *b;
      case BinaryOp::Subtract:
        return *a - *b;
      case BinaryOp::Multiply:
        return *a * *b;
      case BinaryOp::Divide:
        // Truncation equals floor for nonnegative numbers, and gives 0 above -b.
        if (!divides || b->range().lo <= 0 || a->range().lo <= -b->range().lo) return std::nullopt;
        return a->range().lo < 0 ? max(floor_div(*a, *b), Dim(0)) : floor_div(*a, *b);
      case BinaryOp::FloorDivide:
        return divides ? std::optional<Dim>(floor_div(*a, *b)) : std::nullopt;
      case BinaryOp::Modulo:
        return divides ? std::optional<Dim>(mod(*a, *b)) : std::nullopt;
      case BinaryOp::Minimum:
        return min(*a, *b);
      case BinaryOp::Maximum:
        return max(*a, *b);
      case BinaryOp::Equal:
        if (*a == *b) return Dim(1);
        return provably_different(*a, *b) ? std::optional<Dim>(0) : std::nullopt;
      case BinaryOp::Less:
        if (provably_at_most(*a + 1, *b)) return Dim(1);
        return provably_at_most(*b, *a) ? std::optional<Dim>(0) : std::nullopt;
      case BinaryOp::LessEqual:
        if (provably_at_most(*a, *b)) return Dim(1);
        return provably_at_most(*b + 1, *a) ? std::optional<Dim>(0) : std::nullopt;
      case BinaryOp::And:
        if (node.dtype != DType::Bool || !a->is_constant() || !b->is_constant())
          return std::nullopt;
        return Dim(a->constant() != 0 && b->constant() != 0);
      case BinaryOp::Or:
        if (node.dtype != DType::Bool || !a->is_constant() || !b->is_constant())
          return std::nullopt;
        return Dim(a->constant() != 0 || b->constant() != 0);
      default:
        return std::nullopt;
    }
  }

  std::optional<Dim> read(const ExprNode& node, const Position& at) {
    const Dims& dims = node.args[0].dims();
    Position source(dims.size());
    bool is_outside = false;
    for (std::size_t axis = 0; axis < dims.size(); ++axis) {
      const std::optional<Dim> coordinate = element(node.args[axis + 1], at);
      if (!coordinate || !coordinate->is_constant() || !dims[axis].is_constant())
        return std::nullopt;
      source[axis] = coordinate->constant();
      is_outside |= source[axis] < 0 || source[axis] >= dims[axis].constant();
    }
    if (!is_outside) return element(node.args[0], source);
    return node.has_fill ? element(node.args.back(), at) : std::nullopt;
  }

  std::optional<Dim> concatenated(const ExprNode& node, Position at) {
    const std::size_t axis = node.axes.front();
    for (const Expr& part : node.args) {
      const Dim& extent = part.dims()[axis];
      if (!extent.is_constant()) return std::nullopt;
      if (at[axis] < extent.constant()) return element(part, at);
      at[axis] -= extent.constant();
    }
    return std::nullopt;
  }

  std::optional<Dim> reduced(const ExprNode& node, const Position& at) {
    const bool is_folded = node.reduction == Reduction::Sum ||
                           node.reduction == Reduction::Product ||
                           node.reduction == Reduction::Max || node.reduction == Reduction::Min;
    if (!is_folded) return std::nullopt;  // a position, even among one element
    const Dims& dims = node.args[0].dims();
    std::optional<Dim> total;
    Position inner = at;
    for (std::size_t axis : node.axes) {
      if (!dims[axis].is_constant()) return std::nullopt;
      if (dims[axis].constant() == 0) return std::nullopt;
      inner[axis] = 0;
    }
    while (true) {
      const std::optional<Dim> next = element(node.args[0], inner);
      if (!next) return std::nullopt;
      if (!total) {
        total = next;
      } else {
        switch (node.reduction) {
          case Reduction::Sum:
            total = *total + *next;
            break;
          case Reduction::Product:
            total = *total * *next;
            break;
          case Reduction::Max:
            total = max(*total, *next);
            break;
          case Reduction::Min:
            total = min(*total, *next);
            break;
          default:
            return std::nullopt;
        }
      }
      std::size_t k = node.axes.size();
      while (k-- > 0) {
        const std::size_t axis = node.axes[k];
        if (++inner[axis] < dims[axis].constant()) break;
        inner[axis] = 0;
      }
      if (k == static_cast<std::size_t>(-1)) return total;
    }
  }

  const std::vector<const Dims*>& known_;
  int steps_ = 0;
  // Memoizes elements, since expressions share subexpressions.
  std::map<std::pair<const ExprNode*, Position>, std::optional<Dim>> elements_;
};

}  // namespace

std::optional<Dims> known_elements(const Expr& expr, const std::vector<const Dims*>& known) {
  const Dims& dims = expr.dims();
  if (!all_constant(dims)) return std::nullopt;
  const std::vector<std::int64_t> extents = constants(dims);
  std::int64_t count = 1;
  for (std::int64_t extent : extents) {
    count *= extent;
    if (count > 64) return std::nullopt;
  }
  Dims elements;
  KnownElements walk(known);
  std::vector<std::int64_t> at(extents.size(), 0);
  for (std::int64_t k = 0; k < count; ++k) {
    std::int64_t rest = k;
    for (std::size_t axis = extents.size(); axis-- > 0;) {
      at[axis] = rest % extents[axis];
      rest /= extents[axis];
    }
    std::optional<Dim> element = walk.element_or_nothing(expr, at);
    if (!element) return std::nullopt;
    elements.push_back(std::move(*element));
  }
  return elements;
}

}  // namespace tenon::inline expr
