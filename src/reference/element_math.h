#pragma once

#include "base/error.h"
#include "expr/expr.h"

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

namespace tenon::reference {

/// Type in which elements are computed; text elements are pointers to strings.
enum class LaneType : std::uint8_t { F32, F64, I64, U64, C128, Text };
using Text = const std::string*;
using Complex = std::complex<double>;

/// Returns the lane of a dtype. Narrow unsigned integers fit the signed lane; only u64 has its own.
LaneType lane_of(DType dtype);

/// Calls `f` with a zero of the lane's C++ type.
template <class F>
decltype(auto) with_lane(LaneType lane, F&& f) {
  switch (lane) {
    case LaneType::F32:
      return f(float{});
    case LaneType::F64:
      return f(double{});
    case LaneType::I64:
      return f(std::int64_t{});
    case LaneType::U64:
      return f(std::uint64_t{});
    case LaneType::C128:
      return f(Complex{});
    case LaneType::Text:
      break;
  }
  return f(Text{});
}

template <class T>
inline constexpr bool is_integral_lane =
    std::is_same_v<T, std::int64_t> || std::is_same_v<T, std::uint64_t>;
template <class T>
inline constexpr bool is_real_lane = std::is_same_v<T, float> || std::is_same_v<T, double>;

/// Wraps an integer to the range of its dtype (two's complement).
std::int64_t wrap(DType dtype, std::int64_t value);
bool needs_wrap(DType dtype);

/// Unary operators that preserve the type. Real functions are computed in double and rounded once.
/// Defined for every lane type; throws Error for undefined combinations.
template <class T>
T unary_element(UnaryOp op, T x);
/// Unary operators with boolean result: Not, IsNan, ….
template <class T>
bool test_element(UnaryOp op, T x);
/// Binary operators that preserve the type.
template <class T>
T binary_element(BinaryOp op, T a, T b);
/// Equal, Less, LessEqual.
template <class T>
bool compare_element(BinaryOp op, T a, T b);

bool is_comparison(BinaryOp op);
bool is_test(UnaryOp op);

/// True if an arg-reduction prefers `next` to `best`. NaN counts as the extreme, as in NumPy.
template <class T>
bool is_better(Reduction reduction, T best, T next);

/// Sums and products of f32 accumulate in double.
template <class T>
using AccumulatorOf = std::conditional_t<std::is_same_v<T, float>, double, T>;

/// Combines one more element into the total.
template <class T>
T combine(Reduction reduction, T total, T next);

/// Identity element of a reduction, the result over an empty range.
template <class T>
T identity_element(Reduction reduction, DType dtype);

/// Converts an element of another lane to `To`, before rounding or wrapping to its dtype.
template <class To, class From>
To convert_element(From x);

}  // namespace tenon::reference
