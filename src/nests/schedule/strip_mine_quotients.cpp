#include "nests/schedule/strip_mine_quotients.h"

#include "nests/affine.h"
#include "nests/contraction.h"
#include "nests/scalar_walk.h"
#include "nests/schedule/loops.h"
#include "nests/schedule/split.h"
#include "nests/stride.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace tenon::nests {
namespace {

// Returns the divisor by which a scalar in the block divides the loop position; no value if there
// is none.
std::optional<std::int64_t> run_length(Block& block, std::size_t loop) {
  std::optional<std::int64_t> length;
  for_each_statement(block, [&](Statement& statement) {
    if (!statement.value.is_defined() || length) return;
    any_node(statement.value, [&](const ScalarNode& node) {
      const bool is_run = node.kind == ScalarKind::Binary && node.binary == BinaryOp::FloorDivide &&
                          node.dtype == DType::I64 && node.args[0]->kind == ScalarKind::Loop &&
                          node.args[0]->id == loop && node.args[1]->kind == ScalarKind::Integer;
      if (is_run) length = node.args[1]->integer;
      return is_run;
    });
  });
  return length;
}

// Simplifies quotients and remainders of the split loop's position by the block length.
void simplify(Block& block, const SplitLoop& made, std::int64_t length) {
  ScalarRewriter rewriting([&](ScalarNode node) {
    const bool is_quotient =
        node.kind == ScalarKind::Binary && node.binary == BinaryOp::FloorDivide;
    const bool is_rest = node.kind == ScalarKind::Binary && node.binary == BinaryOp::Modulo;
    if ((is_quotient || is_rest) && node.dtype == DType::I64 && is_integer(node.args[1], length)) {
      const std::optional<Affine> position = affine_of(node.args[0]);
      const Affine whole{{{made.outer, length}, {made.inner, 1}}, 0};
      if (position == whole) return loop_scalar(is_quotient ? made.outer : made.inner);
    }
    return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
  });
  rewriting.apply(block);
}

void add_factors(const Scalar& product, DType dtype, std::vector<Scalar>& factors) {
  if (product->kind == ScalarKind::Binary && product->binary == BinaryOp::Multiply &&
      product->dtype == dtype) {
    for (const Scalar& factor : product->args) add_factors(factor, dtype, factors);
  } else {
    factors.push_back(product);
  }
}

Scalar product_of(const std::vector<Scalar>& factors, DType dtype) {
  Scalar made = factors.front();
  for (std::size_t k = 1; k < factors.size(); ++k)
    made = binary_scalar(BinaryOp::Multiply, dtype, made, factors[k]);
  return made;
}

// Factors common terms out of a sum: a factor that is invariant in the inner loop multiplies each
// inner sum once. This reassociates floating-point sums.
void factor_out(LoopNest& nest, Statement& outer) {
  Statement& inner = outer.body.front();
  if (inner.body.size() != 1 || inner.body.front().kind != Statement::Kind::Fold) return;
  Statement& fold = inner.body.front();
  const DType dtype = fold.value->dtype;
  if (fold.reduction != Reduction::Sum || dtype != DType::F32 || fold.place.is_defined() ||
      nest.locals[fold.id] != dtype)
    return;
  std::vector<Scalar> factors, common, own;
  add_factors(fold.value, dtype, factors);
  for (const Scalar& factor : factors)
    (depends_on(factor, inner.id) ? own : common).push_back(factor);
  if (common.empty() || own.empty()) return;
  // Two terms become two independent sums, which shortens the dependence chain.
  const bool has_terms = own.size() == 1 && own[0]->kind == ScalarKind::Binary &&
                         own[0]->binary == BinaryOp::Add && own[0]->dtype == dtype;
  const std::vector<Scalar> terms = has_terms ? own[0]->args : std::vector{product_of(own, dtype)};
  Statement whole = fold;
  Block starts, folds;
  Scalar total;
  for (const Scalar& term : terms) {
    const std::size_t sum = nest.locals.size();
    nest.locals.push_back(dtype);
    starts.push_back(define_statement(sum, identity_scalar(Reduction::Sum, dtype)));
    fold.id = sum;
    fold.value = term;
    folds.push_back(fold);
    const Scalar held = local_scalar(sum, dtype);
    total = total.is_defined() ? binary_scalar(BinaryOp::Add, dtype, total, held) : held;
  }
  whole.value = binary_scalar(BinaryOp::Multiply, dtype, total, product_of(common, dtype));
  inner.body = std::move(folds);
  outer.body.insert(outer.body.begin(), starts.begin(), starts.end());
  outer.body.push_back(std::move(whole));
}

}  // namespace

namespace {

// An innermost loop that copies or maps elements.
bool is_of_elements(const Statement& loop) {
  return loop.is_independent &&
         std::all_of(loop.body.begin(), loop.body.end(),
                     [](const Statement& s) { return s.kind == Statement::Kind::Store; });
}

// Parts of a concat may share a loop id; the split loop needs its own.
void renumber(LoopNest& nest, Statement& loop) {
  const std::size_t own = nest.new_loop(nest.loop_names[loop.id]);
  substitute_loop(loop.body, loop.id, loop_scalar(own));
  loop.id = own;
}

}  // namespace

void strip_mine_quotients(LoopNest& nest, std::int64_t lanes) {
  struct Found {
    std::size_t loop;
    std::int64_t length;
  };
  std::vector<Found> found;
  const bool is_sum = find_contraction(nest).has_value();
  for_each_statement(nest.body, [&](Statement& statement) {
    if (statement.kind != Statement::Kind::Loop || !statement.extent.is_constant() ||
        statement.limit.is_defined())
      return;
    const bool moves = !is_sum && is_of_elements(statement);
    if (statement.is_independent && !moves) return;
    const auto length = run_length(statement.body, statement.id);
    if (length && *length >= (moves ? lanes / 2 : 2) && *length < statement.extent.constant() &&
        statement.extent.constant() % *length == 0) {
      if (moves) renumber(nest, statement);
      found.push_back({statement.id, *length});
    }
  });
  for (const Found& runs : found) {
    const SplitLoop made = split(nest, nest.body, runs.loop, runs.length);
    simplify(nest.body, made, runs.length);
  }
  if (is_sum) return;  // Contractions keep their accumulators in register tiles.
  for_each_statement(nest.body, [&](Statement& statement) {
    const auto is_carried = [](const Statement& loop) {
      return loop.kind == Statement::Kind::Loop && !loop.is_independent;
    };
    if (is_carried(statement) && statement.body.size() == 1 && is_carried(statement.body.front()))
      factor_out(nest, statement);
  });
}

}  // namespace tenon::nests
