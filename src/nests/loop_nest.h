#pragma once

#include "nests/scalar.h"

#include <optional>
#include <string>
#include <vector>

namespace tenon::nests {

/// Storage class of a nest's buffer.
enum class StorageClass : std::uint8_t {
  /// Argument, read-only.
  Operand,
  /// Argument, written.
  Result,
  /// Local to the kernel, one per thread.
  Scratch,
};
/// A buffer that a nest accesses; elements are row-major and contiguous.
struct NestBuffer {
  std::string name;
  DType dtype = DType::F32;
  Dims dims;
  StorageClass storage = StorageClass::Operand;
  /// Prefetch distance, in elements, for each vector or row of a tile that is read; 0: no prefetch.
  std::int64_t ahead = 0;
  /// Integer constants: upper bound of the elements' magnitude; 0 if unknown.
  std::int64_t largest = 0;
};

/// Execution of a loop. All kinds except Serial require independent iterations
/// (`Statement::is_independent`), except that Vector and Dot may also hold a single fold. No kind
/// requires an extent that is a multiple of the width: code generation adds a remainder.
enum class LoopKind : std::uint8_t {
  /// One iteration after another. Width 2 marks a pair of bf16 products (bf16 dot product).
  Serial,
  /// Iterations are work items for threads; only outermost loops, perfectly nested, without
  /// `limit`.
  Parallel,
  /// Iterations are vector lanes, `width` at a time, including nested statements.
  Vector,
  /// Parallel and vectorized, for a nest with a single loop: each block of `kVectorBlock` positions
  /// is a work item.
  ParallelVector,
  /// Unroll-and-jam: up to `width` positions at a time, each statement for all of them before the
  /// next. Not inside another Jam.
  Jam,
  /// Four consecutive products of an int8 reduction (VNNI, DP4A), one instruction if available. The
  /// extent is 4.
  Dot,
};
/// Positions per work item of a ParallelVector loop.
inline constexpr std::int64_t kVectorBlock = 2048;

struct Statement;
using Block = std::vector<Statement>;

/// A statement of a nest. By kind:
/// - Loop runs `body` for every position from 0 up to `extent`.
/// - Define initializes a local with `value`; the local is visible to the end of the block.
/// - Fold combines `value` into a defined local by `reduction`; for the arg reductions `place` is
///   the index that is kept along with the best value.
/// - Store writes `value` to an element.
/// - Update combines `value` into an element by `reduction` (scatter).
struct Statement {
  enum class Kind : std::uint8_t { Loop, Define, Fold, Store, Update };
  Kind kind = Kind::Loop;
  /// Index in `LoopNest::loop_names`, `locals` or `buffers`.
  std::size_t id = 0;
  /// Loop: iteration count, or its upper bound if `limit` is defined.
  Dim extent;
  /// Loop: iteration count that depends on enclosing loops, at most `extent`; undefined: `extent`.
  Scalar limit;
  LoopKind loop = LoopKind::Serial;
  /// Iterations of the loop may run in any order and at once. The creator of the loop vouches for
  /// it; `verify` finds only folds that contradict it.
  bool is_independent = false;
  /// Vector: number of lanes. Jam: number of unrolled positions.
  unsigned width = 1;
  Block body;
  Reduction reduction{};
  Scalar value, place;
  /// Store, Update: coordinates, one per axis of `view`.
  std::vector<Scalar> indices;
  /// Store, Update: the row-major extents under which the buffer is addressed, as in
  /// ScalarNode::view.
  Dims view;
  /// Update: Checked reports coordinates out of bounds as a data error.
  Bounds bounds = Bounds::Inside;
};

/// Run-time errors caused by data; a kernel reports the number of the last failed check.
enum class Check : std::uint8_t {
  /// Coordinates are in bounds.
  Inside = 1,
  /// Integer divisors are not zero.
  NotZero,
};

/// One kernel: buffers, run-time extents and statements. Loops carry their execution kind, so that
/// a schedule is a rewrite of the nest.
struct LoopNest {
  std::string name;
  std::vector<NestBuffer> buffers;
  /// Symbolic extents that the kernel takes as arguments, by id; never constants.
  std::vector<Dim> extents;
  /// Names of the loops, by id; names may repeat.
  std::vector<std::string> loop_names;
  /// Types of the locals, by id. Locals are mutable scalars in registers.
  std::vector<DType> locals;
  Block body;

  /// Returns the id of a new loop or local.
  std::size_t new_loop(std::string loop_name);
  std::size_t new_local(DType dtype);
  /// Returns the extent as a constant or as a run-time argument; adds the argument if it is new.
  Scalar extent(const Dim& dim);
};

/// Defines a local with its initial value.
Statement define_statement(std::size_t local, Scalar value);

/// Returns the scratch size in bytes of one buffer, rounded up to 64, and of all scratch buffers of
/// a nest.
Dim scratch_size(const NestBuffer& buffer);
Dim scratch_bytes(const LoopNest& nest);

/// Returns the number of work items: the product of the outermost Parallel extents, or the number
/// of blocks of a ParallelVector loop; 1 for a nest without either.
Dim work_items(const LoopNest& nest);

/// Substitutes `value` for a loop's position.
void substitute_loop(Block& block, std::size_t loop, const Scalar& value);

/// Removes loops of extent 0 and loops without statements.
void drop_empty_loops(Block& block);

/// Returns the text form: `for n in 0..4 parallel { … y[n, c] = (t0 max 0.0) }`. `carried` marks
/// loops with dependent iterations. Integer literals are i64, real literals f32; loads have their
/// buffer's type, locals are f32 unless another type is written. `parse_nest` (parse.h) is the
/// inverse, except for shared subexpressions.
std::string to_string(const LoopNest& nest);

}  // namespace tenon::nests
