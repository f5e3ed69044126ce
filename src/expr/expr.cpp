#include "expr/expr.h"

#include "base/error.h"
#include "expr/broadcasting.h"
#include "expr/names.h"
#include "expr/promises.h"
#include "ir/assumptions.h"
#include "ir/dim_broadcast.h"

#include <algorithm>

namespace tenon::inline expr {
namespace {

Expr make(ExprNode node) { return Expr(std::make_shared<const ExprNode>(std::move(node))); }

std::size_t axis_of(std::int64_t axis, std::size_t rank) {
  const auto signed_rank = static_cast<std::int64_t>(rank);
  const std::int64_t front = axis < 0 ? axis + signed_rank : axis;
  TENON_ASSERT(front >= 0 && front < signed_rank, "an axis of an expression lies inside its rank");
  return static_cast<std::size_t>(front);
}

bool gives_bool(BinaryOp op) {
  return op == BinaryOp::Equal || op == BinaryOp::Less || op == BinaryOp::LessEqual;
}

bool gives_bool(UnaryOp op) {
  return op == UnaryOp::Not || op == UnaryOp::IsNan || op == UnaryOp::IsPositiveInf ||
         op == UnaryOp::IsNegativeInf;
}

Dims common_dims(const std::vector<Expr>& parts) {
  Dims dims;
  for (const Expr& part : parts) dims = broadcast_dims(dims, part.dims());
  return dims;
}

Expr read(const Expr& source, std::vector<Expr> coordinates, const Expr* fill) {
  TENON_ASSERT(coordinates.size() == source.rank(), "a read has one coordinate for each axis");
  ExprNode node;
  node.kind = ExprKind::Read;
  node.dtype = source.dtype();
  node.dims = common_dims(coordinates);
  if (!fill) require_inside(source, coordinates, node.dims);
  node.args.push_back(source);
  for (Expr& coordinate : coordinates) {
    TENON_ASSERT(coordinate.dtype() == DType::I64, "coordinates are i64");
    node.args.push_back(std::move(coordinate));
  }
  if (fill) {
    TENON_ASSERT(fill->dtype() == source.dtype(), "a fill value has its source's dtype");
    node.args.push_back(*fill);
    node.has_fill = true;
  }
  return make(std::move(node));
}

}  // namespace

DType Expr::dtype() const { return node_->dtype; }
const Dims& Expr::dims() const { return node_->dims; }
const Dim& Expr::extent(std::int64_t axis) const { return dims()[axis_of(axis, rank())]; }

Expr Expr::at(std::vector<Expr> coordinates) const {
  return read(*this, std::move(coordinates), nullptr);
}
Expr Expr::at_or(std::vector<Expr> coordinates, const Expr& fill) const {
  return read(*this, std::move(coordinates), &fill);
}
Expr Expr::at_or(std::vector<Expr> coordinates, double fill) const {
  return at_or(std::move(coordinates), literal(dtype(), fill));
}

Expr operand_expr(std::size_t operand, const TensorType& type) {
  ExprNode node;
  node.kind = ExprKind::Operand;
  node.dtype = type.dtype;
  node.dims = type.dims;
  node.operand = operand;
  return make(std::move(node));
}

Expr literal(DType dtype, double value) {
  ExprNode node;
  node.kind = ExprKind::Literal;
  node.dtype = dtype;
  node.real = value;
  // Saturates: infinities become the extremes of an integer dtype.
  if (is_integer(dtype) || dtype == DType::Bool) {
    const double high = static_cast<double>(highest_integer(dtype));
    if (value >= high) {
      node.integer = static_cast<std::int64_t>(highest_integer(dtype));
    } else if (value <= static_cast<double>(lowest_integer(dtype))) {
      node.integer = lowest_integer(dtype);
    } else {
      node.integer = static_cast<std::int64_t>(value);
    }
  }
  return make(std::move(node));
}

Expr integer(std::int64_t value) {
  ExprNode node;
  node.kind = ExprKind::Literal;
  node.dtype = DType::I64;
  node.integer = value;
  node.real = static_cast<double>(value);
  return make(std::move(node));
}

Expr extent_expr(const Dim& dim) {
  if (dim.is_constant()) return integer(dim.constant());
  ExprNode node;
  node.kind = ExprKind::Extent;
  node.dtype = DType::I64;
  node.extent = dim;
  return make(std::move(node));
}

Expr Space::operator[](std::size_t axis) const {
  ExprNode node;
  node.kind = ExprKind::Index;
  node.dtype = DType::I64;
  node.dims = dims_;
  node.axes = {axis_of(static_cast<std::int64_t>(axis), dims_.size())};
  return make(std::move(node));
}

std::vector<Expr> Space::indices() const {
  std::vector<Expr> all;
  for (std::size_t axis = 0; axis < dims_.size(); ++axis) all.push_back((*this)[axis]);
  return all;
}

Expr apply(UnaryOp op, const Expr& x) {
  ExprNode node;
  node.kind = ExprKind::Unary;
  node.unary = op;
  node.dtype = gives_bool(op) ? DType::Bool : x.dtype();
  node.dims = x.dims();
  node.args = {x};
  return make(std::move(node));
}

Expr apply(BinaryOp op, const Expr& a, const Expr& b) {
  TENON_ASSERT(a.dtype() == b.dtype(),
               concat("both sides have one dtype: ", a.dtype(), ", ", b.dtype()));
  ExprNode node;
  node.kind = ExprKind::Binary;
  node.binary = op;
  node.dtype = gives_bool(op) ? DType::Bool : a.dtype();
  node.dims = broadcast_dims(a.dims(), b.dims());
  node.args = {a, b};
  return make(std::move(node));
}

Expr select(const Expr& condition, const Expr& a, const Expr& b) {
  TENON_ASSERT(condition.dtype() == DType::Bool, "a condition is bool");
  TENON_ASSERT(a.dtype() == b.dtype(), "both choices have one dtype");
  ExprNode node;
  node.kind = ExprKind::Select;
  node.dtype = a.dtype();
  node.dims = broadcast_dims(condition.dims(), broadcast_dims(a.dims(), b.dims()));
  node.args = {condition, a, b};
  return make(std::move(node));
}
Expr select(const Expr& condition, const Expr& a, double b) {
  return select(condition, a, literal(a.dtype(), b));
}
Expr select(const Expr& condition, double a, const Expr& b) {
  return select(condition, literal(b.dtype(), a), b);
}

Expr cast(const Expr& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  ExprNode node;
  node.kind = ExprKind::Cast;
  node.dtype = dtype;
  node.dims = x.dims();
  node.args = {x};
  return make(std::move(node));
}

#define TENON_EXPR_BINARY(name, expression)                                                   \
  Expr name(const Expr& a, const Expr& b) { return expression; }                              \
  Expr name(const Expr& a, double b_number) { return name(a, literal(a.dtype(), b_number)); } \
  Expr name(double a_number, const Expr& b) { return name(literal(b.dtype(), a_number), b); } \
  Expr name(const Expr& a, const Dim& b) { return name(a, cast(extent_expr(b), a.dtype())); } \
  Expr name(const Dim& a, const Expr& b) { return name(cast(extent_expr(a), b.dtype()), b); }
TENON_EXPR_BINARY(operator+, apply(BinaryOp::Add, a, b))
TENON_EXPR_BINARY(operator-, apply(BinaryOp::Subtract, a, b))
TENON_EXPR_BINARY(operator*, apply(BinaryOp::Multiply, a, b))
TENON_EXPR_BINARY(operator/, apply(BinaryOp::Divide, a, b))
TENON_EXPR_BINARY(floor_div, apply(BinaryOp::FloorDivide, a, b))
TENON_EXPR_BINARY(mod, apply(BinaryOp::Modulo, a, b))
TENON_EXPR_BINARY(min, apply(BinaryOp::Minimum, a, b))
TENON_EXPR_BINARY(max, apply(BinaryOp::Maximum, a, b))
TENON_EXPR_BINARY(pow, apply(BinaryOp::Power, a, b))
TENON_EXPR_BINARY(operator<, apply(BinaryOp::Less, a, b))
TENON_EXPR_BINARY(operator<=, apply(BinaryOp::LessEqual, a, b))
TENON_EXPR_BINARY(operator>, apply(BinaryOp::Less, b, a))
TENON_EXPR_BINARY(operator>=, apply(BinaryOp::LessEqual, b, a))
TENON_EXPR_BINARY(equal, apply(BinaryOp::Equal, a, b))
TENON_EXPR_BINARY(not_equal, apply(UnaryOp::Not, apply(BinaryOp::Equal, a, b)))
#undef TENON_EXPR_BINARY

Expr operator&&(const Expr& a, const Expr& b) { return apply(BinaryOp::And, a, b); }
Expr operator||(const Expr& a, const Expr& b) { return apply(BinaryOp::Or, a, b); }
Expr operator!(const Expr& a) { return apply(UnaryOp::Not, a); }
Expr operator-(const Expr& a) { return apply(UnaryOp::Negate, a); }

Expr abs(const Expr& x) { return apply(UnaryOp::Abs, x); }
Expr exp(const Expr& x) { return apply(UnaryOp::Exp, x); }
Expr log(const Expr& x) { return apply(UnaryOp::Log, x); }
Expr sqrt(const Expr& x) { return apply(UnaryOp::Sqrt, x); }
Expr tanh(const Expr& x) { return apply(UnaryOp::Tanh, x); }
Expr erf(const Expr& x) { return apply(UnaryOp::Erf, x); }
Expr sin(const Expr& x) { return apply(UnaryOp::Sin, x); }
Expr cos(const Expr& x) { return apply(UnaryOp::Cos, x); }
Expr floor(const Expr& x) { return apply(UnaryOp::Floor, x); }
Expr ceil(const Expr& x) { return apply(UnaryOp::Ceil, x); }
Expr round_even(const Expr& x) { return apply(UnaryOp::RoundEven, x); }
Expr trunc(const Expr& x) { return apply(UnaryOp::Trunc, x); }

Expr reduce(Reduction reduction, const Expr& x, const Axes& axes) {
  ExprNode node;
  node.kind = ExprKind::Reduce;
  node.reduction = reduction;
  if (axes.empty() && !is_arg(reduction)) return x;
  node.dtype = is_arg(reduction) ? DType::I64 : x.dtype();
  node.dims = x.dims();
  for (std::int64_t axis : axes) {
    node.axes.push_back(axis_of(axis, x.rank()));
    node.dims[node.axes.back()] = 1;
  }
  std::sort(node.axes.begin(), node.axes.end());
  node.args = {x};
  return make(std::move(node));
}
Expr sum_over(const Expr& x, const Axes& axes) { return reduce(Reduction::Sum, x, axes); }
Expr sum_over(const Expr& x, std::int64_t axis) { return sum_over(x, Axes{axis}); }
Expr max_over(const Expr& x, const Axes& axes) { return reduce(Reduction::Max, x, axes); }
Expr max_over(const Expr& x, std::int64_t axis) { return max_over(x, Axes{axis}); }
Expr min_over(const Expr& x, const Axes& axes) { return reduce(Reduction::Min, x, axes); }
Expr mean_over(const Expr& x, const Axes& axes) {
  Dim count = 1;
  for (std::int64_t axis : axes) count = count * x.extent(axis);
  // A narrow float cannot represent a large count.
  const bool is_narrow = is_float(x.dtype()) && x.dtype() != DType::F64;
  const DType wide = is_narrow ? DType::F32 : x.dtype();
  return cast(sum_over(cast(x, wide), axes) / count, x.dtype());
}
Expr sum_out(const Expr& x, const Axes& axes) { return drop_axes(sum_over(x, axes), axes); }

Expr drop_axes(const Expr& x, const Axes& axes) {
  std::vector<bool> dropped(x.rank(), false);
  for (std::int64_t axis : axes) dropped[axis_of(axis, x.rank())] = true;
  Dims dims;
  for (std::size_t axis = 0; axis < x.rank(); ++axis) {
    if (!dropped[axis]) dims.push_back(x.dims()[axis]);
  }
  return reshape(x, std::move(dims));
}

Expr scan(Reduction reduction, const Expr& x, std::int64_t axis, bool exclusive, bool reverse) {
  ExprNode node;
  node.kind = ExprKind::Scan;
  node.reduction = reduction;
  node.dtype = x.dtype();
  node.dims = x.dims();
  node.axes = {axis_of(axis, x.rank())};
  node.is_exclusive = exclusive;
  node.is_reverse = reverse;
  node.args = {x};
  return make(std::move(node));
}

Expr reshape(const Expr& x, Dims dims) {
  if (x.dims() == dims) return x;
  require_same_count(x.dims(), dims);
  ExprNode node;
  node.kind = ExprKind::Reshape;
  node.dtype = x.dtype();
  node.dims = std::move(dims);
  node.args = {x};
  return make(std::move(node));
}

Expr transpose(const Expr& x, const std::vector<std::int64_t>& perm) {
  TENON_ASSERT(perm.size() == x.rank(), "a permutation names every axis");
  Dims dims;
  for (std::int64_t axis : perm) dims.push_back(x.extent(axis));
  const Space space(std::move(dims));
  std::vector<Expr> coordinates(x.rank());
  for (std::size_t k = 0; k < perm.size(); ++k) coordinates[axis_of(perm[k], x.rank())] = space[k];
  return x.at(std::move(coordinates));
}

Expr broadcast(const Expr& x, Dims dims) {
  if (x.dims() == dims) return x;
  const Space space(std::move(dims));
  const std::size_t skipped = space.dims().size() - x.rank();
  std::vector<Expr> coordinates;
  for (std::size_t axis = 0; axis < x.rank(); ++axis) {
    coordinates.push_back(
        broadcast_index(space[skipped + axis], x.dims()[axis], space.dims()[skipped + axis]));
  }
  if (coordinates.empty()) {
    // A scalar has no coordinate to carry the shape, so it gets an axis first.
    return broadcast(reshape(x, {Dim(1)}), space.dims());
  }
  return x.at(std::move(coordinates));
}

Expr concat(const std::vector<Expr>& parts, std::int64_t axis) {
  TENON_ASSERT(!parts.empty(), "concat has parts");
  if (parts.size() == 1) return parts.front();
  ExprNode node;
  node.kind = ExprKind::Concat;
  node.dtype = parts.front().dtype();
  node.dims = parts.front().dims();
  node.axes = {axis_of(axis, node.dims.size())};
  Dim total = 0;
  for (const Expr& part : parts) total = total + part.extent(axis);
  node.dims[node.axes.front()] = total;
  node.args = parts;
  return make(std::move(node));
}

Expr scatter(Reduction reduction, const Expr& base, std::vector<Expr> coordinates,
             const Expr& updates) {
  TENON_ASSERT(coordinates.size() == base.rank(), "a scatter has one coordinate for each axis");
  require_positions(coordinates, updates.dims());
  ExprNode node;
  node.kind = ExprKind::Scatter;
  node.reduction = reduction;
  node.dtype = base.dtype();
  node.dims = base.dims();
  node.args = {base, updates};
  for (Expr& coordinate : coordinates) node.args.push_back(std::move(coordinate));
  return make(std::move(node));
}

Dims broadcast_dims(const Dims& a, const Dims& b) {
  const Dims& longer = a.size() >= b.size() ? a : b;
  const Dims& shorter = a.size() >= b.size() ? b : a;
  Dims dims = longer;
  const std::size_t skipped = longer.size() - shorter.size();
  for (std::size_t k = 0; k < shorter.size(); ++k) {
    Dim& extent = dims[skipped + k];
    if (extent == shorter[k]) continue;
    const std::optional<Dim> common = assume_broadcast(extent, shorter[k]);
    if (!common) {
      throw Error("shapes do not broadcast")
          .expected("extents that are equal or 1, counted from the last axis")
          .got(a, " and ", b);
    }
    extent = *common;
  }
  return dims;
}

Expr broadcast_index(const Expr& index, const Dim& own, const Dim& whole) {
  if (own == Dim(1)) return index * 0.0;
  return may_repeat(own, whole) ? index * min(own - 1, 1) : index;
}

Expr wrap_negative(const Expr& indices, const Dim& extent) {
  const Expr wide = cast(indices, DType::I64);
  return select(wide < 0.0, wide + extent, wide);
}

}  // namespace tenon::inline expr
