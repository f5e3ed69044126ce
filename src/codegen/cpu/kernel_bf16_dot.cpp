// bf16 dot products of pairs (AVX512-BF16 VDPBF16PS).
#include "base/error.h"
#include "codegen/cpu/kernel_emitter.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <numeric>

namespace tenon::codegen::cpu {

namespace Intrinsic = llvm::Intrinsic;

namespace {

constexpr unsigned kPairLanes = 16;  // Accumulators per instruction.

}  // namespace

// The row factor, and the factor along columns.
KernelEmitter::Factors KernelEmitter::factors_of(const Statement& pair) {
  const auto load_under = [](const Scalar& factor) {
    Scalar at = factor;
    while (at->kind == ScalarKind::Cast) at = at->args.front();
    return at;
  };
  const Scalar& product = pair.body.front().value;
  const Scalar left = load_under(product->args[0]), right = load_under(product->args[1]);
  loops_[pair.id] = math_.integer(0);
  const Address at = address(left->args, left->view, false);
  return at.offset.is_uniform() ? Factors{left, right} : Factors{right, left};
}

void KernelEmitter::emit_bf16_dot(const Statement& pair, std::size_t loop, llvm::Value* first,
                                  unsigned count) {
  const Statement& fold = pair.body.front();
  loops_[pair.id] = math_.integer(0);
  loops_[loop] = math_.uniform(first);  // Values computed here are cached for the first row.
  const Factors factors = factors_of(pair);
  const unsigned width = math_.width();
  TENON_ASSERT(width % kPairLanes == 0, "pairs fill whole vectors");
  const Address across = address(factors.column->args, factors.column->view, false);
  TENON_ASSERT(across.offset.form == Lanes::Form::Ramp && across.offset.step == 2,
               "pairs lie side by side along columns");
  llvm::Type* halves = llvm::FixedVectorType::get(ir_.getBFloatTy(), 2 * kPairLanes);
  llvm::Value* start = element_pointer(factors.column->id, across.offset.value);
  std::vector<llvm::Value*> columns;
  for (unsigned part = 0; part < width / kPairLanes; ++part) {
    llvm::Value* place =
        ir_.CreateConstInBoundsGEP1_64(ir_.getInt16Ty(), start, 2 * kPairLanes * part);
    columns.push_back(ir_.CreateAlignedLoad(halves, place, llvm::Align(2)));
  }
  llvm::Type* sums = llvm::FixedVectorType::get(ir_.getFloatTy(), width);
  for (copy_ = 0; copy_ < count; ++copy_) {
    loops_[loop] = math_.uniform(ir_.CreateAdd(first, ir_.getInt64(copy_), "", true, true));
    const Address at = address(factors.row->args, factors.row->view, false);
    llvm::Value* both = ir_.CreateAlignedLoad(
        ir_.getInt32Ty(), element_pointer(factors.row->id, at.offset.value), llvm::Align(2));
    llvm::Value* row = ir_.CreateBitCast(ir_.CreateVectorSplat(kPairLanes, both), halves);
    llvm::Value* total = ir_.CreateLoad(sums, local(fold.id).slot);
    std::vector<llvm::Value*> parts;
    for (unsigned part = 0; part < width / kPairLanes; ++part) {
      std::vector<int> lanes(kPairLanes);
      std::iota(lanes.begin(), lanes.end(), static_cast<int>(part * kPairLanes));
      llvm::Value* sum = ir_.CreateShuffleVector(total, lanes);
      parts.push_back(ir_.CreateIntrinsic(sum->getType(), Intrinsic::x86_avx512bf16_dpbf16ps_512,
                                          {sum, row, columns[part]}));
    }
    llvm::Value* all = parts.front();
    for (unsigned part = 1; part < parts.size(); ++part) {
      std::vector<int> lanes((part + 1) * kPairLanes);
      std::iota(lanes.begin(), lanes.end(), 0);
      // Both operands of a shuffle have equal width.
      std::vector<int> wide(part * kPairLanes, -1);
      std::iota(wide.begin(), wide.begin() + kPairLanes, 0);
      all = ir_.CreateShuffleVector(
          all, part == 1 ? parts[part] : ir_.CreateShuffleVector(parts[part], wide), lanes);
    }
    ir_.CreateStore(all, local(fold.id).slot);
  }
  copy_ = 0;
}

}  // namespace tenon::codegen::cpu
