// Arithmetic on vector lanes as LLVM IR.
#include "codegen/cpu/lanes.h"

#include "base/error.h"
#include "expr/names.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>

#include <cmath>

namespace tenon::codegen::cpu {

using llvm::Intrinsic::ID;
namespace Intrinsic = llvm::Intrinsic;

namespace {

bool is_signed(DType dtype) { return info(dtype).arithmetic == Arithmetic::Signed; }

bool is_comparison(BinaryOp op) {
  return op == BinaryOp::Equal || op == BinaryOp::Less || op == BinaryOp::LessEqual;
}

llvm::Type* element_of(llvm::Value* value) { return value->getType()->getScalarType(); }

}  // namespace

llvm::Type* LaneMath::type(DType dtype) const {
  if (is_narrow_float(dtype)) return ir_.getFloatTy();
  // Types narrower than a byte are computed at their exact width and wrap accordingly.
  if (is_integer(dtype)) return ir_.getIntNTy(static_cast<unsigned>(info(dtype).bits));
  switch (dtype) {
    case DType::F64:
      return ir_.getDoubleTy();
    case DType::F32:
    case DType::F16:
    case DType::BF16:
      return ir_.getFloatTy();
    case DType::Bool:
      return ir_.getInt1Ty();
    default:
      return ir_.getIntNTy(static_cast<unsigned>(info(dtype).storage_bytes * 8));
  }
}

llvm::Type* LaneMath::stored_type(DType dtype) const {
  switch (dtype) {
    case DType::F64:
      return ir_.getDoubleTy();
    case DType::F32:
      return ir_.getFloatTy();
    case DType::F16:
      return ir_.getHalfTy();
    case DType::BF16:
      return ir_.getInt16Ty();
    default:
      return ir_.getIntNTy(static_cast<unsigned>(info(dtype).storage_bytes * 8));
  }
}

llvm::Type* LaneMath::lanes_of(llvm::Type* scalar) const {
  return width_ == 1 ? scalar : llvm::FixedVectorType::get(scalar, width_);
}

llvm::Value* LaneMath::splat(llvm::Value* value) const {
  return width_ == 1 ? value : ir_.CreateVectorSplat(width_, value);
}

llvm::Value* LaneMath::like(llvm::Value* shape, llvm::Constant* scalar) const {
  const auto* vector_type = llvm::dyn_cast<llvm::FixedVectorType>(shape->getType());
  if (vector_type == nullptr) return scalar;
  return llvm::ConstantVector::getSplat(vector_type->getElementCount(), scalar);
}
llvm::Value* LaneMath::real(llvm::Value* shape, double number) const {
  return like(shape, llvm::ConstantFP::get(element_of(shape), number));
}
llvm::Value* LaneMath::whole(llvm::Value* shape, std::int64_t number) const {
  return like(shape,
              llvm::ConstantInt::get(element_of(shape), static_cast<std::uint64_t>(number), true));
}

Lanes LaneMath::literal(DType dtype, double number, std::int64_t whole_number) const {
  llvm::Type* scalar = type(dtype);
  if (scalar->isFloatingPointTy()) {
    // Literals are doubles; a narrow type rounds when it is stored.
    return uniform(llvm::ConstantFP::get(scalar, number));
  }
  return uniform(llvm::ConstantInt::get(scalar, static_cast<std::uint64_t>(whole_number), true));
}

llvm::Value* LaneMath::vector(const Lanes& lanes) {
  if (width_ == 1 || lanes.form == Lanes::Form::Vector) return lanes.value;
  llvm::Value* base = splat(lanes.value);
  if (lanes.form == Lanes::Form::Uniform) return base;
  llvm::SmallVector<llvm::Constant*, 32> steps;
  for (unsigned k = 0; k < width_; ++k) {
    steps.push_back(
        ir_.getInt64(static_cast<std::uint64_t>(lanes.step * static_cast<std::int64_t>(k))));
  }
  return ir_.CreateAdd(base, llvm::ConstantVector::get(steps));
}

LaneMath::Pair LaneMath::matched(const Lanes& a, const Lanes& b) {
  if (a.is_uniform() && b.is_uniform()) return {a.value, b.value, true};
  return {vector(a), vector(b), false};
}

Lanes LaneMath::unary(UnaryOp op, DType dtype, const Lanes& x) {
  llvm::Value* value = x.is_uniform() ? x.value : vector(x);
  if (op == UnaryOp::Not) return made(ir_.CreateICmpEQ(value, whole(value, 0)), x.is_uniform());
  const bool is_real = value->getType()->isFPOrFPVectorTy();
  return made(is_real ? real_unary(op, dtype, value) : integer_unary(op, dtype, value),
              x.is_uniform());
}

Lanes LaneMath::binary(BinaryOp op, DType dtype, const Lanes& a, const Lanes& b) {
  const bool has_ramp = a.form == Lanes::Form::Ramp || b.form == Lanes::Form::Ramp;
  if (has_ramp && a.form != Lanes::Form::Vector && b.form != Lanes::Form::Vector) {
    if (op == BinaryOp::Add || op == BinaryOp::Subtract) {
      const bool adds = op == BinaryOp::Add;
      const std::int64_t step = adds ? a.step + b.step : a.step - b.step;
      llvm::Value* value = adds ? ir_.CreateAdd(a.value, b.value, "", false, true)
                                : ir_.CreateSub(a.value, b.value, "", false, true);
      return {value, step == 0 ? Lanes::Form::Uniform : Lanes::Form::Ramp, step};
    }
    if (op == BinaryOp::Multiply) {
      const Lanes& ramp = a.form == Lanes::Form::Ramp ? a : b;
      const Lanes& other = a.form == Lanes::Form::Ramp ? b : a;
      const auto* number = llvm::dyn_cast<llvm::ConstantInt>(other.value);
      if (number != nullptr && other.is_uniform()) {
        const std::int64_t step = ramp.step * number->getSExtValue();
        return {ir_.CreateMul(ramp.value, other.value, "", false, true),
                step == 0 ? Lanes::Form::Uniform : Lanes::Form::Ramp, step};
      }
    }
  }
  const Pair pair = matched(a, b);
  if (is_comparison(op)) return made(compare(op, dtype, pair.a, pair.b), pair.is_uniform);
  const bool is_real = pair.a->getType()->isFPOrFPVectorTy();
  return made(
      is_real ? real_binary(op, dtype, pair.a, pair.b) : integer_binary(op, dtype, pair.a, pair.b),
      pair.is_uniform);
}

Lanes LaneMath::select(const Lanes& condition, const Lanes& a, const Lanes& b) {
  if (condition.is_uniform() && a.is_uniform() && b.is_uniform()) {
    return uniform(ir_.CreateSelect(condition.value, a.value, b.value));
  }
  // A uniform condition selects between whole vectors.
  llvm::Value* choice = condition.is_uniform() ? condition.value : vector(condition);
  return made(ir_.CreateSelect(choice, vector(a), vector(b)), false);
}

llvm::Value* LaneMath::compare(BinaryOp op, DType dtype, llvm::Value* a, llvm::Value* b) {
  if (a->getType()->isFPOrFPVectorTy()) {
    if (op == BinaryOp::Equal) return ir_.CreateFCmpOEQ(a, b);
    return op == BinaryOp::Less ? ir_.CreateFCmpOLT(a, b) : ir_.CreateFCmpOLE(a, b);
  }
  if (op == BinaryOp::Equal) return ir_.CreateICmpEQ(a, b);
  if (is_signed(dtype))
    return op == BinaryOp::Less ? ir_.CreateICmpSLT(a, b) : ir_.CreateICmpSLE(a, b);
  return op == BinaryOp::Less ? ir_.CreateICmpULT(a, b) : ir_.CreateICmpULE(a, b);
}

llvm::Value* LaneMath::extreme(bool is_max, llvm::Value* a, llvm::Value* b) {
  // A comparison with NaN is false; the last select propagates NaN.
  llvm::Value* ordered = is_max ? ir_.CreateFCmpOGT(b, a) : ir_.CreateFCmpOLT(b, a);
  llvm::Value* chosen = ir_.CreateSelect(ordered, b, a);
  llvm::Value* is_nan = ir_.CreateFCmpUNO(b, b);
  return ir_.CreateSelect(is_nan, b, chosen);
}

llvm::Value* LaneMath::real_unary(UnaryOp op, DType dtype, llvm::Value* x) {
  const bool is_narrow = element_of(x)->isFloatTy();
  const auto intrinsic = [&](ID id) { return ir_.CreateUnaryIntrinsic(id, x); };
  switch (op) {
    case UnaryOp::Negate:
      return ir_.CreateFNeg(x);
    case UnaryOp::Abs:
      return intrinsic(Intrinsic::fabs);
    case UnaryOp::Sign: {
      llvm::Value* zero = real(x, 0);
      llvm::Value* sign = ir_.CreateSelect(ir_.CreateFCmpOLT(x, zero), real(x, -1), zero);
      sign = ir_.CreateSelect(ir_.CreateFCmpOGT(x, zero), real(x, 1), sign);
      return ir_.CreateSelect(ir_.CreateFCmpUNO(x, x), x, sign);
    }
    case UnaryOp::Floor:
      return intrinsic(Intrinsic::floor);
    case UnaryOp::Ceil:
      return intrinsic(Intrinsic::ceil);
    case UnaryOp::RoundEven:
      return intrinsic(Intrinsic::roundeven);
    case UnaryOp::Trunc:
      return intrinsic(Intrinsic::trunc);
    case UnaryOp::Sqrt:
      return intrinsic(Intrinsic::sqrt);
    case UnaryOp::IsNan:
      return ir_.CreateFCmpUNO(x, x);
    case UnaryOp::IsPositiveInf:
      return ir_.CreateFCmpOEQ(x, real(x, INFINITY));
    case UnaryOp::IsNegativeInf:
      return ir_.CreateFCmpOEQ(x, real(x, -INFINITY));
    case UnaryOp::Exp:
      return is_narrow ? exp32(x) : library(name_of(op), {x});
    case UnaryOp::Log:
      return is_narrow ? log32(x) : library(name_of(op), {x});
    case UnaryOp::Tanh:
      return is_narrow ? tanh32(x) : library(name_of(op), {x});
    case UnaryOp::Erf:
      return is_narrow ? erf32(x) : library(name_of(op), {x});
    case UnaryOp::Log1p:
    case UnaryOp::Sin:
    case UnaryOp::Cos:
    case UnaryOp::Tan:
    case UnaryOp::Asin:
    case UnaryOp::Acos:
    case UnaryOp::Atan:
    case UnaryOp::Sinh:
    case UnaryOp::Cosh:
    case UnaryOp::Asinh:
    case UnaryOp::Acosh:
    case UnaryOp::Atanh:
      return library(name_of(op), {x});
    default:
      break;
  }
  throw Error("no such function of real numbers", ErrorKind::Unsupported).got(dtype);
}

llvm::Value* LaneMath::integer_unary(UnaryOp op, DType dtype, llvm::Value* x) {
  llvm::Value* zero = whole(x, 0);
  switch (op) {
    case UnaryOp::Negate:
      return ir_.CreateSub(zero, x);
    case UnaryOp::Abs:
      return is_signed(dtype)
                 ? ir_.CreateSelect(ir_.CreateICmpSLT(x, zero), ir_.CreateSub(zero, x), x)
                 : x;
    case UnaryOp::Sign: {
      llvm::Value* positive =
          is_signed(dtype) ? ir_.CreateICmpSGT(x, zero) : ir_.CreateICmpNE(x, zero);
      llvm::Value* sign = ir_.CreateSelect(positive, whole(x, 1), zero);
      return is_signed(dtype) ? ir_.CreateSelect(ir_.CreateICmpSLT(x, zero), whole(x, -1), sign)
                              : sign;
    }
    case UnaryOp::BitNot:
      return ir_.CreateNot(x);
    case UnaryOp::Floor:
    case UnaryOp::Ceil:
    case UnaryOp::RoundEven:
    case UnaryOp::Trunc:
      return x;
    case UnaryOp::IsNan:
    case UnaryOp::IsPositiveInf:
    case UnaryOp::IsNegativeInf:
      return ir_.CreateICmpNE(x, x);  // Always false.
    default:
      break;
  }
  // Through double and back, as in the reference.
  const Lanes wide = cast(made(x, !x->getType()->isVectorTy()), dtype, DType::F64);
  const bool is_uniform = wide.is_uniform();
  return cast(made(real_unary(op, DType::F64, wide.value), is_uniform), DType::F64, dtype).value;
}

llvm::Value* LaneMath::real_binary(BinaryOp op, DType dtype, llvm::Value* a, llvm::Value* b) {
  switch (op) {
    case BinaryOp::Add:
      return ir_.CreateFAdd(a, b);
    case BinaryOp::Subtract:
      return ir_.CreateFSub(a, b);
    case BinaryOp::Multiply:
      return ir_.CreateFMul(a, b);
    case BinaryOp::Divide:
      return ir_.CreateFDiv(a, b);
    case BinaryOp::FloorDivide:
      return ir_.CreateUnaryIntrinsic(Intrinsic::floor, ir_.CreateFDiv(a, b));
    case BinaryOp::Remainder:
      return library("fmod", {a, b});
    case BinaryOp::Modulo: {
      llvm::Value* rest = library("fmod", {a, b});
      llvm::Value* zero = real(a, 0);
      llvm::Value* differs =
          ir_.CreateICmpNE(ir_.CreateFCmpOLT(rest, zero), ir_.CreateFCmpOLT(b, zero));
      llvm::Value* corrects = ir_.CreateAnd(ir_.CreateFCmpUNE(rest, zero), differs);
      return ir_.CreateSelect(corrects, ir_.CreateFAdd(rest, b), rest);
    }
    case BinaryOp::Power:
      return library("pow", {a, b});
    case BinaryOp::Atan2:
      return library("atan2", {a, b});
    case BinaryOp::Minimum:
      return extreme(false, a, b);
    case BinaryOp::Maximum:
      return extreme(true, a, b);
    default:
      break;
  }
  throw Error("no such operator on real numbers", ErrorKind::Unsupported).got(dtype);
}

llvm::Value* LaneMath::divide(BinaryOp op, bool with_sign, llvm::Value* a, llvm::Value* b) {
  // Division by zero is an error in the data and yields zero; a divisor of -1 could trap.
  llvm::Value* zero = whole(a, 0);
  llvm::Value* is_zero = ir_.CreateICmpEQ(b, zero);
  llvm::Value* safe = ir_.CreateSelect(is_zero, whole(a, 1), b);
  if (!with_sign) {
    const bool is_quotient = op == BinaryOp::Divide || op == BinaryOp::FloorDivide;
    return is_quotient ? ir_.CreateUDiv(a, safe) : ir_.CreateURem(a, safe);
  }
  // Divisors that cannot be -1, such as extents, need no check.
  const auto* constant = llvm::dyn_cast<llvm::Constant>(b);
  const bool may_be_minus_one = constant == nullptr || constant->isAllOnesValue();
  llvm::Value* is_minus_one = nullptr;
  if (may_be_minus_one) {
    is_minus_one = ir_.CreateICmpEQ(safe, whole(a, -1));
    safe = ir_.CreateSelect(is_minus_one, whole(a, 1), safe);
  }
  llvm::Value* quotient = ir_.CreateSDiv(a, safe);
  llvm::Value* rest = ir_.CreateSRem(a, safe);
  llvm::Value* rounds_down =
      ir_.CreateAnd(ir_.CreateICmpNE(rest, zero),
                    ir_.CreateICmpNE(ir_.CreateICmpSLT(a, zero), ir_.CreateICmpSLT(safe, zero)));
  llvm::Value* result = rest;
  if (op == BinaryOp::Divide) result = quotient;
  if (op == BinaryOp::FloorDivide)
    result = ir_.CreateSelect(rounds_down, ir_.CreateSub(quotient, whole(a, 1)), quotient);
  if (op == BinaryOp::Modulo)
    result = ir_.CreateSelect(rounds_down, ir_.CreateAdd(rest, safe), rest);
  if (!may_be_minus_one) return result;
  const bool is_quotient = op == BinaryOp::Divide || op == BinaryOp::FloorDivide;
  return ir_.CreateSelect(is_minus_one, is_quotient ? ir_.CreateSub(zero, a) : zero, result);
}

llvm::Value* LaneMath::integer_binary(BinaryOp op, DType dtype, llvm::Value* a, llvm::Value* b) {
  const bool with_sign = is_signed(dtype);
  const auto choose = [&](bool is_min) {
    llvm::Value* less = with_sign ? ir_.CreateICmpSLT(a, b) : ir_.CreateICmpULT(a, b);
    return is_min ? ir_.CreateSelect(less, a, b) : ir_.CreateSelect(less, b, a);
  };
  switch (op) {
    // Bool addition is OR: every nonzero sum is true.
    case BinaryOp::Add:
      return dtype == DType::Bool ? ir_.CreateOr(a, b) : ir_.CreateAdd(a, b);
    case BinaryOp::Subtract:
      return ir_.CreateSub(a, b);
    case BinaryOp::Multiply:
      return ir_.CreateMul(a, b);
    case BinaryOp::Divide:
    case BinaryOp::FloorDivide:
    case BinaryOp::Modulo:
    case BinaryOp::Remainder:
      return divide(op, with_sign, a, b);
    case BinaryOp::Minimum:
      return choose(true);
    case BinaryOp::Maximum:
      return choose(false);
    case BinaryOp::And:
      return ir_.CreateAnd(a, b);
    case BinaryOp::Or:
      return ir_.CreateOr(a, b);
    case BinaryOp::Xor:
      return ir_.CreateXor(a, b);
    case BinaryOp::ShiftLeft:
    case BinaryOp::ShiftRight: {
      const auto bits = static_cast<std::int64_t>(element_of(a)->getIntegerBitWidth());
      llvm::Value* is_far = ir_.CreateICmpUGE(b, whole(b, bits));
      llvm::Value* last = whole(b, bits - 1);
      if (op == BinaryOp::ShiftRight && with_sign)
        return ir_.CreateAShr(a, ir_.CreateSelect(is_far, last, b));
      llvm::Value* count = ir_.CreateSelect(is_far, last, b);
      llvm::Value* shifted =
          op == BinaryOp::ShiftLeft ? ir_.CreateShl(a, count) : ir_.CreateLShr(a, count);
      return ir_.CreateSelect(is_far, whole(a, 0), shifted);
    }
    case BinaryOp::Power:
      return power_of_integers(dtype, a, b);
    default:
      break;
  }
  throw Error("no such operator on integers", ErrorKind::Unsupported).got(dtype);
}

// Exponentiation by squaring over all bits of the exponent.
llvm::Value* LaneMath::power_of_integers(DType dtype, llvm::Value* a, llvm::Value* b) {
  const unsigned bits = element_of(a)->getIntegerBitWidth();
  llvm::Value* one = whole(a, 1);
  llvm::Value* result = one;
  llvm::Value* factor = a;
  for (unsigned bit = 0; bit < bits; ++bit) {
    llvm::Value* is_set = ir_.CreateICmpNE(
        ir_.CreateAnd(ir_.CreateLShr(b, whole(b, static_cast<std::int64_t>(bit))), one),
        whole(a, 0));
    result = ir_.CreateSelect(is_set, ir_.CreateMul(result, factor), result);
    factor = ir_.CreateMul(factor, factor);
  }
  if (!is_signed(dtype)) return result;
  llvm::Value* zero = whole(a, 0);
  llvm::Value* is_odd = ir_.CreateICmpNE(ir_.CreateAnd(b, one), zero);
  llvm::Value* inverse = ir_.CreateSelect(ir_.CreateICmpEQ(a, one), one, zero);
  inverse = ir_.CreateSelect(ir_.CreateICmpEQ(a, whole(a, -1)),
                             ir_.CreateSelect(is_odd, whole(a, -1), one), inverse);
  return ir_.CreateSelect(ir_.CreateICmpSLT(b, zero), inverse, result);
}

Lanes LaneMath::cast(const Lanes& x, DType from, DType to) {
  if (from == to) return x;
  llvm::Value* value = x.is_uniform() ? x.value : vector(x);
  const bool is_uniform = x.is_uniform();
  llvm::Type* target = type(to);
  if (!is_uniform && width_ > 1) target = lanes_of(target);
  const bool from_real = value->getType()->isFPOrFPVectorTy();
  if (to == DType::Bool) {
    return made(from_real ? ir_.CreateFCmpUNE(value, real(value, 0))
                          : ir_.CreateICmpNE(value, whole(value, 0)),
                is_uniform);
  }
  if (is_float(to)) {
    llvm::Value* result = value;
    if (!from_real) {
      // Narrow unsigned types fit signed 32 bits, and values just narrowed need no repacking for
      // this conversion.
      const bool is_small = !is_signed(from) && info(from).bits < 32 && from != DType::Bool;
      if (is_small)
        value = ir_.CreateZExt(value, value->getType()->getWithNewType(ir_.getInt32Ty()));
      result = is_signed(from) || is_small ? ir_.CreateSIToFP(value, target)
                                           : ir_.CreateUIToFP(value, target);
    } else if (value->getType() != target) {
      result = target->getScalarType()->isDoubleTy() ? ir_.CreateFPExt(value, target)
                                                     : ir_.CreateFPTrunc(value, target);
    }
    if (info(to).storage_bytes < sizeof(float))
      result = from_stored(to, to_stored(to, result, true));
    return made(result, is_uniform);
  }
  if (from_real) {
    // Truncates a 64-bit result, as the reference does.
    llvm::Type* wide = ir_.getInt64Ty();
    if (!is_uniform && width_ > 1) wide = lanes_of(wide);
    llvm::Value* whole_number =
        ir_.CreateIntrinsic(Intrinsic::fptosi_sat, {wide, value->getType()}, {value});
    if (to == DType::U64) {
      llvm::Value* high =
          ir_.CreateIntrinsic(Intrinsic::fptoui_sat, {wide, value->getType()}, {value});
      whole_number = ir_.CreateSelect(ir_.CreateFCmpOGE(value, real(value, 0)), high, whole_number);
    }
    return made(ir_.CreateTrunc(whole_number, target), is_uniform);
  }
  return made(
      is_signed(from) ? ir_.CreateSExtOrTrunc(value, target) : ir_.CreateZExtOrTrunc(value, target),
      is_uniform);
}

Lanes LaneMath::multiply_add(const Lanes& a, const Lanes& b, const Lanes& total) {
  if (a.is_uniform() && b.is_uniform() && total.is_uniform()) {
    return uniform(fused_multiply_add(a.value, b.value, total.value));
  }
  return made(fused_multiply_add(vector(a), vector(b), vector(total)), false);
}

Lanes LaneMath::combine(Reduction reduction, DType dtype, const Lanes& total, const Lanes& next) {
  switch (reduction) {
    case Reduction::Sum:
      return binary(BinaryOp::Add, dtype, total, next);
    case Reduction::Product:
      return binary(BinaryOp::Multiply, dtype, total, next);
    case Reduction::Max:
      return binary(BinaryOp::Maximum, dtype, total, next);
    case Reduction::Min:
      return binary(BinaryOp::Minimum, dtype, total, next);
    default:
      return next;
  }
}

llvm::Value* LaneMath::fold(Reduction reduction, DType dtype, llvm::Value* lanes) {
  auto width = width_;
  const unsigned before = width_;
  while (width > 1) {
    llvm::SmallVector<int, 32> low, high;
    for (unsigned k = 0; k < width / 2; ++k) {
      low.push_back(static_cast<int>(k));
      high.push_back(static_cast<int>(k + width / 2));
    }
    width_ = width / 2;
    const Lanes::Form form = Lanes::Form::Vector;
    lanes = vector(combine(reduction, dtype, {ir_.CreateShuffleVector(lanes, low), form, 0},
                           {ir_.CreateShuffleVector(lanes, high), form, 0}));
    width /= 2;
  }
  width_ = before;
  return lanes->getType()->isVectorTy() ? ir_.CreateExtractElement(lanes, std::uint64_t{0}) : lanes;
}

llvm::Value* LaneMath::from_stored(DType dtype, llvm::Value* stored) {
  const auto shaped = [&](llvm::Type* scalar) -> llvm::Type* {
    const auto* vector_type = llvm::dyn_cast<llvm::FixedVectorType>(stored->getType());
    return vector_type == nullptr
               ? scalar
               : llvm::FixedVectorType::get(scalar, vector_type->getNumElements());
  };
  if (dtype == DType::Bool) return ir_.CreateICmpNE(stored, whole(stored, 0));
  if (is_narrow_float(dtype)) return from_narrow_float(dtype, stored);
  if (is_integer(dtype) && info(dtype).bits < 8)
    return ir_.CreateTrunc(stored, shaped(type(dtype)));
  if (dtype == DType::F16) return ir_.CreateFPExt(stored, shaped(ir_.getFloatTy()));
  if (dtype == DType::BF16) {
    llvm::Value* bits = ir_.CreateZExt(stored, shaped(ir_.getInt32Ty()));
    return ir_.CreateBitCast(ir_.CreateShl(bits, whole(bits, 16)), shaped(ir_.getFloatTy()));
  }
  return stored;
}

llvm::Value* LaneMath::to_stored(DType dtype, llvm::Value* value, bool saturates) {
  const auto shaped = [&](llvm::Type* scalar) -> llvm::Type* {
    const auto* vector_type = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
    return vector_type == nullptr
               ? scalar
               : llvm::FixedVectorType::get(scalar, vector_type->getNumElements());
  };
  if (dtype == DType::Bool) return ir_.CreateZExt(value, shaped(ir_.getInt8Ty()));
  if (is_narrow_float(dtype)) return to_narrow_float(dtype, value, saturates);
  if (is_integer(dtype) && info(dtype).bits < 8) {
    llvm::Type* byte = shaped(ir_.getInt8Ty());
    return is_signed(dtype) ? ir_.CreateSExt(value, byte) : ir_.CreateZExt(value, byte);
  }
  if (dtype == DType::F16) return ir_.CreateFPTrunc(value, shaped(ir_.getHalfTy()));
  if (dtype == DType::BF16) {
    // Rounds to nearest, ties to even; NaN stays NaN.
    llvm::Value* bits = ir_.CreateBitCast(value, shaped(ir_.getInt32Ty()));
    llvm::Value* odd = ir_.CreateAnd(ir_.CreateLShr(bits, whole(bits, 16)), whole(bits, 1));
    llvm::Value* rounded = ir_.CreateLShr(
        ir_.CreateAdd(bits, ir_.CreateAdd(odd, whole(bits, 0x7fff))), whole(bits, 16));
    llvm::Value* quiet = ir_.CreateOr(ir_.CreateLShr(bits, whole(bits, 16)), whole(bits, 0x40));
    llvm::Value* result = ir_.CreateSelect(ir_.CreateFCmpUNO(value, value), quiet, rounded);
    return ir_.CreateTrunc(result, shaped(ir_.getInt16Ty()));
  }
  return value;
}

}  // namespace tenon::codegen::cpu
