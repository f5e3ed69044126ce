#include "reference/element_math.h"

namespace tenon::reference {
namespace {

[[noreturn]] void refuse(const char* what) {
  throw Error(concat("this element type has no ", what), ErrorKind::Unsupported);
}

double real_function(UnaryOp op, double x) {
  switch (op) {
    case UnaryOp::Exp:
      return std::exp(x);
    case UnaryOp::Log:
      return std::log(x);
    case UnaryOp::Log1p:
      return std::log1p(x);
    case UnaryOp::Sin:
      return std::sin(x);
    case UnaryOp::Cos:
      return std::cos(x);
    case UnaryOp::Tan:
      return std::tan(x);
    case UnaryOp::Asin:
      return std::asin(x);
    case UnaryOp::Acos:
      return std::acos(x);
    case UnaryOp::Atan:
      return std::atan(x);
    case UnaryOp::Sinh:
      return std::sinh(x);
    case UnaryOp::Cosh:
      return std::cosh(x);
    case UnaryOp::Tanh:
      return std::tanh(x);
    case UnaryOp::Asinh:
      return std::asinh(x);
    case UnaryOp::Acosh:
      return std::acosh(x);
    case UnaryOp::Atanh:
      return std::atanh(x);
    case UnaryOp::Erf:
      return std::erf(x);
    default:
      refuse("such function");
  }
}

template <class T>
T real_unary(UnaryOp op, T x) {
  switch (op) {
    case UnaryOp::Negate:
      return -x;
    case UnaryOp::Abs:
      return std::fabs(x);
    case UnaryOp::Sign:
      return std::isnan(x) ? x : static_cast<T>((x > 0) - (x < 0));
    case UnaryOp::Floor:
      return std::floor(x);
    case UnaryOp::Ceil:
      return std::ceil(x);
    case UnaryOp::RoundEven:
      return std::nearbyint(x);  // round half to even is the default rounding mode
    case UnaryOp::Trunc:
      return std::trunc(x);
    case UnaryOp::Sqrt:
      return std::sqrt(x);
    default:
      return static_cast<T>(real_function(op, static_cast<double>(x)));
  }
}

template <class T>
T integer_unary(UnaryOp op, T x) {
  const auto negated = static_cast<T>(0 - static_cast<std::uint64_t>(x));
  switch (op) {
    case UnaryOp::Negate:
      return negated;
    case UnaryOp::Abs:
      return std::is_signed_v<T> && x < T{0} ? negated : x;
    case UnaryOp::Sign:
      return static_cast<T>((x > T{0}) - (x < T{0}));
    case UnaryOp::BitNot:
      return ~x;
    case UnaryOp::Floor:
    case UnaryOp::Ceil:
    case UnaryOp::RoundEven:
    case UnaryOp::Trunc:
      return x;
    default:
      return convert_element<T>(real_unary(op, static_cast<double>(x)));
  }
}

Complex complex_unary(UnaryOp op, Complex x) {
  switch (op) {
    case UnaryOp::Negate:
      return -x;
    case UnaryOp::Abs:
      return std::abs(x);
    case UnaryOp::Exp:
      return std::exp(x);
    case UnaryOp::Log:
      return std::log(x);
    case UnaryOp::Sqrt:
      return std::sqrt(x);
    case UnaryOp::Sin:
      return std::sin(x);
    case UnaryOp::Cos:
      return std::cos(x);
    default:
      refuse("such function of a complex number");
  }
}

template <class T>
T integer_power(T base, T exponent) {
  if (std::is_signed_v<T> && exponent < T{0}) {
    if (base == T{1}) return 1;
    if (base == static_cast<T>(-1)) return exponent % 2 ? static_cast<T>(-1) : T{1};
    return 0;
  }
  std::uint64_t result = 1, factor = static_cast<std::uint64_t>(base);
  for (auto left = static_cast<std::uint64_t>(exponent); left; left >>= 1) {
    if (left & 1) result *= factor;
    factor *= factor;
  }
  return static_cast<T>(result);
}

template <class T>
T divide_integers(BinaryOp op, T a, T b) {
  if (b == T{0}) throw Error("integer division by zero");
  if (std::is_signed_v<T> && b == static_cast<T>(-1)) {
    // The lowest value divided by -1 overflows and would trap; it wraps around.
    const bool is_quotient = op == BinaryOp::Divide || op == BinaryOp::FloorDivide;
    return is_quotient ? static_cast<T>(0 - static_cast<std::uint64_t>(a)) : T{0};
  }
  const T quotient = a / b, rest = a % b;
  const bool rounds_down = rest != T{0} && ((a < T{0}) != (b < T{0}));
  switch (op) {
    case BinaryOp::Divide:
      return quotient;
    case BinaryOp::FloorDivide:
      return rounds_down ? quotient - 1 : quotient;
    case BinaryOp::Modulo:
      return rounds_down ? rest + b : rest;
    default:
      return rest;
  }
}

template <class T>
T shift(BinaryOp op, T a, std::uint64_t count) {
  const auto bits = static_cast<std::uint64_t>(a);
  if (op == BinaryOp::ShiftLeft) return count > 63 ? T{0} : static_cast<T>(bits << count);
  if (count > 63) return a < T{0} ? static_cast<T>(-1) : T{0};
  return static_cast<T>(a >> count);
}

// Dot product of four bytes (VNNI): a is unsigned, b is signed.
template <class T>
T dot_of_bytes(T a, T b) {
  std::int64_t total = 0;
  for (unsigned shift = 0; shift < 32; shift += 8) {
    const auto left = static_cast<std::uint8_t>(static_cast<std::uint64_t>(a) >> shift);
    const auto right = static_cast<std::int8_t>(static_cast<std::uint64_t>(b) >> shift);
    total += std::int64_t{left} * right;
  }
  return static_cast<T>(total);
}

template <class T>
T integer_binary(BinaryOp op, T a, T b) {
  const auto left = static_cast<std::uint64_t>(a), right = static_cast<std::uint64_t>(b);
  switch (op) {
    case BinaryOp::Add:
      return static_cast<T>(left + right);
    case BinaryOp::Subtract:
      return static_cast<T>(left - right);
    case BinaryOp::Multiply:
      return static_cast<T>(left * right);
    case BinaryOp::Divide:
    case BinaryOp::FloorDivide:
    case BinaryOp::Modulo:
    case BinaryOp::Remainder:
      return divide_integers(op, a, b);
    case BinaryOp::Power:
      return integer_power(a, b);
    case BinaryOp::Minimum:
      return a < b ? a : b;
    case BinaryOp::Maximum:
      return a < b ? b : a;
    case BinaryOp::And:
      return a & b;
    case BinaryOp::Or:
      return a | b;
    case BinaryOp::Xor:
      return a ^ b;
    case BinaryOp::ShiftLeft:
    case BinaryOp::ShiftRight:
      return shift(op, a, right);
    case BinaryOp::Dp4a:
      return dot_of_bytes(a, b);
    default:
      refuse("such operator on integers");
  }
}

template <class T>
T real_binary(BinaryOp op, T a, T b) {
  switch (op) {
    case BinaryOp::Add:
      return a + b;
    case BinaryOp::Subtract:
      return a - b;
    case BinaryOp::Multiply:
      return a * b;
    case BinaryOp::Divide:
      return a / b;
    case BinaryOp::FloorDivide:
      return std::floor(a / b);
    case BinaryOp::Modulo: {
      const T rest = std::fmod(a, b);
      return rest != 0 && ((rest < 0) != (b < 0)) ? rest + b : rest;
    }
    case BinaryOp::Remainder:
      return std::fmod(a, b);
    case BinaryOp::Power:
      return static_cast<T>(std::pow(static_cast<double>(a), static_cast<double>(b)));
    case BinaryOp::Minimum:
      return std::isnan(a) ? a : std::isnan(b) ? b : (b < a ? b : a);
    case BinaryOp::Maximum:
      return std::isnan(a) ? a : std::isnan(b) ? b : (a < b ? b : a);
    case BinaryOp::Atan2:
      return std::atan2(a, b);
    default:
      refuse("such operator on real numbers");
  }
}

Complex complex_binary(BinaryOp op, Complex a, Complex b) {
  switch (op) {
    case BinaryOp::Add:
      return a + b;
    case BinaryOp::Subtract:
      return a - b;
    case BinaryOp::Multiply:
      return a * b;
    case BinaryOp::Divide:
      return a / b;
    case BinaryOp::Power:
      return std::pow(a, b);
    default:
      refuse("such operator on complex numbers");
  }
}

}  // namespace

LaneType lane_of(DType dtype) {
  switch (info(dtype).arithmetic) {
    case Arithmetic::F64:
      return LaneType::F64;
    case Arithmetic::F32:
      return LaneType::F32;
    case Arithmetic::Signed:
    case Arithmetic::Bool:
      return LaneType::I64;
    case Arithmetic::Unsigned:
      return dtype == DType::U64 ? LaneType::U64 : LaneType::I64;
    case Arithmetic::Complex:
      return LaneType::C128;
    case Arithmetic::Text:
      break;
  }
  return LaneType::Text;
}

std::int64_t wrap(DType dtype, std::int64_t value) {
  switch (dtype) {
    case DType::I32:
      return static_cast<std::int32_t>(value);
    case DType::I16:
      return static_cast<std::int16_t>(value);
    case DType::I8:
      return static_cast<std::int8_t>(value);
    case DType::I4:
      return ((value & 15) ^ 8) - 8;
    case DType::I2:
      return ((value & 3) ^ 2) - 2;
    case DType::U32:
      return static_cast<std::uint32_t>(value);
    case DType::U16:
      return static_cast<std::uint16_t>(value);
    case DType::U8:
      return static_cast<std::uint8_t>(value);
    case DType::U4:
      return value & 15;
    case DType::U2:
      return value & 3;
    case DType::Bool:
      return value != 0;
    default:
      return value;
  }
}

bool needs_wrap(DType dtype) { return lane_of(dtype) == LaneType::I64 && dtype != DType::I64; }

template <class T>
T unary_element(UnaryOp op, T x) {
  if constexpr (is_real_lane<T>) {
    return real_unary(op, x);
  } else if constexpr (is_integral_lane<T>) {
    return integer_unary(op, x);
  } else if constexpr (std::is_same_v<T, Complex>) {
    return complex_unary(op, x);
  } else {
    refuse("arithmetic");
  }
}

template <class T>
bool test_element(UnaryOp op, T x) {
  if constexpr (is_real_lane<T>) {
    switch (op) {
      case UnaryOp::IsNan:
        return std::isnan(x);
      case UnaryOp::IsPositiveInf:
        return std::isinf(x) && x > 0;
      case UnaryOp::IsNegativeInf:
        return std::isinf(x) && x < 0;
      default:
        break;
    }
  } else if constexpr (is_integral_lane<T>) {
    return op == UnaryOp::Not && x == 0;
  }
  refuse("such test");
}

template <class T>
T binary_element(BinaryOp op, T a, T b) {
  if constexpr (is_real_lane<T>) {
    return real_binary(op, a, b);
  } else if constexpr (is_integral_lane<T>) {
    return integer_binary(op, a, b);
  } else if constexpr (std::is_same_v<T, Complex>) {
    return complex_binary(op, a, b);
  } else {
    refuse("arithmetic");
  }
}

template <class T>
bool compare_element(BinaryOp op, T a, T b) {
  if constexpr (std::is_same_v<T, Text>) {
    if (op == BinaryOp::Equal) return *a == *b;
    return op == BinaryOp::Less ? *a < *b : *a <= *b;
  } else if constexpr (std::is_same_v<T, Complex>) {
    if (op == BinaryOp::Equal) return a == b;
    refuse("order");
  } else {
    if (op == BinaryOp::Equal) return a == b;
    return op == BinaryOp::Less ? a < b : a <= b;
  }
}

bool is_comparison(BinaryOp op) {
  return op == BinaryOp::Equal || op == BinaryOp::Less || op == BinaryOp::LessEqual;
}

bool is_test(UnaryOp op) {
  return op == UnaryOp::Not || op == UnaryOp::IsNan || op == UnaryOp::IsPositiveInf ||
         op == UnaryOp::IsNegativeInf;
}

template <class T>
bool is_better(Reduction reduction, T best, T next) {
  if constexpr (std::is_same_v<T, Complex> || std::is_same_v<T, Text>) {
    refuse("order");
  } else {
    if constexpr (is_real_lane<T>) {
      if (std::isnan(best)) return false;
      if (std::isnan(next)) return true;
    }
    switch (reduction) {
      case Reduction::ArgMax:
        return best < next;
      case Reduction::ArgMin:
        return next < best;
      case Reduction::ArgMaxLast:
        return best <= next;
      default:
        return next <= best;
    }
  }
}

template <class T>
T combine(Reduction reduction, T total, T next) {
  switch (reduction) {
    case Reduction::Sum:
      return binary_element(BinaryOp::Add, total, next);
    case Reduction::Product:
      return binary_element(BinaryOp::Multiply, total, next);
    case Reduction::Max:
      return binary_element(BinaryOp::Maximum, total, next);
    case Reduction::Min:
      return binary_element(BinaryOp::Minimum, total, next);
    case Reduction::Last:
      return next;
    default:
      refuse("such reduction");
  }
}

template <class T>
T identity_element(Reduction reduction, DType dtype) {
  if constexpr (std::is_same_v<T, Text>) {
    refuse("reduction");
  } else if constexpr (std::is_same_v<T, Complex>) {
    return reduction == Reduction::Product ? 1.0 : 0.0;
  } else {
    switch (reduction) {
      case Reduction::Product:
        return T{1};
      case Reduction::Max:
        if constexpr (is_real_lane<T>) return -std::numeric_limits<T>::infinity();
        return static_cast<T>(lowest_integer(dtype));
      case Reduction::Min:
        if constexpr (is_real_lane<T>) return std::numeric_limits<T>::infinity();
        return static_cast<T>(highest_integer(dtype));
      default:
        return T{0};
    }
  }
}

template <class To, class From>
To convert_element(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (std::is_same_v<To, Text> || std::is_same_v<From, Text>) {
    refuse("conversion inside an expression");
  } else if constexpr (std::is_same_v<From, Complex>) {
    return convert_element<To>(x.real());
  } else if constexpr (std::is_same_v<To, Complex>) {
    return Complex(static_cast<double>(x));
  } else if constexpr (is_integral_lane<To> && is_real_lane<From>) {
    // Out-of-range conversions are undefined in C++: NaN becomes 0, other values saturate.
    const auto value = static_cast<double>(x);
    if (std::isnan(value)) return 0;
    constexpr double kPast = std::is_signed_v<To> ? 9223372036854775808.0 : 18446744073709551616.0;
    if (value >= kPast) return std::numeric_limits<To>::max();
    if (value >= 9223372036854775808.0) return static_cast<To>(static_cast<std::uint64_t>(value));
    if (value <= -9223372036854775808.0)
      return static_cast<To>(std::numeric_limits<std::int64_t>::min());
    return static_cast<To>(static_cast<std::int64_t>(value));
  } else {
    return static_cast<To>(x);
  }
}

#define TENON_INSTANTIATE(T)                                \
  template T unary_element(UnaryOp, T);                     \
  template bool test_element(UnaryOp, T);                   \
  template T binary_element(BinaryOp, T, T);                \
  template bool compare_element(BinaryOp, T, T);            \
  template bool is_better(Reduction, T, T);                 \
  template T combine(Reduction, T, T);                      \
  template T identity_element(Reduction, DType);            \
  template float convert_element<float>(T);                 \
  template double convert_element<double>(T);               \
  template std::int64_t convert_element<std::int64_t>(T);   \
  template std::uint64_t convert_element<std::uint64_t>(T); \
  template Complex convert_element<Complex>(T);             \
  template Text convert_element<Text>(T);
TENON_INSTANTIATE(float)
TENON_INSTANTIATE(double)
TENON_INSTANTIATE(std::int64_t)
TENON_INSTANTIATE(std::uint64_t)
TENON_INSTANTIATE(Complex)
TENON_INSTANTIATE(Text)
#undef TENON_INSTANTIATE

}  // namespace tenon::reference
