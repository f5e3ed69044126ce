#include "reference/block_math.h"

#include "ir/float_formats.h"

namespace tenon::reference {
namespace {

using Block = BlockProgram::Block;

template <class In, class Out, class F>
bool map(Block x, std::int64_t count, std::byte* out, F f) {
  const In* from = static_cast<const In*>(x.data);
  Out* to = reinterpret_cast<Out*>(out);
  const std::int64_t length = x.is_uniform ? 1 : count;
  for (std::int64_t i = 0; i < length; ++i) to[i] = f(from[i]);
  return x.is_uniform;
}

template <class In, class Out, class F>
bool map(Block a, Block b, std::int64_t count, std::byte* out, F f) {
  const In* left = static_cast<const In*>(a.data);
  const In* right = static_cast<const In*>(b.data);
  Out* to = reinterpret_cast<Out*>(out);
  if (a.is_uniform && b.is_uniform) {
    to[0] = f(left[0], right[0]);
    return true;
  }
  if (a.is_uniform) {
    const In value = left[0];
    for (std::int64_t i = 0; i < count; ++i) to[i] = f(value, right[i]);
  } else if (b.is_uniform) {
    const In value = right[0];
    for (std::int64_t i = 0; i < count; ++i) to[i] = f(left[i], value);
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i] = f(left[i], right[i]);
  }
  return false;
}

void wrap_all(DType dtype, std::int64_t count, std::byte* out) {
  auto* elements = reinterpret_cast<std::int64_t*>(out);
  for (std::int64_t i = 0; i < count; ++i) elements[i] = wrap(dtype, elements[i]);
}

// Frequent operators are written out, so that the compiler vectorizes their loops.
template <class T>
bool arithmetic(BinaryOp op, Block a, Block b, std::int64_t count, std::byte* out) {
  if constexpr (is_real_lane<T>) {
    switch (op) {
      case BinaryOp::Add:
        return map<T, T>(a, b, count, out, [](T x, T y) { return x + y; });
      case BinaryOp::Subtract:
        return map<T, T>(a, b, count, out, [](T x, T y) { return x - y; });
      case BinaryOp::Multiply:
        return map<T, T>(a, b, count, out, [](T x, T y) { return x * y; });
      case BinaryOp::Divide:
        return map<T, T>(a, b, count, out, [](T x, T y) { return x / y; });
      default:
        break;
    }
  }
  return map<T, T>(a, b, count, out, [op](T x, T y) { return binary_element(op, x, y); });
}

}  // namespace

void store_literal(const ExprNode& node, LaneType lane, std::byte* out) {
  with_lane(lane, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (is_integral_lane<T>) {
      *reinterpret_cast<T*>(out) = static_cast<T>(node.integer);
    } else if constexpr (std::is_same_v<T, Text>) {
      static const std::string empty;  // expressions contain no other text literal
      *reinterpret_cast<T*>(out) = &empty;
    } else {
      *reinterpret_cast<T*>(out) = static_cast<T>(node.real);
    }
  });
}

bool run_unary(const ExprNode& node, LaneType lane, Block x, std::int64_t count, std::byte* out) {
  const UnaryOp op = node.unary;
  const bool is_uniform = with_lane(lane, [&](auto zero) {
    using T = decltype(zero);
    if (is_test(op)) {
      return map<T, std::int64_t>(
          x, count, out, [op](T e) { return static_cast<std::int64_t>(test_element(op, e)); });
    }
    return map<T, T>(x, count, out, [op](T e) { return unary_element(op, e); });
  });
  if (needs_wrap(node.dtype)) wrap_all(node.dtype, is_uniform ? 1 : count, out);
  return is_uniform;
}

bool run_binary(const ExprNode& node, LaneType lane, Block a, Block b, std::int64_t count,
                std::byte* out) {
  const BinaryOp op = node.binary;
  const bool is_uniform = with_lane(lane, [&](auto zero) {
    using T = decltype(zero);
    if (is_comparison(op)) {
      return map<T, std::int64_t>(a, b, count, out, [op](T x, T y) {
        return static_cast<std::int64_t>(compare_element(op, x, y));
      });
    }
    return arithmetic<T>(op, a, b, count, out);
  });
  if (needs_wrap(node.dtype)) wrap_all(node.dtype, is_uniform ? 1 : count, out);
  return is_uniform;
}

bool run_select(LaneType lane, Block condition, Block a, Block b, std::int64_t count,
                std::byte* out) {
  const bool is_uniform = condition.is_uniform && a.is_uniform && b.is_uniform;
  with_lane(lane, [&](auto zero) {
    using T = decltype(zero);
    T* to = reinterpret_cast<T*>(out);
    const std::int64_t length = is_uniform ? 1 : count;
    for (std::int64_t i = 0; i < length; ++i) {
      to[i] = condition.at<std::int64_t>(i) != 0 ? a.at<T>(i) : b.at<T>(i);
    }
  });
  return is_uniform;
}

float round_to(DType dtype, float value) {
  switch (dtype) {
    case DType::F32:
      return value;
    case DType::F16:
      return f16_to_f32(f32_to_f16(value));
    case DType::BF16:
      return bf16_to_f32(f32_to_bf16(value));
    default:
      return narrow_float_to_f32(dtype, f32_to_narrow_float(dtype, value));
  }
}

bool run_cast(DType dtype, LaneType from, Block x, std::int64_t count, std::byte* out) {
  const bool is_uniform = with_lane(from, [&](auto from_zero) {
    using From = decltype(from_zero);
    if (dtype == DType::Bool) {
      // A nonzero value is true; converting to an integer first would lose 0.5.
      return map<From, std::int64_t>(x, count, out,
                                     [](From e) { return static_cast<std::int64_t>(e != From{}); });
    }
    return with_lane(lane_of(dtype), [&](auto to_zero) {
      using To = decltype(to_zero);
      return map<From, To>(x, count, out, [](From e) { return convert_element<To>(e); });
    });
  });
  const std::int64_t length = is_uniform ? 1 : count;
  if (needs_wrap(dtype)) wrap_all(dtype, length, out);
  if (lane_of(dtype) == LaneType::F32 && dtype != DType::F32) {
    auto* elements = reinterpret_cast<float*>(out);
    for (std::int64_t i = 0; i < length; ++i) elements[i] = round_to(dtype, elements[i]);
  }
  return is_uniform;
}

}  // namespace tenon::reference
