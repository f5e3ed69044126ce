#include "expr/random_numbers.h"

#include <numbers>

namespace tenon::inline expr {
namespace {

Expr word(std::uint64_t value) {
  return cast(integer(static_cast<std::int64_t>(value)), DType::U64);
}

Expr mixed(const Expr& bits, int shift, std::uint64_t factor) {
  const Expr folded =
      apply(BinaryOp::Xor, bits,
            apply(BinaryOp::ShiftRight, bits, word(static_cast<std::uint64_t>(shift))));
  return folded * word(factor);
}

constexpr std::uint64_t kGoldenStep = 0x9E3779B97F4A7C15U;

std::uint64_t splitmix_step(std::uint64_t state) {
  state += kGoldenStep;
  state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9U;
  state = (state ^ (state >> 27)) * 0x94D049BB133111EBU;
  return state ^ (state >> 31);
}

// Row-major position of each element.
Expr counter(const Dims& dims) {
  const Space space(dims);
  Expr position = broadcast(integer(0), dims);
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    position = position * dims[axis] + space[axis];
  }
  return cast(position, DType::U64);
}

Expr scrambled(Expr bits) {
  bits = mixed(bits, 30, 0xBF58476D1CE4E5B9U);
  bits = mixed(bits, 27, 0x94D049BB133111EBU);
  return mixed(bits, 31, 1);
}

// Converts the highest bits to a number in (0, 1): half a step up excludes 0 and, rounding
// included, 1.
Expr as_fraction(const Expr& bits, DType dtype) {
  const int kept_bits = dtype == DType::F64 ? 52 : 23;
  const Expr steps = cast(
      apply(BinaryOp::ShiftRight, bits, word(static_cast<std::uint64_t>(64 - kept_bits))), dtype);
  return (steps + 0.5) * (1.0 / static_cast<double>(std::uint64_t{1} << kept_bits));
}

}  // namespace

// SplitMix64 (Steele, Lea, Flood 2014) with random access by position.
Expr uniform_numbers(const Dims& dims, std::int64_t seed, std::int64_t stream, DType dtype) {
  const std::uint64_t start = splitmix_step(static_cast<std::uint64_t>(seed) +
                                            splitmix_step(static_cast<std::uint64_t>(stream)));
  return as_fraction(scrambled(counter(dims) * word(kGoldenStep) + word(start)), dtype);
}

// Hashes the key once more than the counter, so that neighbouring keys start far apart.
Expr uniform_numbers(const Dims& dims, const Expr& key, std::int64_t seed) {
  const std::uint64_t start = splitmix_step(static_cast<std::uint64_t>(seed));
  const Expr begin = scrambled(key * word(kGoldenStep) + word(start));
  return as_fraction(scrambled(counter(dims) * word(kGoldenStep) + begin), DType::F32);
}

// Box-Muller transform.
Expr normal_numbers(const Dims& dims, std::int64_t seed, DType dtype) {
  const Expr radius = sqrt(-2.0 * log(uniform_numbers(dims, seed, 0, dtype)));
  return radius * cos(2.0 * std::numbers::pi * uniform_numbers(dims, seed, 1, dtype));
}

}  // namespace tenon::inline expr
