// Parallel reduction in two stages: partial results per piece, then a final fold.
#include "nests/split_reductions.h"

#include "base/error.h"
#include "nests/affine.h"
#include "nests/contraction.h"
#include "nests/index_map.h"
#include "nests/integer_contraction.h"
#include "nests/operand_copy.h"
#include "nests/scalar_walk.h"
#include "nests/stride.h"

#include <algorithm>
#include <optional>
#include <set>

namespace tenon::nests {
namespace {

using Part = NestSequence::NestCall;

// Smaller reductions do not gain.
constexpr std::int64_t kFewestElements = 1 << 16;
// More positions provide enough parallelism, and vectors long enough, without splitting.
constexpr std::int64_t kMostPositions = 1024;
// Fewer iterations per partial result would give the second stage the traffic of the first.
constexpr std::int64_t kUsualTurns = 8, kFewestTurns = 4;
// With few positions, vector lanes along the reduction are as good.
constexpr std::int64_t kFewPositions = 16;

// A fold into a local over some loops, inside the parallel loops.
struct Fold {
  std::size_t at = 0;  // Index of its loop in the block; the local is defined directly before.
  std::vector<const Statement*> loops;
  const Statement* statement = nullptr;

  std::int64_t length() const {
    std::int64_t length = 1;
    for (const Statement* loop : loops) length *= loop->extent.constant();
    return length;
  }
};

bool is_fixed(const Statement& loop) {
  return loop.extent.is_constant() && !loop.limit.is_defined();
}

class Splitter {
 public:
  Splitter(NestSequence& sequence, Part& part, std::int64_t piece_bytes)
      : sequence_(sequence), part_(part), piece_bytes_(piece_bytes) {}

  /// Returns the nest that computes the partial results; the part then folds these.
  std::optional<Part> run() {
    if (part_.is_indivisible || !find_folds()) return std::nullopt;
    choose_pieces();
    if (pieces_.empty()) return std::nullopt;
    make_pieces();
    return std::move(made_);
  }

 private:
  bool find_folds() {
    inner_ = &part_.nest.body;
    positions_ = 1;
    while (inner_->size() == 1 && inner_->front().kind == Statement::Kind::Loop &&
           inner_->front().is_independent) {
      const Statement& loop = inner_->front();
      if (!is_fixed(loop)) return false;
      parallel_.push_back(&loop);
      positions_ = std::min(positions_ * loop.extent.constant(), kMostPositions + 1);
      inner_ = &inner_->front().body;
    }
    if (positions_ > kMostPositions || is_product() || has_dp4a(*inner_)) return false;
    note_written(part_.nest.body);
    for (std::size_t k = 0; k + 1 < inner_->size(); ++k) {
      std::optional<Fold> fold = fold_at(k);
      // Folds over equal loops are split together with the first.
      if (fold && (folds_.empty() || are_alike(*fold, folds_.front())))
        folds_.push_back(std::move(*fold));
    }
    return !folds_.empty() && folds_.front().length() * positions_ >= kFewestElements &&
           (positions_ <= kFewPositions || has_neighbours());
  }

  // Returns whether adjacent positions read adjacent elements.
  bool has_neighbours() const {
    return any_node(folds_.front().statement->value, [&](const ScalarNode& node) {
      if (node.kind != ScalarKind::Load) return false;
      const Scalar load(std::make_shared<const ScalarNode>(node));
      const auto moves = [&](const Statement* loop) { return depends_on(load, loop->id); };
      const std::vector<const Statement*>& loops = folds_.front().loops;
      return std::any_of(loops.begin(), loops.end(), moves) &&
             std::any_of(parallel_.begin(), parallel_.end(), [&](const Statement* loop) {
               return loop->extent.constant() > 1 && stride_along(load, loop->id) == Stride::Unit;
             });
    });
  }

  // Excludes GEMMs: contractions whose operands are reused along some loop.
  bool is_product() const {
    const std::optional<Contraction> sum = find_contraction(part_.nest);
    return sum &&
           std::any_of(sum->parallel.begin(), sum->parallel.end(), [&](const Statement* loop) {
             return loop->extent.constant() > 1 &&
                    (stride_along(sum->a, loop->id) == Stride::Zero) !=
                        (stride_along(sum->b, loop->id) == Stride::Zero);
           });
  }

  void note_written(const Block& block) {
    for (const Statement& statement : block) {
      if (statement.kind == Statement::Kind::Store || statement.kind == Statement::Kind::Update)
        written_.insert(statement.id);
      note_written(statement.body);
    }
  }

  std::optional<Fold> fold_at(std::size_t position) const {
    const Statement& define = (*inner_)[position];
    if (define.kind != Statement::Kind::Define ||
        (*inner_)[position + 1].kind != Statement::Kind::Loop)
      return std::nullopt;
    Fold fold{position + 1, {}, &(*inner_)[position + 1]};
    while (fold.statement->kind == Statement::Kind::Loop) {
      if (!is_fixed(*fold.statement) || fold.statement->body.size() != 1) return std::nullopt;
      fold.loops.push_back(fold.statement);
      fold.statement = &fold.statement->body.front();
    }
    const Statement& statement = *fold.statement;
    const bool is_plain =
        statement.kind == Statement::Kind::Fold && statement.id == define.id &&
        !statement.place.is_defined() &&
        (statement.reduction == Reduction::Sum || statement.reduction == Reduction::Max ||
         statement.reduction == Reduction::Min);
    // It must only read operands, not results or locals of this nest.
    const bool is_apart = is_plain && !any_node(statement.value, [&](const ScalarNode& node) {
                            if (node.kind == ScalarKind::Local || node.kind == ScalarKind::Position)
                              return true;
                            return node.kind == ScalarKind::Load &&
                                   (written_.contains(node.id) ||
                                    part_.nest.buffers[node.id].storage != StorageClass::Operand);
                          });
    return is_apart ? std::optional(fold) : std::nullopt;
  }

  static bool are_alike(const Fold& a, const Fold& b) {
    return std::equal(
        a.loops.begin(), a.loops.end(), b.loops.begin(), b.loops.end(),
        [](const Statement* x, const Statement* y) { return x->extent == y->extent; });
  }

  // Bytes read per iteration of the fold, over all positions.
  std::int64_t turn_bytes() const {
    std::set<std::size_t> read;
    std::int64_t bytes = 0;
    for (const Fold& fold : folds_) {
      any_node(fold.statement->value, [&](const ScalarNode& node) {
        const bool moves =
            node.kind == ScalarKind::Load &&
            std::any_of(fold.loops.begin(), fold.loops.end(), [&](const Statement* loop) {
              return depends_on(Scalar(std::make_shared<const ScalarNode>(node)), loop->id);
            });
        if (moves && read.insert(node.id).second)
          bytes += static_cast<std::int64_t>(info(node.dtype).storage_bytes);
        return false;
      });
    }
    return std::max<std::int64_t>(bytes, 4) * positions_;
  }

  // Partition of each fold loop, outermost first, into `count` pieces of `turns` iterations. Loops
  // without an entry are not partitioned.
  struct Piece {
    std::int64_t count = 1, turns = 1;
  };
  void choose_pieces() {
    const std::int64_t bytes = turn_bytes(),
                       most_bytes = std::max(piece_bytes_, kUsualTurns * bytes);
    std::int64_t inside = folds_.front().length();
    for (const Statement* loop : folds_.front().loops) {
      const std::int64_t extent = loop->extent.constant();
      inside /= extent;
      // The largest divisor of the extent that fits.
      std::int64_t turns = 1;
      for (std::int64_t most = 1; most <= extent; ++most) {
        if (extent % most == 0 && most * inside * bytes <= most_bytes) turns = most;
      }
      if (turns == extent) break;
      pieces_.push_back({extent / turns, turns});
      if (turns > 1) break;
    }
    std::int64_t count = 1;
    for (const Piece& piece : pieces_) count *= piece.count;
    if (folds_.front().length() / count < kFewestTurns) pieces_.clear();
  }

  Scalar load(std::size_t buffer, const Dims& dims, std::vector<Scalar> at, DType dtype) const {
    ScalarNode node;
    node.kind = ScalarKind::Load;
    node.dtype = dtype;
    node.id = buffer;
    node.view = dims;
    node.args = std::move(at);
    return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
  }

  static Statement loop(std::size_t id, std::int64_t extent, bool is_independent, Block body) {
    Statement statement;
    statement.id = id;
    statement.extent = extent;
    statement.is_independent = is_independent;
    statement.body = std::move(body);
    return statement;
  }

  void make_pieces() {
    made_ = part_;
    LoopNest& nest = made_.nest;
    nest.name = concat(part_.nest.name, "pieces");
    std::vector<std::size_t> numbers,
        inner_loops;  // Loop over pieces, and iterations within a piece, per partitioned loop.
    for (std::size_t k = 0; k < pieces_.size(); ++k) {
      const std::string name = nest.loop_names[folds_.front().loops[k]->id];
      numbers.push_back(nest.new_loop(concat(name, "p")));
      inner_loops.push_back(nest.new_loop(concat(name, "i")));
    }
    Dims dims;
    for (const Piece& piece : pieces_) dims.push_back(piece.count);
    std::vector<Scalar> at;
    for (const std::size_t number : numbers) at.push_back(loop_scalar(number));
    for (const Statement* each : parallel_) {
      dims.push_back(each->extent);
      at.push_back(loop_scalar(each->id));
    }

    Block defines, folds, stores;
    std::vector<std::size_t> buffers;  // Sequence buffers with the partial results of each fold.
    for (const Fold& fold : folds_) {
      const DType dtype = part_.nest.locals[fold.statement->id];
      defines.push_back((*inner_)[fold.at - 1]);
      defines.back().value = identity_scalar(fold.statement->reduction, dtype);
      Block body{*fold.statement};
      for (std::size_t k = 0; k < fold.loops.size(); ++k) {
        const std::size_t shared = folds_.front().loops[k]->id;
        if (fold.loops[k]->id != shared)
          substitute_loop(body, fold.loops[k]->id, loop_scalar(shared));
        if (k >= pieces_.size()) continue;
        const Scalar first = times(loop_scalar(numbers[k]), integer_scalar(pieces_[k].turns));
        const Scalar position = pieces_[k].turns == 1 ? loop_scalar(numbers[k])
                                                      : plus(first, loop_scalar(inner_loops[k]));
        substitute_loop(body, shared, position);
      }
      folds.push_back(std::move(body.front()));
      buffers.push_back(sequence_.buffers.size());
      sequence_.buffers.push_back({NestSequence::BufferRole::Temporary, 0, dtype, dims});
      Statement store;
      store.kind = Statement::Kind::Store;
      store.id = nest.buffers.size();
      store.view = dims;
      store.indices = at;
      store.value = local_scalar(fold.statement->id, dtype);
      stores.push_back(std::move(store));
      nest.buffers.push_back({concat("p", buffers.back()), dtype, dims, StorageClass::Result});
      made_.buffers.push_back(buffers.back());
    }
    Block body = std::move(folds);
    for (std::size_t k = folds_.front().loops.size(); k-- > 0;) {
      if (k < pieces_.size() && pieces_[k].turns == 1) continue;
      const bool is_cut = k < pieces_.size();
      const Statement& given = *folds_.front().loops[k];
      body = {loop(is_cut ? inner_loops[k] : given.id,
                   is_cut ? pieces_[k].turns : given.extent.constant(), false, std::move(body))};
    }
    Block inside = std::move(defines);
    inside.insert(inside.end(), body.begin(), body.end());
    inside.insert(inside.end(), stores.begin(), stores.end());
    for (std::size_t k = parallel_.size(); k-- > 0;) {
      inside = {loop(parallel_[k]->id, parallel_[k]->extent.constant(), true, std::move(inside))};
    }
    for (std::size_t k = pieces_.size(); k-- > 0;)
      inside = {loop(numbers[k], pieces_[k].count, true, std::move(inside))};
    nest.body = std::move(inside);
    add_up(buffers, dims);
    drop_unused(made_);
    drop_unused(part_);
  }

  // Makes the part's folds iterate over the pieces.
  void add_up(const std::vector<std::size_t>& buffers, const Dims& dims) {
    LoopNest& nest = part_.nest;
    std::vector<Scalar> positions;
    for (const Statement* each : parallel_) positions.push_back(loop_scalar(each->id));
    for (std::size_t k = 0; k < folds_.size(); ++k) {
      const Fold& fold = folds_[k];
      const DType dtype = nest.locals[fold.statement->id];
      std::vector<Scalar> at;
      std::vector<std::size_t> ids;
      for (std::size_t piece = 0; piece < pieces_.size(); ++piece) {
        ids.push_back(nest.new_loop(concat(nest.loop_names[fold.loops[piece]->id], "p")));
        at.push_back(loop_scalar(ids.back()));
      }
      at.insert(at.end(), positions.begin(), positions.end());
      Statement add = *fold.statement;
      add.value = load(nest.buffers.size(), dims, std::move(at), dtype);
      nest.buffers.push_back({concat("p", buffers[k]), dtype, dims, StorageClass::Operand});
      part_.buffers.push_back(buffers[k]);
      Block body{std::move(add)};
      for (std::size_t piece = pieces_.size(); piece-- > 0;)
        body = {loop(ids[piece], pieces_[piece].count, false, std::move(body))};
      (*inner_)[fold.at] = std::move(body.front());
    }
  }

  // Removes buffers that a nest no longer uses.
  static void drop_unused(Part& part) {
    std::set<std::size_t> used;
    for_each_load(part.nest.body, [&](const Scalar& load) { used.insert(load->id); });
    for_each_statement(part.nest.body, [&](Statement& statement) {
      if (statement.kind == Statement::Kind::Store || statement.kind == Statement::Kind::Update)
        used.insert(statement.id);
    });
    std::map<std::size_t, BufferUse> uses;
    std::vector<NestBuffer> buffers;
    std::vector<std::size_t> given;
    for (std::size_t k = 0; k < part.nest.buffers.size(); ++k) {
      if (!used.contains(k)) continue;
      uses[k] = {buffers.size(), {}, false};
      if (part.nest.buffers[k].storage != StorageClass::Scratch)
        given.push_back(buffer_of(part, k));
      buffers.push_back(part.nest.buffers[k]);
    }
    part.nest.buffers = std::move(buffers);
    part.buffers = std::move(given);
    renumber_buffers(part.nest, uses);
    list_extents(part.nest);
  }

  NestSequence& sequence_;
  Part& part_;
  const std::int64_t piece_bytes_;
  Part made_;
  Block* inner_ = nullptr;  // Body of the parallel loops.
  std::vector<const Statement*> parallel_;
  std::int64_t positions_ = 1;
  std::vector<Fold> folds_;
  std::set<std::size_t> written_;
  std::vector<Piece> pieces_;
};

}  // namespace

void split_reductions(NestSequence& sequence, const ReductionPieces& wanted) {
  std::vector<Part> parts;
  for (Part& part : sequence.parts) {
    while (std::optional<Part> pieces = Splitter(sequence, part, wanted.bytes).run()) {
      parts.push_back(std::move(*pieces));
      if (!wanted.are_split_again) break;
    }
    parts.push_back(std::move(part));
  }
  sequence.parts = std::move(parts);
}

}  // namespace tenon::nests
