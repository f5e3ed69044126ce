#include "codegen/cpu/schedule.h"

#include "base/error.h"
#include "expr/names.h"
#include "nests/index_map.h"
#include "nests/integer_contraction.h"
#include "nests/stride.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

namespace tenon::codegen::cpu {
namespace {

using nests::Stride;

constexpr unsigned kVectorBytes = 32;
constexpr double kEnoughItems = 64, kMinItemCost = 256;

double trips(const Dim& extent) {
  return extent.is_constant() ? static_cast<double>(extent.constant()) : kUnknownExtent;
}

// Estimated cost of a block, roughly in vector instructions, with one optional vectorized loop.
class LoopCostModel {
 public:
  static double of(const Block& block, std::optional<std::size_t> vector, double lanes) {
    double total = 0;
    for (const Statement& statement : block) {
      if (statement.kind == Statement::Kind::Loop) {
        const double inner = of(statement.body, vector, lanes);
        const bool is_vector = vector == statement.id;
        const double count = trips(statement.extent);
        total += inner * (is_vector ? std::ceil(count / lanes) : count) + 1;
        continue;
      }
      std::set<const ScalarNode*> seen;
      total += of(statement.value, vector, lanes, seen);
      if (statement.kind == Statement::Kind::Store || statement.kind == Statement::Kind::Update) {
        total += access(statement.indices, statement.view, vector, lanes);
      }
    }
    return total;
  }

 private:
  static double access(const std::vector<Scalar>& indices, const Dims& view,
                       std::optional<std::size_t> vector, double lanes) {
    if (!vector) return 1;
    const std::vector<Scalar> coordinates(
        indices.begin(), indices.begin() + static_cast<std::ptrdiff_t>(view.size()));
    return stride_along(coordinates, view, *vector) == Stride::Other ? 1.5 * lanes : 1;
  }

  static double of(const Scalar& scalar, std::optional<std::size_t> vector, double lanes,
                   std::set<const ScalarNode*>& seen) {
    if (!scalar.is_defined() || !seen.insert(&scalar.node()).second) return 0;
    double total = scalar->kind == ScalarKind::Unary && is_transcendental(scalar->unary) ? 10 : 1;
    if (scalar->kind == ScalarKind::Load) {
      total = access(scalar->args, scalar->view, vector, lanes);
      if (scalar->bounds == Bounds::Fill) total += 2;
    } else {
      for (const Scalar& arg : scalar->args) total += of(arg, vector, lanes, seen);
    }
    return total;
  }
};

// Returns whether the block contains an arg reduction, whose index vector loops do not support.
bool has_place(const Block& block) {
  return std::any_of(block.begin(), block.end(), [](const Statement& statement) {
    return statement.place.is_defined() || has_place(statement.body);
  });
}
// Returns whether every position of the loop writes the same element, as in reused scratch, which
// imposes an order.
bool writes_one_element(const Block& block, std::size_t loop) {
  return std::any_of(block.begin(), block.end(), [&](const Statement& statement) {
    return (statement.kind == Statement::Kind::Store &&
            stride_along(statement.indices, statement.view, loop) == Stride::Zero) ||
           writes_one_element(statement.body, loop);
  });
}
bool may_be_vector(const Statement& loop) {
  if (has_place(loop.body) || writes_one_element(loop.body, loop.id)) return false;
  if (loop.is_independent) return true;
  return loop.body.size() == 1 && loop.body.front().kind == Statement::Kind::Fold &&
         loop.body.front().reduction != Reduction::Last;
}

std::size_t widest_bytes(const LoopNest& nest) {
  std::size_t bytes = 1;
  for (const NestBuffer& buffer : nest.buffers)
    bytes = std::max(bytes, info(buffer.dtype).storage_bytes);
  for (const DType local : nest.locals) bytes = std::max(bytes, info(local).storage_bytes);
  return std::max<std::size_t>(bytes, 4);
}

struct LoopCandidate {
  double cost = 0;
  std::vector<const Statement*> loops;
};

bool has_loop(const Block& block, std::size_t loop) {
  return std::any_of(block.begin(), block.end(), [&](const Statement& statement) {
    return statement.kind == Statement::Kind::Loop &&
           (statement.id == loop || has_loop(statement.body, loop));
  });
}

bool is_long_enough(const Statement& loop) {
  return trips(loop.extent) >= 4 && may_be_vector(loop);
}

// Chooses the cheapest vector loop on every path of the loop tree; `along` has priority.
LoopCandidate best(const Block& block, double lanes, std::optional<std::size_t> along) {
  LoopCandidate choice;
  for (const Statement& statement : block) {
    const Block alone{statement};
    if (statement.kind != Statement::Kind::Loop) {
      choice.cost += LoopCostModel::of(alone, std::nullopt, lanes);
      continue;
    }
    LoopCandidate inner = best(statement.body, lanes, along);
    inner.cost = inner.cost * trips(statement.extent) + 1;
    const bool is_below = along && has_loop(statement.body, *along);
    if (!is_below && is_long_enough(statement)) {
      const double here =
          LoopCostModel::of(alone, statement.id, std::min(lanes, trips(statement.extent)));
      if (here < inner.cost || along == statement.id) inner = {here, {&statement}};
    }
    choice.cost += inner.cost;
    choice.loops.insert(choice.loops.end(), inner.loops.begin(), inner.loops.end());
  }
  return choice;
}

// Returns whether the body is small enough that several unrolled vectors fit the registers; a
// single vector would wait for its own latency.
bool is_small(const Block& block, int& statements) {
  constexpr int kMostStatements = 9;                     // Two nested sums and an epilogue.
  constexpr double kMostCost = 8, kMostCostOfFold = 12;  // A fold is bound by its latency.
  for (const Statement& statement : block) {
    if (++statements > kMostStatements) return false;
    if (statement.kind == Statement::Kind::Loop) {
      if (!is_small(statement.body, statements)) return false;
    } else {
      const double most = statement.kind == Statement::Kind::Fold ? kMostCostOfFold : kMostCost;
      if (statement.place.is_defined() || LoopCostModel::of({statement}, std::nullopt, 1) > most)
        return false;
    }
  }
  return true;
}

void mark_vectors(Block& block, const std::set<const Statement*>& chosen, unsigned lanes,
                  unsigned interleave) {
  for (Statement& statement : block) {
    if (statement.kind != Statement::Kind::Loop) continue;
    if (chosen.contains(&statement)) {
      statement.loop = LoopKind::Vector;
      int statements = 0;
      const bool is_alone =
          statement.body.size() == 1 && statement.body.front().kind != Statement::Kind::Loop;
      // Sums of int8 dots use many instructions but few registers, and each waits for its
      // predecessor.
      const bool is_simple =
          is_alone || (statement.is_independent &&
                       (is_small(statement.body, statements) || nests::has_dp4a(statement.body)));
      const double limit = trips(statement.extent);
      unsigned width = lanes * (is_simple ? interleave : 1);
      while (width > 2 && width > limit) width /= 2;
      statement.width = width;
    } else {
      mark_vectors(statement.body, chosen, lanes, interleave);
    }
  }
}

void collect_vectors(const Block& block, std::set<std::size_t>& loops) {
  for (const Statement& statement : block) {
    if (statement.kind != Statement::Kind::Loop) continue;
    if (is_long_enough(statement)) loops.insert(statement.id);
    collect_vectors(statement.body, loops);
  }
}

unsigned lanes_of(const LoopNest& nest) {
  return static_cast<unsigned>(kVectorBytes / widest_bytes(nest));
}

// Binds perfectly nested loops to threads, from the outermost; `positions`: the known product of
// the extents of the enclosing loops, absent for the outermost loop.
void mark_parallel(Block& block, std::optional<double> positions = std::nullopt) {
  if (block.size() != 1 || block.front().kind != Statement::Kind::Loop ||
      !block.front().is_independent)
    return;
  Statement& loop = block.front();
  const double count = trips(loop.extent);
  if (loop.loop == LoopKind::Vector) {
    if (!positions && count > static_cast<double>(nests::kVectorBlock))
      loop.loop = LoopKind::ParallelVector;
    return;
  }
  loop.loop = LoopKind::Parallel;
  // Parallelizes further loops until there are enough balanced work items, each with enough work. A
  // symbolic extent often is a batch of one.
  const double inside = LoopCostModel::of(loop.body, std::nullopt, 1);
  const double sure = positions.value_or(1) * (loop.extent.is_constant() ? count : 1);
  if (sure < kEnoughItems && inside > kMinItemCost) mark_parallel(loop.body, sure);
}

}  // namespace

void vectorise(const LoopNest& nest, Block& block) {
  const unsigned lanes = lanes_of(nest);
  const LoopCandidate choice = best(block, lanes, std::nullopt);
  mark_vectors(block, {choice.loops.begin(), choice.loops.end()}, lanes, LoopShape().interleave);
}

double schedule(LoopNest& nest, const LoopShape& shape) {
  const unsigned lanes = lanes_of(nest);
  const LoopCandidate choice = best(nest.body, lanes, shape.along);
  mark_vectors(nest.body, {choice.loops.begin(), choice.loops.end()}, lanes, shape.interleave);
  mark_parallel(nest.body);
  return choice.cost;
}

std::vector<LoopCost> vectorize_others(const LoopNest& nest) {
  const unsigned lanes = lanes_of(nest);
  std::set<std::size_t> loops;
  collect_vectors(nest.body, loops);
  for (const Statement* chosen : best(nest.body, lanes, std::nullopt).loops)
    loops.erase(chosen->id);
  std::vector<LoopCost> others;
  for (const std::size_t loop : loops) others.push_back({loop, best(nest.body, lanes, loop).cost});
  return others;
}

}  // namespace tenon::codegen::cpu
