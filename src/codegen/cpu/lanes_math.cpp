// Elementary functions on f32 lanes: range reduction and polynomials with errors of a fraction of
// an ulp. Coefficients are Taylor series, or fitted to erfc.
#include "codegen/cpu/lane_slices.h"
#include "codegen/cpu/lanes.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace tenon::codegen::cpu {

namespace Intrinsic = llvm::Intrinsic;

namespace {

// ln 2 in two parts (Cody-Waite): the first has trailing zeros, so that products with exponents are
// exact.
constexpr double kLog2High = 0.693359375;
constexpr double kLog2Low = -2.12194440054690583e-4;
// Below this argument exp is subnormal in f32.
constexpr double kLeastExponent = -87.33654;

llvm::Type* integers_like(llvm::IRBuilder<>& ir, llvm::Value* x) {
  const auto* lanes = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  llvm::Type* scalar = ir.getInt32Ty();
  return lanes == nullptr ? scalar : llvm::FixedVectorType::get(scalar, lanes->getNumElements());
}

}  // namespace

llvm::Value* LaneMath::fused_multiply_add(llvm::Value* a, llvm::Value* b, llvm::Value* c) {
  return ir_.CreateIntrinsic(Intrinsic::fma, {a->getType()}, {a, b, c});
}

// Horner's scheme for c0 + c1*x + c2*x^2 + …
llvm::Value* LaneMath::polynomial(llvm::Value* x, std::initializer_list<double> coefficients) {
  auto next = std::rbegin(coefficients);
  llvm::Value* sum = real(x, *next++);
  for (; next != std::rend(coefficients); ++next) sum = fused_multiply_add(sum, x, real(x, *next));
  return sum;
}

// Applies `one` to each register of a wide value; a scalar becomes lane 0 of a register.
llvm::Value* LaneMath::by_registers(
    std::initializer_list<llvm::Value*> args,
    const std::function<llvm::Value*(llvm::ArrayRef<llvm::Value*>)>& one) {
  constexpr unsigned kLeast = 4, kMost = 16;
  const unsigned count = lane_count(*args.begin()), part = std::min(count, kMost);
  llvm::SmallVector<llvm::Value*, 2> values;
  if (count == 1) {
    for (llvm::Value* arg : args) values.push_back(ir_.CreateVectorSplat(kLeast, arg));
    return ir_.CreateExtractElement(one(values), std::uint64_t{0});
  }
  std::vector<llvm::Value*> parts;
  for (unsigned first = 0; first < count; first += part) {
    values.clear();
    for (llvm::Value* arg : args) values.push_back(slice_lanes(ir_, arg, first, part));
    parts.push_back(one(values));
  }
  return concat_lanes(ir_, std::move(parts));
}

namespace {

bool fills_registers(llvm::Value* x) {
  const unsigned count = lane_count(x);
  return std::has_single_bit(count) && count != 2;
}

}  // namespace

// exp for arguments from kLeastExponent to 89. It is infinite above 89 and finite up to 88. The
// fitted polynomial has a relative error of 3e-9.
llvm::Value* LaneMath::exp_within(llvm::Value* x, bool is_normal) {
  llvm::Value* power = ir_.CreateUnaryIntrinsic(Intrinsic::roundeven,
                                                ir_.CreateFMul(x, real(x, 1.44269504088896341)));
  llvm::Value* rest = fused_multiply_add(power, real(x, -kLog2High), x);
  rest = fused_multiply_add(power, real(x, -kLog2Low), rest);
  llvm::Value* series =
      polynomial(rest, {1.0, 1.0, 0.49999993432119433, 0.16666520399019463, 0.04166839078545139,
                        0.008368745111050785, 0.0013814540086585984});
  if (has_avx512_ && fills_registers(x)) {
    return by_registers({series, power}, [&](llvm::ArrayRef<llvm::Value*> parts) -> llvm::Value* {
      constexpr std::uint32_t kAsSet = 4;  // The thread's default rounding mode.
      const unsigned lanes = lane_count(parts[0]);
      llvm::Value* nothing = llvm::Constant::getNullValue(parts[0]->getType());
      if (lanes == 16) {
        return ir_.CreateIntrinsic(
            Intrinsic::x86_avx512_mask_scalef_ps_512, {},
            {parts[0], parts[1], nothing, ir_.getInt16(0xffff), ir_.getInt32(kAsSet)});
      }
      return ir_.CreateIntrinsic(lanes == 8 ? Intrinsic::x86_avx512_mask_scalef_ps_256
                                            : Intrinsic::x86_avx512_mask_scalef_ps_128,
                                 {}, {parts[0], parts[1], nothing, ir_.getInt8(0xff)});
    });
  }
  llvm::Value* exponent = ir_.CreateFPToSI(power, integers_like(ir_, x));
  const auto power_of_two = [&](llvm::Value* n) {
    llvm::Value* bits = ir_.CreateShl(ir_.CreateAdd(n, whole(n, 127)), whole(n, 23));
    return ir_.CreateBitCast(bits, x->getType());
  };
  if (is_normal) return ir_.CreateFMul(series, power_of_two(exponent));
  // Scales by two powers of two, so that subnormal results are exact.
  llvm::Value* half = ir_.CreateAShr(exponent, whole(exponent, 1));
  llvm::Value* scaled = ir_.CreateFMul(series, power_of_two(half));
  scaled = ir_.CreateFMul(scaled, power_of_two(ir_.CreateSub(exponent, half)));
  return ir_.CreateSelect(ir_.CreateFCmpUNO(x, x), x, scaled);
}

llvm::Value* LaneMath::exp32(llvm::Value* x) {
  llvm::Value* bounded = ir_.CreateSelect(ir_.CreateFCmpOGT(x, real(x, 89)), real(x, 89), x);
  // Subnormal results are flushed to 0: creating and using them costs about a hundred cycles each,
  // and masked attention scores produce many of them.
  llvm::Value* is_small = ir_.CreateFCmpOLT(x, real(x, kLeastExponent));
  bounded = ir_.CreateSelect(is_small, real(x, kLeastExponent), bounded);
  return ir_.CreateSelect(is_small, real(x, 0), exp_within(bounded));
}

Lanes LaneMath::divide_by_large(const Lanes& a, const Lanes& b) {
  const Pair pair = matched(a, b);
  return made(quotient(pair.a, pair.b), pair.is_uniform);
}

// A 14-bit reciprocal with one Newton step, about three times as fast as a division; the reciprocal
// of infinity is 0. Requires b >= 1.
llvm::Value* LaneMath::quotient(llvm::Value* a, llvm::Value* b) {
  if (!has_avx512_ || !fills_registers(b)) return ir_.CreateFDiv(a, b);
  llvm::Value* rough = by_registers({b}, [&](llvm::ArrayRef<llvm::Value*> parts) -> llvm::Value* {
    const unsigned lanes = lane_count(parts[0]);
    llvm::Value* nothing = llvm::Constant::getNullValue(parts[0]->getType());
    if (lanes == 16)
      return ir_.CreateIntrinsic(Intrinsic::x86_avx512_rcp14_ps_512, {},
                                 {parts[0], nothing, ir_.getInt16(0xffff)});
    return ir_.CreateIntrinsic(
        lanes == 8 ? Intrinsic::x86_avx512_rcp14_ps_256 : Intrinsic::x86_avx512_rcp14_ps_128, {},
        {parts[0], nothing, ir_.getInt8(0xff)});
  });
  llvm::Value* lacking = fused_multiply_add(ir_.CreateFNeg(b), rough, real(b, 1));
  llvm::Value* better = fused_multiply_add(rough, lacking, rough);
  return ir_.CreateFMul(a,
                        ir_.CreateSelect(ir_.CreateFCmpOEQ(b, real(b, INFINITY)), rough, better));
}

llvm::Value* LaneMath::log32(llvm::Value* x) {
  llvm::Type* integers = integers_like(ir_, x);
  llvm::Value* is_denormal = ir_.CreateFCmpOLT(x, real(x, 1.17549435082228751e-38));
  llvm::Value* normal = ir_.CreateSelect(is_denormal, ir_.CreateFMul(x, real(x, 8388608.0)), x);
  llvm::Value* bits = ir_.CreateBitCast(normal, integers);
  // Normalizes the mantissa to [sqrt(1/2), sqrt(2)); 0x3f3504f3 is sqrt(1/2).
  llvm::Value* shifted = ir_.CreateSub(bits, whole(bits, 0x3f3504f3));
  llvm::Value* exponent = ir_.CreateAShr(shifted, whole(bits, 23));
  llvm::Value* mantissa_bits = ir_.CreateSub(bits, ir_.CreateShl(exponent, whole(bits, 23)));
  llvm::Value* power = ir_.CreateSIToFP(exponent, x->getType());
  power = ir_.CreateSelect(is_denormal, ir_.CreateFSub(power, real(x, 23)), power);
  llvm::Value* f = ir_.CreateFSub(ir_.CreateBitCast(mantissa_bits, x->getType()), real(x, 1));
  // log(1 + f) = f - f²/2 + s (f²/2 + R), with s = f / (2 + f) and R the remainder of 2 atanh(s).
  llvm::Value* s = ir_.CreateFDiv(f, ir_.CreateFAdd(f, real(x, 2)));
  llvm::Value* z = ir_.CreateFMul(s, s);
  llvm::Value* rest =
      ir_.CreateFMul(z, polynomial(z, {2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11}));
  llvm::Value* half_square = ir_.CreateFMul(real(x, 0.5), ir_.CreateFMul(f, f));
  llvm::Value* low = fused_multiply_add(s, ir_.CreateFAdd(half_square, rest),
                                        ir_.CreateFMul(power, real(x, kLog2Low)));
  llvm::Value* result = ir_.CreateFSub(f, ir_.CreateFSub(half_square, low));
  result = fused_multiply_add(power, real(x, kLog2High), result);
  result = ir_.CreateSelect(ir_.CreateFCmpOEQ(x, real(x, INFINITY)), x, result);
  result = ir_.CreateSelect(ir_.CreateFCmpOEQ(x, real(x, 0)), real(x, -INFINITY), result);
  return ir_.CreateSelect(ir_.CreateFCmpULT(x, real(x, 0)), real(x, NAN), result);
}

llvm::Value* LaneMath::tanh32(llvm::Value* x) {
  llvm::Value* size = ir_.CreateUnaryIntrinsic(Intrinsic::fabs, x);
  llvm::Value* square = ir_.CreateFMul(x, x);
  llvm::Value* series =
      polynomial(square, {1.0, -0.3333333333333333, 0.13333333333333333, -0.05396825396825397,
                          0.021869488536155203, -0.008863235529902197, 0.003592128036572481,
                          -0.0014558343870513183, 0.000590027440945586, -0.00023912911424355248});
  llvm::Value* near = ir_.CreateFMul(x, series);
  llvm::Value* power = exp32(ir_.CreateFMul(size, real(x, 2)));
  llvm::Value* far =
      ir_.CreateFSub(real(x, 1), quotient(real(x, 2), ir_.CreateFAdd(power, real(x, 1))));
  far = ir_.CreateBinaryIntrinsic(Intrinsic::copysign, far, x);
  return ir_.CreateSelect(ir_.CreateFCmpOGT(size, real(x, 0.55)), far, near);
}

llvm::Value* LaneMath::erf32(llvm::Value* x) {
  llvm::Value* size = ir_.CreateUnaryIntrinsic(Intrinsic::fabs, x);
  llvm::Value* square = ir_.CreateFMul(x, x);
  llvm::Value* series =
      polynomial(square, {0.1283791670955126, -0.37612638903183754, 0.11283791670955126,
                          -0.026866170645131252, 0.005223977625442188, -0.0008548327023450852,
                          0.00012055332981789664, -1.492565035840625e-05, 1.6462114365889246e-06,
                          -1.6365844691234924e-07, 1.4807192815879218e-08});
  llvm::Value* near = fused_multiply_add(x, series, x);  // 2/sqrt(pi) = 1 + 0.128...
  // Above 0.92: 1 - exp(-x²) g(1 / (1 + x/2)), g fitted on [0.9, 4.1]; above 4 the result is 1.
  llvm::Value* bounded = ir_.CreateSelect(ir_.CreateFCmpOGT(size, real(x, 4)), real(x, 4), size);
  llvm::Value* t = quotient(real(x, 1), fused_multiply_add(bounded, real(x, 0.5), real(x, 1)));
  llvm::Value* fitted = polynomial(
      t, {-0.00016293598945204283, 0.2850436263560556, 0.258857436783907, 0.35068464014435186,
          -0.10953493281431013, 0.5704804903373992, -0.47601839408518853, 0.12071235015689054});
  llvm::Value* tail =
      ir_.CreateFMul(exp32(ir_.CreateFNeg(ir_.CreateFMul(bounded, bounded))), fitted);
  llvm::Value* far = ir_.CreateFSub(real(x, 1), tail);
  far = ir_.CreateBinaryIntrinsic(Intrinsic::copysign, far, x);
  llvm::Value* result = ir_.CreateSelect(ir_.CreateFCmpOGT(size, real(x, 0.92)), far, near);
  return ir_.CreateSelect(ir_.CreateFCmpUNO(x, x), x, result);
}

Lanes LaneMath::one_plus_erf(const Lanes& x) {
  return x.is_uniform() ? uniform(one_plus_erf32(x.value)) : made(one_plus_erf32(vector(x)), false);
}

// 1 + erf as in GELU: erfc(a) = t p(t) exp(-a²) with t = 1 / (1 + 0.33 a), p fitted to a relative
// error of 2e-7. Half the cost of 1 + erf32, and accurate far below zero, where 1 + erf32 cancels.
llvm::Value* LaneMath::one_plus_erf32(llvm::Value* x) {
  llvm::Value* a = ir_.CreateUnaryIntrinsic(Intrinsic::fabs, x);
  llvm::Value* t = quotient(real(x, 1), fused_multiply_add(a, real(x, 0.33), real(x, 1)));
  llvm::Value* fitted = polynomial(t, {0.186392605, 0.182464033, 0.204078406, 0.038392015,
                                       0.424254954, -0.367418379, 0.469265133, -0.137428880});
  // exp(-a²), bounded where it underflows.
  llvm::Value* square = ir_.CreateFNeg(ir_.CreateFMul(a, a));
  square = ir_.CreateSelect(ir_.CreateFCmpOLT(square, real(x, -87)), real(x, -87), square);
  llvm::Value* tail = ir_.CreateFMul(ir_.CreateFMul(fitted, t), exp_within(square, true));
  return ir_.CreateSelect(ir_.CreateFCmpOLT(x, real(x, 0)), tail, ir_.CreateFSub(real(x, 2), tail));
}

llvm::Value* LaneMath::library(std::string_view name, std::initializer_list<llvm::Value*> args) {
  llvm::Type* wide = ir_.getDoubleTy();
  llvm::SmallVector<llvm::Type*, 2> types(args.size(), wide);
  llvm::FunctionCallee function = module_.getOrInsertFunction(
      llvm::StringRef(name.data(), name.size()), llvm::FunctionType::get(wide, types, false));
  llvm::Value* first = *args.begin();
  llvm::Type* scalar = first->getType()->getScalarType();
  const auto call = [&](const llvm::SmallVector<llvm::Value*, 2>& values) {
    llvm::SmallVector<llvm::Value*, 2> converted;
    for (llvm::Value* value : values) {
      converted.push_back(scalar->isDoubleTy() ? value : ir_.CreateFPExt(value, wide));
    }
    llvm::CallInst* result = ir_.CreateCall(function, converted);
    result->setDoesNotThrow();
    result->setDoesNotAccessMemory();
    return scalar->isDoubleTy() ? static_cast<llvm::Value*>(result)
                                : ir_.CreateFPTrunc(result, scalar);
  };
  const auto* lanes = llvm::dyn_cast<llvm::FixedVectorType>(first->getType());
  if (lanes == nullptr) return call(llvm::SmallVector<llvm::Value*, 2>(args));
  llvm::Value* result = llvm::PoisonValue::get(first->getType());
  for (unsigned k = 0; k < lanes->getNumElements(); ++k) {
    llvm::SmallVector<llvm::Value*, 2> values;
    for (llvm::Value* arg : args) values.push_back(ir_.CreateExtractElement(arg, std::uint64_t{k}));
    result = ir_.CreateInsertElement(result, call(values), std::uint64_t{k});
  }
  return result;
}

}  // namespace tenon::codegen::cpu
