#pragma once

#include "base/error.h"
#include "ir/type.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tenon::inline expr {

enum class ExprKind : std::uint8_t {
  /// An operand of the op.
  Operand,
  /// A number.
  Literal,
  /// A dim as an i64 number.
  Extent,
  /// Position along one axis of its own shape, i64.
  Index,
  Unary,
  Binary,
  Select,
  Cast,
  /// Reads the source at computed coordinates, or a fill value outside.
  Read,
  /// The same elements in row-major order under other extents.
  Reshape,
  /// Concatenates arguments along an axis.
  Concat,
  /// Reduces axes, which stay with extent 1.
  Reduce,
  /// Running reduction along an axis.
  Scan,
  /// Combines updates into the base at computed coordinates.
  Scatter,
};

enum class UnaryOp : std::uint8_t {
  Negate,
  Abs,
  Sign,
  Floor,
  Ceil,
  RoundEven,
  Trunc,
  Sqrt,
  Exp,
  Log,
  Log1p,
  Sin,
  Cos,
  Tan,
  Asin,
  Acos,
  Atan,
  Sinh,
  Cosh,
  Tanh,
  Asinh,
  Acosh,
  Atanh,
  Erf,
  Not,
  BitNot,
  IsNan,
  IsPositiveInf,
  IsNegativeInf,
};
/// Divide truncates on integers; FloorDivide and Modulo round down; Remainder has the dividend's
/// sign.
enum class BinaryOp : std::uint8_t {
  Add,
  Subtract,
  Multiply,
  Divide,
  FloorDivide,
  Modulo,
  Remainder,
  Power,
  Minimum,
  Maximum,
  And,
  Or,
  Xor,
  ShiftLeft,
  ShiftRight,
  Equal,
  Less,
  LessEqual,
  Atan2,
  Dp4a,
};
/// Max and Min propagate NaN; the Arg kinds return the first or last position of the extreme.
/// `Last` is for Scatter: the update overwrites.
enum class Reduction : std::uint8_t {
  Sum,
  Product,
  Max,
  Min,
  ArgMax,
  ArgMin,
  ArgMaxLast,
  ArgMinLast,
  Last,
};

struct ExprNode;

/// Tensor-valued expression: the computation of an op, element by element. Elementwise operators
/// broadcast like NumPy; both sides have one dtype, and a C++ number adopts it.
class Expr {
 public:
  Expr() = default;
  explicit Expr(std::shared_ptr<const ExprNode> node) : node_(std::move(node)) {}
  const ExprNode& node() const { return *node_; }
  bool is_defined() const { return node_ != nullptr; }
  DType dtype() const;
  const Dims& dims() const;
  std::size_t rank() const { return dims().size(); }
  /// Negative axes count from the end.
  const Dim& extent(std::int64_t axis) const;

  /// Reads elements at the given coordinates (i64, one per axis), which must lie inside; at run
  /// time a coordinate outside is an error of the data. The result has the coordinates' common
  /// shape.
  Expr at(std::vector<Expr> coordinates) const;
  /// Like `at`, with `fill` for coordinates outside.
  Expr at_or(std::vector<Expr> coordinates, const Expr& fill) const;
  Expr at_or(std::vector<Expr> coordinates, double fill) const;

 private:
  // Expressions are immutable DAGs that live for one lowering.
  std::shared_ptr<const ExprNode> node_;
};

struct ExprNode {
  ExprKind kind = ExprKind::Literal;
  DType dtype = DType::F32;
  Dims dims;
  /// Read: source, coordinates, fill if `has_fill`. Scatter: base, updates, coordinates.
  std::vector<Expr> args;
  UnaryOp unary{};
  BinaryOp binary{};
  Reduction reduction{};
  /// One for Index, Concat and Scan; any number (sorted) for Reduce.
  std::vector<std::size_t> axes;
  /// Position among the op's operand values.
  std::size_t operand = 0;
  /// Literal of a floating dtype.
  double real = 0;
  /// Literal of an integer or bool dtype.
  std::int64_t integer = 0;
  Dim extent;
  bool has_fill = false;
  /// For Scan.
  bool is_exclusive = false, is_reverse = false;
};

Expr operand_expr(std::size_t operand, const TensorType& type);
Expr literal(DType dtype, double value);
/// An i64 literal.
Expr integer(std::int64_t value);
/// A dim as an i64 number.
Expr extent_expr(const Dim& dim);

/// Axes of an iteration space: `space[k]` is the position along axis k, with the space's shape.
class Space {
 public:
  explicit Space(Dims dims) : dims_(std::move(dims)) {}
  Expr operator[](std::size_t axis) const;
  const Dims& dims() const { return dims_; }
  std::vector<Expr> indices() const;

 private:
  Dims dims_;
};

Expr apply(UnaryOp op, const Expr& x);
Expr apply(BinaryOp op, const Expr& a, const Expr& b);
Expr select(const Expr& condition, const Expr& a, const Expr& b);
Expr cast(const Expr& x, DType dtype);

#define TENON_EXPR_BINARY(name)            \
  Expr name(const Expr& a, const Expr& b); \
  Expr name(const Expr& a, double b);      \
  Expr name(double a, const Expr& b);      \
  Expr name(const Expr& a, const Dim& b);  \
  Expr name(const Dim& a, const Expr& b);
TENON_EXPR_BINARY(operator+)
TENON_EXPR_BINARY(operator-)
TENON_EXPR_BINARY(operator*)
TENON_EXPR_BINARY(operator/)
TENON_EXPR_BINARY(floor_div)
TENON_EXPR_BINARY(mod)
TENON_EXPR_BINARY(min)
TENON_EXPR_BINARY(max)
TENON_EXPR_BINARY(pow)
TENON_EXPR_BINARY(operator<)
TENON_EXPR_BINARY(operator<=)
TENON_EXPR_BINARY(operator>)
TENON_EXPR_BINARY(operator>=)
TENON_EXPR_BINARY(equal)
TENON_EXPR_BINARY(not_equal)
#undef TENON_EXPR_BINARY
Expr operator&&(const Expr& a, const Expr& b);
Expr operator||(const Expr& a, const Expr& b);
Expr operator!(const Expr& a);
Expr operator-(const Expr& a);
Expr select(const Expr& condition, const Expr& a, double b);
Expr select(const Expr& condition, double a, const Expr& b);

Expr abs(const Expr& x);
Expr exp(const Expr& x);
Expr log(const Expr& x);
Expr sqrt(const Expr& x);
Expr tanh(const Expr& x);
Expr erf(const Expr& x);
Expr sin(const Expr& x);
Expr cos(const Expr& x);
Expr floor(const Expr& x);
Expr ceil(const Expr& x);
Expr round_even(const Expr& x);
Expr trunc(const Expr& x);

/// Reductions keep the reduced axes with extent 1 (so `x - max_over(x, axis)` works).
using Axes = std::vector<std::int64_t>;
Expr reduce(Reduction reduction, const Expr& x, const Axes& axes);
Expr sum_over(const Expr& x, const Axes& axes);
Expr sum_over(const Expr& x, std::int64_t axis);
Expr max_over(const Expr& x, const Axes& axes);
Expr max_over(const Expr& x, std::int64_t axis);
Expr min_over(const Expr& x, const Axes& axes);
Expr mean_over(const Expr& x, const Axes& axes);
/// Sums and drops the axes, for contractions over the last axes of a Space.
Expr sum_out(const Expr& x, const Axes& axes);
Expr drop_axes(const Expr& x, const Axes& axes);

Expr scan(Reduction reduction, const Expr& x, std::int64_t axis, bool exclusive, bool reverse);
Expr reshape(const Expr& x, Dims dims);
Expr transpose(const Expr& x, const std::vector<std::int64_t>& perm);
Expr broadcast(const Expr& x, Dims dims);
Expr concat(const std::vector<Expr>& parts, std::int64_t axis);
using base::concat;  // of texts
/// Combines every element of `updates` into `base` at its coordinates.
Expr scatter(Reduction reduction, const Expr& base, std::vector<Expr> coordinates,
             const Expr& updates);

/// Returns the common shape of two broadcast shapes. Throws Error if they do not fit.
Dims broadcast_dims(const Dims& a, const Dims& b);
/// Wraps `indices` from [-extent, extent) to [0, extent); usable in elementwise chains.
Expr wrap_negative(const Expr& indices, const Dim& extent);

}  // namespace tenon::inline expr
