// Loads and stores of buffers: addresses, bounds checks, gathers.
#include "base/error.h"
#include "codegen/cpu/kernel_emitter.h"
#include "codegen/cpu/tile_roles.h"
#include "expr/access.h"
#include "nests/index_map.h"

#include <llvm/IR/Intrinsics.h>

#include <algorithm>

namespace tenon::codegen::cpu {

namespace Intrinsic = llvm::Intrinsic;

bool KernelEmitter::is_surely_inside(const Scalar& index, const Dim& extent) const {
  if (!extent.is_constant()) {
    const auto loop =
        index->kind == ScalarKind::Loop ? loop_dims_.find(index->id) : loop_dims_.end();
    return loop != loop_dims_.end() && loop->second == extent;
  }
  const auto is_within = [&](const std::optional<Range>& range) {
    return range && range->lo >= 0 && range->hi < extent.constant();
  };
  return is_within(range_of(index, loop_extents_)) || is_within(range_here(index));
}

KernelEmitter::Address KernelEmitter::address(const std::vector<Scalar>& indices, const Dims& view,
                                              bool checks) {
  Address address;
  address.offset = math_.integer(0);
  for (std::size_t axis = 0; axis < view.size(); ++axis) {
    const Lanes index = emit(indices[axis]);
    const Lanes count = math_.uniform(extent(view[axis]));
    const auto decided = std::ranges::find(decided_, &indices[axis].node(), &Decided::index);
    if (checks && decided != decided_.end()) {
      address.is_outside |= !decided->is_inside;
    } else if (checks && !is_surely_inside(indices[axis], view[axis])) {
      // One unsigned comparison also rejects negative coordinates.
      const Lanes is_inside = math_.binary(BinaryOp::Less, DType::U64, index, count);
      const auto* known_answer = llvm::dyn_cast<llvm::ConstantInt>(is_inside.value);
      address.is_outside |= known_answer != nullptr && known_answer->isZero();
      std::optional<Lanes>& known = is_inside.is_uniform() ? address.for_all : address.for_each;
      known = known ? math_.binary(BinaryOp::And, DType::Bool, *known, is_inside) : is_inside;
    }
    if (view[axis] != Dim(1))
      address.offset = math_.binary(BinaryOp::Multiply, DType::I64, address.offset, count);
    address.offset = math_.binary(BinaryOp::Add, DType::I64, address.offset, index);
  }
  return address;
}

// Addresses of jammed rows at constant distance are constant offsets from the first row, which
// takes no register and no arithmetic. LLVM detects this only in simple surroundings.
KernelEmitter::Address KernelEmitter::row_address(const Scalar& load) {
  const ScalarNode& node = load.node();
  const bool is_inside = node.bounds == Bounds::Inside;
  if (is_inside && jammed_ && jam_first_ != nullptr && copy_ > 0 && varies(load)) {
    if (const std::optional<std::int64_t> distance = distance_along(load, *jammed_)) {
      const Lanes here = loops_[*jammed_];
      const unsigned copy = copy_;
      copy_ = 0;
      loops_[*jammed_] = math_.uniform(jam_first_);
      Address at = address(node.args, node.view, false);
      copy_ = copy;
      loops_[*jammed_] = here;
      if (at.offset.form != Lanes::Form::Vector) {
        const auto further =
            static_cast<std::uint64_t>(*distance * static_cast<std::int64_t>(copy));
        at.offset.value = ir_.CreateAdd(at.offset.value, ir_.getInt64(further));
        return at;
      }
    }
  }
  return address(node.args, node.view, !is_inside);
}

llvm::Value* KernelEmitter::element_pointer(std::size_t buffer, llvm::Value* offset) {
  return ir_.CreateInBoundsGEP(math_.stored_type(nest_.buffers[buffer].dtype), buffers_[buffer],
                               offset);
}

void KernelEmitter::report_unless(llvm::Value* condition, Check check) {
  llvm::BasicBlock* failed = llvm::BasicBlock::Create(context_, "failed", function_);
  llvm::BasicBlock* after = llvm::BasicBlock::Create(context_, "checked", function_);
  ir_.CreateCondBr(condition, after, failed);
  ir_.SetInsertPoint(failed);
  ir_.CreateStore(ir_.getInt64(static_cast<std::uint64_t>(check)), error_);
  ir_.CreateBr(after);
  ir_.SetInsertPoint(after);
}

void KernelEmitter::report_if_zero(const Lanes& divisor) {
  llvm::Value* value = divisor.is_uniform() ? divisor.value : math_.vector(divisor);
  llvm::Value* is_right = ir_.CreateICmpNE(value, llvm::Constant::getNullValue(value->getType()));
  report_unless(divisor.is_uniform() ? is_right : ir_.CreateAndReduce(is_right), Check::NotZero);
}

Lanes KernelEmitter::gather(std::size_t buffer, const Lanes& offset, llvm::Value* mask,
                            llvm::Value* otherwise) {
  const NestBuffer& from = nest_.buffers[buffer];
  llvm::Type* stored = math_.lanes_of(math_.stored_type(from.dtype));
  const llvm::Align alignment(info(from.dtype).storage_bytes);
  llvm::CallInst* load = nullptr;
  const bool is_contiguous = offset.form == Lanes::Form::Ramp && offset.step == 1;
  if (is_contiguous) {
    load = ir_.CreateMaskedLoad(stored, element_pointer(buffer, offset.value), alignment, mask,
                                otherwise);
  } else {
    llvm::Value* pointers = ir_.CreateInBoundsGEP(math_.stored_type(from.dtype), buffers_[buffer],
                                                  math_.vector(offset));
    load = ir_.CreateMaskedGather(stored, pointers, alignment, mask, otherwise);
  }
  return {load, Lanes::Form::Vector, 0};
}

Lanes KernelEmitter::emit_load(const Scalar& scalar) {
  const ScalarNode& node = scalar.node();
  const NestBuffer& from = nest_.buffers[node.id];
  llvm::Type* stored = math_.stored_type(from.dtype);
  const llvm::Align alignment(info(from.dtype).storage_bytes);
  const auto constant_content = [&](llvm::Instruction* load) {
    if (from.storage == StorageClass::Operand && !may_change_[node.id]) {
      load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
    }
    return load;
  };
  const Address at = row_address(scalar);

  if (at.is_outside && node.bounds == Bounds::Fill) return emit(node.args.back());
  if (at.for_all || at.for_each) return guarded_load(scalar, at);
  if (at.offset.is_uniform()) {
    llvm::Value* value = constant_content(
        ir_.CreateAlignedLoad(stored, element_pointer(node.id, at.offset.value), alignment));
    return math_.uniform(math_.from_stored(from.dtype, value));
  }
  if (at.offset.form == Lanes::Form::Ramp && at.offset.step == 1) {
    const bool is_shared = panel_ && panel_->buffer == node.id;
    if (from.ahead != 0 && !is_shared) prefetch(node.id, at.offset.value, from.ahead);
    llvm::Value* value = constant_content(ir_.CreateAlignedLoad(
        math_.lanes_of(stored), element_pointer(node.id, at.offset.value), alignment));
    return {math_.from_stored(from.dtype, value), Lanes::Form::Vector, 0};
  }
  llvm::Value* everywhere = llvm::ConstantInt::getTrue(math_.lanes_of(ir_.getInt1Ty()));
  const Lanes value =
      gather(node.id, at.offset, everywhere, llvm::PoisonValue::get(math_.lanes_of(stored)));
  return {math_.from_stored(from.dtype, value.value), Lanes::Form::Vector, 0};
}

// Out-of-bounds elements must not be read: a branch around the load if the condition is uniform (a
// fully masked load from unmapped memory is slow), otherwise a mask.
Lanes KernelEmitter::guarded_load(const Scalar& scalar, const Address& at) {
  const ScalarNode& node = scalar.node();
  const NestBuffer& from = nest_.buffers[node.id];
  llvm::Type* stored = math_.stored_type(from.dtype);
  const llvm::Align alignment(info(from.dtype).storage_bytes);
  if (node.bounds == Bounds::Checked) {
    if (at.for_all) report_unless(at.for_all->value, Check::Inside);
    if (at.for_each) report_unless(ir_.CreateAndReduce(math_.vector(*at.for_each)), Check::Inside);
  }
  Lanes fill = math_.uniform(llvm::Constant::getNullValue(math_.type(from.dtype)));
  if (node.bounds == Bounds::Fill) fill = emit(node.args.back());
  const bool is_one = at.offset.is_uniform() && !at.for_each;
  const bool is_uniform = is_one && fill.is_uniform();
  const auto whole = [&](const Lanes& lanes) {
    return is_uniform ? lanes.value : math_.vector(lanes);
  };
  llvm::Value* otherwise = whole(fill);
  llvm::BasicBlock* before = ir_.GetInsertBlock();
  llvm::BasicBlock* after = nullptr;
  if (at.for_all) {
    llvm::BasicBlock* inside = llvm::BasicBlock::Create(context_, "inside", function_);
    after = llvm::BasicBlock::Create(context_, "loaded", function_);
    ir_.CreateCondBr(at.for_all->value, inside, after);
    ir_.SetInsertPoint(inside);
  }
  const bool is_run = !at.for_each && at.offset.form == Lanes::Form::Ramp && at.offset.step == 1;
  Lanes value;
  if (is_one || is_run) {
    llvm::Type* type = is_run ? math_.lanes_of(stored) : stored;
    llvm::Value* read =
        ir_.CreateAlignedLoad(type, element_pointer(node.id, at.offset.value), alignment);
    value = {math_.from_stored(from.dtype, read),
             is_run ? Lanes::Form::Vector : Lanes::Form::Uniform, 0};
  } else {
    llvm::Value* mask = at.for_each ? math_.vector(*at.for_each)
                                    : llvm::ConstantInt::getTrue(math_.lanes_of(ir_.getInt1Ty()));
    const Lanes read =
        gather(node.id, at.offset, mask, llvm::Constant::getNullValue(math_.lanes_of(stored)));
    value = {math_.from_stored(from.dtype, read.value), Lanes::Form::Vector, 0};
    if (at.for_each && node.bounds == Bounds::Fill) value = math_.select(*at.for_each, value, fill);
  }
  if (!at.for_all) return value;
  llvm::Value* loaded = whole(value);
  llvm::BasicBlock* end = ir_.GetInsertBlock();
  ir_.CreateBr(after);
  ir_.SetInsertPoint(after);
  llvm::PHINode* merged = ir_.CreatePHI(loaded->getType(), 2);
  merged->addIncoming(otherwise, before);
  merged->addIncoming(loaded, end);
  return {merged, is_uniform ? Lanes::Form::Uniform : Lanes::Form::Vector, 0};
}

void KernelEmitter::emit_store(const Statement& statement) {
  const NestBuffer& to = nest_.buffers[statement.id];
  const llvm::Align alignment(info(to.dtype).storage_bytes);
  const Lanes value = emit(statement.value);
  const Address at = address(statement.indices, statement.view, false);
  if (at.offset.is_uniform()) {
    TENON_ASSERT(value.is_uniform(), "one element takes one number");
    ir_.CreateAlignedStore(math_.to_stored(to.dtype, value.value),
                           element_pointer(statement.id, at.offset.value), alignment);
  } else if (at.offset.form == Lanes::Form::Ramp && at.offset.step == 1) {
    ir_.CreateAlignedStore(math_.to_stored(to.dtype, math_.vector(value)),
                           element_pointer(statement.id, at.offset.value), alignment);
  } else {
    llvm::Value* stored = math_.to_stored(to.dtype, math_.vector(value));
    llvm::Value* offsets = math_.vector(at.offset);
    for (unsigned k = 0; k < math_.width(); ++k) {
      llvm::Value* offset = ir_.CreateExtractElement(offsets, std::uint64_t{k});
      ir_.CreateAlignedStore(ir_.CreateExtractElement(stored, std::uint64_t{k}),
                             element_pointer(statement.id, offset), alignment);
    }
  }
}

void KernelEmitter::emit_update(const Statement& statement) {
  const NestBuffer& to = nest_.buffers[statement.id];
  const llvm::Align alignment(info(to.dtype).storage_bytes);
  const Lanes value = emit(statement.value);
  const Address at = address(statement.indices, statement.view, true);
  llvm::BasicBlock* after = llvm::BasicBlock::Create(context_, "updated", function_);
  llvm::BasicBlock* inside = llvm::BasicBlock::Create(context_, "update", function_);
  TENON_ASSERT(!at.for_each, "updates are made one by one");
  llvm::Value* is_inside = at.for_all ? at.for_all->value : ir_.getTrue();
  report_unless(is_inside, Check::Inside);
  ir_.CreateCondBr(is_inside, inside, after);
  ir_.SetInsertPoint(inside);
  llvm::Value* place = element_pointer(statement.id, at.offset.value);
  const Lanes before = math_.uniform(math_.from_stored(
      to.dtype, ir_.CreateAlignedLoad(math_.stored_type(to.dtype), place, alignment)));
  const Lanes combined = math_.combine(statement.reduction, to.dtype, before, value);
  ir_.CreateAlignedStore(math_.to_stored(to.dtype, combined.value), place, alignment);
  ir_.CreateBr(after);
  ir_.SetInsertPoint(after);
}

}  // namespace tenon::codegen::cpu
