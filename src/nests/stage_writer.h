#pragma once

#include "nests/nest_builder.h"
#include "nests/scalar_pool.h"

#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tenon::nests {

/// Part of a buffer that one set of loops writes.
struct Stage {
  /// what to compute: a reduce, scan or scatter node, or anything element by element
  Expr expr;
  /// where it goes
  std::size_t buffer;
  /// the extents under which the buffer is seen
  Dims view;
  std::size_t axis = 0;
  /// along `axis`: for the parts of a concat
  Dim offset = 0;
  /// Of so many alike that one nest of all of them would be long: each is a nest, and they share
  /// code (`generalise.h`).
  bool is_one_of_many = false;
  /// The loops around all of it, by position: one for each axis of `expr` whose extent is not 1.
  std::vector<std::size_t> loops = {};
};

/// Where an expression's elements lie once they are computed.
struct StageResult {
  std::size_t buffer;
  /// the first stage that can read it
  std::size_t ready;
};
using StageResults = std::unordered_map<const ExprNode*, StageResult>;

/// Whether the expression needs a buffer of its own.
bool is_stage(ExprKind kind);
/// Whether a read without a fill may look outside: where data decides, or indices are known to be
/// wrong.
bool needs_check(const ExprNode& read);

/// Writes down what stages do. Buffers have their numbers in the sequence; loop `k` runs along axis
/// `k` of what the stage computes.
class StageWriter {
 public:
  StageWriter(const std::vector<Stage>& stages, const StageResults& places,
              const std::vector<NestSequence::Buffer>& buffers)
      : stages_(stages), places_(places), buffers_(buffers) {}

  /// What stands inside the stage's outer loops.
  Block body(LoopNest& nest, std::size_t stage);

 private:
  Scalar element(LoopNest& nest, const Expr& expr, const std::vector<Scalar>& at);
  /// Where a part of an expression that is repeated from `to` to `from` is read.
  std::vector<Scalar> repeated_position(LoopNest& nest, const Dims& from, const Dims& to,
                                        const std::vector<Scalar>& at);
  Scalar load(const StageResult& place, const Dims& dims, const std::vector<Scalar>& at) const;
  Scalar read(LoopNest& nest, const ExprNode& node, const std::vector<Scalar>& at);
  Block reduce_body(LoopNest& nest, const Stage& stage, const std::vector<Scalar>& at);
  Block scan_body(LoopNest& nest, const Stage& stage, const std::vector<Scalar>& at);
  Block scatter_body(LoopNest& nest, const Stage& stage);

  const std::vector<Stage>& stages_;
  const StageResults& places_;
  const std::vector<NestSequence::Buffer>& buffers_;
  std::size_t current_ = 0;  // the stage that is being written down
  // Elements already written down, so that what is shared in the expression is shared in the code.
  // A position is known by its nodes: all come out of the pool.
  std::map<std::pair<const ExprNode*, std::vector<const ScalarNode*>>, Scalar> elements_;
  ScalarPool positions_;
};

Statement loop_statement(std::size_t id, const Dim& extent, Block body,
                         bool is_independent = false);

}  // namespace tenon::nests
