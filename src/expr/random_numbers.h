#pragma once

#include "expr/expr.h"

#include <cstdint>

namespace tenon::inline expr {

/// Pseudorandom numbers as a function of seed, stream and position: identical on every machine and
/// in every order. Uniform in (0, 1), f32 or f64.
Expr uniform_numbers(const Dims& dims, std::int64_t seed, std::int64_t stream,
                     DType dtype = DType::F32);
/// Takes a key known at run time: one u64 number. Different keys give different numbers.
Expr uniform_numbers(const Dims& dims, const Expr& key, std::int64_t seed);
/// Standard normal distribution.
Expr normal_numbers(const Dims& dims, std::int64_t seed, DType dtype = DType::F32);

}  // namespace tenon::inline expr
