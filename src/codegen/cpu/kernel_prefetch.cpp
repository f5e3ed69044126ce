// Software prefetching: epilogue operands, packed panels and operand rows.
#include "codegen/cpu/kernel_emitter.h"
#include "expr/access.h"
#include "nests/affine.h"
#include "nests/index_map.h"
#include "nests/stride.h"

#include <llvm/IR/Intrinsics.h>

#include <algorithm>

namespace tenon::codegen::cpu {

namespace Intrinsic = llvm::Intrinsic;

void KernelEmitter::prefetch_line(llvm::Value* place, bool is_written) {
  constexpr std::uint32_t kSecondCache = 2, kData = 1;
  ir_.CreateIntrinsic(
      ir_.getVoidTy(), Intrinsic::prefetch,
      {place, ir_.getInt32(is_written ? 1 : 0), ir_.getInt32(kSecondCache), ir_.getInt32(kData)});
}

// Prefetches into L2, since the data exceeds L1. A prefetch past the end has no effect.
void KernelEmitter::prefetch(std::size_t buffer, llvm::Value* offset, std::int64_t distance,
                             bool is_written) {
  constexpr std::int64_t kLineBytes = 64;
  const NestBuffer& from = nest_.buffers[buffer];
  const auto bytes = static_cast<std::int64_t>(info(from.dtype).storage_bytes);
  for (std::int64_t line = 0; line * kLineBytes < math_.width() * bytes; ++line) {
    llvm::Value* ahead =
        ir_.getInt64(static_cast<std::uint64_t>(distance + line * kLineBytes / bytes));
    llvm::Value* place = ir_.CreateGEP(math_.stored_type(from.dtype), buffers_[buffer],
                                       ir_.CreateAdd(offset, ahead));
    prefetch_line(place, is_written);
  }
}

// A short reduction leaves no time for prefetching, and data in a core's own cache does not need
// it.
void KernelEmitter::prefetch_next_rows(const Block& block, std::size_t loop, llvm::Value* first,
                                       unsigned count) {
  constexpr double kLongReduction = 64;
  const auto sum = std::ranges::find(block, Statement::Kind::Loop, &Statement::kind);
  if (sum == block.end() || math_.width() == 1) return;
  double steps = 1;
  for (const Statement* inner = &*sum; inner->kind == Statement::Kind::Loop;
       inner = &inner->body.front())
    steps *= size_hint(inner->extent);
  if (steps < kLongReduction) return;
  if (jammed_ != loop) varies_.clear();
  jammed_ = loop;
  const auto fetch = [&](std::size_t id, const std::vector<Scalar>& indices, const Dims& view,
                         bool is_written) {
    const NestBuffer& buffer = nest_.buffers[id];
    const double bytes =
        size_hint(product(buffer.dims)) * static_cast<double>(info(buffer.dtype).storage_bytes);
    if (buffer.storage == StorageClass::Scratch ||
        bytes < static_cast<double>(facts_.private_cache().bytes) / 2)
      return;
    const bool moves = std::ranges::any_of(
        indices, [&](const Scalar& index) { return nests::depends_on(index, loop); });
    const bool is_even = std::ranges::all_of(
        indices, [](const Scalar& index) { return nests::affine_of(index).has_value(); });
    if (!moves || !is_even) return;
    for (copy_ = 0; copy_ < count; ++copy_) {
      const Scope scope(*this);
      loops_[loop] = math_.uniform(ir_.CreateAdd(first, ir_.getInt64(copy_), "", true, true));
      const Lanes offset = address(indices, view, false).offset;
      if (offset.form == Lanes::Form::Ramp && offset.step == 1)
        prefetch(id, offset.value, 0, is_written);
    }
    copy_ = 0;
  };
  for (auto after = sum + 1; after != block.end(); ++after) {
    nests::for_each_load({*after}, [&](const Scalar& load) {
      const bool is_operand = nest_.buffers[load->id].storage == StorageClass::Operand;
      if (is_operand && load->bounds == Bounds::Inside)
        fetch(load->id, load->args, load->view, false);
    });
    if (after->kind == Statement::Kind::Store) fetch(after->id, after->indices, after->view, true);
  }
}

// Pending prefetches occupy fill buffers that demand loads need: if the first row tiles prefetched
// a whole panel from memory, they would stall.
std::optional<KernelEmitter::PanelPrefetch> KernelEmitter::share_of_panel(const Statement& rows,
                                                                          llvm::Value* first,
                                                                          unsigned count) {
  if (rows.limit.is_defined() || math_.width() == 1) return std::nullopt;
  const auto sum = std::ranges::find(rows.body, Statement::Kind::Loop, &Statement::kind);
  if (sum == rows.body.end()) return std::nullopt;
  std::vector<const Statement*> loops;
  std::int64_t steps = 1;
  for (const Statement* loop = &*sum; loop->kind == Statement::Kind::Loop;
       loop = &loop->body.front()) {
    const bool is_plain = loop->loop == LoopKind::Serial && loop->body.size() == 1 &&
                          loop->extent.is_constant() && !loop->limit.is_defined();
    if (!is_plain) return std::nullopt;
    loops.push_back(loop);
    steps *= loop->extent.constant();
  }
  Scalar panel;
  nests::for_each_load({*sum}, [&](const Scalar& load) {
    const NestBuffer& buffer = nest_.buffers[load->id];
    if (load->bounds == Bounds::Inside && steps > 0 &&
        buffer.ahead == steps * static_cast<std::int64_t>(math_.width()))
      panel = load;
  });
  if (!panel.is_defined()) return std::nullopt;

  const auto number = [&](std::int64_t value) {
    return ir_.getInt64(static_cast<std::uint64_t>(value));
  };
  const bool is_number = rows.extent.is_constant();
  std::int64_t row_count = is_number ? rows.extent.constant() : 1;
  llvm::Value* row = first;
  for (auto loop = around_.rbegin(); loop != around_.rend(); ++loop) {
    const bool is_counted = (*loop)->extent.is_constant() && !(*loop)->limit.is_defined();
    const bool moves = std::ranges::any_of(
        panel->args, [&](const Scalar& index) { return nests::depends_on(index, (*loop)->id); });
    if (!is_number || !is_counted || moves || !loops_[(*loop)->id].is_uniform()) break;
    row = ir_.CreateAdd(row, ir_.CreateMul(loops_[(*loop)->id].value, number(row_count)));
    row_count *= (*loop)->extent.constant();
  }
  const auto element_bytes =
      static_cast<std::int64_t>(info(nest_.buffers[panel->id].dtype).storage_bytes);
  const std::int64_t bytes = nest_.buffers[panel->id].ahead * element_bytes;
  if (row_count <= 0) return std::nullopt;
  const auto line = static_cast<std::int64_t>(facts_.line_bytes);
  const auto share = [&](llvm::Value* whole, llvm::Value* parts) {
    return ir_.CreateUDiv(ir_.CreateAdd(whole, ir_.CreateSub(parts, number(1))), parts);
  };
  llvm::Value* of_row = share(number(bytes), is_number ? number(row_count) : extent(rows.extent));
  llvm::Value* of_step = share(ir_.CreateMul(number(count), of_row), number(steps));
  // A limit of one line per step is too low for few rows, so constant extents decline; with a
  // symbolic extent the limit applies.
  if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(of_step)) {
    if (known->getSExtValue() > line) return std::nullopt;
  } else {
    of_step = ir_.CreateBinaryIntrinsic(Intrinsic::umin, of_step, number(line));
  }

  const Scope scope(*this);
  for (const Statement* loop : loops) loops_[loop->id] = math_.integer(0);
  loops_[rows.id] = math_.uniform(first);
  const Lanes offset = address(panel->args, panel->view, false).offset;
  if (offset.form != Lanes::Form::Ramp || offset.step != 1) return std::nullopt;
  llvm::Value* ahead = ir_.CreateAdd(number(bytes), ir_.CreateMul(row, of_row));
  llvm::Value* here = ir_.CreateGEP(math_.stored_type(nest_.buffers[panel->id].dtype),
                                    buffers_[panel->id], offset.value);
  return PanelPrefetch{panel->id, ir_.CreateGEP(ir_.getInt8Ty(), here, ahead), of_step, {}};
}

std::optional<KernelEmitter::RowPrefetch> KernelEmitter::rows_after(const Statement& rows,
                                                                    llvm::Value* first,
                                                                    unsigned count) const {
  const auto sum = std::ranges::find(rows.body, Statement::Kind::Loop, &Statement::kind);
  if (sum == rows.body.end() || math_.width() == 1) return std::nullopt;
  const bool is_plain = sum->loop == LoopKind::Serial && sum->extent.is_constant() &&
                        !sum->limit.is_defined() && sum->body.size() == 1 &&
                        sum->body.front().kind == Statement::Kind::Fold;
  if (!is_plain) return std::nullopt;
  std::optional<RowPrefetch> found;
  nests::for_each_load({*sum}, [&](const Scalar& load) {
    const bool is_row = nest_.buffers[load->id].ahead != 0 && load->bounds == Bounds::Inside &&
                        nests::stride_along(load, rows.id) != nests::Stride::Zero &&
                        nests::stride_along(load, sum->id) == nests::Stride::Unit;
    if (is_row) found = RowPrefetch{load, rows.id, sum->id, sum->extent.constant(), first, count};
  });
  return found;
}

// Traverses the next tile's rows in order: step s prefetches the element with flat index s times
// the number of rows.
void KernelEmitter::prefetch_rows(llvm::Value* step) {
  const auto number = [&](std::int64_t value) {
    return ir_.getInt64(static_cast<std::uint64_t>(value));
  };
  const Scope scope(*this);
  const Lanes row = loops_[row_prefetch_->rows], position = loops_[row_prefetch_->sum];
  llvm::Value* place = ir_.CreateMul(step, number(row_prefetch_->count), "", true, true);
  llvm::Value* after = ir_.CreateUDiv(place, number(row_prefetch_->steps));
  loops_[row_prefetch_->rows] = math_.uniform(ir_.CreateAdd(row_prefetch_->first, after));
  loops_[row_prefetch_->sum] = math_.uniform(ir_.CreateURem(place, number(row_prefetch_->steps)));
  copy_ = row_prefetch_->count;  // An index that no row uses.
  const Scalar& load = row_prefetch_->load;
  const Lanes offset = address(load->args, load->view, false).offset;
  copy_ = 0;
  loops_[row_prefetch_->rows] = row;
  loops_[row_prefetch_->sum] = position;
  llvm::Value* at = ir_.CreateAdd(offset.value, number(nest_.buffers[load->id].ahead));
  prefetch_line(
      ir_.CreateGEP(math_.stored_type(nest_.buffers[load->id].dtype), buffers_[load->id], at),
      false);
}

void KernelEmitter::prefetch_panel(unsigned steps) {
  llvm::Value* step = ir_.getInt64(0);
  for (const auto& [loop, counter] : panel_->steps) {
    step = ir_.CreateAdd(ir_.CreateMul(step, extent(loop->extent)), counter);
  }
  const auto fetch = [&](llvm::Value* along) {
    prefetch_line(ir_.CreateGEP(ir_.getInt8Ty(), panel_->start, along), false);
  };
  llvm::Value* along = ir_.CreateMul(step, panel_->step_bytes);
  const auto* known = llvm::dyn_cast<llvm::ConstantInt>(panel_->step_bytes);
  if (known == nullptr) {
    for (unsigned k = 0; k < steps; ++k) {
      fetch(along);
      along = ir_.CreateAdd(along, panel_->step_bytes);
    }
    return;
  }
  for (std::uint64_t line = 0; line < steps * known->getZExtValue(); line += facts_.line_bytes)
    fetch(ir_.CreateAdd(along, ir_.getInt64(line)));
}

void KernelEmitter::prefetch_ahead(const Statement& sum, llvm::Value* step, unsigned steps) {
  if (panel_) prefetch_panel(steps);
  if (!row_prefetch_ || row_prefetch_->sum != sum.id) return;
  const auto bytes = static_cast<unsigned>(info(row_prefetch_->load->dtype).storage_bytes);
  const unsigned of_line = std::max(1U, facts_.line_bytes / (bytes * row_prefetch_->count));
  for (unsigned k = 0; k < steps; k += of_line)
    prefetch_rows(ir_.CreateAdd(step, ir_.getInt64(k), "", true, true));
}

}  // namespace tenon::codegen::cpu
