// Conversions between floats of at most eight bits in memory and f32.
#include "codegen/cpu/lanes.h"
#include "ir/float_formats.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>

#include <limits>

namespace tenon::codegen::cpu {

namespace Intrinsic = llvm::Intrinsic;

namespace {

// Layout of sign, exponent and mantissa. Special values come from the scalar conversion functions.
struct NarrowFloatFormat {
  int mantissa_bits, lowest_exponent, sign_position;
};

NarrowFloatFormat format_of(DType dtype) {
  switch (dtype) {
    case DType::F8E4M3FN:
      return {3, -6, 7};
    case DType::F8E4M3FNUZ:
      return {3, -7, 7};
    case DType::F8E5M2:
      return {2, -14, 7};
    case DType::F8E5M2FNUZ:
      return {2, -15, 7};
    default:
      return {1, 0, 3};  // f4e2m1.
  }
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

}  // namespace

bool is_narrow_float(DType dtype) { return is_float(dtype) && info(dtype).storage_bytes == 1; }

// Decodes by a table of at most 256 values.
llvm::Value* LaneMath::from_narrow_float(DType dtype, llvm::Value* stored) {
  llvm::Type* number = ir_.getFloatTy();
  const std::string name = "values_of_" + to_string(dtype);
  llvm::GlobalVariable* table = module_.getNamedGlobal(name);
  if (table == nullptr) {
    std::vector<llvm::Constant*> values;
    for (unsigned code = 0; code < 256; ++code) {
      values.push_back(llvm::ConstantFP::get(
          number, narrow_float_to_f32(dtype, static_cast<std::uint8_t>(code))));
    }
    auto* type = llvm::ArrayType::get(number, values.size());
    table = new llvm::GlobalVariable(module_, type, true, llvm::GlobalValue::PrivateLinkage,
                                     llvm::ConstantArray::get(type, values), name);
  }
  const auto* lanes = llvm::dyn_cast<llvm::FixedVectorType>(stored->getType());
  llvm::Type* wide = ir_.getInt64Ty();
  if (lanes == nullptr)
    return ir_.CreateLoad(number,
                          ir_.CreateInBoundsGEP(number, table, ir_.CreateZExt(stored, wide)));
  const unsigned count = lanes->getNumElements();
  llvm::Value* places = ir_.CreateZExt(stored, llvm::FixedVectorType::get(wide, count));
  return ir_.CreateMaskedGather(llvm::FixedVectorType::get(number, count),
                                ir_.CreateInBoundsGEP(number, table, places), llvm::Align(4));
}

// Rounds to nearest, ties to even.
llvm::Value* LaneMath::to_narrow_float(DType dtype, llvm::Value* value, bool saturates) {
  const Overflow overflow = saturates ? Overflow::Saturate : Overflow::Special;
  const std::int64_t too_large = f32_to_narrow_float(dtype, kInfinity, overflow);
  const auto shaped = [&](llvm::Type* scalar) -> llvm::Type* {
    const auto* lanes = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
    return lanes == nullptr ? scalar : llvm::FixedVectorType::get(scalar, lanes->getNumElements());
  };
  llvm::Type* word = shaped(ir_.getInt32Ty());
  llvm::Value* bits = ir_.CreateBitCast(value, word);
  llvm::Value* magnitude = ir_.CreateUnaryIntrinsic(Intrinsic::fabs, value);
  llvm::Value* is_nan = ir_.CreateFCmpUNO(value, value);
  const std::int64_t nan = f32_to_narrow_float(dtype, kNaN);
  if (dtype == DType::F8E8M0) {  // The exponent alone, rounded up.
    llvm::Value* exponent = ir_.CreateAnd(ir_.CreateLShr(bits, whole(bits, 23)), whole(bits, 0xff));
    llvm::Value* is_between =
        ir_.CreateICmpNE(ir_.CreateAnd(bits, whole(bits, 0x7fffff)), whole(bits, 0));
    llvm::Value* code = ir_.CreateAdd(exponent, ir_.CreateZExt(is_between, word));
    code =
        ir_.CreateSelect(ir_.CreateICmpUGT(code, whole(code, 0xfe)), whole(code, too_large), code);
    code =
        ir_.CreateSelect(ir_.CreateFCmpOLE(magnitude, real(value, 0x1p-127)), whole(code, 0), code);
    return ir_.CreateTrunc(ir_.CreateSelect(is_nan, whole(code, nan), code),
                           shaped(ir_.getInt8Ty()));
  }
  const NarrowFloatFormat format = format_of(dtype);
  const std::int64_t sign_bit = std::int64_t{1} << format.sign_position;
  const bool has_negative_zero = f32_to_narrow_float(dtype, -0.0F) != 0;
  const bool nan_has_sign = f32_to_narrow_float(dtype, -kNaN) != nan;
  llvm::Value* sign = ir_.CreateAnd(ir_.CreateLShr(bits, whole(bits, 31 - format.sign_position)),
                                    whole(bits, sign_bit));
  // Clamps to twice the greatest number: this still overflows, and is safe to compute with.
  llvm::Value* bound = real(value, 2 * highest_finite(dtype));
  llvm::Value* limited = ir_.CreateSelect(ir_.CreateFCmpOLT(magnitude, bound), magnitude, bound);
  // Values of one exponent are evenly spaced; subnormals have the spacing of the least exponent.
  const std::int64_t least = format.lowest_exponent + 127;
  llvm::Value* exponent = ir_.CreateLShr(ir_.CreateBitCast(limited, word), whole(bits, 23));
  exponent = ir_.CreateBinaryIntrinsic(Intrinsic::umax, exponent, whole(exponent, least));
  llvm::Value* scale = ir_.CreateBitCast(
      ir_.CreateShl(ir_.CreateSub(whole(bits, 254 + format.mantissa_bits), exponent),
                    whole(bits, 23)),
      value->getType());
  llvm::Value* steps =
      ir_.CreateUnaryIntrinsic(Intrinsic::roundeven, ir_.CreateFMul(limited, scale));
  llvm::Value* code = ir_.CreateAdd(
      ir_.CreateShl(ir_.CreateSub(exponent, whole(bits, least)), whole(bits, format.mantissa_bits)),
      ir_.CreateFPToSI(steps, word));
  llvm::Value* is_large =
      ir_.CreateICmpUGT(code, whole(code, f32_to_narrow_float(dtype, kInfinity)));
  llvm::Value* large = whole(code, too_large);
  if (f32_to_narrow_float(dtype, -kInfinity, overflow) != too_large)
    large = ir_.CreateOr(large, sign);
  llvm::Value* result = ir_.CreateSelect(is_large, large, ir_.CreateOr(code, sign));
  if (!has_negative_zero)
    result = ir_.CreateSelect(ir_.CreateICmpEQ(code, whole(code, 0)), whole(code, 0), result);
  llvm::Value* special = whole(code, nan);
  if (nan_has_sign) special = ir_.CreateOr(special, sign);
  return ir_.CreateTrunc(ir_.CreateSelect(is_nan, special, result), shaped(ir_.getInt8Ty()));
}

}  // namespace tenon::codegen::cpu
