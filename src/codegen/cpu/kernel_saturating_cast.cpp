// Saturating casts and requantization: narrows floats that are clamped to an integer range.
#include "codegen/cpu/kernel_emitter.h"
#include "codegen/cpu/lane_slices.h"

#include <llvm/IR/IntrinsicsX86.h>

#include <cmath>

namespace tenon::codegen::cpu {

namespace Intrinsic = llvm::Intrinsic;

namespace {

constexpr double kMostHeld = 1 << 24;  // Every integer up to here is exact in f32.

std::optional<double> number_of(const Scalar& scalar) {
  if (scalar->kind == ScalarKind::Real) return scalar->real;
  if (scalar->kind == ScalarKind::Cast && scalar->args[0]->kind == ScalarKind::Integer &&
      is_float(scalar->dtype))
    return static_cast<double>(scalar->args[0]->integer);
  return std::nullopt;
}

std::optional<double> integer_of(const Scalar& scalar) {
  const std::optional<double> number = number_of(scalar);
  const bool is_integer =
      number && std::abs(*number) <= kMostHeld && *number == std::trunc(*number);
  return is_integer ? number : std::nullopt;
}

// min(max(x, low), high), where x may be rounded and then shifted by an integer.
struct SaturatingCast {
  Scalar x;
  double low = 0, high = 0, shift = 0;
  bool is_rounded = false;
};
std::optional<SaturatingCast> find_saturating_cast(const Scalar& cast) {
  const Scalar& top = cast->args[0];
  const DType to = cast->dtype;
  if (top->dtype != DType::F32 || !is_integer(to) || info(to).bits > 16 || info(to).bits < 8)
    return std::nullopt;
  const auto is_bound = [](const Scalar& scalar) {
    return scalar->kind == ScalarKind::Real && std::abs(scalar->real) <= kMostHeld;
  };
  if (top->kind != ScalarKind::Binary || top->binary != BinaryOp::Minimum ||
      !is_bound(top->args[1]))
    return std::nullopt;
  const Scalar& floor = top->args[0];
  if (floor->kind != ScalarKind::Binary || floor->binary != BinaryOp::Maximum ||
      !is_bound(floor->args[1]))
    return std::nullopt;
  SaturatingCast clamped{floor->args[0], floor->args[1]->real, top->args[1]->real};
  if (clamped.low > clamped.high) return std::nullopt;
  Scalar moved = clamped.x;
  std::optional<double> shift = 0;
  if (moved->kind == ScalarKind::Binary && moved->binary == BinaryOp::Add) {
    shift = integer_of(moved->args[1]);
    moved = moved->args[0];
  }
  const bool rounds = moved->kind == ScalarKind::Unary && moved->unary == UnaryOp::RoundEven;
  if (rounds && shift && integer_of(floor->args[1]) && integer_of(top->args[1])) {
    clamped.x = moved->args[0];
    clamped.shift = *shift;
    clamped.is_rounded = true;
  }
  return clamped;
}

}  // namespace

bool KernelEmitter::rounds_in_conversion(llvm::Value* value) const {
  const unsigned part = std::min(lane_count(value), facts_.vector_bits / 32);
  return part == 4 || part == 8 || part == 16;
}

llvm::Value* KernelEmitter::rounded_to_i32(llvm::Value* value) {
  if (!rounds_in_conversion(value)) {
    llvm::Type* wide = value->getType()->getWithNewType(ir_.getInt32Ty());
    return ir_.CreateFPToSI(ir_.CreateUnaryIntrinsic(Intrinsic::roundeven, value), wide);
  }
  const unsigned count = lane_count(value), part = std::min(count, facts_.vector_bits / 32);
  std::vector<llvm::Value*> parts;
  for (unsigned first = 0; first < count; first += part) {
    llvm::Value* lanes = slice_lanes(ir_, value, first, part);
    if (part == 16) {
      constexpr std::uint32_t kAsSet = 4,
                              kAll = 0xffff;  // The thread's default rounding mode; all lanes.
      llvm::Value* nothing =
          llvm::Constant::getNullValue(llvm::FixedVectorType::get(ir_.getInt32Ty(), part));
      parts.push_back(
          ir_.CreateIntrinsic(Intrinsic::x86_avx512_mask_cvtps2dq_512, {},
                              {lanes, nothing, ir_.getInt16(kAll), ir_.getInt32(kAsSet)}));
    } else {
      parts.push_back(ir_.CreateIntrinsic(
          part == 8 ? Intrinsic::x86_avx_cvt_ps2dq_256 : Intrinsic::x86_sse2_cvtps2dq, {},
          {lanes}));
    }
  }
  return concat_lanes(ir_, std::move(parts));
}

std::optional<Lanes> KernelEmitter::emit_saturating_cast(const Scalar& cast) {
  const bool comes_back = cast->dtype == DType::F32 && cast->args[0]->kind == ScalarKind::Cast;
  const std::optional<SaturatingCast> clamped =
      find_saturating_cast(comes_back ? cast->args[0] : cast);
  if (!clamped || (comes_back && !clamped->is_rounded)) return std::nullopt;
  const DType narrow_type = comes_back ? cast->args[0]->dtype : cast->dtype;
  // The narrow type wraps values outside its range.
  if (comes_back && (clamped->low < static_cast<double>(lowest_integer(narrow_type)) ||
                     clamped->high > static_cast<double>(highest_integer(narrow_type))))
    return std::nullopt;
  const Lanes given = emit(clamped->x);
  llvm::Value* x = given.is_uniform() ? given.value : math_.vector(given);
  const auto number = [&](double value) { return llvm::ConstantFP::get(x->getType(), value); };
  // NaN becomes the lower bound, so that the conversion is defined.
  const auto bounded = [&](llvm::Value* value, double low, double high) {
    value = ir_.CreateSelect(ir_.CreateFCmpOGT(value, number(low)), value, number(low));
    return ir_.CreateSelect(ir_.CreateFCmpOLT(value, number(high)), value, number(high));
  };
  // NaN finally becomes zero, as in every cast.
  const auto settled = [&](llvm::Value* value) {
    if (clamped->low == 0) return value;
    return ir_.CreateSelect(ir_.CreateFCmpUNO(x, x), llvm::Constant::getNullValue(value->getType()),
                            value);
  };
  const auto made = [&](llvm::Value* value) {
    return Lanes{value, given.is_uniform() ? Lanes::Form::Uniform : Lanes::Form::Vector, 0};
  };
  if (comes_back) {
    // The result is already an integral value of the narrow type, as a float. Integers have no
    // negative zero.
    llvm::Value* whole = ir_.CreateUnaryIntrinsic(Intrinsic::roundeven, x);
    if (clamped->shift != 0 || clamped->low < 0)
      whole = ir_.CreateFAdd(whole, number(clamped->shift));
    return made(settled(bounded(whole, clamped->low, clamped->high)));
  }
  llvm::Type* wide = x->getType()->getWithNewType(ir_.getInt32Ty());
  const auto integer = [&](double value) {
    return llvm::ConstantInt::getSigned(wide, static_cast<std::int64_t>(value));
  };
  const bool is_whole_byte = narrow_type == DType::U8 && clamped->low == 0 && clamped->high == 255;
  llvm::Value* whole = nullptr;
  if (clamped->is_rounded && is_whole_byte && rounds_in_conversion(x)) {
    // Too large values become 2^31 as unsigned, which the unsigned minimum clamps to 255.
    whole = rounded_to_i32(ir_.CreateSelect(ir_.CreateFCmpOGT(x, number(-clamped->shift)), x,
                                            number(-clamped->shift)));
    if (clamped->shift != 0) whole = ir_.CreateAdd(whole, integer(clamped->shift));
    whole = ir_.CreateBinaryIntrinsic(Intrinsic::umin, whole, integer(clamped->high));
  } else if (clamped->is_rounded) {
    whole =
        rounded_to_i32(bounded(x, clamped->low - clamped->shift, clamped->high - clamped->shift));
    if (clamped->shift != 0) whole = ir_.CreateAdd(whole, integer(clamped->shift));
  } else {
    whole = ir_.CreateFPToSI(bounded(x, clamped->low, clamped->high), wide);
  }
  return made(
      ir_.CreateTrunc(settled(whole), x->getType()->getWithNewType(math_.type(narrow_type))));
}

}  // namespace tenon::codegen::cpu
