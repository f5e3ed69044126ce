#include "nests/schedule/transposed_operand.h"

#include "base/error.h"
#include "expr/access.h"
#include "nests/bf16_dot.h"
#include "nests/operand_copy.h"
#include "nests/schedule/cache_read.h"
#include "nests/stride.h"

#include <algorithm>
#include <optional>

namespace tenon::nests {
namespace {

using Part = NestSequence::NestCall;

constexpr std::int64_t kFewestRows = 8, kFewestColumns = 8;

bool is_at_least(const Dim& extent, std::int64_t least) {
  return !extent.is_constant() || extent.constant() >= least;
}

// The load to transpose, and the loop that becomes contiguous.
struct Transposition {
  Scalar load;
  const Statement* columns = nullptr;
};

// A large operand with little reuse along rows is vectorized along the reduction instead, if both
// operands are contiguous there: a copy would take longer than the contraction.
bool is_worth_a_copy(const Contraction& contraction, const Scalar& a, const Scalar& b) {
  constexpr double kEnoughRows = 32, kLargeOperand = 1 << 20;
  double rows = 1;
  for (const Statement* loop : contraction.parallel) {
    if (stride_along(b, loop->id) == Stride::Zero) rows *= size_hint(loop->extent);
  }
  const bool lies_along = std::any_of(
      contraction.reduction.begin(), contraction.reduction.end(), [&](const Statement* loop) {
        return loop->extent.is_constant() && stride_along(a, loop->id) == Stride::Unit &&
               stride_along(b, loop->id) == Stride::Unit;
      });
  return rows >= kEnoughRows || !lies_along || size_hint(product(b->view)) < kLargeOperand;
}

std::optional<Transposition> find_transposition(const Contraction& contraction, const Part& part,
                                                const std::vector<bool>& is_constant) {
  std::optional<Transposition> found;
  for (const Statement* loop : contraction.parallel) {
    if (!is_at_least(loop->extent, kFewestColumns) || !suits_columns(contraction, loop->id))
      continue;
    for (const bool swaps : {false, true}) {
      const Scalar &a = swaps ? contraction.b : contraction.a,
                   &b = swaps ? contraction.a : contraction.b;
      if (stride_along(a, loop->id) != Stride::Zero || stride_along(b, loop->id) == Stride::Zero)
        continue;
      if (stride_along(b, loop->id) == Stride::Unit || b->bounds != Bounds::Inside)
        return std::nullopt;
      if (part.nest.buffers[b->id].storage == StorageClass::Scratch) return std::nullopt;
      const std::size_t source = buffer_of(part, b->id);
      if (source < is_constant.size() && is_constant[source]) return std::nullopt;
      if (!is_worth_a_copy(contraction, a, b)) return std::nullopt;
      // Counts all loops together: four images of 7 x 7 have 196 rows.
      Dim rows = 1;
      for (const Statement* other : contraction.parallel) {
        if (other != loop && stride_along(b, other->id) == Stride::Zero)
          rows = rows * other->extent;
      }
      if (is_at_least(rows, kFewestRows)) found = Transposition{b, loop};
    }
  }
  return found;
}

// Every loop that the operand depends on becomes an axis of the copy, the columns last.
Part transposed_part(NestSequence& sequence, Part& part, const Contraction& contraction,
                     const Transposition& turn, std::int64_t line_elements) {
  std::vector<const Statement*> loops;
  for (const auto* list : {&contraction.parallel, &contraction.reduction}) {
    for (const Statement* loop : *list) {
      if (loop != turn.columns && depends_on(turn.load, loop->id)) loops.push_back(loop);
    }
  }
  loops.push_back(turn.columns);
  Dims dims;
  for (const Statement* loop : loops) dims.push_back(loop->extent);
  // Avoids power-of-two row distances, which would map to few cache sets.
  const bool is_apart =
      dims.back().is_constant() && dims.back().constant() % (2 * line_elements) == 0;
  if (is_apart) dims.back() = dims.back().constant() + line_elements;
  // Blocked by columns: a block reads that number of rows in parallel, each line once.
  return cache_read(sequence, part, contraction, turn.load, loops, dims, line_elements);
}

// Returns a factor narrower than the arithmetic type that is reused along loops of the other
// factor: each element would be converted for every column.
std::optional<Scalar> find_narrow(const Contraction& contraction, const Part& part,
                                  const std::vector<bool>& is_constant, bool has_bf16_dot) {
  const auto is_held = [&](const Scalar& factor) {
    if (part.nest.buffers[factor->id].storage == StorageClass::Scratch) return false;
    const std::size_t source = buffer_of(part, factor->id);
    return source < is_constant.size() && is_constant[source];
  };
  for (const bool swaps : {false, true}) {
    const Scalar &a = swaps ? contraction.b : contraction.a,
                 &b = swaps ? contraction.a : contraction.b;
    const NestBuffer& from = part.nest.buffers[a->id];
    if (from.dtype == DType::F32 || from.storage == StorageClass::Scratch ||
        a->bounds != Bounds::Inside)
      continue;
    const std::size_t source = buffer_of(part, a->id);
    if (source < is_constant.size() && is_constant[source]) continue;
    if (has_bf16_dot && is_held(b) && bf16_dot_loop(contraction, a, b) != nullptr) continue;
    const bool stays = std::any_of(contraction.parallel.begin(), contraction.parallel.end(),
                                   [&](const Statement* loop) {
                                     return is_at_least(loop->extent, kFewestColumns) &&
                                            stride_along(a, loop->id) == Stride::Zero &&
                                            stride_along(b, loop->id) != Stride::Zero;
                                   });
    if (stays) return a;
  }
  return std::nullopt;
}

}  // namespace

void transpose_operands(NestSequence& sequence, const std::vector<bool>& is_constant,
                        std::int64_t line_elements, bool has_bf16_dot) {
  std::vector<Part> parts;
  for (Part& part : sequence.parts) {
    const std::optional<Contraction> contraction =
        part.is_indivisible ? std::nullopt : find_contraction(part.nest);
    const std::optional<Transposition> turn =
        contraction ? find_transposition(*contraction, part, is_constant) : std::nullopt;
    if (turn) parts.push_back(transposed_part(sequence, part, *contraction, *turn, line_elements));
    const std::optional<Contraction> left =
        contraction ? find_contraction(part.nest) : std::nullopt;
    const std::optional<Scalar> narrow =
        left ? find_narrow(*left, part, is_constant, has_bf16_dot) : std::nullopt;
    if (narrow) parts.push_back(cache_read_whole(sequence, part, *left, *narrow));
    if (turn || narrow) drop_unused_buffers(part);
    parts.push_back(std::move(part));
  }
  sequence.parts = std::move(parts);
}

}  // namespace tenon::nests
