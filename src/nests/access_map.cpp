#include "nests/access_map.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>

namespace tenon::nests {
namespace {

class AccessCollector {
 public:
  std::vector<ElementAccess> run(const LoopNest& nest) {
    visit(nest.body);
    return std::move(found_);
  }

 private:
  void visit(const Block& block) {
    for (const Statement& s : block) {
      ++order_;
      seen_.clear();
      for (const Scalar* scalar : {&s.limit, &s.value, &s.place}) {
        if (scalar->is_defined()) visit(*scalar);
      }
      for (const Scalar& index : s.indices) visit(index);
      if (s.kind == Statement::Kind::Loop) {
        loops_.push_back(&s);
        visit(s.body);
        loops_.pop_back();
      } else if (s.kind == Statement::Kind::Store || s.kind == Statement::Kind::Update) {
        const bool is_store = s.kind == Statement::Kind::Store;
        found_.push_back({is_store ? ElementAccess::Kind::Store : ElementAccess::Kind::Update, s.id,
                          s.bounds, &s.view, s.indices, loops_, order_});
      }
    }
  }

  void visit(const Scalar& scalar) {
    if (scalar->args.empty() && scalar->kind != ScalarKind::Load) return;
    if (!seen_.insert(&scalar.node()).second) return;
    for (const Scalar& arg : scalar->args) visit(arg);
    if (scalar->kind != ScalarKind::Load) return;
    const auto rank = std::min(scalar->view.size(), scalar->args.size());
    found_.push_back(
        {ElementAccess::Kind::Load,
         scalar->id,
         scalar->bounds,
         &scalar->view,
         {scalar->args.begin(), scalar->args.begin() + static_cast<std::ptrdiff_t>(rank)},
         loops_,
         order_});
  }

  std::vector<ElementAccess> found_;
  std::vector<const Statement*> loops_;
  std::unordered_set<const ScalarNode*> seen_;
  std::size_t order_ = 0;
};

std::optional<AffineDim> scaled(AffineDim value, std::int64_t factor) {
  for (auto& [loop, step] : value.steps) {
    if (__builtin_mul_overflow(step, factor, &step)) return std::nullopt;
  }
  value.start = value.start * Dim(factor);
  return value;
}

std::optional<AffineDim> sum(AffineDim a, const AffineDim& b) {
  for (const auto& [loop, step] : b.steps) {
    if (__builtin_add_overflow(a.steps[loop], step, &a.steps[loop])) return std::nullopt;
  }
  std::erase_if(a.steps, [](const auto& step) { return step.second == 0; });
  a.start = a.start + b.start;
  return a;
}

// Affine upper bounds of a scalar.
struct UpperBounds {
  std::vector<AffineDim> bounds;
  bool is_exact = false;  // The scalar equals the least of them.
};

UpperBounds upper_bounds(const LoopNest& nest, const Scalar& scalar) {
  if (auto affine = affine_dim_of(nest, scalar)) return {{std::move(*affine)}, true};
  if (scalar->kind != ScalarKind::Binary) return {};
  const BinaryOp op = scalar->binary;
  if (op != BinaryOp::Minimum && op != BinaryOp::Add && op != BinaryOp::Subtract) return {};
  UpperBounds a = upper_bounds(nest, scalar->args[0]);
  if (op == BinaryOp::Subtract) {  // The negation of a minimum has no affine upper bound.
    auto subtrahend = affine_dim_of(nest, scalar->args[1]);
    if (subtrahend) subtrahend = scaled(std::move(*subtrahend), -1);
    if (!subtrahend) return {};
    UpperBounds made{{}, a.is_exact};
    for (AffineDim& bound : a.bounds) {
      if (auto difference = sum(std::move(bound), *subtrahend))
        made.bounds.push_back(std::move(*difference));
      else
        made.is_exact = false;
    }
    return made;
  }
  const UpperBounds b = upper_bounds(nest, scalar->args[1]);
  a.is_exact &= b.is_exact;
  if (op == BinaryOp::Minimum) {
    a.bounds.insert(a.bounds.end(), b.bounds.begin(), b.bounds.end());
    return a;
  }
  UpperBounds sums{{}, a.is_exact};
  for (const AffineDim& x : a.bounds) {
    for (const AffineDim& y : b.bounds) {
      if (auto both = sum(x, y))
        sums.bounds.push_back(std::move(*both));
      else
        sums.is_exact = false;
    }
  }
  return sums;
}

std::vector<AffineDim> limits_of(const LoopNest& nest, const Statement& loop) {
  std::vector<AffineDim> limits{{{}, loop.extent}};
  if (!loop.limit.is_defined()) return limits;
  UpperBounds limit = upper_bounds(nest, loop.limit);
  std::ranges::move(limit.bounds, std::back_inserter(limits));
  return limits;
}

std::optional<Dim> greatest(const LoopNest& nest, AffineDim value,
                            const std::vector<const Statement*>& loops, std::size_t count) {
  for (; count > 0; --count) {
    const Statement& loop = *loops[count - 1];
    const auto found = value.steps.find(loop.id);
    if (found == value.steps.end()) continue;
    const std::int64_t step = found->second;
    value.steps.erase(found);
    if (step < 0) continue;  // The maximum is at position 0.
    std::optional<Dim> best;
    for (const AffineDim& limit : limits_of(nest, loop)) {
      std::optional<AffineDim> last = scaled(limit, step);
      if (last) last = sum(*last, {{}, Dim(-step)});
      if (last) last = sum(value, *last);
      const std::optional<Dim> here = last ? greatest(nest, *last, loops, count - 1) : std::nullopt;
      if (here && (!best || provably_at_most(*here, *best))) best = here;
    }
    return best;
  }
  return value.steps.empty() ? std::optional(value.start) : std::nullopt;
}

}  // namespace

std::vector<ElementAccess> accesses_of(const LoopNest& nest) { return AccessCollector().run(nest); }

std::optional<AffineDim> affine_dim_of(const LoopNest& nest, const Scalar& scalar) {
  switch (scalar->kind) {
    case ScalarKind::Integer:
      return AffineDim{{}, scalar->integer};
    case ScalarKind::Loop:
      return AffineDim{{{scalar->id, 1}}, 0};
    case ScalarKind::Extent:
      return AffineDim{{}, nest.extents[scalar->id]};
    case ScalarKind::Binary:
      break;
    default:
      return std::nullopt;
  }
  const bool is_product = scalar->binary == BinaryOp::Multiply,
             is_sum = scalar->binary == BinaryOp::Add;
  if (!is_product && !is_sum && scalar->binary != BinaryOp::Subtract) return std::nullopt;
  std::optional<AffineDim> a = affine_dim_of(nest, scalar->args[0]);
  std::optional<AffineDim> b = a ? affine_dim_of(nest, scalar->args[1]) : std::nullopt;
  if (!b) return std::nullopt;
  if (is_product) {
    if (!b->steps.empty() || !b->start.is_constant()) std::swap(a, b);
    if (!b->steps.empty() || !b->start.is_constant()) return std::nullopt;
    return scaled(*a, b->start.constant());
  }
  if (!is_sum) b = scaled(*b, -1);
  return b ? sum(*a, *b) : std::nullopt;
}

std::optional<AffineDim> place_of(const LoopNest& nest, const ElementAccess& access) {
  AffineDim place;
  std::int64_t stride = 1;
  for (std::size_t axis = access.view->size(); axis-- > 0;) {
    const auto index = affine_dim_of(nest, access.indices[axis]);
    const std::optional<AffineDim> part = index ? scaled(*index, stride) : std::nullopt;
    const std::optional<AffineDim> all = part ? sum(place, *part) : std::nullopt;
    if (!all) return std::nullopt;
    place = *all;
    const Dim& extent = (*access.view)[axis];
    if (axis == 0) break;
    if (!extent.is_constant() || __builtin_mul_overflow(stride, extent.constant(), &stride))
      return std::nullopt;
  }
  return place;
}

std::optional<Dim> greatest(const LoopNest& nest, const AffineDim& value,
                            const std::vector<const Statement*>& loops) {
  return greatest(nest, value, loops, loops.size());
}

std::optional<Dim> least(const AffineDim& value, const std::vector<const Statement*>& loops) {
  Dim least = value.start;
  for (const auto& [loop, step] : value.steps) {
    const auto found =
        std::find_if(loops.begin(), loops.end(), [&](const Statement* s) { return s->id == loop; });
    if (found == loops.end()) return std::nullopt;
    if (step > 0) continue;
    if ((*found)->limit.is_defined()) return std::nullopt;
    least = least + Dim(step) * ((*found)->extent - Dim(1));
  }
  return least;
}

bool never_runs(const LoopNest& nest, const Statement& loop,
                const std::vector<const Statement*>& loops) {
  return std::ranges::any_of(limits_of(nest, loop), [&](const AffineDim& limit) {
    const auto most = greatest(nest, limit, loops);
    return most && provably_at_most(*most, Dim(0));
  });
}

bool always_runs(const LoopNest& nest, const Statement& loop,
                 const std::vector<const Statement*>& loops) {
  UpperBounds limit{{}, true};
  if (loop.limit.is_defined()) limit = upper_bounds(nest, loop.limit);
  limit.bounds.push_back({{}, loop.extent});
  return limit.is_exact && std::ranges::all_of(limit.bounds, [&](const AffineDim& bound) {
           const auto fewest = least(bound, loops);
           return fewest && provably_at_most(Dim(1), *fewest);
         });
}

}  // namespace tenon::nests
