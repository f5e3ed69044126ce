// Emits loop nests as LLVM IR: loops, unroll-and-jam, vectorized folds.
#include "codegen/cpu/kernel_emitter.h"

#include "base/error.h"
#include "nests/bf16_dot.h"
#include "nests/in_place.h"
#include "nests/integer_contraction.h"
#include "nests/loop_extents.h"
#include "nests/reports.h"
#include "target/bf16.h"
#include "target/dot_instructions.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_set>

namespace tenon::codegen::cpu {

namespace Intrinsic = llvm::Intrinsic;

namespace {

// Offsets of the members of KernelArguments, in pointers.
constexpr unsigned kBuffers = 0, kExtents = 1, kScratch = 2, kError = 3;

// Divisors in index expressions are extents, and a kernel with a zero extent does not run.
bool may_be_zero(const Scalar& scalar) {
  if (scalar->kind == ScalarKind::Integer) return scalar->integer == 0;
  std::vector<const ScalarNode*> work{&scalar.node()};
  std::unordered_set<const ScalarNode*> seen;
  while (!work.empty()) {
    const ScalarNode* node = work.back();
    work.pop_back();
    if (!seen.insert(node).second) continue;
    if (node->kind == ScalarKind::Load || node->kind == ScalarKind::Local ||
        node->kind == ScalarKind::Loop)
      return true;
    for (const Scalar& arg : node->args) work.push_back(&arg.node());
  }
  return false;
}

}  // namespace

KernelEmitter::KernelEmitter(llvm::Module& module, const LoopNest& nest, const std::string& symbol,
                             const TargetFacts& facts)
    : nest_(nest),
      facts_(facts),
      context_(module.getContext()),
      ir_(context_),
      math_(ir_, module, facts.vector_bits > 256),
      has_tiles_((bf16_instructions(facts) == "amx-bf16" && nests::has_bf16_dot(nest.body)) ||
                 (dot_instructions(facts) == "amx-int8" && nests::has_dot_loop(nest.body))) {
  llvm::Type* pointer = llvm::PointerType::getUnqual(context_);
  llvm::Type* number = ir_.getInt64Ty();
  auto* type = llvm::FunctionType::get(ir_.getVoidTy(), {pointer, number, number}, false);
  function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, symbol, module);
  function_->addFnAttr(llvm::Attribute::NoUnwind);
  function_->addFnAttr("no-builtins");
  function_->addFnAttr("prefer-vector-width", std::to_string(facts.vector_bits));
  // Restricted to nests with dots: LLVM 19 miscompiles other sums of products into dot instructions
  // with this feature.
  if (has_dot_instructions(facts) && nests::has_dots(nest.body)) {
    function_->addFnAttr("target-features", has_tiles_ ? "+avx512vnni,+amx-tile,+amx-int8"
                                            : facts.vector_bits > 256 ? "+avx512vnni"
                                                                      : "+avxvnni");
  }
  loops_.resize(nest.loop_names.size());
  may_change_.assign(nest.buffers.size(), false);
  for (std::size_t result = 0; result < nest.buffers.size(); ++result) {
    for (std::size_t operand = 0; operand < nest.buffers.size(); ++operand) {
      if (nests::may_overwrite(nest, result, operand)) may_change_[operand] = true;
    }
  }
  loop_dims_ = nests::loop_extents(nest.body);
  for (const auto& [loop, dim] : loop_dims_) {
    if (dim.is_constant()) loop_extents_[loop] = dim.constant();
  }
  locals_.assign(1, std::vector<LocalState>(nest.locals.size()));
}

KernelEmitter::Scope::~Scope() {
  while (emitter_.known_.size() > depth_) {
    emitter_.values_.erase(emitter_.known_.back());
    emitter_.known_.pop_back();
  }
}

void KernelEmitter::remember(const Key& key, const Lanes& lanes) {
  values_[key] = lanes;
  known_.push_back(key);
}

bool KernelEmitter::varies(const Scalar& scalar) {
  const auto known = varies_.find(&scalar.node());
  if (known != varies_.end()) return known->second;
  bool result = scalar->kind == ScalarKind::Local || scalar->kind == ScalarKind::Position ||
                (scalar->kind == ScalarKind::Loop && scalar->id == jammed_);
  for (const Scalar& arg : scalar->args) result = varies(arg) || result;
  varies_.emplace(&scalar.node(), result);
  return result;
}

KernelEmitter::Key KernelEmitter::key_of(const Scalar& scalar) {
  return {&scalar.node(), jammed_ && copy_ > 0 && varies(scalar) ? copy_ : 0};
}

void KernelEmitter::load_arguments() {
  llvm::Type* pointer = llvm::PointerType::getUnqual(context_);
  llvm::Value* arguments = function_->getArg(0);
  const auto member = [&](unsigned index) {
    return ir_.CreateLoad(pointer, ir_.CreateConstInBoundsGEP1_64(pointer, arguments, index));
  };
  llvm::Value* list = member(kBuffers);
  llvm::Value* numbers = member(kExtents);
  llvm::Value* scratch = member(kScratch);
  error_ = member(kError);
  for (std::size_t k = 0; k < nest_.extents.size(); ++k) {
    extents_.push_back(ir_.CreateLoad(
        ir_.getInt64Ty(), ir_.CreateConstInBoundsGEP1_64(ir_.getInt64Ty(), numbers, k)));
  }
  std::uint64_t given = 0;
  for (const NestBuffer& buffer : nest_.buffers) {
    if (buffer.storage == StorageClass::Scratch) {
      buffers_.push_back(scratch);
      scratch = ir_.CreateInBoundsGEP(ir_.getInt8Ty(), scratch, extent(scratch_size(buffer)));
    } else {
      buffers_.push_back(
          ir_.CreateLoad(pointer, ir_.CreateConstInBoundsGEP1_64(pointer, list, given++)));
    }
  }
}

llvm::Value* KernelEmitter::extent(const Dim& dim) {
  if (dim.is_constant()) return ir_.getInt64(static_cast<std::uint64_t>(dim.constant()));
  for (std::size_t k = 0; k < nest_.extents.size(); ++k) {
    if (nest_.extents[k] == dim) return extents_[k];
  }
  throw InternalError("extent", concat("the nest lists the extent ", dim), __FILE__, __LINE__);
}

void KernelEmitter::run() {
  llvm::BasicBlock* entry = llvm::BasicBlock::Create(context_, "entry", function_);
  ir_.SetInsertPoint(entry);
  load_arguments();
  if (has_tiles_) configure_amx_tiles(2 * kTileRows);
  llvm::Value* begin = function_->getArg(1);
  llvm::Value* end = function_->getArg(2);
  const bool is_one_vector = nest_.body.size() == 1 &&
                             nest_.body.front().kind == Statement::Kind::Loop &&
                             nest_.body.front().loop == LoopKind::ParallelVector;
  if (is_one_vector) {
    const Statement& loop = nest_.body.front();
    llvm::Value* block = ir_.getInt64(static_cast<std::uint64_t>(nests::kVectorBlock));
    llvm::Value* from = ir_.CreateMul(begin, block);
    llvm::Value* to = ir_.CreateMul(end, block);
    llvm::Value* limit = extent(loop.extent);
    to = ir_.CreateSelect(ir_.CreateICmpSLT(to, limit), to, limit);
    emit_vector_loop(loop, from, to);
  } else {
    counted(begin, end, 1, "item", [&](llvm::Value* item) { emit_parallel(nest_.body, item); });
  }
  if (has_tiles_) ir_.CreateIntrinsic(ir_.getVoidTy(), Intrinsic::x86_tilerelease, {});
  ir_.CreateRetVoid();
}

void KernelEmitter::emit_parallel(const Block& block, llvm::Value* item) {
  std::vector<const Statement*> loops;
  const Block* inner = &block;
  while (inner->size() == 1 && inner->front().kind == Statement::Kind::Loop &&
         inner->front().loop == LoopKind::Parallel) {
    loops.push_back(&inner->front());
    inner = &inner->front().body;
  }
  for (std::size_t k = loops.size(); k-- > 0;) {
    if (k == 0) {
      loops_[loops[k]->id] = math_.uniform(item);
    } else {
      llvm::Value* count = extent(loops[k]->extent);
      loops_[loops[k]->id] = math_.uniform(ir_.CreateURem(item, count));
      item = ir_.CreateUDiv(item, count);
    }
  }
  emit(*inner);
}

void KernelEmitter::emit(const Block& block) {
  for (const Statement& statement : block) {
    switch (statement.kind) {
      case Statement::Kind::Loop:
        emit_loop(statement);
        break;
      case Statement::Kind::Define:
        emit_define(statement);
        break;
      case Statement::Kind::Fold:
        emit_fold(statement);
        break;
      case Statement::Kind::Store:
        emit_store(statement);
        break;
      case Statement::Kind::Update:
        emit_update(statement);
        break;
    }
  }
}

void KernelEmitter::emit_loop(const Statement& loop) {
  llvm::Value* zero = ir_.getInt64(0);
  llvm::Value* count = loop.limit.is_defined() ? emit(loop.limit).value : extent(loop.extent);
  if (loop.loop == LoopKind::Vector && math_.width() == 1) {
    emit_vector_loop(loop, zero, count);
  } else if (loop.loop == LoopKind::Jam) {
    emit_jam(loop, count);
  } else if (loop.loop == LoopKind::Dot) {
    emit_vnni_dots(loop, std::nullopt, zero, 1);
  } else if (is_short_reduction(loop)) {
    for (std::int64_t k = 0; k < loop.extent.constant(); ++k) {
      const Scope scope(*this);
      loops_[loop.id] = math_.integer(k);
      emit(loop.body);
    }
  } else {
    emit_serial(loop, zero, count, 1);
  }
}

// Unroll-and-jam of the rows. Constant extents get balanced tiles; symbolic extents whole tiles and
// a remainder.
void KernelEmitter::emit_jam(const Statement& loop, llvm::Value* count) {
  jam_width_ = loop.width;
  const auto one_tile = [&](llvm::Value* first, unsigned size) {
    prefetch_next_rows(loop.body, loop.id, first, size);
    panel_ = share_of_panel(loop, first, size);
    row_prefetch_ = rows_after(loop, first, size);
    emit_jammed(loop.body, loop.id, first, size);
    panel_.reset();
    row_prefetch_.reset();
  };
  const auto tiles = [&](llvm::Value* from, llvm::Value* to, unsigned size) {
    counted(from, to, size, nest_.loop_names[loop.id],
            [&](llvm::Value* first) { one_tile(first, size); });
  };
  const auto number = [&](std::int64_t value) {
    return ir_.getInt64(static_cast<std::uint64_t>(value));
  };
  // Edge tiles are peeled; interior tiles run in a loop.
  const auto numbered_tiles = [&](std::int64_t from, std::int64_t to, unsigned size) {
    const BoundaryTiles edges = boundary_tiles(loop, from, to, size);
    const auto by_themselves = [&](std::int64_t begin, std::int64_t end) {
      for (; begin < end; begin += size) {
        const Scope scope(*this);
        one_tile(number(begin), size);
      }
    };
    const std::int64_t begin = from + edges.first * size, end = to - edges.last * size;
    by_themselves(from, begin);
    if (begin < end) {
      if (begin != from || end != to) rows_here_ = Range{begin, end - 1};
      tiles(number(begin), number(end), size);
      rows_here_.reset();
    }
    by_themselves(end, to);
  };
  const auto width = static_cast<std::int64_t>(loop.width);
  if (loop.extent.is_constant() && !loop.limit.is_defined()) {
    const std::int64_t rows = loop.extent.constant();
    const std::int64_t tile_count = (rows + width - 1) / width;
    const std::int64_t large = (rows + tile_count - 1) / tile_count, small = large - 1;
    const std::int64_t large_count = rows - small * tile_count;
    numbered_tiles(0, large * large_count, static_cast<unsigned>(large));
    if (large * large_count < rows)
      numbered_tiles(large * large_count, rows, static_cast<unsigned>(small));
    return;
  }
  llvm::Value* whole = ir_.CreateMul(ir_.CreateUDiv(count, number(width)), number(width));
  tiles(number(0), whole, loop.width);
  // Remainder in decreasing powers of two: a single row would wait for the latency of its
  // accumulators.
  for (auto size = static_cast<std::int64_t>(std::bit_floor(loop.width - 1)); size > 0; size /= 2) {
    llvm::Value* left = ir_.CreateSub(count, whole);
    llvm::Value* end = ir_.CreateAdd(whole, ir_.CreateAnd(left, number(~(size - 1))));
    tiles(whole, end, static_cast<unsigned>(size));
    whole = end;
  }
}

void KernelEmitter::emit_jammed(const Block& block, std::size_t loop, llvm::Value* first,
                                unsigned count) {
  while (locals_.size() < count) locals_.emplace_back(nest_.locals.size());
  if (jammed_ != loop) varies_.clear();
  jammed_ = loop;
  jam_first_ = first;
  for (const Statement& statement : block) {
    if (statement.kind == Statement::Kind::Loop && statement.loop == LoopKind::Vector) {
      emit_jammed_lanes(statement, loop, first, count);
      continue;
    }
    if (const std::optional<AmxTileSum> sum = find_amx_tile_sum(statement, count)) {
      emit_amx_tiles(*sum, loop, first, count);
      continue;
    }
    if (statement.kind == Statement::Kind::Loop && nests::is_bf16_dot(statement)) {
      emit_bf16_dot(statement, loop, first, count);
      continue;
    }
    if (statement.kind == Statement::Kind::Loop && statement.loop == LoopKind::Dot) {
      emit_vnni_dots(statement, loop, first, count);
      continue;
    }
    if (statement.kind == Statement::Kind::Loop && is_along_boundary(statement, loop)) {
      for (std::int64_t k = 0; k < statement.extent.constant(); ++k) {
        const Scope scope(*this);
        loops_[statement.id] = math_.integer(k);
        emit_jammed(statement.body, loop, first, count);
      }
      continue;
    }
    if (statement.kind == Statement::Kind::Loop) {
      const std::optional<BoundaryAxis> edge = boundary_across(statement, loop);
      llvm::Value* end =
          statement.limit.is_defined() ? emit(statement.limit).value : extent(statement.extent);
      if (!edge && is_unrolled(statement)) {
        emit_unrolled_reduction(statement, loop, first, count);
        continue;
      }
      counted(ir_.getInt64(0), end, 1, nest_.loop_names[statement.id], [&](llvm::Value* counter) {
        loops_[statement.id] = math_.uniform(counter);
        if (panel_) panel_->steps.emplace_back(&statement, counter);
        if (statement.body.front().kind == Statement::Kind::Fold)
          prefetch_ahead(statement, counter, 1);
        if (edge) {
          emit_decided(*edge, [&] { emit_jammed(statement.body, loop, first, count); });
        } else {
          emit_jammed(statement.body, loop, first, count);
        }
        if (panel_) panel_->steps.pop_back();
      });
      continue;
    }
    for (copy_ = 0; copy_ < count; ++copy_) {
      loops_[loop] = math_.uniform(ir_.CreateAdd(first, ir_.getInt64(copy_), "", true, true));
      emit({statement});
    }
    copy_ = 0;
  }
}

namespace {

constexpr std::int64_t kUnrolled = 4;

}  // namespace

bool KernelEmitter::is_plain_reduction(const Statement& loop) const {
  return math_.width() > 1 && loop.extent.is_constant() && !loop.limit.is_defined() &&
         loop.body.size() == 1 && loop.body.front().kind == Statement::Kind::Fold;
}

// A short reduction, as over a window or an interpolation: its weights are hoisted out of the
// surrounding loop.
bool KernelEmitter::is_short_reduction(const Statement& sum) const {
  return is_plain_reduction(sum) && sum.extent.constant() <= kUnrolled;
}

bool KernelEmitter::is_unrolled(const Statement& sum) const {
  return is_plain_reduction(sum) && sum.extent.constant() >= 2 * kUnrolled;
}

// Unrolls a reduction in order: prefetches then cover whole cache lines, and loop overhead,
// noticeable with 256-bit vectors, shrinks.
void KernelEmitter::emit_unrolled_reduction(const Statement& sum, std::size_t loop,
                                            llvm::Value* first, unsigned count) {
  const std::int64_t extent = sum.extent.constant(), whole = extent / kUnrolled * kUnrolled;
  const auto number = [&](std::int64_t value) {
    return ir_.getInt64(static_cast<std::uint64_t>(value));
  };
  const auto step = [&](llvm::Value* position) {
    const Scope scope(*this);
    loops_[sum.id] = math_.uniform(position);
    emit_jammed(sum.body, loop, first, count);
  };
  counted(number(0), number(whole), kUnrolled, nest_.loop_names[sum.id], [&](llvm::Value* counter) {
    if (panel_) panel_->steps.emplace_back(&sum, counter);
    prefetch_ahead(sum, counter, kUnrolled);
    if (panel_) panel_->steps.pop_back();
    for (std::int64_t k = 0; k < kUnrolled; ++k)
      step(ir_.CreateAdd(counter, number(k), "", true, true));
  });
  for (std::int64_t k = whole; k < extent; ++k) step(number(k));
}

void KernelEmitter::emit_jammed_lanes(const Statement& lanes, std::size_t loop, llvm::Value* first,
                                      unsigned count) {
  const Statement* fold = &lanes.body.front();
  while (fold->kind == Statement::Kind::Loop) fold = &fold->body.front();
  TENON_ASSERT(lanes.extent == Dim(lanes.width), "jammed lanes are one vector");
  const Scope scope(*this);
  std::vector<llvm::Value*> outer, partial;
  math_.set_width(lanes.width);
  for (copy_ = 0; copy_ < count; ++copy_) outer.push_back(start_lanes(*fold));
  copy_ = 0;
  loops_[lanes.id] = {ir_.getInt64(0), Lanes::Form::Ramp, 1};
  emit_jammed(lanes.body, loop, first, count);
  for (copy_ = 0; copy_ < count; ++copy_) partial.push_back(folded_lanes(*fold));
  math_.set_width(1);
  for (copy_ = 0; copy_ < count; ++copy_) end_lanes(*fold, outer[copy_], partial[copy_]);
  copy_ = 0;
}

llvm::Value* KernelEmitter::start_lanes(const Statement& fold) {
  LocalState& state = local(fold.id);
  llvm::Value* number_slot = state.slot;
  const DType dtype = nest_.locals[fold.id];
  llvm::IRBuilder<> start(&function_->getEntryBlock(), function_->getEntryBlock().begin());
  state.slot = start.CreateAlloca(math_.lanes_of(math_.type(dtype)));
  const Scalar start_value = nests::identity_scalar(fold.reduction, dtype);
  ir_.CreateStore(math_.vector(math_.literal(dtype, start_value->real, start_value->integer)),
                  state.slot);
  state.is_vector = true;
  return number_slot;
}

llvm::Value* KernelEmitter::folded_lanes(const Statement& fold) {
  const DType dtype = nest_.locals[fold.id];
  return math_.fold(fold.reduction, dtype,
                    ir_.CreateLoad(math_.lanes_of(math_.type(dtype)), local(fold.id).slot));
}

void KernelEmitter::end_lanes(const Statement& fold, llvm::Value* number_slot,
                              llvm::Value* partial) {
  LocalState& state = local(fold.id);
  const DType dtype = nest_.locals[fold.id];
  state.is_vector = false;
  state.slot = number_slot;
  const Lanes total = math_.uniform(ir_.CreateLoad(math_.type(dtype), state.slot));
  ir_.CreateStore(math_.combine(fold.reduction, dtype, total, math_.uniform(partial)).value,
                  state.slot);
}

void KernelEmitter::emit_serial(const Statement& loop, llvm::Value* from, llvm::Value* to,
                                unsigned step) {
  counted(from, to, step, nest_.loop_names[loop.id], [&](llvm::Value* counter) {
    loops_[loop.id] = math_.width() > 1 && step > 1 ? Lanes{counter, Lanes::Form::Ramp, 1}
                                                    : math_.uniform(counter);
    around_.push_back(&loop);
    emit(loop.body);
    around_.pop_back();
  });
}

void KernelEmitter::emit_vector_loop(const Statement& loop, llvm::Value* from, llvm::Value* to) {
  const bool folds = !loop.is_independent;
  from = emit_transpose(loop, from, to);
  // Uniform values of outer scopes remain valid; values created inside do not.
  for (unsigned width = loop.width; width > 1; width = width > 8 ? width / 2 : 1) {
    llvm::Value* count = ir_.CreateSub(to, from);
    const auto* number = llvm::dyn_cast<llvm::ConstantInt>(count);
    if (number != nullptr && number->isZero()) return;
    if (number != nullptr && number->getSExtValue() < static_cast<std::int64_t>(width)) continue;
    llvm::Value* whole = ir_.CreateAnd(count, ir_.getInt64(~static_cast<std::uint64_t>(width - 1)));
    llvm::Value* middle = ir_.CreateAdd(from, whole);
    math_.set_width(width);
    if (folds) {
      const Statement& fold = loop.body.front();
      llvm::Value* outer = start_lanes(fold);
      emit_serial(loop, from, middle, width);
      llvm::Value* partial = folded_lanes(fold);
      math_.set_width(1);
      end_lanes(fold, outer, partial);
    } else {
      emit_serial(loop, from, middle, width);
      math_.set_width(1);
    }
    from = middle;
  }
  const auto* left = llvm::dyn_cast<llvm::ConstantInt>(ir_.CreateSub(to, from));
  if (left == nullptr || !left->isZero()) emit_serial(loop, from, to, 1);
}

void KernelEmitter::emit_define(const Statement& statement) {
  LocalState& state = local(statement.id);
  llvm::Type* type = math_.lanes_of(math_.type(nest_.locals[statement.id]));
  // An alloca in the entry block, so that mem2reg promotes it.
  llvm::IRBuilder<> start(&function_->getEntryBlock(), function_->getEntryBlock().begin());
  state.slot = start.CreateAlloca(type);
  state.is_vector = math_.width() > 1;
  ir_.CreateStore(math_.vector(emit(statement.value)), state.slot);
  state.place_slot = start.CreateAlloca(ir_.getInt64Ty());
  ir_.CreateStore(ir_.getInt64(~std::uint64_t{0}), state.place_slot);  // -1: no value seen yet.
}

void KernelEmitter::emit_fold(const Statement& statement) {
  LocalState& state = local(statement.id);
  const DType dtype = nest_.locals[statement.id];
  llvm::Type* type = math_.lanes_of(math_.type(dtype));
  const Scalar& value = statement.value;
  const bool is_product = statement.reduction == Reduction::Sum &&
                          value->kind == ScalarKind::Binary &&
                          value->binary == BinaryOp::Multiply && is_float(value->dtype);
  Lanes next;
  if (!is_product) next = emit(value);
  const auto held = [&](llvm::Value* number) {
    return Lanes{number, state.is_vector ? Lanes::Form::Vector : Lanes::Form::Uniform, 0};
  };
  const Lanes total = held(ir_.CreateLoad(type, state.slot));
  if (is_product) {
    const Lanes a = emit(value->args[0]), b = emit(value->args[1]);
    ir_.CreateStore(math_.vector(math_.multiply_add(a, b, total)), state.slot);
    return;
  }
  if (!statement.place.is_defined()) {
    ir_.CreateStore(math_.vector(math_.combine(statement.reduction, dtype, total, next)),
                    state.slot);
    return;
  }
  const Reduction reduction = statement.reduction;
  const bool is_max = reduction == Reduction::ArgMax || reduction == Reduction::ArgMaxLast;
  const bool takes_last = reduction == Reduction::ArgMaxLast || reduction == Reduction::ArgMinLast;
  const BinaryOp order = takes_last ? BinaryOp::LessEqual : BinaryOp::Less;
  llvm::Value* place = ir_.CreateLoad(ir_.getInt64Ty(), state.place_slot);
  llvm::Value* better = is_max ? math_.binary(order, dtype, total, next).value
                               : math_.binary(order, dtype, next, total).value;
  if (is_float(dtype)) {  // The first NaN wins.
    llvm::Value* next_is_nan = ir_.CreateFCmpUNO(next.value, next.value);
    llvm::Value* best_is_nan = ir_.CreateFCmpUNO(total.value, total.value);
    better = ir_.CreateAnd(ir_.CreateNot(best_is_nan), ir_.CreateOr(better, next_is_nan));
  }
  better = ir_.CreateOr(better, ir_.CreateICmpSLT(place, ir_.getInt64(0)));
  ir_.CreateStore(ir_.CreateSelect(better, next.value, total.value), state.slot);
  ir_.CreateStore(ir_.CreateSelect(better, emit(statement.place).value, place), state.place_slot);
}

Lanes KernelEmitter::emit(const Scalar& scalar) {
  const Key key = key_of(scalar);
  const auto found = values_.find(key);
  if (found != values_.end()) return found->second;
  const Lanes lanes = emit_new(scalar);
  // Loops and locals change under the same node.
  const bool changes = scalar->kind == ScalarKind::Loop || scalar->kind == ScalarKind::Local ||
                       scalar->kind == ScalarKind::Position;
  if (!changes) remember(key, lanes);
  return lanes;
}

Lanes KernelEmitter::emit_new(const Scalar& scalar) {
  const ScalarNode& node = scalar.node();
  switch (node.kind) {
    case ScalarKind::Integer:
    case ScalarKind::Real:
      return math_.literal(node.dtype, node.real, node.integer);
    case ScalarKind::Loop:
      return loops_[node.id];
    case ScalarKind::Extent:
      return math_.uniform(extents_[node.id]);
    case ScalarKind::Local: {
      const LocalState& state = local(node.id);
      llvm::Type* type = math_.type(nest_.locals[node.id]);
      return {ir_.CreateLoad(state.is_vector ? math_.lanes_of(type) : type, state.slot),
              state.is_vector ? Lanes::Form::Vector : Lanes::Form::Uniform, 0};
    }
    case ScalarKind::Position: {  // 0 for an empty range.
      llvm::Value* place = ir_.CreateLoad(ir_.getInt64Ty(), local(node.id).place_slot);
      return math_.uniform(
          ir_.CreateSelect(ir_.CreateICmpSLT(place, ir_.getInt64(0)), ir_.getInt64(0), place));
    }
    case ScalarKind::Load:
      return emit_load(scalar);
    case ScalarKind::Unary:
      return math_.unary(node.unary, node.args[0]->dtype, emit(node.args[0]));
    case ScalarKind::Binary: {
      if (const std::optional<Lanes> dot = emit_dp4a(node)) return *dot;
      if (const std::optional<Scalar> under = nests::under_one_plus_erf(node))
        return math_.one_plus_erf(emit(*under));
      const Lanes a = emit(node.args[0]), b = emit(node.args[1]);
      if (divides_integers(node) && may_be_zero(node.args[1])) report_if_zero(b);
      if (nests::divides_by_one_plus_exp(node)) return math_.divide_by_large(a, b);
      return math_.binary(node.binary, node.args[0]->dtype, a, b);
    }
    case ScalarKind::Select: {
      const Lanes condition = emit(node.args[0]), a = emit(node.args[1]), b = emit(node.args[2]);
      return math_.select(condition, a, b);
    }
    case ScalarKind::Cast:
      if (const std::optional<Lanes> held = emit_saturating_cast(scalar)) return *held;
      return math_.cast(emit(node.args[0]), node.args[0]->dtype, node.dtype);
  }
  return {};
}

}  // namespace tenon::codegen::cpu
