// Int8 dot products: VNNI (VPDPBUSD), or VPMADDUBSW and VPMADDWD without it.
#include "base/error.h"
#include "codegen/cpu/kernel_emitter.h"
#include "codegen/cpu/lane_slices.h"
#include "target/dot_instructions.h"

#include <llvm/IR/IntrinsicsX86.h>

namespace tenon::codegen::cpu {

namespace Intrinsic = llvm::Intrinsic;

namespace {

const Scalar& load_under(const Scalar& factor) {
  const Scalar* at = &factor;
  while ((*at)->kind == ScalarKind::Cast) at = &(*at)->args.front();
  return *at;
}

}  // namespace

void KernelEmitter::emit_vnni_dots(const Statement& statement, std::optional<std::size_t> loop,
                                   llvm::Value* first, unsigned count) {
  const Statement& fold = statement.body.front();
  const Scalar &left = load_under(fold.value->args[0]), &right = load_under(fold.value->args[1]);
  // With small enough weights the sum of two u8 x s8 products fits 16 bits (VPMADDUBSW without
  // saturation).
  const std::int64_t largest = nest_.buffers[right->id].largest;
  const DotBytes bytes{left->dtype == DType::U8, right->dtype == DType::I8,
                       largest > 0 && 2 * 255 * largest <= 32767};
  loops_[statement.id] = math_.integer(0);
  const auto fours = [&](const Scalar& load, bool is_vector) {
    const Address at = address(load->args, load->view, false);
    TENON_ASSERT(!at.for_all && !at.for_each, "dots read what is there");
    llvm::Type* type = is_vector ? math_.lanes_of(ir_.getInt32Ty()) : ir_.getInt32Ty();
    llvm::LoadInst* read =
        ir_.CreateAlignedLoad(type, element_pointer(load->id, at.offset.value), llvm::Align(1));
    if (nest_.buffers[load->id].storage == StorageClass::Operand && !may_change_[load->id]) {
      read->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
    }
    return read;
  };
  llvm::Value* b = fours(right, math_.width() > 1);
  for (copy_ = 0; copy_ < count; ++copy_) {
    if (loop)
      loops_[*loop] = math_.uniform(ir_.CreateAdd(first, ir_.getInt64(copy_), "", true, true));
    llvm::Value* a = math_.vector(math_.uniform(fours(left, false)));
    LocalState& state = local(fold.id);
    llvm::Value* total = ir_.CreateLoad(math_.lanes_of(ir_.getInt32Ty()), state.slot);
    ir_.CreateStore(dots(total, a, b, bytes), state.slot);
  }
  copy_ = 0;
}

// Matches a dot product of four bytes, optionally with an addend.
std::optional<Lanes> KernelEmitter::emit_dp4a(const ScalarNode& node) {
  const auto is_dot = [](const ScalarNode& of) {
    return of.kind == ScalarKind::Binary && of.binary == BinaryOp::Dp4a;
  };
  const ScalarNode* of = is_dot(node) ? &node : nullptr;
  const Scalar* addend = nullptr;
  if (!of && node.binary == BinaryOp::Add && node.dtype == DType::I32) {
    for (const std::size_t k : {1U, 0U}) {
      if (of || !is_dot(node.args[k].node())) continue;
      of = &node.args[k].node();
      addend = &node.args[1 - k];
    }
  }
  if (!of) return std::nullopt;
  const Lanes total = addend ? emit(*addend) : math_.literal(DType::I32, 0, 0);
  const Lanes a = emit(of->args[0]), b = emit(of->args[1]);
  DotBytes bytes{.is_unsigned = true, .is_signed = true};
  if (const Scalar& left = of->args[0];
      left->kind == ScalarKind::Binary && left->binary == BinaryOp::And) {
    constexpr std::int64_t kHighBits = 0x80808080;  // Sign bits of the mask's bytes.
    for (const Scalar& mask : left->args)
      bytes.fits_pairs |= mask->kind == ScalarKind::Integer && (mask->integer & kHighBits) == 0;
  }
  if (total.is_uniform() && a.is_uniform() && b.is_uniform())
    return math_.uniform(dots(total.value, a.value, b.value, bytes));
  return Lanes{dots(math_.vector(total), math_.vector(a), math_.vector(b), bytes),
               Lanes::Form::Vector, 0};
}

llvm::Value* KernelEmitter::dots(llvm::Value* total, llvm::Value* a, llvm::Value* b,
                                 const DotBytes& bytes) {
  std::vector<llvm::Value*> sums;
  const unsigned width = lane_count(total), part = std::min(width, facts_.vector_bits / 32);
  for (unsigned k = 0; k < width; k += part) {
    sums.push_back(dot(slice_lanes(ir_, total, k, part), slice_lanes(ir_, a, k, part),
                       slice_lanes(ir_, b, k, part), bytes));
  }
  return concat_lanes(ir_, std::move(sums));
}

llvm::Value* KernelEmitter::dot(llvm::Value* total, llvm::Value* a, llvm::Value* b,
                                const DotBytes& bytes) {
  const unsigned lanes = lane_count(total);
  const bool is_unsigned = bytes.is_unsigned, is_signed = bytes.is_signed;
  const bool is_register = lanes == 4 || lanes == 8 || lanes == 16;
  const auto whole = [&](std::int64_t number) {
    return llvm::ConstantInt::getSigned(total->getType(), number);
  };
  if (is_register && has_dot_instructions(facts_) && is_unsigned && is_signed) {
    const auto id = lanes == 16  ? Intrinsic::x86_avx512_vpdpbusd_512
                    : lanes == 8 ? Intrinsic::x86_avx512_vpdpbusd_256
                                 : Intrinsic::x86_avx512_vpdpbusd_128;
    return ir_.CreateIntrinsic(id, {}, {total, a, b});
  }
  if (is_register) {
    llvm::Type* pairs = llvm::FixedVectorType::get(ir_.getInt16Ty(), 2 * lanes);
    llvm::Type* single = llvm::FixedVectorType::get(ir_.getInt8Ty(), 4 * lanes);
    const auto as = [&](llvm::Value* value, llvm::Type* type) {
      return ir_.CreateBitCast(value, type);
    };
    const auto id = [&](Intrinsic::ID wide, Intrinsic::ID middle, Intrinsic::ID narrow) {
      return lanes == 16 ? wide : lanes == 8 ? middle : narrow;
    };
    const auto add_pairs = id(Intrinsic::x86_avx512_pmaddw_d_512, Intrinsic::x86_avx2_pmadd_wd,
                              Intrinsic::x86_sse2_pmadd_wd);
    if (is_unsigned && is_signed && bytes.fits_pairs) {
      const auto multiply =
          id(Intrinsic::x86_avx512_pmaddubs_w_512, Intrinsic::x86_avx2_pmadd_ub_sw,
             Intrinsic::x86_ssse3_pmadd_ub_sw_128);
      llvm::Value* sums = ir_.CreateIntrinsic(multiply, {}, {as(a, single), as(b, single)});
      llvm::Value* ones = llvm::ConstantInt::get(pairs, 1);
      return ir_.CreateAdd(total, ir_.CreateIntrinsic(add_pairs, {}, {sums, ones}));
    }
    // Otherwise even and odd bytes are widened to 16 bits and multiplied exactly.
    const auto even = [&](llvm::Value* value, bool has_sign) {
      llvm::Value* shifted = ir_.CreateShl(as(value, pairs), llvm::ConstantInt::get(pairs, 8));
      return has_sign ? ir_.CreateAShr(shifted, llvm::ConstantInt::get(pairs, 8))
                      : ir_.CreateLShr(shifted, llvm::ConstantInt::get(pairs, 8));
    };
    const auto odd = [&](llvm::Value* value, bool has_sign) {
      return has_sign ? ir_.CreateAShr(as(value, pairs), llvm::ConstantInt::get(pairs, 8))
                      : ir_.CreateLShr(as(value, pairs), llvm::ConstantInt::get(pairs, 8));
    };
    llvm::Value* evens =
        ir_.CreateIntrinsic(add_pairs, {}, {even(a, !is_unsigned), even(b, is_signed)});
    llvm::Value* odds =
        ir_.CreateIntrinsic(add_pairs, {}, {odd(a, !is_unsigned), odd(b, is_signed)});
    return ir_.CreateAdd(ir_.CreateAdd(total, evens), odds);
  }
  for (int k = 0; k < 4; ++k) {
    const auto byte = [&](llvm::Value* value, bool has_sign) {
      llvm::Value* high = ir_.CreateShl(value, whole(24 - 8 * k));
      return has_sign ? ir_.CreateAShr(high, whole(24)) : ir_.CreateLShr(high, whole(24));
    };
    total = ir_.CreateAdd(total, ir_.CreateMul(byte(a, !is_unsigned), byte(b, is_signed)));
  }
  return total;
}

}  // namespace tenon::codegen::cpu
