#pragma once

#include "nests/nest_builder.h"
#include "nests/scalar_pool.h"

#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tenon::nests {

/// One loop structure that writes (a part of) a buffer.
struct NestStage {
  /// A reduce, scan or scatter node, or an elementwise expression.
  Expr expr;
  /// Destination.
  std::size_t buffer;
  /// Extents under which the buffer is addressed.
  Dims view;
  std::size_t axis = 0;
  /// Along `axis`, for the parts of a concat.
  Dim offset = 0;
  /// One of many similar stages, whose common nest would be too long: each becomes a nest, and
  /// they share code (`generalise.h`).
  bool is_one_of_many = false;
  /// Loops around the stage: one per axis of `expr` whose extent is not 1.
  std::vector<std::size_t> loops = {};
};

/// The buffer of a computed expression.
struct StageResult {
  std::size_t buffer;
  /// The first stage that can read it.
  std::size_t ready;
};
using StageResults = std::unordered_map<const ExprNode*, StageResult>;

/// Returns whether the expression needs a buffer of its own.
bool is_stage(ExprKind kind);
/// Returns whether a read without a fill may be out of bounds: at data-dependent or known wrong
/// indices.
bool needs_check(const ExprNode& read);

/// Emits the statements of stages. Buffers have the sequence's indices; loop `k` runs along axis
/// `k` of the stage's expression.
class StageWriter {
 public:
  StageWriter(const std::vector<NestStage>& stages, const StageResults& places,
              const std::vector<NestSequence::Buffer>& buffers)
      : stages_(stages), places_(places), buffers_(buffers) {}

  /// Returns the body of the stage's outer loops.
  Block body(LoopNest& nest, std::size_t stage);

 private:
  Scalar element(LoopNest& nest, const Expr& expr, const std::vector<Scalar>& at);
  /// Maps a position under broadcasting from extents `to` to `from`.
  std::vector<Scalar> repeated_position(LoopNest& nest, const Dims& from, const Dims& to,
                                        const std::vector<Scalar>& at);
  Scalar load(const StageResult& place, const Dims& dims, const std::vector<Scalar>& at) const;
  Scalar read(LoopNest& nest, const ExprNode& node, const std::vector<Scalar>& at);
  Block reduce_body(LoopNest& nest, const NestStage& stage, const std::vector<Scalar>& at);
  Block scan_body(LoopNest& nest, const NestStage& stage, const std::vector<Scalar>& at);
  Block scatter_body(LoopNest& nest, const NestStage& stage);

  const std::vector<NestStage>& stages_;
  const StageResults& places_;
  const std::vector<NestSequence::Buffer>& buffers_;
  std::size_t current_ = 0;  // The stage being emitted.
  // Emitted elements, so that shared subexpressions stay shared in code. Positions are identified
  // by pooled nodes.
  std::map<std::pair<const ExprNode*, std::vector<const ScalarNode*>>, Scalar> elements_;
  ScalarPool positions_;
};

Statement loop_statement(std::size_t id, const Dim& extent, Block body,
                         bool is_independent = false);

}  // namespace tenon::nests
