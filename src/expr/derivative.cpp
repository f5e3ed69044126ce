#include "expr/derivative.h"

#include "base/error.h"
#include "expr/names.h"

#include <cmath>
#include <numbers>
#include <unordered_map>

namespace tenon::inline expr {
namespace {

Expr zeros(DType dtype, const Dims& dims) { return broadcast(literal(dtype, 0), dims); }

// Sums over broadcast axes down to the original shape.
Expr summed_to(Expr flow, const Dims& dims) {
  const std::size_t skipped = flow.rank() - dims.size();
  Axes leading, repeated;
  for (std::size_t axis = 0; axis < flow.rank(); ++axis) {
    if (axis < skipped) {
      leading.push_back(static_cast<std::int64_t>(axis));
    } else if (dims[axis - skipped] == Dim(1) && flow.dims()[axis] != Dim(1)) {
      repeated.push_back(static_cast<std::int64_t>(axis));
    }
  }
  flow = sum_over(flow, repeated);
  return leading.empty() ? flow : sum_out(flow, leading);
}

class ExprBackward {
 public:
  ExprBackward(const std::vector<Expr>& exprs, std::size_t operand) : operand_(operand) {
    for (const Expr& expr : exprs) {
      if (expr.is_defined()) visit(expr);
    }
  }

  Expr run(const std::vector<Expr>& exprs, const std::vector<Expr>& flows) {
    for (std::size_t k = 0; k < exprs.size(); ++k) {
      if (exprs[k].is_defined() && k < flows.size() && flows[k].is_defined())
        add(exprs[k], flows[k]);
    }
    for (auto expr = order_.rbegin(); expr != order_.rend(); ++expr) {
      const auto found = flows_.find(&expr->node());
      if (found != flows_.end() && depends_.at(&expr->node())) pass_on(*expr, found->second);
    }
    return gradient_;
  }

 private:
  // Post-order: arguments precede their readers.
  bool visit(const Expr& expr) {
    const ExprNode& node = expr.node();
    if (const auto known = depends_.find(&node); known != depends_.end()) return known->second;
    bool depends = node.kind == ExprKind::Operand && node.operand == operand_;
    for (const Expr& argument : node.args) depends |= visit(argument);
    depends &= is_float(node.dtype);
    depends_[&node] = depends;
    order_.push_back(expr);
    return depends;
  }

  void add(const Expr& expr, const Expr& flow) {
    if (!depends_.at(&expr.node())) return;
    const Expr fitting = summed_to(flow, expr.dims());
    const auto [place, is_first] = flows_.emplace(&expr.node(), fitting);
    if (!is_first) place->second = place->second + fitting;
  }

  void pass_on(const Expr& expr, const Expr& flow) {
    const ExprNode& node = expr.node();
    switch (node.kind) {
      case ExprKind::Operand: {  // one operand may be several nodes
        const Expr whole = broadcast(flow, expr.dims());
        gradient_ = gradient_.is_defined() ? gradient_ + whole : whole;
        return;
      }
      case ExprKind::Unary:
        return add(node.args[0], flow * slope(expr, node.args[0]));
      case ExprKind::Binary:
        return binary(expr, flow);
      case ExprKind::Select:
        add(node.args[1], select(node.args[0], flow, 0.0));
        return add(node.args[2], select(node.args[0], 0.0, flow));
      case ExprKind::Cast:
        return add(node.args[0], cast(flow, node.args[0].dtype()));
      case ExprKind::Read:
        return read(expr, flow);
      case ExprKind::Reshape:
        return add(node.args[0], reshape(broadcast(flow, expr.dims()), node.args[0].dims()));
      case ExprKind::Concat:
        return concatenated(expr, flow);
      case ExprKind::Reduce:
        return reduced(expr, flow);
      case ExprKind::Scan:
        if (node.reduction != Reduction::Sum) refuse(node);
        return add(node.args[0],
                   scan(Reduction::Sum, flow, static_cast<std::int64_t>(node.axes.front()),
                        node.is_exclusive, !node.is_reverse));
      case ExprKind::Scatter:
        return scattered(expr, flow);
      default:
        return;  // numbers and positions have no gradient
    }
  }

  [[noreturn]] static void refuse(const ExprNode& node) {
    const std::string_view name =
        node.kind == ExprKind::Binary ? name_of(node.binary) : name_of(node.reduction);
    throw Error(concat("no gradient is known of '", name, "'"), ErrorKind::Unsupported);
  }
  static Expr slope(const Expr& y, const Expr& x) {
    const auto one_over = [](const Expr& value) { return 1.0 / value; };
    switch (y.node().unary) {
      case UnaryOp::Negate:
        return broadcast(literal(x.dtype(), -1), x.dims());
      case UnaryOp::Abs:
        return apply(UnaryOp::Sign, x);
      case UnaryOp::Sqrt:
        return 0.5 / y;
      case UnaryOp::Exp:
        return y;
      case UnaryOp::Log:
        return one_over(x);
      case UnaryOp::Log1p:
        return one_over(x + 1.0);
      case UnaryOp::Sin:
        return cos(x);
      case UnaryOp::Cos:
        return -sin(x);
      case UnaryOp::Tan:
        return 1.0 + y * y;
      case UnaryOp::Asin:
        return one_over(sqrt(1.0 - x * x));
      case UnaryOp::Acos:
        return -one_over(sqrt(1.0 - x * x));
      case UnaryOp::Atan:
        return one_over(1.0 + x * x);
      case UnaryOp::Sinh:
        return apply(UnaryOp::Cosh, x);
      case UnaryOp::Cosh:
        return apply(UnaryOp::Sinh, x);
      case UnaryOp::Tanh:
        return 1.0 - y * y;
      case UnaryOp::Erf:
        return exp(-(x * x)) * (2.0 / std::sqrt(std::numbers::pi));
      default:
        return zeros(x.dtype(), x.dims());  // piecewise constant: floor, sign and others
    }
  }

  void binary(const Expr& y, const Expr& flow) {
    const Expr &a = y.node().args[0], &b = y.node().args[1];
    switch (y.node().binary) {
      case BinaryOp::Add:
        add(a, flow);
        return add(b, flow);
      case BinaryOp::Subtract:
        add(a, flow);
        return add(b, -flow);
      case BinaryOp::Multiply:
        add(a, flow * b);
        return add(b, flow * a);
      case BinaryOp::Divide:
        add(a, flow / b);
        return add(b, -(flow * y / b));
      case BinaryOp::Minimum:
      case BinaryOp::Maximum: {
        const Expr is_first = equal(a, y);
        add(a, select(is_first, flow, 0.0));
        return add(b, select(is_first, 0.0, flow));
      }
      case BinaryOp::Power:
        add(a, flow * b * pow(a, b - 1.0));
        return add(b, flow * y * log(a));
      case BinaryOp::Modulo:
      case BinaryOp::Remainder:
        add(a, flow);
        if (depends_.at(&b.node())) refuse(y.node());
        return;
      case BinaryOp::FloorDivide:
        return;  // piecewise constant
      default:
        refuse(y.node());
    }
  }

  // An element's gradient is the sum over the positions that read it.
  void read(const Expr& expr, const Expr& flow) {
    const ExprNode& node = expr.node();
    const Expr& source = node.args[0];
    if (source.rank() == 0) return add(source, flow);
    const Space space(expr.dims());
    std::vector<Expr> at;
    Expr is_inside;
    for (std::size_t axis = 0; axis < source.rank(); ++axis) {
      Expr coordinate = broadcast(node.args[1 + axis], expr.dims());
      if (node.has_fill) {
        const Expr fits = coordinate >= 0.0 && coordinate < source.dims()[axis];
        is_inside = is_inside.is_defined() ? is_inside && fits : fits;
      }
      at.push_back(std::move(coordinate));
    }
    Expr updates = broadcast(flow, expr.dims());
    if (node.has_fill) {
      for (Expr& coordinate : at) coordinate = select(is_inside, coordinate, 0.0);
      add(node.args.back(), select(is_inside, 0.0, updates));
      updates = select(is_inside, updates, 0.0);
    }
    add(source,
        scatter(Reduction::Sum, zeros(source.dtype(), source.dims()), std::move(at), updates));
  }

  // Overwriting updates are assumed to have distinct coordinates.
  void scattered(const Expr& expr, const Expr& flow) {
    const ExprNode& node = expr.node();
    if (node.reduction != Reduction::Sum && node.reduction != Reduction::Last) refuse(node);
    const std::vector<Expr> at(node.args.begin() + 2, node.args.end());
    const Expr whole = broadcast(flow, expr.dims());
    add(node.args[1], whole.at(at));
    if (node.reduction == Reduction::Sum) return add(node.args[0], whole);
    add(node.args[0],
        scatter(Reduction::Last, whole, at, zeros(flow.dtype(), node.args[1].dims())));
  }

  void concatenated(const Expr& expr, const Expr& flow) {
    const std::size_t axis = expr.node().axes.front();
    Dim begin = 0;
    for (const Expr& part : expr.node().args) {
      std::vector<Expr> at = Space(part.dims()).indices();
      at[axis] = at[axis] + begin;
      add(part, broadcast(flow, expr.dims()).at(std::move(at)));
      begin = begin + part.dims()[axis];
    }
  }

  void reduced(const Expr& expr, const Expr& flow) {
    const ExprNode& node = expr.node();
    const Expr& x = node.args[0];
    switch (node.reduction) {
      case Reduction::Sum:
        return add(x, broadcast(flow, x.dims()));
      case Reduction::Max:
      case Reduction::Min: {  // splits equally in a tie
        const Expr is_extreme = cast(equal(x, expr), x.dtype());
        const Expr share = flow / sum_over(is_extreme, Axes(node.axes.begin(), node.axes.end()));
        return add(x, is_extreme * share);
      }
      case Reduction::Product:
        return add(x, flow * expr / x);
      default:
        return;  // positions have no gradient
    }
  }

  std::size_t operand_;
  std::vector<Expr> order_;
  std::unordered_map<const ExprNode*, bool> depends_;
  std::unordered_map<const ExprNode*, Expr> flows_;
  Expr gradient_;
};

}  // namespace

Expr expr_gradient(const std::vector<Expr>& exprs, const std::vector<Expr>& flows,
                   std::size_t operand) {
  return ExprBackward(exprs, operand).run(exprs, flows);
}

}  // namespace tenon::inline expr
