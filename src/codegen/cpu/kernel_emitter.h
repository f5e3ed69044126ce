#pragma once

#include "codegen/cpu/lanes.h"
#include "codegen/cpu/tiles.h"
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

/// Writes one nest as a function `void(const KernelArguments*, i64 begin, i64 end)`.
class KernelEmitter {
 public:
  KernelEmitter(llvm::Module& module, const LoopNest& nest, const std::string& symbol,
                const TargetFacts& facts);
  void run();

  static constexpr unsigned kTileRows = kOwnTileRows;

 private:
  // A number is known by its node and, inside a jam, by the position where that matters.
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
    llvm::Value* place_slot = nullptr;  // of the arg reductions
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
  // A loop of a sum that is one vector: lanes of each position's own, added up behind it.
  // One fold, for a number of positions, in lanes.
  bool is_plain_sum(const Statement& loop) const;
  bool is_short_sum(const Statement& sum) const;
  bool is_unrolled(const Statement& sum) const;
  void emit_unrolled_sum(const Statement& sum, std::size_t loop, llvm::Value* first,
                         unsigned count);
  void emit_jammed_lanes(const Statement& lanes, std::size_t loop, llvm::Value* first,
                         unsigned count);
  // A loop of lanes around one whose passes write what lies side by side: squares are turned in
  // registers (kernel_squares.cpp). Gives where it ended; nothing where the loop is none of that
  // kind.
  llvm::Value* emit_squares(const Statement& loop, llvm::Value* from, llvm::Value* to);
  void emit_square(const Statement& lanes, const Statement& across, llvm::Value* lane,
                   llvm::Value* pass, unsigned size);
  // Two products of bf16 added to each sum (kernel_pairs.cpp).
  struct Factors {
    Scalar row, column;
  };
  Factors factors_of(const Statement& pair);
  void emit_pair(const Statement& pair, std::size_t loop, llvm::Value* first, unsigned count);
  // The loops of a sum of pairs or of dots, all of which tiles of the processor's own can add up
  // (kernel_tiles.cpp).
  struct TileSum {
    std::vector<const Statement*> around;  // outermost first
    const Statement* inner = nullptr;      // along which a tile has sixteen pairs or dots
    const Statement* unit = nullptr;       // a pair or a dot
  };
  std::optional<TileSum> find_tile_sum(const Statement& sum, unsigned count) const;
  void emit_tiles(const TileSum& sum, std::size_t loop, llvm::Value* first, unsigned count);
  void configure_tiles(unsigned rows);
  // Four products of bytes added to each position's sum.
  void emit_dots(const Statement& dots, std::optional<std::size_t> loop, llvm::Value* first,
                 unsigned count);
  struct DotBytes {
    bool is_unsigned = false;  // those of a
    bool is_signed = false;    // those of b
    bool fits_pairs = false;   // two products stay within 16 bits
  };
  llvm::Value* dot(llvm::Value* total, llvm::Value* a, llvm::Value* b, const DotBytes& bytes);
  llvm::Value* dots(llvm::Value* total, llvm::Value* a, llvm::Value* b, const DotBytes& bytes);
  std::optional<Lanes> emit_dp4a(const ScalarNode& node);
  // Floats that are held to a range of 32 bits need no care as they become integers, and none at
  // all where they come back as floats (kernel_held.cpp).
  std::optional<Lanes> emit_held_cast(const Scalar& cast);
  // To nearest, ties to even; -2^31 where that is out of range and one instruction does it.
  llvm::Value* rounded_to_i32(llvm::Value* value);
  bool rounds_at_once(llvm::Value* value) const;
  bool varies(const Scalar& scalar);  // among jammed positions
  void emit_define(const Statement& statement);
  void emit_fold(const Statement& statement);
  void emit_store(const Statement& statement);
  void emit_update(const Statement& statement);

  Lanes emit(const Scalar& scalar);
  Lanes emit_new(const Scalar& scalar);
  Lanes emit_load(const Scalar& scalar);
  // The flat position in a buffer, and whether it lies inside where that is not certain: what is
  // the same for all lanes, and what is not.
  struct Address {
    Lanes offset;
    std::optional<Lanes> for_all, for_each;
    bool is_outside = false;  // surely
  };
  Lanes guarded_load(const Scalar& scalar, const Address& at);
  // Whether the coordinate lies inside wherever the loops stand.
  bool is_surely_inside(const Scalar& index, const Dim& extent) const;
  // Windows that reach over an edge (kernel_edges.cpp). Tiles of rows that do are written by
  // themselves, so that what is outside is known as the code is; along other axes both answers get
  // code of their own.
  std::optional<Range> range_here(const Scalar& index) const;
  struct EdgeTiles {
    std::int64_t first = 0, last = 0;  // of so many tiles at the beginning and at the end
  };
  EdgeTiles edge_tiles(const Statement& rows, std::int64_t from, std::int64_t to,
                       unsigned size) const;
  bool is_along_edge(const Statement& loop, std::size_t rows) const;
  struct EdgeAxis {
    Scalar index;
    Dim extent;
  };
  std::optional<EdgeAxis> edge_across(const Statement& loop, std::size_t rows) const;
  void emit_decided(const EdgeAxis& edge, const std::function<void()>& emit_body);
  Address address(const std::vector<Scalar>& indices, const Dims& view, bool checks);
  Address row_address(const Scalar& load);
  llvm::Value* extent(const Dim& dim);
  llvm::Value* element_pointer(std::size_t buffer, llvm::Value* offset);
  Lanes gather(std::size_t buffer, const Lanes& offset, llvm::Value* mask, llvm::Value* otherwise);
  void prefetch(std::size_t buffer, llvm::Value* offset, std::int64_t distance,
                bool is_written = false);
  // What a tile reads and writes behind its sum, row by row of large tensors, comes closer while it
  // is added up.
  void fetch_what_follows(const Block& block, std::size_t loop, llvm::Value* first, unsigned count);
  void prefetch_line(llvm::Value* place, bool is_written);
  // Where what is fetched ahead is the panel behind the one that all rows read (kernel_fetch.cpp):
  // each tile of rows fetches its share of it, a little in every step of its sum.
  struct PanelFetch {
    std::size_t buffer = 0;
    llvm::Value* start = nullptr;  // of the share
    llvm::Value* step_bytes = nullptr;
    std::vector<std::pair<const Statement*, llvm::Value*>>
        steps;  // loops of the sum that are being written, and their counters
  };
  std::optional<PanelFetch> share_of_panel(const Statement& rows, llvm::Value* first,
                                           unsigned count);
  void fetch_panel(unsigned steps);
  // What rows of the next tile read, of which each step of the sum fetches a share.
  struct RowFetch {
    Scalar load;
    std::size_t rows, sum;  // loops
    std::int64_t steps;
    llvm::Value* first;
    unsigned count;
  };
  std::optional<RowFetch> rows_behind(const Statement& rows, llvm::Value* first,
                                      unsigned count) const;
  void fetch_rows(llvm::Value* step);
  // What so many steps of a sum, from this one on, have fetched.
  void fetch_ahead(const Statement& sum, llvm::Value* step, unsigned steps);
  void report_unless(llvm::Value* condition, Check check);
  void report_if_zero(const Lanes& divisor);

  // A loop counted in i64 from `from` below `to`; `body` gets the counter.
  template <class Body>
  void counted(llvm::Value* from, llvm::Value* to, std::int64_t step, const std::string& name,
               const Body& body);

  // What was computed so far, dropped when its block of code ends.
  struct Scope {
    explicit Scope(KernelEmitter& emitter) : emitter_(emitter), depth_(emitter.known_.size()) {}
    ~Scope();
    KernelEmitter& emitter_;
    std::size_t depth_;
  };
  void remember(const Key& key, const Lanes& lanes);
  Key key_of(const Scalar& scalar);
  LocalState& local(std::size_t id) { return locals_[copy_][id]; }
  // A sum (or another fold) in lanes: starts them, and combines them into the number that was
  // there.
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
  std::vector<bool> may_change_;  // by buffer: an operand that a result may overwrite
  llvm::Value* error_ = nullptr;
  std::vector<Lanes> loops_;
  std::map<std::size_t, Dim> loop_dims_;
  std::map<std::size_t, std::int64_t> loop_extents_;  // those that are numbers
  std::vector<std::vector<LocalState>> locals_;       // by jammed position and id
  std::unordered_map<Key, Lanes, HashKey> values_;
  std::vector<Key> known_;  // in the order they were computed
  unsigned copy_ = 0;       // which jammed position is being written
  std::optional<std::size_t> jammed_;
  llvm::Value* jam_first_ = nullptr;  // where the loop that is jammed stands for its first copy
  std::unordered_map<const ScalarNode*, bool> varies_;
  std::optional<Range>
      rows_here_;  // where jammed rows stand, while tiles away from edges are written
  struct Decided {
    const ScalarNode* index;
    bool is_inside;
  };
  std::vector<Decided> decided_;  // coordinates of which the code around says where they lie
  std::vector<const Statement*> around_;  // serial loops that are being written, outermost first
  std::optional<PanelFetch> panel_;
  std::optional<RowFetch> row_fetch_;
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
