#include "codegen/cuda/attention.h"

#include "codegen/cuda/attention_split.h"
#include "codegen/cuda/canonicalize_loops.h"
#include "codegen/cuda/fuse_epilogues.h"
#include "codegen/cuda/inline_copies.h"
#include "codegen/cuda/loop_stride.h"
#include "nests/affine.h"
#include "nests/contraction.h"
#include "nests/fused_nest.h"
#include "nests/index_map.h"
#include "nests/scalar_walk.h"
#include "nests/simplify_indices.h"

#include <algorithm>
#include <limits>
#include <map>

namespace tenon::codegen::cuda {
namespace {

constexpr std::int64_t kPack = 8;  // elements of a 16-bit type in one 16-byte access
constexpr std::int64_t kMostSize = 256;

// Structural equality, with loop `b` of `y` in the place of loop `a` of `x`.
bool is_same_within(int& budget, const Scalar& x, const Scalar& y, std::size_t a, std::size_t b) {
  if (&x.node() == &y.node() && a == b) return true;
  if (--budget < 0 || x->kind != y->kind || x->dtype != y->dtype) return false;
  if (x->integer != y->integer || x->real != y->real || x->unary != y->unary) return false;
  if (x->binary != y->binary || x->bounds != y->bounds || x->view != y->view) return false;
  const bool is_loop = x->kind == ScalarKind::Loop && x->id == a;
  if (is_loop ? y->id != b : x->id != y->id) return false;
  if (x->args.size() != y->args.size()) return false;
  for (std::size_t k = 0; k < x->args.size(); ++k) {
    if (!is_same_within(budget, x->args[k], y->args[k], a, b)) return false;
  }
  return true;
}
bool is_real(const Scalar& scalar, double value) {
  return scalar->kind == ScalarKind::Real && scalar->real == value;
}

bool reads_buffer(const Scalar& scalar, std::size_t buffer) {
  return nests::any_node(scalar, [&](const ScalarNode& node) {
    return node.kind == ScalarKind::Load && node.id == buffer;
  });
}

class AttentionMatcher {
 public:
  explicit AttentionMatcher(const LoopNest& nest) : nest_(nest) {}

  bool run() {
    const Block* block = &nest_.body;
    std::vector<const Statement*> loops;
    while (block->size() == 1 && block->front().kind == Statement::Kind::Loop &&
           block->front().is_independent && !block->front().limit.is_defined()) {
      loops.push_back(&block->front());
      block = &block->front().body;
    }
    if (block->size() < 5) return false;
    // The results may be copied to another buffer by a last loop.
    const bool is_moved = block->back().kind == Statement::Kind::Loop &&
                          block->back().body.size() == 1 &&
                          block->back().body.front().kind == Statement::Kind::Store;
    const std::size_t values = block->size() - (is_moved ? 2 : 1);
    return take_gemms((*block)[0]) && take_softmax(*block, values) &&
           take_values((*block)[values], is_moved ? &block->back() : nullptr) && take_loops(loops);
  }

  AttentionTile tile;

 private:
  // for key { t = 0; for d { t += q * k }; scores[key] = t }
  bool take_gemms(const Statement& loop) {
    if (loop.kind != Statement::Kind::Loop || loop.limit.is_defined()) return false;
    const auto contraction = nests::find_contraction(Block{loop});
    // This match points into a copy; the pointers into the nest itself are found below.
    if (!contraction || contraction->parallel.size() != 1 || contraction->reduction.size() != 1)
      return false;
    products_ = &loop;
    const Statement& along = loop.body[1];
    const Statement& store = loop.body.back();
    if (store.kind != Statement::Kind::Store || loop.body.size() > 4) return false;
    if (nest_.buffers[store.id].storage != StorageClass::Scratch) return false;
    if (!holds_sum(loop.body)) return false;
    const Scalar &a = along.body.front().value->args[0], &b = along.body.front().value->args[1];
    const bool is_a_key = moves(a, loop.id);
    if (is_a_key == moves(b, loop.id)) return false;
    tile.q = is_a_key ? b : a;
    tile.k = is_a_key ? a : b;
    tile.keys = loop.extent;
    if (!along.extent.is_constant()) return false;
    tile.head_size = along.extent.constant();
    tile.dtype = tile.q->dtype;
    tile.score_buffer = store.id;
    score_indices_ = &store.indices;
    if (!is_row(tile.q, along.id) || !is_row(tile.k, along.id)) return false;
    const auto row = distance(tile.k, loop.id);
    if (!row) return false;
    tile.k_row = *row;
    tile.inner_loops = {loop.id, along.id};
    return (tile.dtype == DType::F16 || tile.dtype == DType::BF16) && tile.k->dtype == tile.dtype;
  }

  // True if the stored value is the unmodified sum.
  bool holds_sum(const Block& body) const {
    std::size_t local = body[0].id;
    for (std::size_t k = 2; k + 1 < body.size(); ++k) {
      if (body[k].kind != Statement::Kind::Define || body[k].value->kind != ScalarKind::Local ||
          body[k].value->id != local)
        return false;
      local = body[k].id;
    }
    const Scalar* value = &body.back().value;
    while ((*value)->kind == ScalarKind::Cast) value = &(*value)->args[0];
    return (*value)->kind == ScalarKind::Local && (*value)->id == local;
  }

  static bool moves(const Scalar& load, std::size_t loop) { return nests::depends_on(load, loop); }
  bool is_row(const Scalar& load, std::size_t loop) const {
    const auto step = distance(load, loop);
    return load->bounds == Bounds::Inside && step && *step == Dim(1);
  }

  // Returns the expression with locals replaced by their definitions (reductions stay).
  Scalar resolved(const Scalar& scalar) const {
    if (scalar->kind == ScalarKind::Local) {
      const auto held = held_.find(scalar->id);
      return held == held_.end() ? scalar : resolved(held->second);
    }
    if (scalar->kind == ScalarKind::Load || scalar->args.empty()) return scalar;
    ScalarNode node = scalar.node();
    for (Scalar& arg : node.args) arg = resolved(arg);
    return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
  }

  static const Statement* fold_of(const Statement& loop, Reduction reduction) {
    if (loop.kind != Statement::Kind::Loop || loop.limit.is_defined() || loop.body.size() != 1)
      return nullptr;
    const Statement& fold = loop.body.front();
    const bool suits = fold.kind == Statement::Kind::Fold && fold.reduction == reduction;
    return suits ? &fold : nullptr;
  }

  // highest = max of scores; total = sum of exp(score - highest); shares[key] = exp(…) / total
  bool take_softmax(const Block& block, std::size_t end) {
    std::optional<std::size_t> highest, total;
    Scalar peak;
    for (std::size_t k = 1; k < end; ++k) {
      const Statement& statement = block[k];
      if (statement.kind == Statement::Kind::Define) {
        const bool is_fold_start = statement.value->kind == ScalarKind::Real;
        if (!is_fold_start) held_[statement.id] = statement.value;
        continue;
      }
      if (!(statement.extent == tile.keys)) return false;
      if (const Statement* fold = fold_of(statement, Reduction::Max); fold && !highest) {
        highest = fold->id;
        tile.score = fold->value;
        tile.key_loop = statement.id;
        if (!reads_buffer(tile.score, tile.score_buffer)) return false;
      } else if (const Statement* contraction = fold_of(statement, Reduction::Sum);
                 contraction && highest && !total) {
        total = contraction->id;
        if (!is_share(contraction->value, statement.id, *highest, peak)) return false;
      } else if (total && k + 1 == end && statement.body.size() == 1 &&
                 statement.body.front().kind == Statement::Kind::Store) {
        return take_shares(statement, *highest, *total, peak);
      } else {
        return false;
      }
    }
    return false;
  }

  // Matches exp(score - peak).
  bool is_share(const Scalar& value, std::size_t loop, std::size_t highest, Scalar& peak) {
    if (value->kind != ScalarKind::Unary || value->unary != UnaryOp::Exp) return false;
    const Scalar& difference = value->args[0];
    if (difference->kind != ScalarKind::Binary || difference->binary != BinaryOp::Subtract)
      return false;
    if (!is_same(tile.score, difference->args[0], tile.key_loop, loop)) return false;
    const Scalar found = resolved(difference->args[1]);
    if (peak.is_defined()) return is_same(peak, found, 0, 0);
    peak = found;
    if (found->kind == ScalarKind::Local) return found->id == highest;
    // A fully masked row has a peak of 0.
    tile.is_zero_if_masked = true;
    return is_choice(found, highest, -std::numeric_limits<double>::infinity(), 0);
  }

  // Matches `local == value ? instead : local`.
  static bool is_choice(const Scalar& scalar, std::size_t local, double value, double instead) {
    if (scalar->kind != ScalarKind::Select) return false;
    const Scalar& condition = scalar->args[0];
    if (condition->kind != ScalarKind::Binary || condition->binary != BinaryOp::Equal) return false;
    const auto is_local = [&](const Scalar& x) {
      return x->kind == ScalarKind::Local && x->id == local;
    };
    return is_local(condition->args[0]) && is_real(condition->args[1], value) &&
           is_real(scalar->args[1], instead) && is_local(scalar->args[2]);
  }

  bool take_shares(const Statement& loop, std::size_t highest, std::size_t total, Scalar& peak) {
    const Statement& store = loop.body.front();
    if (nest_.buffers[store.id].storage != StorageClass::Scratch) return false;
    shares_ = store.id;
    share_indices_ = &store.indices;
    share_loop_ = loop.id;
    const Scalar* value = &store.value;
    while ((*value)->kind == ScalarKind::Cast) value = &(*value)->args[0];
    if ((*value)->kind != ScalarKind::Binary || (*value)->binary != BinaryOp::Divide) return false;
    if (!is_share((*value)->args[0], loop.id, highest, peak)) return false;
    const Scalar by = resolved((*value)->args[1]);
    if (!tile.is_zero_if_masked) return by->kind == ScalarKind::Local && by->id == total;
    return is_choice(by, total, 0, 1);
  }

  // for column { t = 0; for key { t += shares[key] * v }; y[column] = t }
  bool take_values(const Statement& loop, const Statement* move) {
    if (loop.kind != Statement::Kind::Loop || loop.limit.is_defined()) return false;
    const auto contraction = nests::find_contraction(Block{loop});
    if (!contraction || contraction->parallel.size() != 1 || contraction->reduction.size() != 1)
      return false;
    const Statement& along = loop.body[1];
    if (!(along.extent == tile.keys) || !loop.extent.is_constant() || !holds_sum(loop.body))
      return false;
    const Scalar &a = along.body.front().value->args[0], &b = along.body.front().value->args[1];
    const bool is_a_share = a->id == shares_;
    const Scalar& share = is_a_share ? a : b;
    tile.v = is_a_share ? b : a;
    if (share->id != shares_ || tile.v->id == shares_ || tile.v->dtype != tile.dtype) return false;
    if (!is_row(tile.v, loop.id) || moves(share, loop.id)) return false;
    tile.value_size = loop.extent.constant();
    const auto row = distance(tile.v, along.id);
    if (!row) return false;
    tile.v_row = *row;
    // Scores and probabilities occupy one row each; every read uses the position that was written.
    if (!is_along(*score_indices_, products_->id) || !is_along(*share_indices_, share_loop_) ||
        !is_along(share->args, along.id) || !reads_scores_in_place())
      return false;
    tile.store = &loop.body.back();
    if (move != nullptr && !take_move(loop, *move)) return false;
    const Statement& columns = move != nullptr ? *move : loop;
    const auto step = distance(*tile.store, columns.id);
    if (!step || !(*step == Dim(1)) || nest_.buffers[tile.store->id].dtype != tile.dtype)
      return false;
    for (const std::size_t id : {loop.id, along.id, columns.id}) tile.inner_loops.push_back(id);
    return true;
  }

  // for column { y[column] = sums[column] }
  bool take_move(const Statement& sums, const Statement& move) {
    const Statement& from = sums.body.back();
    const Scalar* value = &move.body.front().value;
    while ((*value)->kind == ScalarKind::Cast) value = &(*value)->args[0];
    tile.store = &move.body.front();
    return !move.limit.is_defined() && move.extent == sums.extent &&
           (*value)->kind == ScalarKind::Load && (*value)->id == from.id &&
           nest_.buffers[from.id].storage == StorageClass::Scratch &&
           is_along(from.indices, sums.id) && (*value)->view.size() == (*value)->args.size() &&
           is_along((*value)->args, move.id);
  }

  // True if the indices address one row: the loop on one axis, 0 on the others.
  static bool is_along(const std::vector<Scalar>& indices, std::size_t loop) {
    std::size_t found = 0;
    for (const Scalar& at : indices) {
      const bool is_loop = at->kind == ScalarKind::Loop && at->id == loop;
      found += is_loop;
      if (!is_loop && !nests::is_integer(at, 0)) return false;
    }
    return found == 1;
  }
  bool reads_scores_in_place() const {
    bool suits = true;
    nests::any_node(tile.score, [&](const ScalarNode& node) {
      if (node.kind == ScalarKind::Load && node.id == tile.score_buffer)
        suits &= is_along(node.args, tile.key_loop);
      return false;
    });
    return suits;
  }

  // True if the offset of the first element is a multiple of `by` elements.
  static bool starts_evenly(const std::vector<Scalar>& indices, const Dims& view, std::int64_t by) {
    Dim start = 0, stride = 1;
    for (std::size_t axis = view.size(); axis-- > 0; stride = stride * view[axis]) {
      const auto affine = nests::affine_of(indices[axis]);
      if (!affine) return false;
      start = start + Dim(affine->start) * stride;
    }
    return mod(start, Dim(by)) == Dim(0);
  }

  bool take_loops(const std::vector<const Statement*>& loops) {
    for (const Statement* loop : loops) {
      const auto in_q = distance(tile.q, loop->id), in_k = distance(tile.k, loop->id);
      const auto in_v = distance(tile.v, loop->id), in_y = distance(*tile.store, loop->id);
      if (!in_q || !in_k || !in_v || !in_y) return false;
      const bool is_row = *in_k == Dim(0) && *in_v == Dim(0) && !(*in_q == Dim(0));
      // The longest loop that moves q but neither k nor v. Heads that share keys (grouped-query
      // attention) match too, but are few.
      const bool is_longer = tile.queries == nullptr || !loop->extent.is_constant() ||
                             (tile.queries->extent.is_constant() &&
                              loop->extent.constant() > tile.queries->extent.constant());
      if (is_row && is_longer) {
        if (tile.queries != nullptr) tile.outer.push_back(tile.queries);
        tile.queries = loop;
        tile.q_row = *in_q;
        tile.y_row = *in_y;
      } else {
        tile.outer.push_back(loop);
      }
    }
    for (const Scalar& load : {tile.q, tile.k, tile.v}) {
      if (!starts_evenly(load->args, load->view, kPack)) return false;
    }
    if (!starts_evenly(tile.store->indices, tile.store->view, 2)) return false;
    const auto is_even = [](const Dim& dim, std::int64_t by) {
      return mod(dim, Dim(by)) == Dim(0);
    };
    for (const Statement* loop : tile.outer) {
      for (const Scalar& load : {tile.q, tile.k, tile.v}) {
        if (!is_even(*distance(load, loop->id), kPack)) return false;
      }
      if (!is_even(*distance(*tile.store, loop->id), 2)) return false;
    }
    for (const Dim& row : {tile.q_row, tile.k_row, tile.v_row}) {
      if (!is_even(row, kPack)) return false;
    }
    return is_even(tile.y_row, 2) && is_even(Dim(tile.head_size), kPack) &&
           is_even(Dim(tile.value_size), kPack) && tile.head_size <= kMostSize &&
           tile.value_size <= kMostSize;
  }

  const LoopNest& nest_;
  const Statement* products_ = nullptr;
  const std::vector<Scalar>*score_indices_ = nullptr, *share_indices_ = nullptr;
  std::size_t shares_ = 0, share_loop_ = 0;
  std::map<std::size_t, Scalar> held_;  // definitions between the reductions
};

bool is_masked(const Scalar& scalar) {
  if (scalar->kind == ScalarKind::Cast) return is_masked(scalar->args[0]);
  return scalar->kind == ScalarKind::Real &&
         scalar->real == -std::numeric_limits<double>::infinity();
}

}  // namespace

std::optional<Scalar> last_visible_key(const AttentionTile& tile) {
  if (tile.queries == nullptr) return std::nullopt;
  const nests::Affine key{{{tile.key_loop, 1}}, 0};
  for (const Scalar* at = &tile.score;;) {
    if ((*at)->kind == ScalarKind::Cast) {
      at = &(*at)->args[0];
      continue;
    }
    if ((*at)->kind != ScalarKind::Select || !is_masked((*at)->args[2])) return std::nullopt;
    const Scalar& condition = (*at)->args[0];
    const bool is_bound =
        condition->kind == ScalarKind::Binary && condition->binary == BinaryOp::LessEqual;
    const auto left = is_bound ? nests::affine_of(condition->args[0]) : std::nullopt;
    const auto right = is_bound ? nests::affine_of(condition->args[1]) : std::nullopt;
    if (left && *left == key && right) {
      const auto moves = right->steps.find(tile.queries->id);
      if ((moves == right->steps.end() || moves->second >= 0) &&
          !right->steps.contains(tile.key_loop))
        return condition->args[1];
    }
    at = &(*at)->args[1];
  }
}

bool is_same(const Scalar& x, const Scalar& y, std::size_t a, std::size_t b) {
  int budget = 4096;
  return is_same_within(budget, x, y, a, b);
}

std::optional<AttentionTile> match_attention(const LoopNest& nest) {
  AttentionMatcher matcher(nest);
  if (!matcher.run()) return std::nullopt;
  return std::move(matcher.tile);
}

Dim query_count(const AttentionTile& tile) {
  return tile.queries != nullptr ? tile.queries->extent : Dim(1);
}

namespace {

// Fuses QK^T, softmax and PV, optionally with a nest that copies the result. Returns whether any
// matched.
bool fuse_parts(NestSequence& sequence, const CudaTarget& target) {
  bool has_fused = false;
  for (const std::size_t count : {4U, 3U}) {
    for (std::size_t first = 0; first + count <= sequence.parts.size(); ++first) {
      const std::size_t last = first + count - 1;
      if (!nests::find_contraction(sequence.parts[first].nest) ||
          !nests::find_contraction(sequence.parts[first + 2].nest))
        continue;
      NestSequence trial = sequence;
      split_divided_loops(trial.parts[last].nest);
      // Fuse at all loops except the one along a row of values.
      const std::size_t loops = nests::outer_extents(trial.parts[last].nest.body).size();
      if (loops < 2) continue;
      auto joined = nests::fused_nest(trial, first, last, {loops - 2, loops - 2, 1}, {});
      if (!joined) continue;
      LoopNest& nest = joined->part.nest;
      nests::simplify_indices(nest);
      split_divided_loops(nest);
      drop_unit_loops(nest.body);
      nests::list_extents(nest);
      const std::optional<AttentionTile> tile = match_attention(nest);
      if (!tile || (tile->queries == nullptr && !match_split_attention(*tile, target))) continue;
      // The kernel takes the strides between rows as arguments, too.
      for (const Dim& row : {tile->q_row, tile->k_row, tile->v_row, tile->y_row}) {
        if (!row.is_constant()) joined->part.nest.extent(row);
      }
      sequence.parts[first] = std::move(joined->part);
      const auto begin = sequence.parts.begin() + static_cast<std::ptrdiff_t>(first);
      sequence.parts.erase(begin + 1, begin + static_cast<std::ptrdiff_t>(count));
      has_fused = true;
    }
  }
  return has_fused;
}

}  // namespace

void fuse_attention(NestSequence& sequence, const CudaTarget& target) {
  // The kernel reads copies of heads and, in grouped-query attention, of keys and values for every
  // query head at their source.
  for (const SourceIndices indices : {SourceIndices::Any, SourceIndices::Affine}) {
    NestSequence trial = sequence;
    inline_copies(trial, indices, Readers::All);
    fuse_epilogues(trial);
    if (!fuse_parts(trial, target)) continue;
    sequence = std::move(trial);
    return;
  }
}

}  // namespace tenon::codegen::cuda
