// Common-subexpression elimination between loops.
#include "nests/materialise.h"

#include "expr/names.h"
#include "nests/scalar_walk.h"
#include "nests/stride.h"

#include <algorithm>
#include <optional>
#include <set>

namespace tenon::nests {
namespace {

// Compares the scalars of two loops at equal positions. Gives up on very large terms.
class SubexpressionComparison {
 public:
  SubexpressionComparison(std::size_t loop, std::size_t other_loop)
      : loop_(loop), other_loop_(other_loop) {}

  bool is_same(const Scalar& a, const Scalar& b) {
    constexpr int kMostVisits = 5000;
    if (same_.contains({&a.node(), &b.node()})) return true;
    if (++visits_ > kMostVisits) return false;
    if (a->kind != b->kind || a->dtype != b->dtype || a->args.size() != b->args.size())
      return false;
    if (a->kind == ScalarKind::Loop && (a->id == loop_ || b->id == other_loop_)) {
      return a->id == loop_ && b->id == other_loop_;
    }
    if (a->id != b->id || a->unary != b->unary || a->binary != b->binary ||
        a->bounds != b->bounds || a->integer != b->integer || a->real != b->real ||
        a->view != b->view) {
      return false;
    }
    for (std::size_t k = 0; k < a->args.size(); ++k) {
      if (!is_same(a->args[k], b->args[k])) return false;
    }
    if (!a->args.empty()) same_.emplace(&a.node(), &b.node());
    return true;
  }

 private:
  std::size_t loop_, other_loop_;
  int visits_ = 0;
  std::set<std::pair<const ScalarNode*, const ScalarNode*>> same_;
};

bool is_costly(const Scalar& scalar) {
  return any_node(scalar, [](const ScalarNode& node) {
    return node.kind == ScalarKind::Unary && is_transcendental(node.unary);
  });
}

bool reads(const Scalar& scalar, std::size_t buffer) {
  return any_node(scalar, [&](const ScalarNode& node) {
    return node.kind == ScalarKind::Load && node.id == buffer;
  });
}

void collect_locals(const Scalar& scalar, std::set<std::size_t>& locals) {
  any_node(scalar, [&](const ScalarNode& node) {
    if (node.kind == ScalarKind::Local || node.kind == ScalarKind::Position) locals.insert(node.id);
    return false;
  });
}

// Returns whether the statements modify one of the locals or access the buffer.
bool disturbs(const Block& block, const std::set<std::size_t>& locals, std::size_t buffer) {
  return std::any_of(block.begin(), block.end(), [&](const Statement& statement) {
    using Kind = Statement::Kind;
    if ((statement.kind == Kind::Define || statement.kind == Kind::Fold) &&
        locals.contains(statement.id))
      return true;
    if ((statement.kind == Kind::Store || statement.kind == Kind::Update) && statement.id == buffer)
      return true;
    for (const Scalar* scalar : {&statement.value, &statement.place, &statement.limit}) {
      if (scalar->is_defined() && reads(*scalar, buffer)) return true;
    }
    return disturbs(statement.body, locals, buffer);
  });
}

// Replaces all occurrences of `value` by `read`.
class SubexpressionReplacement {
 public:
  SubexpressionReplacement(const Scalar& value, SubexpressionComparison comparison, Scalar read)
      : value_(value), comparison_(std::move(comparison)), read_(std::move(read)) {}

  // No value without an occurrence.
  std::optional<Scalar> in(const Scalar& scalar) {
    return known_.of(scalar, [&]() -> std::optional<Scalar> {
      if (comparison_.is_same(value_, scalar)) return read_;
      ScalarNode node = scalar.node();
      bool is_changed = false;
      for (std::size_t k = 0; k < node.args.size(); ++k) {
        if (auto changed = in(scalar->args[k])) {
          node.args[k] = std::move(*changed);
          is_changed = true;
        }
      }
      if (!is_changed) return std::nullopt;
      return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
    });
  }

 private:
  const Scalar& value_;
  SubexpressionComparison comparison_;
  Scalar read_;
  ScalarMemo<std::optional<Scalar>> known_;
};

// A load of the element that the store writes.
Scalar element(const Statement& store, DType dtype) {
  ScalarNode node;
  node.kind = ScalarKind::Load;
  node.dtype = dtype;
  node.id = store.id;
  node.view = store.view;
  node.args = store.indices;
  return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
}

bool is_simple_loop(const Statement& statement, Statement::Kind inside) {
  return statement.kind == Statement::Kind::Loop && !statement.limit.is_defined() &&
         statement.body.size() == 1 && statement.body.front().kind == inside;
}

// Shares the common subexpression of the fold at `block[first]` and the store at `block[last]`;
// returns whether it did.
bool share(LoopNest& nest, Block& block, std::size_t first, std::size_t last) {
  Statement &folding = block[first], &storing = block[last];
  Statement &fold = folding.body.front(), &store = storing.body.front();
  const DType dtype = fold.value->dtype;
  if (folding.extent != storing.extent || !storing.is_independent || !is_costly(fold.value))
    return false;
  if (fold.place.is_defined() || nest.buffers[store.id].dtype != dtype) return false;
  if (stride_along(store.indices, store.view, storing.id) != Stride::Unit) return false;
  std::set<std::size_t> locals;
  collect_locals(fold.value, locals);
  const Block between(block.begin() + static_cast<std::ptrdiff_t>(first),
                      block.begin() + static_cast<std::ptrdiff_t>(last));
  if (disturbs(between, locals, store.id) || reads(store.value, store.id)) return false;

  const auto stored =
      SubexpressionReplacement(fold.value, SubexpressionComparison(folding.id, storing.id),
                               element(store, dtype))
          .in(store.value);
  if (!stored) return false;
  Statement writing = storing;
  writing.id = nest.new_loop(nest.loop_names[storing.id]);
  Statement& write = writing.body.front();
  Block value{fold};
  substitute_loop(value, folding.id, loop_scalar(writing.id));
  substitute_loop(writing.body, storing.id, loop_scalar(writing.id));
  write.value = value.front().value;
  Block read{store};
  substitute_loop(read, storing.id, loop_scalar(folding.id));
  fold.value = element(read.front(), dtype);
  store.value = *stored;
  block.insert(block.begin() + static_cast<std::ptrdiff_t>(first), std::move(writing));
  return true;
}

void materialise_subexpressions(LoopNest& nest, Block& block) {
  for (std::size_t first = 0; first < block.size(); ++first) {
    if (block[first].kind == Statement::Kind::Loop)
      materialise_subexpressions(nest, block[first].body);
    if (!is_simple_loop(block[first], Statement::Kind::Fold)) continue;
    for (std::size_t last = first + 1; last < block.size(); ++last) {
      if (!is_simple_loop(block[last], Statement::Kind::Store)) continue;
      if (share(nest, block, first, last)) {
        ++first;
        break;
      }
    }
  }
}

}  // namespace

void materialise_subexpressions(LoopNest& nest) { materialise_subexpressions(nest, nest.body); }

}  // namespace tenon::nests
