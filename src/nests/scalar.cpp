#include "nests/scalar.h"

#include <limits>

namespace tenon::nests {
namespace {

Scalar make(ScalarNode node) { return Scalar(std::make_shared<const ScalarNode>(std::move(node))); }

bool is_number(const Scalar& scalar) { return scalar->kind == ScalarKind::Integer; }

bool is_same(const Scalar& a, const Scalar& b) {
  const bool is_leaf = a->kind == ScalarKind::Loop || a->kind == ScalarKind::Extent;
  return &a.node() == &b.node() || (is_leaf && a->kind == b->kind && a->id == b->id);
}

}  // namespace

Scalar integer_scalar(std::int64_t value) {
  ScalarNode node;
  node.integer = value;
  return make(std::move(node));
}

Scalar literal_scalar(DType dtype, double real, std::int64_t integer) {
  ScalarNode node;
  const bool is_whole = tenon::is_integer(dtype) || dtype == DType::Bool;
  node.kind = is_whole ? ScalarKind::Integer : ScalarKind::Real;
  node.dtype = dtype;
  node.real = real;
  node.integer = integer;
  return make(std::move(node));
}

Scalar loop_scalar(std::size_t loop) {
  ScalarNode node;
  node.kind = ScalarKind::Loop;
  node.id = loop;
  return make(std::move(node));
}

Scalar local_scalar(std::size_t local, DType dtype) {
  ScalarNode node;
  node.kind = ScalarKind::Local;
  node.dtype = dtype;
  node.id = local;
  return make(std::move(node));
}

Scalar position_scalar(std::size_t local) {
  ScalarNode node;
  node.kind = ScalarKind::Position;
  node.id = local;
  return make(std::move(node));
}

Scalar unary_scalar(UnaryOp op, DType dtype, Scalar x) {
  ScalarNode node;
  node.kind = ScalarKind::Unary;
  node.dtype = dtype;
  node.unary = op;
  node.args = {std::move(x)};
  return make(std::move(node));
}

Scalar identity_scalar(Reduction reduction, DType dtype) {
  const bool is_real = tenon::is_float(dtype);
  const double infinity = std::numeric_limits<double>::infinity();
  switch (reduction) {
    case Reduction::Product:
      return literal_scalar(dtype, 1, 1);
    case Reduction::Max:
      return literal_scalar(dtype, -infinity, is_real ? 0 : lowest_integer(dtype));
    case Reduction::Min:
      return literal_scalar(dtype, infinity,
                            is_real ? 0 : static_cast<std::int64_t>(highest_integer(dtype)));
    default:
      return literal_scalar(dtype, 0, 0);
  }
}

bool is_integer(const Scalar& scalar, std::int64_t value) {
  return is_number(scalar) && scalar->integer == value;
}

Scalar binary_scalar(BinaryOp op, DType dtype, Scalar a, Scalar b) {
  if (dtype == DType::I64 && a->dtype == DType::I64) {
    if (op == BinaryOp::Add && is_integer(a, 0)) return b;
    if ((op == BinaryOp::Add || op == BinaryOp::Subtract) && is_integer(b, 0)) return a;
    if (op == BinaryOp::Multiply && (is_integer(a, 0) || is_integer(b, 0)))
      return integer_scalar(0);
    if (op == BinaryOp::Multiply && is_integer(a, 1)) return b;
    if ((op == BinaryOp::Multiply || op == BinaryOp::FloorDivide || op == BinaryOp::Divide) &&
        is_integer(b, 1)) {
      return a;
    }
    if (op == BinaryOp::Modulo && is_integer(b, 1)) return integer_scalar(0);
    if (op == BinaryOp::Subtract && is_same(a, b)) return integer_scalar(0);
    if (op == BinaryOp::Minimum && is_same(a, b)) return a;
    if (is_number(a) && is_number(b)) {
      std::int64_t result = 0;
      if (op == BinaryOp::Add && !__builtin_add_overflow(a->integer, b->integer, &result))
        return integer_scalar(result);
      if (op == BinaryOp::Subtract && !__builtin_sub_overflow(a->integer, b->integer, &result)) {
        return integer_scalar(result);
      }
      if (op == BinaryOp::Multiply && !__builtin_mul_overflow(a->integer, b->integer, &result)) {
        return integer_scalar(result);
      }
      if (op == BinaryOp::Minimum) return a->integer < b->integer ? a : b;
    }
  }
  ScalarNode node;
  node.kind = ScalarKind::Binary;
  node.dtype = dtype;
  node.binary = op;
  node.args = {std::move(a), std::move(b)};
  return make(std::move(node));
}

Scalar plus(const Scalar& a, const Scalar& b) {
  return binary_scalar(BinaryOp::Add, DType::I64, a, b);
}
Scalar times(const Scalar& a, const Scalar& b) {
  return binary_scalar(BinaryOp::Multiply, DType::I64, a, b);
}

Scalar select_scalar(Scalar condition, Scalar a, Scalar b) {
  ScalarNode node;
  node.kind = ScalarKind::Select;
  node.dtype = a->dtype;
  node.args = {std::move(condition), std::move(a), std::move(b)};
  return make(std::move(node));
}

Scalar cast_scalar(Scalar x, DType dtype) {
  if (x->dtype == dtype) return x;
  ScalarNode node;
  node.kind = ScalarKind::Cast;
  node.dtype = dtype;
  node.args = {std::move(x)};
  return make(std::move(node));
}

namespace {

// Matches 1 + f(x) in f32 and returns x.
std::optional<Scalar> under_one_plus(UnaryOp op, const ScalarNode& node) {
  if (node.kind != ScalarKind::Binary || node.binary != BinaryOp::Add || node.dtype != DType::F32)
    return std::nullopt;
  for (const std::size_t k : {0U, 1U}) {
    const Scalar &one = node.args[k], &other = node.args[1 - k];
    const bool is_found = other->kind == ScalarKind::Unary && other->unary == op;
    if (one->kind == ScalarKind::Real && one->real == 1 && is_found) return other->args[0];
  }
  return std::nullopt;
}

}  // namespace

std::optional<Scalar> under_one_plus_erf(const ScalarNode& node) {
  return under_one_plus(UnaryOp::Erf, node);
}

bool divides_by_one_plus_exp(const ScalarNode& node) {
  return node.kind == ScalarKind::Binary && node.binary == BinaryOp::Divide &&
         node.dtype == DType::F32 && under_one_plus(UnaryOp::Exp, node.args[1].node()).has_value();
}

}  // namespace tenon::nests
