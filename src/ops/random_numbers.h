#pragma once

#include "ops/expr.h"

#include <cstdint>

namespace tenon {

/// Numbers that look random and depend on nothing but the seed, the stream and their position: the
/// same on every machine and in every order. Uniform in (0, 1), f32 (or f64, where that is asked).
Expr uniform_numbers(const Dims& dims, std::int64_t seed, std::int64_t stream,
                     DType dtype = DType::F32);
/// The same for a key that is only known when it runs: one u64 number. Another key, other numbers.
Expr uniform_numbers(const Dims& dims, const Expr& key, std::int64_t seed);
/// The same with a standard normal distribution.
Expr normal_numbers(const Dims& dims, std::int64_t seed, DType dtype = DType::F32);

}  // namespace tenon
