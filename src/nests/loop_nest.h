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
struct NestBuffer {
  std::string name;
  DType dtype = DType::F32;
  Dims dims;
  StorageClass storage = StorageClass::Operand;
  /// Prefetch distance, in elements, for each vector or row of a tile that is read.
  std::int64_t ahead = 0;
  /// Integer constants: bound of the magnitude; 0 if unknown.
  std::int64_t largest = 0;
};

/// Execution of a loop.
enum class LoopKind : std::uint8_t {
  Serial,
  /// Iterations are work items for threads; only outermost loops.
  Parallel,
  /// Iterations are vector lanes, including nested statements.
  Vector,
  /// Parallel and vectorized, for a nest with a single loop: each block of `kVectorBlock` positions
  /// is a work item.
  ParallelVector,
  /// Unroll-and-jam: `width` positions at a time, each statement for all of them before the next.
  Jam,
  /// Four consecutive products of an int8 reduction (VNNI, DP4A), one instruction if available.
  Dot,
};
inline constexpr std::int64_t kVectorBlock = 2048;

struct Statement;
using Block = std::vector<Statement>;

/// `loop`: runs `body` for every position below `extent`.
/// `define`: initializes a local with `value`. `fold`: combines `value` into a local; for the arg
/// reductions `place` is the index that is kept along with the best value.
/// `store`: writes `value` to an element. `update`: combines it into the element.
struct Statement {
  enum class Kind : std::uint8_t { Loop, Define, Fold, Store, Update };
  Kind kind = Kind::Loop;
  /// Id of the loop, local or buffer.
  std::size_t id = 0;
  Dim extent;
  /// Loop: actual iteration count, if it varies.
  Scalar limit;
  LoopKind loop = LoopKind::Serial;
  /// Iterations of the loop are independent.
  bool is_independent = false;
  /// Vector: number of lanes.
  unsigned width = 1;
  Block body;
  Reduction reduction{};
  Scalar value, place;
  std::vector<Scalar> indices;
  /// Store, Update: see ScalarNode::view.
  Dims view;
  /// Update: whether coordinates are checked.
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
  /// By id; never constants.
  std::vector<Dim> extents;
  /// By id.
  std::vector<std::string> loop_names;
  /// By id.
  std::vector<DType> locals;
  Block body;

  std::size_t new_loop(std::string loop_name);
  std::size_t new_local(DType dtype);
  /// Returns the extent as a constant or as a run-time argument.
  Scalar extent(const Dim& dim);
};

/// Defines a local with its initial value.
Statement define_statement(std::size_t local, Scalar value);

/// Returns the scratch size of a buffer, and of all buffers, in bytes.
Dim scratch_size(const NestBuffer& buffer);
Dim scratch_bytes(const LoopNest& nest);

/// Returns the number of work items: the product of the parallel extents.
Dim work_items(const LoopNest& nest);

/// Substitutes `value` for a loop's position.
void substitute_loop(Block& block, std::size_t loop, const Scalar& value);

/// Removes loops of extent 0.
void drop_empty_loops(Block& block);

/// Returns the text form: `for n in 0..4 parallel { … y[n, c] = (t0 max 0.0) }`. `carried` marks
/// loops with dependent iterations. Integer literals are i64, real literals f32; loads have their
/// buffer's type, locals are f32 unless another type is written. `parse_nest` (parse.h) is the
/// inverse, except for shared subexpressions.
std::string to_string(const LoopNest& nest);

}  // namespace tenon::nests
