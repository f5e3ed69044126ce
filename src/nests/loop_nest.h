#pragma once

#include "nests/scalar.h"

#include <optional>
#include <string>
#include <vector>

namespace tenon::nests {

/// Where a buffer of a nest lives.
enum class Storage : std::uint8_t {
  /// given to the kernel, only read
  Operand,
  /// given to the kernel, written
  Result,
  /// the kernel's own, one for each thread
  Scratch,
};
struct NestBuffer {
  std::string name;
  DType dtype = DType::F32;
  Dims dims;
  Storage storage = Storage::Operand;
  /// so many elements behind each vector, or behind each row of a tile, that is read are fetched
  /// along with it
  std::int64_t ahead = 0;
  /// of a constant of integers: no element is larger in size; 0 where nobody looked
  std::int64_t largest = 0;
};

/// How the passes of a loop are run.
enum class LoopKind : std::uint8_t {
  Serial,
  /// each is an item of work; only the outermost loops
  Parallel,
  /// neighbours in the lanes of a vector, with what stands inside
  Vector,
  /// The same for a nest with no other loop to share out: each block of `kVectorBlock` positions is
  /// an item of work.
  ParallelVector,
  /// `width` positions at a time, each statement for all of them before the next
  Jam,
  /// four neighbours of a sum of products of bytes, in one instruction where there is one
  Dot,
};
inline constexpr std::int64_t kVectorBlock = 2048;

struct Statement;
using Block = std::vector<Statement>;

/// `loop`: runs `body` for every position below `extent`.
/// `define`: a local starts as `value`. `fold`: combines `value` into a local; for the arg
/// reductions `place` is the position that is kept along with the best value.
/// `store`: writes `value` to an element. `update`: combines it into what is there.
struct Statement {
  enum class Kind : std::uint8_t { Loop, Define, Fold, Store, Update };
  Kind kind = Kind::Loop;
  /// of the loop, local or buffer
  std::size_t id = 0;
  Dim extent;
  /// Loop: how many positions there really are, where that varies
  Scalar limit;
  LoopKind loop = LoopKind::Serial;
  /// the positions of the loop do not depend on each other
  bool is_independent = false;
  /// Vector: lanes
  unsigned width = 1;
  Block body;
  Reduction reduction{};
  Scalar value, place;
  std::vector<Scalar> indices;
  /// Store, Update: as for a load
  Dims view;
  /// Update: whether coordinates are checked
  Bounds bounds = Bounds::Inside;
};

/// What the data may do wrong; a kernel reports the number of what it saw last.
enum class Check : std::uint8_t {
  /// coordinates lie in their tensor
  Inside = 1,
  /// integers are not divided by zero
  NotZero,
};

/// One kernel: buffers, extents that it is given when it runs, and statements. Loops carry how they
/// run, so that a schedule is a rewrite of this.
struct LoopNest {
  std::string name;
  std::vector<NestBuffer> buffers;
  /// by id; not numbers
  std::vector<Dim> extents;
  /// by id
  std::vector<std::string> loop_names;
  /// by id
  std::vector<DType> locals;
  Block body;

  std::size_t new_loop(std::string loop_name);
  std::size_t new_local(DType dtype);
  /// The extent as a number or as one that is given at run time.
  Scalar extent(const Dim& dim);
};

/// A local number with its first value.
Statement define_statement(std::size_t local, Scalar value);

/// Bytes that a buffer, and all buffers, take in the scratch memory.
Dim scratch_size(const NestBuffer& buffer);
Dim scratch_bytes(const LoopNest& nest);

/// The items of work: what the parallel loops have positions.
Dim work_items(const LoopNest& nest);

/// Puts `value` in place of a loop's position everywhere.
void substitute_loop(Block& block, std::size_t loop, const Scalar& value);

/// Takes out loops that never run.
void drop_empty_loops(Block& block);

/// The text form: `for n in 0..4 parallel { … y[n, c] = (t0 max 0.0) }`. `carried` stands at loops
/// whose passes depend on each other. Numbers are i64 and f32, loads of their buffer's type, locals
/// f32 where no other type is written. `parse_nest` (parse.h) undoes it, but for numbers that are
/// one node in several places.
std::string to_string(const LoopNest& nest);

}  // namespace tenon::nests
