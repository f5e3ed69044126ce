#pragma once

#include "codegen/cpu/lanes.h"
#include "codegen/cpu/register_tiles.h"
#include "codegen/nest_names.h"
#include "target/facts.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace tenon::codegen::cpu {

/// Emits one nest as an LLVM function `void(const KernelArguments*, i64 begin, i64 end)`.
class KernelEmitter {
 public:
  KernelEmitter(llvm::Module& module, const LoopNest& nest, const std::string& symbol,
                const TargetFacts& facts);
  void run();

  static constexpr unsigned kTileRows = kOwnTileRows;

 private:
  // Identifies a computed value by its node and, inside an unroll-and-jam, by the unrolled copy if
  // the value depends on it.
  struct Key {
    const ScalarNode* node;
    unsigned copy;
    bool operator==(const Key&) const = default;
  };
  struct HashKey {
    std::size_t operator()(const Key& key) const {
      return std::hash<const void*>()(key.node) * 31 + key.copy;
    }
  };
  struct LocalState {
    llvm::Value* slot = nullptr;
    llvm::Value* place_slot = nullptr;  // Arg reductions: index of the best value.
    bool is_vector = false;
  };

  void load_arguments();
  void emit_parallel(const Block& block, llvm::Value* item);
  void emit(const Block& block);
  void emit_loop(const Statement& loop);
  void emit_vector_loop(const Statement& loop, llvm::Value* from, llvm::Value* to);
  void emit_serial(const Statement& loop, llvm::Value* from, llvm::Value* to, unsigned step);
  void emit_jam(const Statement& loop, llvm::Value* count);
  void emit_jammed(const Block& block, std::size_t loop, llvm::Value* first, unsigned count);
  // A vectorized reduction loop: every unrolled copy accumulates in lanes, which are combined after
  // the loop. Requires a single fold; emitted for all copies together.
  bool is_plain_reduction(const Statement& loop) const;
  bool is_short_reduction(const Statement& sum) const;
  bool is_unrolled(const Statement& sum) const;
  void emit_unrolled_reduction(const Statement& sum, std::size_t loop, llvm::Value* first,
                               unsigned count);
  void emit_jammed_lanes(const Statement& lanes, std::size_t loop, llvm::Value* first,
                         unsigned count);
  // In-register transpose of blocks whose vector lanes are the columns of the destination
  // (kernel_transpose.cpp). Returns the end of the emitted part; null for any other loop.
  llvm::Value* emit_transpose(const Statement& loop, llvm::Value* from, llvm::Value* to);
  void emit_transposed_block(const Statement& lanes, const Statement& across, llvm::Value* lane,
                             llvm::Value* pass, unsigned size);
  // bf16 dot products: two products per accumulator (kernel_bf16_dot.cpp).
  struct Factors {
    Scalar row, column;
  };
  Factors factors_of(const Statement& pair);
  void emit_bf16_dot(const Statement& pair, std::size_t loop, llvm::Value* first, unsigned count);
  // Loops of a bf16 or int8 reduction that AMX tiles can compute completely (kernel_amx.cpp).
  struct AmxTileSum {
    std::vector<const Statement*> around;  // Outermost first.
    // The loop along which one AMX tile has sixteen pairs or dots.
    const Statement* inner = nullptr;
    const Statement* unit = nullptr;  // A pair or a dot.
  };
  std::optional<AmxTileSum> find_amx_tile_sum(const Statement& sum, unsigned count) const;
  void emit_amx_tiles(const AmxTileSum& sum, std::size_t loop, llvm::Value* first, unsigned count);
  void emit_amx_products(const AmxTileSum& sum, std::size_t loop, llvm::Value* first,
                         unsigned count);
  void configure_amx_tiles(unsigned rows);
  // VNNI dot products: four byte products per accumulator.
  void emit_vnni_dots(const Statement& dots, std::optional<std::size_t> loop, llvm::Value* first,
                      unsigned count);
  struct DotBytes {
    bool is_unsigned = false;  // Operand a.
    bool is_signed = false;    // Operand b.
    bool fits_pairs = false;   // The sum of two products fits 16 bits.
  };
  llvm::Value* dot(llvm::Value* total, llvm::Value* a, llvm::Value* b, const DotBytes& bytes);
  llvm::Value* dots(llvm::Value* total, llvm::Value* a, llvm::Value* b, const DotBytes& bytes);
  std::optional<Lanes> emit_dp4a(const ScalarNode& node);
  // Saturating casts of floats that are clamped to a 32-bit range need no overflow handling, and no
  // conversion at all if they are cast back to float (kernel_saturating_cast.cpp).
  std::optional<Lanes> emit_saturating_cast(const Scalar& cast);
  // Rounds to nearest, ties to even. Out-of-range values give -2^31 if one instruction rounds and
  // converts.
  llvm::Value* rounded_to_i32(llvm::Value* value);
  bool rounds_in_conversion(llvm::Value* value) const;
  bool varies(const Scalar& scalar);  // Among unrolled copies.
  void emit_define(const Statement& statement);
  void emit_fold(const Statement& statement);
  void emit_store(const Statement& statement);
  void emit_update(const Statement& statement);

  Lanes emit(const Scalar& scalar);
  Lanes emit_new(const Scalar& scalar);
  Lanes emit_load(const Scalar& scalar);
  // The flat position in a buffer, and bounds conditions if they are not provable: one part uniform
  // over lanes, one per lane.
  struct Address {
    Lanes offset;
    std::optional<Lanes> for_all, for_each;
    bool is_outside = false;  // Provably.
  };
  Lanes guarded_load(const Scalar& scalar, const Address& at);
  // Returns whether the coordinate is in bounds for all positions of the loops.
  bool is_surely_inside(const Scalar& index, const Dim& extent) const;
  // Loop peeling for windows that overlap an edge (kernel_loop_peeling.cpp). Row tiles at edges are
  // peeled, so that bounds are known at compile time; along other axes both cases are emitted.
  std::optional<Range> range_here(const Scalar& index) const;
  struct BoundaryTiles {
    std::int64_t first = 0, last = 0;  // Number of peeled tiles at the beginning and at the end.
  };
  BoundaryTiles boundary_tiles(const Statement& rows, std::int64_t from, std::int64_t to,
                               unsigned size) const;
  bool is_along_boundary(const Statement& loop, std::size_t rows) const;
  struct BoundaryAxis {
    Scalar index;
    Dim extent;
  };
  std::optional<BoundaryAxis> boundary_across(const Statement& loop, std::size_t rows) const;
  void emit_decided(const BoundaryAxis& edge, const std::function<void()>& emit_body);
  Address address(const std::vector<Scalar>& indices, const Dims& view, bool checks);
  Address row_address(const Scalar& load);
  llvm::Value* extent(const Dim& dim);
  llvm::Value* element_pointer(std::size_t buffer, llvm::Value* offset);
  Lanes gather(std::size_t buffer, const Lanes& offset, llvm::Value* mask, llvm::Value* otherwise);
  void prefetch(std::size_t buffer, llvm::Value* offset, std::int64_t distance,
                bool is_written = false);
  // Prefetches the operands and results of a tile's epilogue during its reduction, row by row of
  // large tensors.
  void prefetch_next_rows(const Block& block, std::size_t loop, llvm::Value* first, unsigned count);
  void prefetch_line(llvm::Value* place, bool is_written);
  // Prefetch of the next packed panel while all rows use the current one (kernel_prefetch.cpp):
  // each row tile prefetches its share, a little per step of the reduction.
  struct PanelPrefetch {
    std::size_t buffer = 0;
    llvm::Value* start = nullptr;  // start of the share
    llvm::Value* step_bytes = nullptr;
    std::vector<std::pair<const Statement*, llvm::Value*>>
        steps;  // Open loops of the reduction, and their counters.
  };
  std::optional<PanelPrefetch> share_of_panel(const Statement& rows, llvm::Value* first,
                                              unsigned count);
  void prefetch_panel(unsigned steps);
  // Prefetch of the next row tile's operand rows, spread over the steps of the reduction.
  struct RowPrefetch {
    Scalar load;
    std::size_t rows, sum;  // Loops.
    std::int64_t steps;
    llvm::Value* first;
    unsigned count;
  };
  std::optional<RowPrefetch> rows_after(const Statement& rows, llvm::Value* first,
                                        unsigned count) const;
  void prefetch_rows(llvm::Value* step);
  // Emits the prefetches for `steps` steps of a reduction from this one on.
  void prefetch_ahead(const Statement& sum, llvm::Value* step, unsigned steps);
  void report_unless(llvm::Value* condition, Check check);
  void report_if_zero(const Lanes& divisor);

  // A loop counted in i64 from `from` below `to`; `body` receives the counter.
  template <class Body>
  void counted(llvm::Value* from, llvm::Value* to, std::int64_t step, const std::string& name,
               const Body& body);

  // Values computed in a basic block, discarded at its end.
  struct Scope {
    explicit Scope(KernelEmitter& emitter) : emitter_(emitter), depth_(emitter.known_.size()) {}
    ~Scope();
    KernelEmitter& emitter_;
    std::size_t depth_;
  };
  void remember(const Key& key, const Lanes& lanes);
  Key key_of(const Scalar& scalar);
  LocalState& local(std::size_t id) { return locals_[copy_][id]; }
  // A fold over vector lanes: initializes the lanes, and combines them into the scalar accumulator.
  llvm::Value* start_lanes(const Statement& fold);
  void end_lanes(const Statement& fold, llvm::Value* number_slot, llvm::Value* partial);
  llvm::Value* folded_lanes(const Statement& fold);

  const LoopNest& nest_;
  const TargetFacts& facts_;
  llvm::LLVMContext& context_;
  llvm::IRBuilder<> ir_;
  LaneMath math_;
  llvm::Function* function_ = nullptr;
  std::vector<llvm::Value*> buffers_, extents_;
  std::vector<bool> may_change_;  // By buffer: an operand that a result may overwrite.
  llvm::Value* error_ = nullptr;
  std::vector<Lanes> loops_;
  std::map<std::size_t, Dim> loop_dims_;
  std::map<std::size_t, std::int64_t> loop_extents_;  // Constant extents only.
  std::vector<std::vector<LocalState>> locals_;       // By unrolled copy and id.
  std::unordered_map<Key, Lanes, HashKey> values_;
  std::vector<Key> known_;  // In order of computation.
  unsigned copy_ = 0;       // Current unrolled copy.
  std::optional<std::size_t> jammed_;
  llvm::Value* jam_first_ = nullptr;  // Position of the jammed loop for its first copy.
  std::unordered_map<const ScalarNode*, bool> varies_;
  std::optional<Range> rows_here_;  // Positions of jammed rows while interior tiles are emitted.
  struct Decided {
    const ScalarNode* index;
    bool is_inside;
  };
  // Coordinates whose bounds check is decided by an enclosing branch.
  std::vector<Decided> decided_;
  std::vector<const Statement*> around_;  // Open serial loops, outermost first.
  std::optional<PanelPrefetch> panel_;
  std::optional<RowPrefetch> row_prefetch_;
  bool has_tiles_ = false;
  unsigned jam_width_ = 1;
};

template <class Body>
void KernelEmitter::counted(llvm::Value* from, llvm::Value* to, std::int64_t step,
                            const std::string& name, const Body& body) {
  llvm::BasicBlock* before = ir_.GetInsertBlock();
  llvm::BasicBlock* head = llvm::BasicBlock::Create(context_, name, function_);
  llvm::BasicBlock* after = llvm::BasicBlock::Create(context_, name + ".end", function_);
  ir_.CreateCondBr(ir_.CreateICmpSLT(from, to), head, after);
  ir_.SetInsertPoint(head);
  llvm::PHINode* counter = ir_.CreatePHI(ir_.getInt64Ty(), 2, name);
  counter->addIncoming(from, before);
  {
    Scope scope(*this);
    body(counter);
  }
  llvm::Value* next =
      ir_.CreateAdd(counter, ir_.getInt64(static_cast<std::uint64_t>(step)), "", true, true);
  counter->addIncoming(next, ir_.GetInsertBlock());
  ir_.CreateCondBr(ir_.CreateICmpSLT(next, to), head, after);
  ir_.SetInsertPoint(after);
}

}  // namespace tenon::codegen::cpu
