// AMX tile kernels: TDPBF16PS and TDPBUSD.
#include "base/error.h"
#include "codegen/cpu/kernel_emitter.h"
#include "nests/bf16_dot.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <array>
#include <functional>

namespace tenon::codegen::cpu {

namespace Intrinsic = llvm::Intrinsic;

namespace {

constexpr unsigned kTileLanes = 16;  // Accumulators per row of a tile.
constexpr unsigned kTileBytes = 64;
constexpr std::int64_t kTileUnits = 16;  // Pairs or dots of the reduction, four bytes each.

// AMX tile configuration: eight tiles of rows of 64 bytes; four for accumulators, two for rows (A),
// two for columns (B). Accumulator and A tiles have 16 rows, or the remainder of `count`.
std::array<std::uint8_t, 64> tile_settings(unsigned count) {
  std::array<std::uint8_t, 64> settings{};
  settings[0] = 1;
  for (unsigned tile = 0; tile < 8; ++tile) {
    const bool is_column = tile >= 6;
    const unsigned before = (tile < 4 ? tile / 2 : tile - 4) * KernelEmitter::kTileRows;
    const unsigned rows = is_column || before >= count
                              ? KernelEmitter::kTileRows
                              : std::min(KernelEmitter::kTileRows, count - before);
    settings[16 + 2 * tile] = kTileBytes;
    settings[48 + tile] = static_cast<std::uint8_t>(rows);
  }
  return settings;
}

Intrinsic::ID product_of(DType row, DType column) {
  if (row == DType::BF16) return Intrinsic::x86_tdpbf16ps;
  if (row == DType::U8)
    return column == DType::U8 ? Intrinsic::x86_tdpbuud : Intrinsic::x86_tdpbusd;
  return column == DType::U8 ? Intrinsic::x86_tdpbsud : Intrinsic::x86_tdpbssd;
}

// Numbers of tiles: accumulators 0 to 3, rows 4 and 5, columns 6 and 7.
class AmxTiles {
 public:
  explicit AmxTiles(llvm::IRBuilder<>& ir) : ir_(ir) {}
  llvm::Value* sum(unsigned row, unsigned column) { return number(2 * row + column); }
  llvm::Value* row(unsigned row) { return number(4 + row); }
  llvm::Value* column(unsigned column) { return number(6 + column); }
  void call(Intrinsic::ID id, llvm::ArrayRef<llvm::Value*> arguments) {
    ir_.CreateIntrinsic(ir_.getVoidTy(), id, arguments);
  }

 private:
  llvm::Value* number(unsigned tile) { return ir_.getInt8(static_cast<std::uint8_t>(tile)); }

  llvm::IRBuilder<>& ir_;
};

}  // namespace

std::optional<KernelEmitter::AmxTileSum> KernelEmitter::find_amx_tile_sum(const Statement& sum,
                                                                          unsigned count) const {
  if (!has_tiles_ || count > 2 * kTileRows || math_.width() != 2 * kTileLanes) return std::nullopt;
  AmxTileSum found;
  for (const Statement* loop = &sum;; loop = &loop->body.front()) {
    const bool is_serial = loop->kind == Statement::Kind::Loop && loop->loop == LoopKind::Serial &&
                           !loop->limit.is_defined();
    if (!is_serial || loop->body.size() != 1) return std::nullopt;
    const Statement& inside = loop->body.front();
    // VNNI tiles have fewer rows and another jam width.
    const bool is_dot = inside.loop == LoopKind::Dot && jam_width_ == 2 * kTileRows;
    if (inside.kind == Statement::Kind::Loop && (is_dot || nests::is_bf16_dot(inside))) {
      found.inner = loop;
      found.unit = &inside;
      break;
    }
    found.around.push_back(loop);
  }
  const bool is_whole =
      found.inner->extent.is_constant() && found.inner->extent.constant() % kTileUnits == 0;
  return is_whole ? std::optional(std::move(found)) : std::nullopt;
}

void KernelEmitter::configure_amx_tiles(unsigned count) {
  const std::string name = concat("tiles_of_", count);
  llvm::Module& module = *function_->getParent();
  llvm::GlobalVariable* stored = module.getNamedGlobal(name);
  if (stored == nullptr) {
    stored = new llvm::GlobalVariable(
        module, llvm::ArrayType::get(ir_.getInt8Ty(), 64), true, llvm::GlobalValue::PrivateLinkage,
        llvm::ConstantDataArray::get(context_, llvm::ArrayRef<std::uint8_t>(tile_settings(count))),
        name);  // Owned by the module.
    stored->setAlignment(llvm::Align(64));
  }
  ir_.CreateIntrinsic(ir_.getVoidTy(), Intrinsic::x86_ldtilecfg, {stored});
}

// Adds the products of the innermost loop to the accumulators.
void KernelEmitter::emit_amx_products(const AmxTileSum& sum, std::size_t loop, llvm::Value* first,
                                      unsigned count) {
  AmxTiles tiles(ir_);
  const unsigned row_tiles = (count + kTileRows - 1) / kTileRows,
                 column_tiles = math_.width() / kTileLanes;
  llvm::Value* column_bytes = ir_.getInt64(column_tiles * kTileBytes);
  const Scope scope(*this);
  loops_[sum.inner->id] = math_.integer(0);
  loops_[loop] = math_.uniform(first);
  const Factors factors = factors_of(*sum.unit);
  const auto offset_of = [&](const Scalar& load) {
    const Scope once(*this);
    return address(load->args, load->view, false).offset.value;
  };
  llvm::Value* row = offset_of(factors.row);
  llvm::Value* column = offset_of(factors.column);
  ++copy_;  // The next row has its own cached values.
  loops_[loop] = math_.uniform(ir_.CreateAdd(first, ir_.getInt64(1), "", true, true));
  llvm::Value* row_stride = ir_.CreateSub(offset_of(factors.row), row);
  --copy_;
  loops_[loop] = math_.uniform(first);
  const std::uint64_t bytes = info(factors.row->dtype).storage_bytes,
                      unit = 4 / bytes;  // Elements per pair or dot.
  llvm::Value* row_bytes = ir_.CreateMul(row_stride, ir_.getInt64(bytes));
  const Intrinsic::ID product = product_of(factors.row->dtype, factors.column->dtype);
  // Each row tile prefetches its share of the next panel.
  const std::int64_t rows = loop_extents_.contains(loop) ? loop_extents_.at(loop) : 0,
                     units = sum.inner->extent.constant();
  const std::int64_t panel_bytes =
      nest_.buffers[factors.column->id].ahead * static_cast<std::int64_t>(bytes);
  const std::int64_t of_row = rows > 0 ? (panel_bytes + rows - 1) / rows : 0,
                     of_unit = (static_cast<std::int64_t>(count) * of_row + units - 1) / units;
  const auto number = [&](std::int64_t value) {
    return ir_.getInt64(static_cast<std::uint64_t>(value));
  };
  llvm::Value* ahead = ir_.CreateAdd(number(panel_bytes), ir_.CreateMul(first, number(of_row)));
  llvm::Value* share =
      ir_.CreateGEP(ir_.getInt8Ty(), element_pointer(factors.column->id, column), ahead);
  counted(
      ir_.getInt64(0), extent(sum.inner->extent), kTileUnits, nest_.loop_names[sum.inner->id],
      [&](llvm::Value* position) {
        llvm::Value* along = ir_.CreateMul(position, ir_.getInt64(unit));
        for (unsigned c = 0; c < column_tiles; ++c) {
          llvm::Value* at = ir_.CreateAdd(
              column, ir_.CreateAdd(ir_.CreateMul(along, ir_.getInt64(column_tiles * kTileLanes)),
                                    ir_.getInt64(unit * kTileLanes * c)));
          tiles.call(Intrinsic::x86_tileloadd64,
                     {tiles.column(c), element_pointer(factors.column->id, at), column_bytes});
        }
        for (unsigned r = 0; r < row_tiles; ++r) {
          llvm::Value* at = ir_.CreateAdd(
              ir_.CreateAdd(row, ir_.CreateMul(row_stride, ir_.getInt64(kTileRows * r))), along);
          tiles.call(Intrinsic::x86_tileloadd64,
                     {tiles.row(r), element_pointer(factors.row->id, at), row_bytes});
        }
        for (std::int64_t line = 0; line < of_unit * kTileUnits; line += kTileBytes) {
          llvm::Value* at = ir_.CreateAdd(ir_.CreateMul(position, number(of_unit)), number(line));
          prefetch_line(ir_.CreateGEP(ir_.getInt8Ty(), share, at), false);
        }
        for (unsigned r = 0; r < row_tiles; ++r) {
          for (unsigned c = 0; c < column_tiles; ++c)
            tiles.call(product, {tiles.sum(r, c), tiles.row(r), tiles.column(c)});
        }
      });
}

void KernelEmitter::emit_amx_tiles(const AmxTileSum& sum, std::size_t loop, llvm::Value* first,
                                   unsigned count) {
  const Statement& fold = sum.unit->body.front();
  const unsigned row_tiles = (count + kTileRows - 1) / kTileRows,
                 column_tiles = math_.width() / kTileLanes;
  const bool is_whole = count % kTileRows == 0;
  if (!is_whole) configure_amx_tiles(count);
  AmxTiles tiles(ir_);
  for (unsigned r = 0; r < row_tiles; ++r) {
    for (unsigned c = 0; c < column_tiles; ++c)
      tiles.call(Intrinsic::x86_tilezero, {tiles.sum(r, c)});
  }
  llvm::Value* column_bytes = ir_.getInt64(column_tiles * kTileBytes);

  const std::function<void(std::size_t)> nested = [&](std::size_t level) {
    if (level == sum.around.size()) {
      emit_amx_products(sum, loop, first, count);
      return;
    }
    const Statement& around = *sum.around[level];
    counted(ir_.getInt64(0), extent(around.extent), 1, nest_.loop_names[around.id],
            [&](llvm::Value* counter) {
              loops_[around.id] = math_.uniform(counter);
              nested(level + 1);
            });
  };
  nested(0);

  llvm::IRBuilder<> start(&function_->getEntryBlock(), function_->getEntryBlock().begin());
  const bool is_real = is_float(nest_.locals[fold.id]);
  llvm::Type* number = math_.type(nest_.locals[fold.id]);
  llvm::Type* sums = llvm::FixedVectorType::get(number, math_.width());
  llvm::AllocaInst* held = start.CreateAlloca(sums, start.getInt64(count));
  held->setAlignment(llvm::Align(64));
  for (unsigned r = 0; r < row_tiles; ++r) {
    for (unsigned c = 0; c < column_tiles; ++c) {
      llvm::Value* at = ir_.CreateConstInBoundsGEP1_64(
          number, held, kTileRows * r * math_.width() + kTileLanes * c);
      tiles.call(Intrinsic::x86_tilestored64, {tiles.sum(r, c), at, column_bytes});
    }
  }
  if (!is_whole) configure_amx_tiles(2 * kTileRows);
  for (copy_ = 0; copy_ < count; ++copy_) {
    llvm::Value* made = ir_.CreateLoad(sums, ir_.CreateConstInBoundsGEP1_64(sums, held, copy_));
    llvm::Value* slot = local(fold.id).slot;
    llvm::Value* before = ir_.CreateLoad(sums, slot);
    ir_.CreateStore(is_real ? ir_.CreateFAdd(before, made) : ir_.CreateAdd(before, made), slot);
  }
  copy_ = 0;
}

}  // namespace tenon::codegen::cpu
