#include "nests/schedule/trim_masked_loops.h"

#include "nests/affine.h"
#include "nests/scalar_walk.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <vector>

namespace tenon::nests {
namespace {

// Value of a scalar at keys that the mask hides.
enum class MaskedKeys : std::uint8_t { Unknown, Zero, Lowest };

Affine difference(const Affine& a, const Affine& b, std::int64_t more) {
  Affine result = a;
  result.start += more - b.start;
  for (const auto& [loop, step] : b.steps) {
    if ((result.steps[loop] -= step) == 0) result.steps.erase(loop);
  }
  return result;
}

bool is_lowest(const Scalar& scalar) {
  return scalar->kind == ScalarKind::Real &&
         scalar->real == -std::numeric_limits<double>::infinity();
}

// For a select between a score and -inf: an affine function that is nonnegative where the score is
// visible.
std::optional<Affine> mask_of(const ScalarNode& node) {
  if (node.kind != ScalarKind::Select || (!is_lowest(node.args[1]) && !is_lowest(node.args[2])))
    return std::nullopt;
  const Scalar& condition = node.args[0];
  if (condition->kind != ScalarKind::Binary) return std::nullopt;
  const bool is_less = condition->binary == BinaryOp::Less;
  if (!is_less && condition->binary != BinaryOp::LessEqual) return std::nullopt;
  const auto a = affine_of(condition->args[0]), b = affine_of(condition->args[1]);
  if (!a || !b) return std::nullopt;
  // a <= b: b - a >= 0; negated: a - b - 1 >= 0.
  const bool shows_first = is_lowest(node.args[2]);
  return shows_first ? difference(*b, *a, is_less ? -1 : 0) : difference(*a, *b, is_less ? 0 : -1);
}

class MaskTrimmer {
 public:
  explicit MaskTrimmer(LoopNest& nest) : nest_(nest) {}

  bool run() {
    Block* block = &nest_.body;
    while (block->size() == 1 && block->front().kind == Statement::Kind::Loop &&
           block->front().is_independent) {
      outside_.insert(block->front().id);
      block = &block->front().body;
    }
    if (block->size() < 2) return false;
    for_each_statement(*block, [&](Statement& s) {
      // Loops with one id have equal extents.
      if (s.kind == Statement::Kind::Loop) loops_[s.id] = &s;
    });
    find_masks(*block);
    if (!can_ || keys_.empty() || step_ < kFewestKeys) return false;
    find_axes(*block);
    find_other_loops(*block);
    if (can_) visit(*block, {});
    if (!can_) return false;
    for_each_statement(*block, [&](Statement& s) {
      const auto key = s.kind == Statement::Kind::Loop ? keys_.find(s.id) : keys_.end();
      if (key != keys_.end()) limit(s, key->second);
    });
    return true;
  }

 private:
  static constexpr std::int64_t kFewestKeys = 8, kMostKeys = 32;

  void find_masks(Block& block) {
    for_each_statement(block, [&](Statement& s) {
      if (!s.value.is_defined()) return;
      any_node(s.value, [&](const ScalarNode& node) {
        if (const auto mask = mask_of(node)) take_mask(*mask);
        return false;
      });
    });
  }

  // Causal masks only: one loop iterates over keys in ascending order, later rows see more of them,
  // and every row sees the first.
  void take_mask(const Affine& shows) {
    std::optional<std::size_t> key;
    Affine bound{{}, shows.start + 1};
    std::int64_t step = kMostKeys;
    for (const auto& [loop, by] : shows.steps) {
      if (by < 0) {
        if (key || by != -1 || !loops_.contains(loop)) return;
        key = loop;
      } else if (outside_.contains(loop)) {
        bound.steps[loop] = by;
        step = std::gcd(step, by);
      } else {
        const auto inner = loops_.find(loop);
        if (inner == loops_.end() || !inner->second->extent.is_constant()) return;
        bound.start += by * (inner->second->extent.constant() - 1);
      }
    }
    if (!key || shows.start < 0 || bound.steps.empty()) return;
    bound.start = (bound.start + step - 1) / step * step;
    const Dim& extent = loops_[*key]->extent;
    if (keys_.empty()) {
      bound_ = bound;
      step_ = step;
      extent_ = extent;
    }
    can_ = can_ && bound == bound_ && extent == extent_;
    keys_[*key] = 1;
  }

  // The key axis of thread-local buffers.
  void find_axes(Block& block) {
    each_access(
        block, [&](std::size_t buffer, const std::vector<Scalar>& indices, const Dims& view) {
          if (nest_.buffers[buffer].storage != StorageClass::Scratch ||
              view != nest_.buffers[buffer].dims)
            return;
          for (std::size_t axis = 0; axis < view.size(); ++axis) {
            const auto place = affine_of(indices[axis]);
            if (place && place->start == 0 && place->steps.size() == 1 &&
                place->steps.begin()->second == 1 && keys_.contains(place->steps.begin()->first)) {
              axes_[buffer] = axis;
            }
          }
        });
  }

  // Loops of other stages over these axes, element-wise or strip-mined.
  void find_other_loops(Block& block) {
    each_access(
        block, [&](std::size_t buffer, const std::vector<Scalar>& indices, const Dims& view) {
          const auto axis = axes_.find(buffer);
          if (axis == axes_.end()) return;
          const auto place =
              view == nest_.buffers[buffer].dims ? affine_of(indices[axis->second]) : std::nullopt;
          can_ = can_ && place && place->start == 0 && take_loops(*place);
        });
  }
  bool take_loops(const Affine& place) {
    if (place.steps.empty() || place.steps.size() > 2) return false;
    std::size_t outer = place.steps.begin()->first;
    std::int64_t width = 1;
    for (const auto& [loop, step] : place.steps) {
      if (step > width) outer = loop, width = step;
    }
    const auto found = loops_.find(outer);
    if (found == loops_.end() || place.steps.at(outer) != width || step_ % width != 0) return false;
    for (const auto& [loop, step] : place.steps) {
      if (loop == outer) continue;
      const auto inner = loops_.find(loop);
      if (step != 1 || width == 1 || inner == loops_.end() ||
          !(inner->second->extent == Dim(width)))
        return false;
    }
    if (width == 1 && !(found->second->extent == extent_)) return false;
    if (width > 1 && !(found->second->extent == ceil_div(extent_, width))) return false;
    const auto [known, is_new] = keys_.try_emplace(outer, width);
    return is_new || known->second == width;
  }

  // Checks that hidden iterations of loops over keys can be dropped; `within`: the enclosing loop
  // over keys.
  void visit(const Block& block, std::optional<std::size_t> within) {
    for (const Statement& s : block) {
      switch (s.kind) {
        case Statement::Kind::Loop: {
          const bool counts_keys = keys_.contains(s.id);
          const bool suits =
              (s.loop == LoopKind::Serial && s.width == 1) || s.loop == LoopKind::Vector;
          can_ = can_ && (!counts_keys || (suits && !within && !s.limit.is_defined()));
          visit(s.body, counts_keys ? std::optional(s.id) : within);
          break;
        }
        case Statement::Kind::Define:
          made_in_[s.id] = within;
          held_[s.id] = within ? hidden_value(s.value, *within) : MaskedKeys::Unknown;
          break;
        case Statement::Kind::Fold:
          if (within && made_in_[s.id] != within) {
            const MaskedKeys value = hidden_value(s.value, *within);
            can_ = can_ && ((s.reduction == Reduction::Max && value == MaskedKeys::Lowest) ||
                            (s.reduction == Reduction::Sum && value == MaskedKeys::Zero));
          } else {
            held_[s.id] = MaskedKeys::Unknown;
          }
          break;
        case Statement::Kind::Store:
          if (within) {
            can_ = can_ && axes_.contains(s.id);
            holds_[s.id] = hidden_value(s.value, *within);
          } else {
            can_ = can_ && !axes_.contains(s.id);
          }
          break;
        case Statement::Kind::Update:
          can_ = can_ && !within && !axes_.contains(s.id);
          break;
      }
    }
  }

  // Cached per statement: buffers change between statements.
  MaskedKeys hidden_value(const Scalar& scalar, std::size_t key) {
    memo_ = {};
    return hidden(scalar, key);
  }
  MaskedKeys hidden(const Scalar& scalar, std::size_t key) {
    return memo_.of(scalar, [&] { return found_hidden(scalar.node(), key); });
  }
  // Row maxima and row sums are uniform over keys: if they are not finite, every visible share is
  // NaN anyway.
  static bool is_of_row(const Scalar& scalar) {
    return !any_node(scalar, [](const ScalarNode& node) {
      return node.kind == ScalarKind::Load || node.kind == ScalarKind::Loop;
    });
  }
  MaskedKeys found_hidden(const ScalarNode& node, std::size_t key) {
    switch (node.kind) {
      case ScalarKind::Real:
        return node.real == 0 ? MaskedKeys::Zero : MaskedKeys::Unknown;
      case ScalarKind::Select: {
        const auto mask = mask_of(node);
        return mask && mask->steps.contains(key) && mask->steps.at(key) == -1 ? MaskedKeys::Lowest
                                                                              : MaskedKeys::Unknown;
      }
      case ScalarKind::Local:
        return made_in_[node.id] == key ? held_[node.id] : MaskedKeys::Unknown;
      case ScalarKind::Cast:
        return is_float(node.dtype) && is_float(node.args[0]->dtype) ? hidden(node.args[0], key)
                                                                     : MaskedKeys::Unknown;
      case ScalarKind::Load: {
        const auto axis = axes_.find(node.id);
        if (axis == axes_.end()) return MaskedKeys::Unknown;
        const auto place = affine_of(node.args[axis->second]);
        return place && place->steps.contains(key) ? holds_[node.id] : MaskedKeys::Unknown;
      }
      case ScalarKind::Unary:
        return node.unary == UnaryOp::Exp && hidden(node.args[0], key) == MaskedKeys::Lowest
                   ? MaskedKeys::Zero
                   : MaskedKeys::Unknown;
      case ScalarKind::Binary: {
        const MaskedKeys a = hidden(node.args[0], key);
        if (node.binary == BinaryOp::Subtract && a == MaskedKeys::Lowest && is_of_row(node.args[1]))
          return MaskedKeys::Lowest;
        if (node.binary == BinaryOp::Divide && a == MaskedKeys::Zero && is_of_row(node.args[1]))
          return MaskedKeys::Zero;
        const bool is_zero = a == MaskedKeys::Zero || hidden(node.args[1], key) == MaskedKeys::Zero;
        return node.binary == BinaryOp::Multiply && is_zero ? MaskedKeys::Zero
                                                            : MaskedKeys::Unknown;
      }
      default:
        return MaskedKeys::Unknown;
    }
  }

  void limit(Statement& loop, std::int64_t width) {
    Affine count = bound_;
    count.start /= width;
    for (auto& [outer, step] : count.steps) step /= width;
    loop.limit =
        binary_scalar(BinaryOp::Minimum, DType::I64, nest_.extent(loop.extent), scalar_of(count));
  }

  template <class Visit>
  void each_access(Block& block, const Visit& visit) {
    for_each_statement(block, [&](Statement& s) {
      if (s.kind == Statement::Kind::Store || s.kind == Statement::Kind::Update)
        visit(s.id, s.indices, s.view);
      std::vector<Scalar> values = s.indices;
      for (const Scalar& scalar : {s.limit, s.value, s.place}) values.push_back(scalar);
      for (const Scalar& value : values) {
        if (!value.is_defined()) continue;
        any_node(value, [&](const ScalarNode& node) {
          if (node.kind == ScalarKind::Load) visit(node.id, node.args, node.view);
          return false;
        });
      }
    });
  }

  LoopNest& nest_;
  std::set<std::size_t> outside_;             // Loops around the stages.
  std::map<std::size_t, Statement*> loops_;   // Inner loops.
  std::map<std::size_t, std::int64_t> keys_;  // Loops over keys: keys per iteration.
  std::map<std::size_t, std::size_t> axes_;   // Key axes of buffers.
  Affine bound_;
  std::int64_t step_ = 0;
  Dim extent_;
  bool can_ = true;
  std::map<std::size_t, std::optional<std::size_t>>
      made_in_;  // Locals: the loop over keys around their definition.
  std::map<std::size_t, MaskedKeys> held_,
      holds_;  // Values at hidden keys, of locals and of buffers.
  ScalarMemo<MaskedKeys> memo_;
};

}  // namespace

bool trim_masked_loops(LoopNest& nest) { return MaskTrimmer(nest).run(); }

}  // namespace tenon::nests
