#pragma once

#include "reference/buffer.h"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace tenon::reference {

/// Provides the buffer of an expression that cannot be evaluated inline.
using BufferSource = std::function<Buffer(const Expr&)>;

/// True for expressions that a program evaluates elementwise; others are materialized first.
bool is_inline(ExprKind kind);

/// An index as an affine form: constant + coefficients · position.
struct AffineRead {
  std::int64_t constant = 0;
  std::vector<std::int64_t> coefficients;
};

/// An expression compiled for vectorized interpretation: evaluates a space of positions in blocks
/// along one axis. Immutable; each thread has its own Scratch.
class BlockProgram {
 public:
  static constexpr std::int64_t kBlock = 512;

  /// `groups` labels axes; adjacent axes with equal labels are merged if all operands have uniform
  /// strides over them. `extra_strides` are strides of the caller over the space, merged
  /// accordingly.
  BlockProgram(const Expr& root, Shape space, const std::vector<int>& groups,
               std::vector<std::int64_t> extra_strides, const BufferSource& buffers);

  const Shape& space() const { return space_; }
  const std::vector<int>& groups() const { return groups_; }
  const std::vector<std::int64_t>& extra_strides() const { return extra_strides_; }
  LaneType lane() const { return steps_.back().lane; }
  /// Estimated nanoseconds per element for blocks along `axis`.
  double cost_along(std::size_t axis) const;

  class Scratch {
   public:
    explicit Scratch(const BlockProgram& program);

   private:
    friend class BlockProgram;
    std::vector<std::unique_ptr<std::byte[]>> slots_;
    std::vector<char> is_uniform_;
  };

  struct Block {
    const void* data;
    /// One element represents the whole block.
    bool is_uniform;
    template <class T>
    T at(std::int64_t i) const {
      return static_cast<const T*>(data)[is_uniform ? 0 : i];
    }
  };
  /// Evaluates `count` (at most kBlock) elements from `at` along `axis`.
  Block run(Scratch& scratch, std::span<const std::int64_t> at, std::size_t axis,
            std::int64_t count) const;

 private:
  struct Instruction {
    const ExprNode* node = nullptr;
    ExprKind kind = ExprKind::Literal;
    LaneType lane = LaneType::F32;
    /// Indices of earlier steps.
    std::vector<std::size_t> args;
    /// For Index: axis of the space.
    std::size_t index_axis = 0;
    /// For Operand (any materialized buffer) and Read.
    Buffer buffer;
    Loader load = nullptr;
    /// For Operand: stride by axis of the space.
    std::vector<std::int64_t> strides;
    /// For Read: empty unless all coordinates are affine.
    std::vector<AffineRead> coordinates;
    /// For affine Read: stride by axis of the space.
    std::vector<std::int64_t> read_strides;
  };

  /// Memoization: expressions share subexpressions.
  struct Seen {
    std::unordered_map<const ExprNode*, std::size_t> steps;
    std::unordered_map<const ExprNode*, std::optional<AffineRead>> affine;
  };
  std::size_t add_step(const Expr& expr, const BufferSource& buffers, Seen& seen);
  std::optional<AffineRead> affine_of(const Expr& expr, Seen& seen) const;
  std::optional<AffineRead> found_affine(const ExprNode& node, Seen& seen) const;
  void merge_axes();

  struct Cursor {
    Scratch& scratch;
    std::span<const std::int64_t> at;
    std::size_t axis;
    std::int64_t count;
  };
  Block block(const Scratch& scratch, std::size_t step) const;
  bool run_step(const Instruction& step, std::size_t slot, const Cursor& cursor) const;
  bool run_read(const Instruction& step, std::size_t slot, const Cursor& cursor) const;
  bool run_affine_read(const Instruction& step, std::size_t slot, const Cursor& cursor) const;
  void fill_elements(const Instruction& step, const Cursor& cursor, std::byte* out,
                     std::int64_t begin, std::int64_t end) const;

  Shape space_;
  std::vector<int> groups_;
  std::vector<std::int64_t> extra_strides_;
  std::vector<Instruction> steps_;
};

std::size_t element_bytes(LaneType lane);

}  // namespace tenon::reference
