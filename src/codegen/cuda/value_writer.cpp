#include "codegen/cuda/value_writer.h"

#include "base/error.h"
#include "expr/names.h"
#include "ir/float_formats.h"
#include "nests/index_map.h"
#include "nests/loop_extents.h"
#include "nests/reports.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

namespace tenon::codegen::cuda {
namespace {

bool is_narrow_float(DType dtype) { return is_float(dtype) && info(dtype).storage_bytes == 1; }
bool is_sub_byte(DType dtype) { return is_integer(dtype) && info(dtype).bits < 8; }
bool is_signed(DType dtype) { return info(dtype).arithmetic == Arithmetic::Signed; }

std::string printed(const char* format, double value) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

std::string wrapped(DType dtype, const std::string& text) {
  if (!is_sub_byte(dtype)) return text;
  return concat(is_signed(dtype) ? "wrap_signed<" : "wrap_unsigned<", info(dtype).bits, ">((i64)",
                text, ")");
}

std::string real_call(const std::string& function, DType dtype, const std::string& x) {
  if (dtype == DType::F64) return concat(function, "(", x, ")");
  return concat("(float)", function, "((double)", x, ")");
}

// Rounds to nearest even; values past the largest finite number follow `overflow`.
std::string to_narrow_float(DType dtype, const std::string& value, Overflow overflow) {
  constexpr float infinity = std::numeric_limits<float>::infinity(),
                  nan = std::numeric_limits<float>::quiet_NaN();
  const unsigned large = f32_to_narrow_float(dtype, infinity, overflow);
  const unsigned nan_code = f32_to_narrow_float(dtype, nan);
  if (dtype == DType::F8E8M0)
    return concat("to_f8e8m0(", value, ", ", large, "u, ", nan_code, "u)");
  int mantissa = 1, lowest = 0, sign = 3;
  switch (dtype) {
    case DType::F8E4M3FN:
      mantissa = 3, lowest = -6, sign = 7;
      break;
    case DType::F8E4M3FNUZ:
      mantissa = 3, lowest = -7, sign = 7;
      break;
    case DType::F8E5M2:
      mantissa = 2, lowest = -14, sign = 7;
      break;
    case DType::F8E5M2FNUZ:
      mantissa = 2, lowest = -15, sign = 7;
      break;
    default:
      break;
  }
  const unsigned flags = (f32_to_narrow_float(dtype, -0.0F) != 0 ? 1U : 0U) |
                         (f32_to_narrow_float(dtype, -nan) != nan_code ? 2U : 0U) |
                         (f32_to_narrow_float(dtype, -infinity, overflow) != large ? 4U : 0U);
  return concat("to_narrow<", mantissa, ", ", lowest, ", ", sign, ", ", large, ", ",
                static_cast<unsigned>(f32_to_narrow_float(dtype, infinity)), ", ", nan_code, ", ",
                flags, ">(", value, ", ", literal_text(DType::F32, highest_finite(dtype), 0), ")");
}

std::string to_stored_by(DType dtype, const std::string& value, Overflow overflow) {
  if (dtype == DType::F16) return concat("to_f16(", value, ")");
  if (dtype == DType::BF16) return concat("to_bf16(", value, ")");
  if (is_narrow_float(dtype)) return to_narrow_float(dtype, value, overflow);
  if (dtype == DType::Bool) return concat("(u8)(", value, ")");
  return value;
}

std::string cast_text(const std::string& x, DType from, DType to) {
  if (from == to) return x;
  if (to == DType::Bool) return concat(x, " != 0");
  if (is_float(to)) {
    const std::string number = concat("(", computed_type(to), ")", x);
    if (info(to).storage_bytes >= sizeof(float)) return number;
    return from_stored(to, to_stored_by(to, number, Overflow::Saturate));
  }
  if (is_float(from)) {
    if (to == DType::U64) return concat("natural_of(", x, ")");
    return wrapped(to, concat("(", computed_type(to), ")whole_of(", x, ")"));
  }
  return wrapped(to, concat("(", computed_type(to), ")", x));
}

std::string real_unary(UnaryOp op, DType dtype, const std::string& x) {
  const bool is_wide = dtype == DType::F64;
  const auto both = [&](std::string_view name) {
    return concat(name, is_wide ? "(" : "f(", x, ")");
  };
  switch (op) {
    case UnaryOp::Negate:
      return concat("-", x);
    case UnaryOp::Abs:
      return both("fabs");
    case UnaryOp::Sign:
      return concat("sign_of(", x, ")");
    case UnaryOp::Floor:
      return both("floor");
    case UnaryOp::Ceil:
      return both("ceil");
    case UnaryOp::RoundEven:
      return both("rint");
    case UnaryOp::Trunc:
      return both(name_of(op));
    case UnaryOp::Sqrt:
      return both("sqrt");
    case UnaryOp::Exp:
      return both("exp");
    case UnaryOp::Log:
      return both("log");
    case UnaryOp::Tanh:
      return both(name_of(op));
    case UnaryOp::Erf:
      return both("erf");
    case UnaryOp::IsNan:
      return concat(x, " != ", x);
    case UnaryOp::IsPositiveInf:
      return concat(x, " == ", literal_text(dtype, INFINITY, 0));
    case UnaryOp::IsNegativeInf:
      return concat(x, " == ", literal_text(dtype, -INFINITY, 0));
    case UnaryOp::Not:
    case UnaryOp::BitNot:
      break;
    default:
      return real_call(std::string(name_of(op)), dtype, x);
  }
  throw Error("no such function of real numbers", ErrorKind::Unsupported).got(dtype);
}

std::string unary_text(UnaryOp op, DType dtype, const std::string& x) {
  if (op == UnaryOp::Not) return concat("!", x);
  if (is_float(dtype)) return real_unary(op, dtype, x);
  const std::string type = computed_type(dtype);
  switch (op) {
    case UnaryOp::Negate:
      return wrapped(dtype, concat("wrapped_sub((", type, ")0, ", x, ")"));
    case UnaryOp::Abs:
      return is_signed(dtype) ? wrapped(dtype, concat("(", x, " < 0 ? wrapped_sub((", type, ")0, ",
                                                      x, ") : ", x, ")"))
                              : x;
    case UnaryOp::Sign:
      return concat("sign_of(", x, ")");
    case UnaryOp::BitNot:
      return dtype == DType::Bool ? concat("!", x) : wrapped(dtype, concat("(", type, ")~", x));
    case UnaryOp::Floor:
    case UnaryOp::Ceil:
    case UnaryOp::RoundEven:
    case UnaryOp::Trunc:
      return x;
    case UnaryOp::IsNan:
    case UnaryOp::IsPositiveInf:
    case UnaryOp::IsNegativeInf:
      return "false";
    default:
      break;
  }
  // Computes in double and rounds back, as the reference does.
  return cast_text(concat("(", real_unary(op, DType::F64, concat("(double)", x)), ")"), DType::F64,
                   dtype);
}

std::string binary_text(BinaryOp op, DType dtype, const std::string& a, const std::string& b) {
  const auto infix = [&](const char* sign) { return concat(a, " ", sign, " ", b); };
  const auto call = [&](const char* name) { return concat(name, "(", a, ", ", b, ")"); };
  switch (op) {
    case BinaryOp::Equal:
      return infix("==");
    case BinaryOp::Less:
      return infix("<");
    case BinaryOp::LessEqual:
      return infix("<=");
    case BinaryOp::Minimum:
      return call("least");
    case BinaryOp::Maximum:
      return call("most");
    default:
      break;
  }
  if (is_float(dtype)) {
    const auto wide = [&](const char* name) {
      return concat("(", computed_type(dtype), ")", name, "((double)", a, ", (double)", b, ")");
    };
    switch (op) {
      case BinaryOp::Add:
        return infix("+");
      case BinaryOp::Subtract:
        return infix("-");
      case BinaryOp::Multiply:
        return infix("*");
      case BinaryOp::Divide:
        return infix("/");
      case BinaryOp::FloorDivide:
        return concat(dtype == DType::F64 ? "floor(" : "floorf(", infix("/"), ")");
      case BinaryOp::Remainder:
        return wide("fmod");
      case BinaryOp::Modulo:
        return call("real_modulo");
      case BinaryOp::Power:
        return wide("pow");
      case BinaryOp::Atan2:
        return wide("atan2");
      default:
        throw Error("no such operator on real numbers", ErrorKind::Unsupported).got(dtype);
    }
  }
  if (dtype == DType::Bool) {
    switch (op) {
      case BinaryOp::Add:
      case BinaryOp::Or:
        return infix("||");
      case BinaryOp::Multiply:
      case BinaryOp::And:
        return infix("&&");
      case BinaryOp::Subtract:
      case BinaryOp::Xor:
        return infix("!=");
      default:
        throw Error("no such operator on truth values", ErrorKind::Unsupported);
    }
  }
  const auto shifted = [&](const char* name) {
    return concat(name, "(", a, ", ", b, ", ", info(dtype).bits, ")");
  };
  const auto bitwise = [&](const char* sign) {
    return concat("(", computed_type(dtype), ")(", infix(sign), ")");
  };
  switch (op) {
    case BinaryOp::Add:
      return wrapped(dtype, call("wrapped_add"));
    case BinaryOp::Subtract:
      return wrapped(dtype, call("wrapped_sub"));
    case BinaryOp::Multiply:
      return wrapped(dtype, call("wrapped_mul"));
    case BinaryOp::Divide:
      return wrapped(dtype, call("divide"));
    case BinaryOp::FloorDivide:
      return wrapped(dtype, call("floor_divide"));
    case BinaryOp::Modulo:
      return wrapped(dtype, call("modulo"));
    case BinaryOp::Remainder:
      return wrapped(dtype, call("remainder_of"));
    case BinaryOp::And:
      return bitwise("&");
    case BinaryOp::Or:
      return bitwise("|");
    case BinaryOp::Xor:
      return wrapped(dtype, bitwise("^"));
    case BinaryOp::ShiftLeft:
      return wrapped(dtype, shifted("wrapped_shift_left"));
    case BinaryOp::ShiftRight:
      return wrapped(dtype, shifted("wrapped_shift_right"));
    case BinaryOp::Dp4a:
      return call("dot_of_bytes");
    case BinaryOp::Power:
      return wrapped(dtype, call("power"));
    default:
      throw Error("no such operator on integers", ErrorKind::Unsupported).got(dtype);
  }
}

// Returns n if the exponent of a power is n/4 and not an integer.
std::optional<int> quarters(const ScalarNode& node) {
  constexpr double kMost = 16;
  const Scalar& exponent = node.args[1];
  if (node.binary != BinaryOp::Power || !is_float(node.dtype) || node.dtype == DType::F64 ||
      exponent->kind != ScalarKind::Real)
    return std::nullopt;
  const double count = 4 * exponent->real;
  if (std::floor(count) != count || std::abs(count) > kMost || std::fmod(count, 4) == 0)
    return std::nullopt;
  return static_cast<int>(count);
}

// True for expressions of loops and extents only.
bool is_index(const Scalar& scalar) {
  if (scalar->dtype != DType::I64) return false;
  switch (scalar->kind) {
    case ScalarKind::Integer:
    case ScalarKind::Loop:
    case ScalarKind::Extent:
      return true;
    case ScalarKind::Binary:
      return is_index(scalar->args[0]) && is_index(scalar->args[1]);
    default:
      return false;
  }
}

}  // namespace

std::string computed_type(DType dtype) {
  if (is_float(dtype)) return dtype == DType::F64 ? "double" : "float";
  if (dtype == DType::Bool) return "bool";
  return concat(is_signed(dtype) ? "i" : "u", info(dtype).storage_bytes * 8);
}

std::string stored_type(DType dtype) {
  if (dtype == DType::F64 || dtype == DType::F32) return computed_type(dtype);
  if (is_float(dtype) || dtype == DType::Bool) return concat("u", info(dtype).storage_bytes * 8);
  return computed_type(dtype);
}

std::string from_stored(DType dtype, const std::string& stored) {
  if (dtype == DType::F16) return concat("from_f16(", stored, ")");
  if (dtype == DType::BF16) return concat("from_bf16(", stored, ")");
  if (is_narrow_float(dtype))
    return concat("f32_of(values_of_", to_string(dtype), "[", stored, "])");
  if (dtype == DType::Bool) return concat("(", stored, " != 0)");
  return wrapped(dtype, stored);
}

std::string to_stored(DType dtype, const std::string& value) {
  return to_stored_by(dtype, value, Overflow::Special);
}

std::string combined(Reduction reduction, DType dtype, const std::string& total,
                     const std::string& next) {
  switch (reduction) {
    case Reduction::Sum:
      return binary_text(BinaryOp::Add, dtype, total, next);
    case Reduction::Product:
      return binary_text(BinaryOp::Multiply, dtype, total, next);
    case Reduction::Max:
      return binary_text(BinaryOp::Maximum, dtype, total, next);
    case Reduction::Min:
      return binary_text(BinaryOp::Minimum, dtype, total, next);
    default:
      return next;
  }
}

std::string literal_text(DType dtype, double real, std::int64_t integer) {
  if (dtype == DType::Bool) return integer != 0 ? "true" : "false";
  if (!is_float(dtype)) {
    const std::string type = computed_type(dtype);
    if (integer == std::numeric_limits<std::int64_t>::min())
      return concat("(", type, ")(-9223372036854775807LL - 1)");
    return concat("(", type, ")", integer, "LL");
  }
  if (dtype == DType::F64) {
    if (std::isnan(real)) return "f64_of(0x7ff8000000000000ULL)";
    if (std::isinf(real))
      return concat("f64_of(", real > 0 ? "0x7ff0000000000000ULL" : "0xfff0000000000000ULL", ")");
    const std::string text = printed("%.17g", real);
    return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
  }
  const auto number = static_cast<float>(real);
  if (std::isnan(number)) return "f32_of(0x7fc00000u)";
  if (std::isinf(number)) return concat("f32_of(", number > 0 ? "0x7f800000u" : "0xff800000u", ")");
  const std::string text = printed("%.9g", static_cast<double>(number));
  return text + (text.find_first_of(".e") == std::string::npos ? ".0f" : "f");
}

ValueWriter::ValueWriter(const LoopNest& nest, Lines& lines) : nest_(nest), lines_(lines) {
  loop_dims_ = nests::loop_extents(nest.body);
  for (const auto& [loop, dim] : loop_dims_) {
    if (dim.is_constant()) loop_extents_[loop] = dim.constant();
  }
}

std::string ValueWriter::local(std::size_t id) const {
  return concat("t", id, lanes_ > 1 && lanes_have_locals_ ? "[v]" : "");
}
std::string ValueWriter::place_of(std::size_t id) const { return concat("p", id); }

std::string ValueWriter::extent(const Dim& dim) const {
  if (dim.is_constant())
    return concat(dim.constant(), dim.constant() > std::numeric_limits<int>::max() ? "LL" : "");
  for (std::size_t k = 0; k < nest_.extents.size(); ++k) {
    if (nest_.extents[k] == dim) return concat("n", k);
  }
  throw InternalError("extent", concat("the nest lists the extent ", dim), __FILE__, __LINE__);
}

std::string ValueWriter::named(const std::string& type, const std::string& text) {
  const std::string name = concat("c", count_++);
  lines_.add(concat("const ", type, " ", name, " = ", text, ";"));
  return name;
}

std::string ValueWriter::type_of(const Scalar& scalar) const {
  if (!is_index(scalar)) return computed_type(scalar->dtype);
  const auto range = range_of(scalar, loop_extents_);
  const bool is_short = range && range->lo >= std::numeric_limits<int>::min() &&
                        range->hi <= std::numeric_limits<int>::max();
  return is_short ? "i32" : "i64";
}

std::string ValueWriter::value(const Scalar& scalar) {
  const auto found = known_.find(&scalar.node());
  if (found != known_.end()) return found->second;
  std::string text = new_value(scalar);
  known_.emplace(&scalar.node(), text);
  return text;
}

std::string ValueWriter::new_value(const Scalar& scalar) {
  const ScalarNode& node = scalar.node();
  switch (node.kind) {
    case ScalarKind::Integer:
      if (is_index(scalar) && type_of(scalar) == "i32") return std::to_string(node.integer);
      return literal_text(node.dtype, 0, node.integer);
    case ScalarKind::Real:
      return literal_text(node.dtype, node.real, 0);
    case ScalarKind::Loop:
      if (is_in_lanes_ && lane_loop_ == node.id) return concat("(", loops_.at(node.id), " + v)");
      return loops_.at(node.id);
    case ScalarKind::Extent:
      return concat("n", node.id);
    case ScalarKind::Local:
      return local(node.id);
    case ScalarKind::Position:
      return concat("(", place_of(node.id), " < 0 ? 0LL : ", place_of(node.id), ")");
    case ScalarKind::Load:
      return load(scalar);
    case ScalarKind::Unary: {
      const std::string x = value(node.args[0]);
      return named(computed_type(node.dtype), unary_text(node.unary, node.args[0]->dtype, x));
    }
    case ScalarKind::Binary: {
      if (is_index(scalar)) return index_binary(scalar);
      if (const std::optional<int> count = quarters(node)) {
        const std::string x = value(node.args[0]);
        return named("float", concat("quarter_power<", *count, ">(", x, ")"));
      }
      if (const std::optional<Scalar> under = nests::under_one_plus_erf(node))
        return named("float",
                     concat(is_narrow_ ? "narrow_" : "", "one_plus_erf(", value(*under), ")"));
      if (const auto distance = find_dequantized_byte(node)) {
        const std::string x = value(distance->x), zero = value(distance->zero);
        return named("float", concat("byte_from(", x, ", ", zero, ")"));
      }
      std::string a = value(node.args[0]), b = value(node.args[1]);
      const DType dtype = node.args[0]->dtype;
      if (dtype == DType::I64) {  // templates need both arguments of one type
        a = concat("(i64)", a);
        b = concat("(i64)", b);
      }
      if (nests::divides_integers(node) && node.args[1]->kind != ScalarKind::Integer) {
        lines_.add(concat("if (", b, " == 0) ", report(Check::NotZero)));
      }
      return named(computed_type(node.dtype), binary_text(node.binary, dtype, a, b));
    }
    case ScalarKind::Select: {
      const std::string condition = value(node.args[0]), a = value(node.args[1]),
                        b = value(node.args[2]);
      return named(computed_type(node.dtype), concat(condition, " ? ", a, " : ", b));
    }
    case ScalarKind::Cast: {
      if (const auto byte = find_requantized_byte(node)) return rounded_byte(*byte, node.dtype);
      const std::string x = value(node.args[0]);
      return named(computed_type(node.dtype), cast_text(x, node.args[0]->dtype, node.dtype));
    }
  }
  return "";
}

std::string ValueWriter::rounded_byte(const RequantizedByte& byte, DType dtype) {
  std::string x;
  if (const auto quotient = find_requantized_quotient(byte.x)) {
    x = concat("rounded_quotient(", value(quotient->x));
    for (const float number : {quotient->lowest, quotient->highest, quotient->divisor,
                               quotient->inverse, quotient->rest})
      x += concat(", ", literal_text(DType::F32, static_cast<double>(number), 0));
    x = named("float", x + ")");
  } else {
    x = value(byte.x);
  }
  const std::string type = computed_type(dtype),
                    zero = byte.is_from_zero() ? "" : concat(", ", value(byte.zero));
  return named(type, concat("nearest<", type, ">(", x, zero, ")"));
}

std::string ValueWriter::index_binary(const Scalar& scalar) {
  const ScalarNode& node = scalar.node();
  const std::string type = type_of(scalar);
  const bool is_short =
      type == "i32" && type_of(node.args[0]) == "i32" && type_of(node.args[1]) == "i32";
  const std::string wide = is_short ? "" : "(i64)";
  const std::string a = wide + value(node.args[0]), b = wide + value(node.args[1]);
  const auto range = range_of(node.args[0], loop_extents_);
  const bool is_natural = range && range->lo >= 0 && node.args[1]->kind == ScalarKind::Integer &&
                          node.args[1]->integer > 0;
  switch (node.binary) {
    case BinaryOp::Add:
      return named(type, concat(a, " + ", b));
    case BinaryOp::Subtract:
      return named(type, concat(a, " - ", b));
    case BinaryOp::Multiply:
      return named(type, concat(a, " * ", b));
    case BinaryOp::Divide:
    case BinaryOp::FloorDivide:
      if (is_natural) return named(type, concat(a, " / ", b));
      break;
    case BinaryOp::Modulo:
    case BinaryOp::Remainder:
      if (is_natural) return named(type, concat(a, " % ", b));
      break;
    default:
      break;
  }
  if (node.binary == BinaryOp::Equal || node.binary == BinaryOp::Less ||
      node.binary == BinaryOp::LessEqual) {
    return named("bool", binary_text(node.binary, DType::I64, a, b));
  }
  return named(type, binary_text(node.binary, DType::I64, concat("(i64)", a), concat("(i64)", b)));
}

std::string ValueWriter::report(Check check) {
  return concat("*error = ", static_cast<int>(check), ";");
}

bool ValueWriter::is_surely_inside(const Scalar& index, const Dim& extent) const {
  if (!extent.is_constant()) {
    const auto loop =
        index->kind == ScalarKind::Loop ? loop_dims_.find(index->id) : loop_dims_.end();
    return loop != loop_dims_.end() && loop->second == extent;
  }
  const auto range = range_of(index, loop_extents_);
  return range && range->lo >= 0 && range->hi < extent.constant();
}

ValueWriter::ElementOffset ValueWriter::place(const std::vector<Scalar>& indices, const Dims& view,
                                              bool checks) {
  ElementOffset place;
  double elements = 1;
  for (const Dim& dim : view)
    elements *= dim.is_constant() ? static_cast<double>(dim.constant()) : 1e18;
  const bool is_short = elements <= std::numeric_limits<int>::max();
  const std::string wide = is_short ? "" : "(i64)";
  for (std::size_t axis = 0; axis < view.size(); ++axis) {
    const std::string index = value(indices[axis]);
    const std::string count = extent(view[axis]);
    if (checks && !is_surely_inside(indices[axis], view[axis])) {
      const std::string inside = concat("(u64)(i64)", index, " < (u64)", count);
      place.inside = place.inside.empty() ? inside : concat(place.inside, " && ", inside);
    }
    if (view[axis] == Dim(1) && is_surely_inside(indices[axis], view[axis])) continue;
    place.offset = place.offset.empty() ? wide + index
                                        : concat("(", place.offset, ") * ", count, " + ", index);
  }
  if (place.offset.empty()) place.offset = "0";
  return place;
}

bool ValueWriter::is_whole_pack(const Scalar& scalar) const {
  const auto lanes = static_cast<std::int64_t>(lanes_);
  switch (scalar->kind) {
    case ScalarKind::Integer:
      return scalar->integer % lanes == 0;
    case ScalarKind::Loop:
      return lane_loop_ == scalar->id;
    case ScalarKind::Binary:
      if (scalar->binary == BinaryOp::Add || scalar->binary == BinaryOp::Subtract) {
        return is_whole_pack(scalar->args[0]) && is_whole_pack(scalar->args[1]);
      }
      return scalar->binary == BinaryOp::Multiply &&
             ((scalar->args[0]->kind == ScalarKind::Integer && is_whole_pack(scalar->args[0])) ||
              (scalar->args[1]->kind == ScalarKind::Integer && is_whole_pack(scalar->args[1])));
    default:
      return false;
  }
}

std::string ValueWriter::load(const Scalar& scalar) {
  const ScalarNode& node = scalar.node();
  const NestBuffer& from = nest_.buffers[node.id];
  const std::string type = computed_type(from.dtype);
  const auto fill = [&] {
    return node.bounds == Bounds::Fill ? value(node.args.back()) : literal_text(from.dtype, 0, 0);
  };
  if (is_in_lanes_) {
    const auto packed = packed_.find(&node);
    if (packed != packed_.end()) {
      const std::string element =
          from_stored(from.dtype, concat(packed->second.pack, ".at[", packed->second.index, "]"));
      if (packed->second.guard.empty()) return named(type, element);
      const std::string otherwise = fill();
      return named(type, concat(packed->second.guard, " ? ", element, " : ", otherwise));
    }
  }
  const std::vector<Scalar> indices(
      node.args.begin(), node.args.begin() + static_cast<std::ptrdiff_t>(node.view.size()));
  const ElementOffset at = place(indices, node.view, node.bounds != Bounds::Inside);
  const std::string element = from_stored(from.dtype, concat(from.name, "[", at.offset, "]"));
  if (at.inside.empty()) return named(type, element);
  const std::string inside = named("bool", at.inside);
  if (node.bounds == Bounds::Checked)
    lines_.add(concat("if (!", inside, ") ", report(Check::Inside)));
  const std::string otherwise = fill();
  return named(type, concat(inside, " ? ", element, " : ", otherwise));
}

}  // namespace tenon::codegen::cuda
