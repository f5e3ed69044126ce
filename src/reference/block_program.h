#pragma once

#include "reference/buffer.h"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace tenon::reference {

/// Gives the buffer behind an expression that a program cannot compute in line.
using BufferSource = std::function<Buffer(const Expr&)>;

/// True for what a program computes element by element; the rest is made whole first.
bool is_inline(ExprKind kind);

/// A position along every axis as `constant + coefficients · position`.
struct Affine {
  std::int64_t constant = 0;
  std::vector<std::int64_t> coefficients;
};

/// An expression made ready to run over a space of positions, a block of neighbours along one axis
/// at a time. Immutable once made; each thread runs it with its own Scratch.
class BlockProgram {
 public:
  static constexpr std::int64_t kBlock = 512;

  /// `groups` marks axes (any number per axis); neighbouring axes of one mark that every operand
  /// steps through evenly become one. `extra_strides` are the caller's own strides over the space,
  /// merged along.
  BlockProgram(const Expr& root, Shape space, const std::vector<int>& groups,
               std::vector<std::int64_t> extra_strides, const BufferSource& buffers);

  const Shape& space() const { return space_; }
  const std::vector<int>& groups() const { return groups_; }
  const std::vector<std::int64_t>& extra_strides() const { return extra_strides_; }
  Lane lane() const { return steps_.back().lane; }
  /// A guess at nanoseconds for each element when blocks run along `axis`.
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
    /// one element stands for all
    bool is_uniform;
    template <class T>
    T at(std::int64_t i) const {
      return static_cast<const T*>(data)[is_uniform ? 0 : i];
    }
  };
  /// Computes `count` (at most kBlock) elements from `at` on along `axis`.
  Block run(Scratch& scratch, std::span<const std::int64_t> at, std::size_t axis,
            std::int64_t count) const;

 private:
  struct Instruction {
    const ExprNode* node = nullptr;
    ExprKind kind = ExprKind::Literal;
    Lane lane = Lane::F32;
    /// earlier steps
    std::vector<std::size_t> args;
    /// Index: axis of the space
    std::size_t index_axis = 0;
    /// Operand (any whole buffer) and Read
    Buffer buffer;
    Loader load = nullptr;
    /// Operand: by axis of the space
    std::vector<std::int64_t> strides;
    /// Read: empty if some are not affine
    std::vector<Affine> coordinates;
    /// affine Read: elements per step of each space axis
    std::vector<std::int64_t> read_strides;
  };

  /// Expressions share their parts: each is looked at once.
  struct Seen {
    std::unordered_map<const ExprNode*, std::size_t> steps;
    std::unordered_map<const ExprNode*, std::optional<Affine>> affine;
  };
  std::size_t add_step(const Expr& expr, const BufferSource& buffers, Seen& seen);
  std::optional<Affine> affine_of(const Expr& expr, Seen& seen) const;
  std::optional<Affine> found_affine(const ExprNode& node, Seen& seen) const;
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

std::size_t element_bytes(Lane lane);

}  // namespace tenon::reference
