// Sums of products of bf16 that are not widened: in pairs by one instruction for vectors, or in
// tiles of the processor's own.
#include "base/error.h"
#include "codegen/cpu/kernel_emitter.h"
#include "nests/pairs.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace tenon::codegen::cpu {

namespace Intrinsic = llvm::Intrinsic;

namespace {

constexpr unsigned kLanes = 16;  // sums of one instruction
constexpr unsigned kTileBytes = 64;
constexpr std::int64_t kTilePairs = 16;  // of the sum

// Eight tiles of rows of 64 bytes: four of sums, two of rows, two of columns. Those of sums and
// rows have 16 rows, or what `count` leaves to them.
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

}  // namespace

// The factor that differs from row to row, and the one that lies along the columns.
KernelEmitter::Factors KernelEmitter::factors_of(const Statement& pair) {
  const Scalar& product = pair.body.front().value;
  loops_[pair.id] = math_.integer(0);
  const Address at = address(product->args[0]->args, product->args[0]->view, false);
  if (at.offset.is_uniform()) return {product->args[0], product->args[1]};
  return {product->args[1], product->args[0]};
}

void KernelEmitter::emit_pair(const Statement& pair, std::size_t loop, llvm::Value* first,
                              unsigned count) {
  const Statement& fold = pair.body.front();
  loops_[pair.id] = math_.integer(0);
  loops_[loop] = math_.uniform(first);  // what is asked for here is remembered for the first row
  const Factors factors = factors_of(pair);
  const unsigned width = math_.width();
  TENON_ASSERT(width % kLanes == 0, "pairs fill whole vectors");
  const Address across = address(factors.column->args, factors.column->view, false);
  TENON_ASSERT(across.offset.form == Lanes::Form::Ramp && across.offset.step == 2,
               "pairs lie side by side along columns");
  llvm::Type* halves = llvm::FixedVectorType::get(ir_.getBFloatTy(), 2 * kLanes);
  llvm::Value* start = element_pointer(factors.column->id, across.offset.value);
  std::vector<llvm::Value*> columns;
  for (unsigned part = 0; part < width / kLanes; ++part) {
    llvm::Value* place = ir_.CreateConstInBoundsGEP1_64(ir_.getInt16Ty(), start, 2 * kLanes * part);
    columns.push_back(ir_.CreateAlignedLoad(halves, place, llvm::Align(2)));
  }
  llvm::Type* sums = llvm::FixedVectorType::get(ir_.getFloatTy(), width);
  for (copy_ = 0; copy_ < count; ++copy_) {
    loops_[loop] = math_.uniform(ir_.CreateAdd(first, ir_.getInt64(copy_), "", true, true));
    const Address at = address(factors.row->args, factors.row->view, false);
    llvm::Value* both = ir_.CreateAlignedLoad(
        ir_.getInt32Ty(), element_pointer(factors.row->id, at.offset.value), llvm::Align(2));
    llvm::Value* row = ir_.CreateBitCast(ir_.CreateVectorSplat(kLanes, both), halves);
    llvm::Value* total = ir_.CreateLoad(sums, local(fold.id).slot);
    std::vector<llvm::Value*> parts;
    for (unsigned part = 0; part < width / kLanes; ++part) {
      std::vector<int> lanes(kLanes);
      std::iota(lanes.begin(), lanes.end(), static_cast<int>(part * kLanes));
      llvm::Value* sum = ir_.CreateShuffleVector(total, lanes);
      parts.push_back(ir_.CreateIntrinsic(sum->getType(), Intrinsic::x86_avx512bf16_dpbf16ps_512,
                                          {sum, row, columns[part]}));
    }
    llvm::Value* all = parts.front();
    for (unsigned part = 1; part < parts.size(); ++part) {
      std::vector<int> lanes((part + 1) * kLanes);
      std::iota(lanes.begin(), lanes.end(), 0);
      // Both sides of a shuffle are of one width.
      std::vector<int> wide(part * kLanes, -1);
      std::iota(wide.begin(), wide.begin() + kLanes, 0);
      all = ir_.CreateShuffleVector(
          all, part == 1 ? parts[part] : ir_.CreateShuffleVector(parts[part], wide), lanes);
    }
    ir_.CreateStore(all, local(fold.id).slot);
  }
  copy_ = 0;
}

bool KernelEmitter::fits_tiles(const Statement& sum, unsigned count) const {
  if (!has_tiles_ || count > 2 * kTileRows || math_.width() != 2 * kLanes) return false;
  const bool is_whole = sum.extent.is_constant() && sum.extent.constant() % kTilePairs == 0 &&
                        !sum.limit.is_defined();
  return is_whole && sum.body.size() == 1 && nests::is_pair(sum.body.front());
}

void KernelEmitter::configure_tiles(unsigned count) {
  const std::string name = concat("tiles_of_", count);
  llvm::Module& module = *function_->getParent();
  llvm::GlobalVariable* stored = module.getNamedGlobal(name);
  if (stored == nullptr) {
    stored = new llvm::GlobalVariable(
        module, llvm::ArrayType::get(ir_.getInt8Ty(), 64), true, llvm::GlobalValue::PrivateLinkage,
        llvm::ConstantDataArray::get(context_, llvm::ArrayRef<std::uint8_t>(tile_settings(count))),
        name);  // the module owns it
    stored->setAlignment(llvm::Align(64));
  }
  ir_.CreateIntrinsic(ir_.getVoidTy(), Intrinsic::x86_ldtilecfg, {stored});
}

void KernelEmitter::emit_tiles(const Statement& sum, std::size_t loop, llvm::Value* first,
                               unsigned count) {
  const Statement& pair = sum.body.front();
  const Statement& fold = pair.body.front();
  const Scope scope(*this);
  loops_[sum.id] = math_.integer(0);
  loops_[loop] = math_.uniform(first);
  const Factors factors = factors_of(pair);
  const auto offset_of = [&](const Scalar& load) {
    const Scope once(*this);
    return address(load->args, load->view, false).offset.value;
  };
  llvm::Value* row = offset_of(factors.row);
  llvm::Value* column = offset_of(factors.column);
  ++copy_;  // numbers of the next row are others
  loops_[loop] = math_.uniform(ir_.CreateAdd(first, ir_.getInt64(1), "", true, true));
  llvm::Value* row_stride = ir_.CreateSub(offset_of(factors.row), row);
  --copy_;
  loops_[loop] = math_.uniform(first);

  const unsigned row_tiles = (count + kTileRows - 1) / kTileRows,
                 column_tiles = math_.width() / kLanes;
  const bool is_whole = count % kTileRows == 0;
  if (!is_whole) configure_tiles(count);
  const auto tile = [&](unsigned number) { return ir_.getInt8(static_cast<std::uint8_t>(number)); };
  const auto sum_tile = [&](unsigned r, unsigned c) { return tile(2 * r + c); };
  for (unsigned r = 0; r < row_tiles; ++r) {
    for (unsigned c = 0; c < column_tiles; ++c)
      ir_.CreateIntrinsic(ir_.getVoidTy(), Intrinsic::x86_tilezero, {sum_tile(r, c)});
  }
  llvm::Value* row_bytes = ir_.CreateMul(row_stride, ir_.getInt64(2));
  llvm::Value* column_bytes = ir_.getInt64(column_tiles * kTileBytes);
  counted(
      ir_.getInt64(0), extent(sum.extent), kTilePairs, nest_.loop_names[sum.id],
      [&](llvm::Value* position) {
        llvm::Value* along = ir_.CreateMul(position, ir_.getInt64(2));
        for (unsigned c = 0; c < column_tiles; ++c) {
          llvm::Value* at = ir_.CreateAdd(
              column, ir_.CreateAdd(ir_.CreateMul(along, ir_.getInt64(column_tiles * kLanes)),
                                    ir_.getInt64(2 * kLanes * c)));
          ir_.CreateIntrinsic(ir_.getVoidTy(), Intrinsic::x86_tileloadd64,
                              {tile(6 + c), element_pointer(factors.column->id, at), column_bytes});
        }
        for (unsigned r = 0; r < row_tiles; ++r) {
          llvm::Value* at = ir_.CreateAdd(
              ir_.CreateAdd(row, ir_.CreateMul(row_stride, ir_.getInt64(kTileRows * r))), along);
          ir_.CreateIntrinsic(ir_.getVoidTy(), Intrinsic::x86_tileloadd64,
                              {tile(4 + r), element_pointer(factors.row->id, at), row_bytes});
        }
        for (unsigned r = 0; r < row_tiles; ++r) {
          for (unsigned c = 0; c < column_tiles; ++c) {
            ir_.CreateIntrinsic(ir_.getVoidTy(), Intrinsic::x86_tdpbf16ps,
                                {sum_tile(r, c), tile(4 + r), tile(6 + c)});
          }
        }
      });
  llvm::IRBuilder<> start(&function_->getEntryBlock(), function_->getEntryBlock().begin());
  llvm::Type* sums = llvm::FixedVectorType::get(ir_.getFloatTy(), math_.width());
  llvm::AllocaInst* held = start.CreateAlloca(sums, start.getInt64(count));
  held->setAlignment(llvm::Align(64));
  for (unsigned r = 0; r < row_tiles; ++r) {
    for (unsigned c = 0; c < column_tiles; ++c) {
      llvm::Value* at = ir_.CreateConstInBoundsGEP1_64(ir_.getFloatTy(), held,
                                                       kTileRows * r * math_.width() + kLanes * c);
      ir_.CreateIntrinsic(ir_.getVoidTy(), Intrinsic::x86_tilestored64,
                          {sum_tile(r, c), at, column_bytes});
    }
  }
  if (!is_whole) configure_tiles(2 * kTileRows);
  for (copy_ = 0; copy_ < count; ++copy_) {
    llvm::Value* made = ir_.CreateLoad(sums, ir_.CreateConstInBoundsGEP1_64(sums, held, copy_));
    llvm::Value* slot = local(fold.id).slot;
    ir_.CreateStore(ir_.CreateFAdd(ir_.CreateLoad(sums, slot), made), slot);
  }
  copy_ = 0;
}

}  // namespace tenon::codegen::cpu
