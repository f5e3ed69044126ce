// In-register transpose: copies that swap rows and columns transpose vector-sized blocks in
// registers, so that memory is accessed by whole vectors.
#include "codegen/cpu/kernel_emitter.h"
#include "nests/stride.h"

#include <vector>

namespace tenon::codegen::cpu {
namespace {

using nests::Stride;

// Returns the inner loop if its only effect is to store across the vectorized loads.
const Statement* across(const Statement& lanes, unsigned size) {
  if (!lanes.is_independent || lanes.limit.is_defined() || lanes.width < size ||
      lanes.body.size() != 1)
    return nullptr;
  const Statement& inner = lanes.body.front();
  const bool is_even = inner.kind == Statement::Kind::Loop && inner.loop == LoopKind::Serial &&
                       inner.width == 1 && inner.is_independent && !inner.limit.is_defined() &&
                       inner.extent.is_constant() && inner.extent.constant() % size == 0 &&
                       inner.body.size() == 1;
  if (!is_even || inner.body.front().kind != Statement::Kind::Store) return nullptr;
  const Statement& store = inner.body.front();
  const Scalar& load = store.value;
  if (load->kind != ScalarKind::Load || load->dtype != DType::F32 || load->bounds != Bounds::Inside)
    return nullptr;
  const bool is_transposed = stride_along(load, lanes.id) == Stride::Unit &&
                             stride_along(load, inner.id) == Stride::Other &&
                             stride_along(store.indices, store.view, inner.id) == Stride::Unit &&
                             stride_along(store.indices, store.view, lanes.id) == Stride::Other;
  return is_transposed ? &inner : nullptr;
}

}  // namespace

llvm::Value* KernelEmitter::emit_transpose(const Statement& loop, llvm::Value* from,
                                           llvm::Value* to) {
  const unsigned size = facts_.vector_bits / 32;
  const Statement* inner = across(loop, size);
  if (inner == nullptr || (size != 8 && size != 16) ||
      nest_.buffers[inner->body.front().id].dtype != DType::F32 ||
      nest_.buffers[inner->body.front().value->id].dtype != DType::F32)
    return from;
  llvm::Value* whole =
      ir_.CreateAnd(ir_.CreateSub(to, from), ir_.getInt64(~static_cast<std::uint64_t>(size - 1)));
  llvm::Value* middle = ir_.CreateAdd(from, whole);
  counted(from, middle, size, nest_.loop_names[loop.id], [&](llvm::Value* lane) {
    counted(ir_.getInt64(0), extent(inner->extent), size, nest_.loop_names[inner->id],
            [&](llvm::Value* pass) { emit_transposed_block(loop, *inner, lane, pass, size); });
  });
  return middle;
}

void KernelEmitter::emit_transposed_block(const Statement& lanes, const Statement& across,
                                          llvm::Value* lane, llvm::Value* pass, unsigned size) {
  const auto plus = [&](llvm::Value* value, unsigned k) {
    return ir_.CreateAdd(value, ir_.getInt64(k), "", true, true);
  };
  const Statement& store = across.body.front();
  math_.set_width(size);
  std::vector<llvm::Value*> rows;
  loops_[lanes.id] = {lane, Lanes::Form::Ramp, 1};
  for (unsigned k = 0; k < size; ++k) {
    const Scope scope(*this);
    loops_[across.id] = math_.uniform(plus(pass, k));
    rows.push_back(math_.vector(emit(store.value)));
  }

  // A shuffle of two operands; `position` maps result lanes to source lanes.
  const auto mixed = [&](llvm::Value* a, llvm::Value* b, const auto& position) {
    std::vector<int> places;
    for (unsigned k = 0; k < size; ++k) places.push_back(static_cast<int>(position(k)));
    return ir_.CreateShuffleVector(a, b, places);
  };
  // Transposes 4x4 blocks within 128-bit lanes: single elements, then pairs.
  const auto numbers = [&](unsigned half) {
    return [=](unsigned k) { return k / 4 * 4 + 2 * half + k % 4 / 2 + k % 2 * size; };
  };
  const auto pairs = [&](unsigned half) {
    return [=](unsigned k) { return k / 4 * 4 + 2 * half + k % 2 + k % 4 / 2 * size; };
  };
  std::vector<llvm::Value*> transposed(size);
  for (unsigned k = 0; k < size; k += 4) {
    for (const unsigned half : {0U, 1U}) {
      llvm::Value* upper = mixed(rows[k], rows[k + 1], numbers(half));
      llvm::Value* lower = mixed(rows[k + 2], rows[k + 3], numbers(half));
      transposed[k + 2 * half] = mixed(upper, lower, pairs(0));
      transposed[k + 2 * half + 1] = mixed(upper, lower, pairs(1));
    }
  }
  // Then transposes the 128-bit lanes: in halves of two, or of four for 512-bit vectors.
  std::vector<llvm::Value*> columns(size);
  const unsigned quarters = size / 4;
  for (unsigned k = 0; k < 4; ++k) {
    if (quarters == 2) {
      for (const unsigned half : {0U, 1U})
        columns[4 * half + k] = mixed(transposed[k], transposed[4 + k], [&](unsigned lane_at) {
          return lane_at % 4 + 4 * half + lane_at / 4 * size;
        });
      continue;
    }
    const auto halves = [&](unsigned half) {
      return [=](unsigned at) { return at % 8 + 8 * half + at / 8 * size; };
    };
    const auto every_other = [&](unsigned first) {
      return [=](unsigned at) { return at % 4 + 4 * first + at % 8 / 4 * 8 + at / 8 * size; };
    };
    for (const unsigned half : {0U, 1U}) {
      llvm::Value* upper = mixed(transposed[k], transposed[4 + k], halves(half));
      llvm::Value* lower = mixed(transposed[8 + k], transposed[12 + k], halves(half));
      columns[8 * half + k] = mixed(upper, lower, every_other(0));
      columns[8 * half + 4 + k] = mixed(upper, lower, every_other(1));
    }
  }

  loops_[across.id] = {pass, Lanes::Form::Ramp, 1};
  for (unsigned k = 0; k < size; ++k) {
    const Scope scope(*this);
    loops_[lanes.id] = math_.uniform(plus(lane, k));
    llvm::Value* to =
        element_pointer(store.id, address(store.indices, store.view, false).offset.value);
    ir_.CreateAlignedStore(columns[k], to, llvm::Align(4));
  }
  math_.set_width(1);
}

}  // namespace tenon::codegen::cpu
