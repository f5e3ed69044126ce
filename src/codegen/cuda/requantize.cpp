#include "codegen/cuda/requantize.h"

#include <algorithm>
#include <cmath>

namespace tenon::codegen::cuda {
namespace {

// Exceeds the distance between any two bytes.
constexpr float kMostRounded = 512;
// With divisors in this range, every intermediate of a quotient above 1/4 stays in the normal range
// of f32.
constexpr float kLeastDivisor = 0x1p-60F, kMostDivisor = 0x1p60F;

const ScalarNode* binary(const Scalar& scalar, BinaryOp op) {
  const ScalarNode& node = scalar.node();
  const bool is_such = node.kind == ScalarKind::Binary && node.binary == op;
  return is_such && node.dtype == DType::F32 ? &node : nullptr;
}

bool is_real(const Scalar& scalar, double number) {
  return scalar->kind == ScalarKind::Real && scalar->real == number;
}

// True for an f32 that was converted from a byte, or an integer constant of that size.
bool is_of_byte(const Scalar& scalar) {
  if (scalar->kind == ScalarKind::Real)
    return std::abs(scalar->real) <= 255 && std::floor(scalar->real) == scalar->real;
  return scalar->kind == ScalarKind::Cast && info(scalar->args[0]->dtype).storage_bytes == 1 &&
         is_integer(scalar->args[0]->dtype);
}

}  // namespace

bool RequantizedByte::is_from_zero() const {
  if (zero->kind == ScalarKind::Real) return zero->real == 0;
  return nests::is_integer(zero->args[0], 0);
}

std::optional<RequantizedByte> find_requantized_byte(const ScalarNode& node) {
  if (node.kind != ScalarKind::Cast || (node.dtype != DType::U8 && node.dtype != DType::I8))
    return std::nullopt;
  const bool is_signed = node.dtype == DType::I8;
  const ScalarNode* const below = binary(node.args[0], BinaryOp::Minimum);
  if (below == nullptr || !is_real(below->args[1], is_signed ? 127 : 255)) return std::nullopt;
  const ScalarNode* const above = binary(below->args[0], BinaryOp::Maximum);
  if (above == nullptr || !is_real(above->args[1], is_signed ? -128 : 0)) return std::nullopt;
  const ScalarNode* const sum = binary(above->args[0], BinaryOp::Add);
  const Scalar& rounded = sum == nullptr ? above->args[0] : sum->args[0];
  if (rounded->kind != ScalarKind::Unary || rounded->unary != UnaryOp::RoundEven)
    return std::nullopt;
  const Scalar zero = sum == nullptr ? nests::literal_scalar(DType::F32, 0, 0) : sum->args[1];
  if (!is_of_byte(zero)) return std::nullopt;
  return RequantizedByte{rounded->args[0], zero};
}

std::optional<DequantizedByte> find_dequantized_byte(const ScalarNode& node) {
  const bool is_difference = node.kind == ScalarKind::Binary && node.binary == BinaryOp::Subtract &&
                             node.dtype == DType::F32;
  if (!is_difference || node.args[0]->kind != ScalarKind::Cast ||
      node.args[0]->args[0]->dtype != DType::U8 || !is_of_byte(node.args[1]))
    return std::nullopt;
  return DequantizedByte{node.args[0]->args[0], node.args[1]};
}

std::optional<RequantizedQuotient> find_requantized_quotient(const Scalar& scalar) {
  const ScalarNode* const quotient = binary(scalar, BinaryOp::Divide);
  if (quotient == nullptr || quotient->args[1]->kind != ScalarKind::Real) return std::nullopt;
  RequantizedQuotient made;
  made.x = quotient->args[0];
  made.divisor = static_cast<float>(quotient->args[1]->real);
  if (!(made.divisor >= kLeastDivisor && made.divisor <= kMostDivisor)) return std::nullopt;
  made.inverse = 1 / made.divisor;
  made.rest = static_cast<float>(
      (1 - static_cast<double>(made.divisor) * static_cast<double>(made.inverse)) /
      static_cast<double>(made.divisor));
  made.highest = kMostRounded * made.divisor;
  made.lowest = -made.highest;
  const ScalarNode* const above = binary(made.x, BinaryOp::Maximum);
  if (above != nullptr && above->args[1]->kind == ScalarKind::Real) {
    const auto least = static_cast<float>(above->args[1]->real);
    if (least < made.highest) {
      made.lowest = std::max(made.lowest, least);
      made.x = above->args[0];
    }
  }
  return made;
}

}  // namespace tenon::codegen::cuda
