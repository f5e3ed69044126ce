#include "codegen/cuda/weight_gradient.h"

#include "base/error.h"
#include "codegen/cuda/sum_store.h"
#include "nests/affine.h"
#include "nests/index_map.h"
#include "nests/operand_copy.h"
#include "nests/schedule/loops.h"
#include "nests/stage_writer.h"
#include "target/gpu_facts.h"

#include <algorithm>
#include <limits>
#include <map>

namespace tenon::codegen::cuda {
namespace {

using nests::Affine;

constexpr std::int64_t kTile = 64;         // outputs and channels of a block
constexpr std::int64_t kMostColumns = 64;  // of a strip
constexpr std::int64_t kStep = 8;          // positions that one instruction sums over
constexpr std::int64_t kWindowColumns = 3, kMostWindowRows = 3;
// Of a strip, below which what is done for each row weighs more than its products.
constexpr std::int64_t kFewestColumns = 24;
// Rows held, of images, of gradients, and of images as they came: as `weight_gradient_template()`
// has them.
constexpr std::int64_t kImageRows = 5, kGradientRows = 3, kStagedRows = 2;

// How loads move: the loops by number, those that are summed over apart.
class Recogniser {
 public:
  explicit Recogniser(const nests::Contraction& sum) : sum_(sum) {
    for (const Statement* loop : sum.parallel) parallel_[loop->id] = loop;
    for (const Statement* loop : sum.reduction) reduction_[loop->id] = loop;
  }

  std::optional<WeightGradientTile> run() {
    for (const bool is_a_gradient : {true, false}) {
      tile_ = {};
      tile_.gradient = is_a_gradient ? sum_.a : sum_.b;
      tile_.image = is_a_gradient ? sum_.b : sum_.a;
      if (matches()) return tile_;
    }
    return std::nullopt;
  }

 private:
  bool matches() {
    for (const Scalar& load : {tile_.gradient, tile_.image}) {
      if (load->dtype != DType::F32 || load->view.size() != 4 || !is_zero_outside(load))
        return false;
      for (std::size_t axis = 1; axis < 4; ++axis) {
        if (!load->view[axis].is_constant()) return false;
      }
    }
    const auto image = positions(tile_.image), gradient = positions(tile_.gradient);
    if (!image || !gradient) return false;
    tile_.outputs = only_loop((*gradient)[3], parallel_);
    tile_.channels = only_loop((*image)[3], parallel_);
    tile_.along = only_loop((*gradient)[2], reduction_);
    if (tile_.outputs == nullptr || tile_.channels == nullptr || tile_.along == nullptr ||
        tile_.outputs == tile_.channels || !((*image)[0] == (*gradient)[0]) ||
        !(tile_.along->extent == tile_.gradient->view[2]))
      return false;
    return take_pieces((*gradient)[0], tile_.gradient->view[0], tile_.groups, tile_.images) &&
           take_pieces((*gradient)[1], tile_.gradient->view[1], tile_.bands, tile_.lines) &&
           take_window((*image)[1], (*gradient)[1], tile_.rows, tile_.rows_before) &&
           take_window((*image)[2], (*gradient)[2], tile_.columns, tile_.columns_before) &&
           has_all_loops();
  }

  static std::optional<std::vector<Affine>> positions(const Scalar& load) {
    std::vector<Affine> made;
    for (std::size_t axis = 0; axis < 4; ++axis) {
      const auto affine = nests::affine_of(load->args[axis]);
      if (!affine) return std::nullopt;
      made.push_back(*affine);
    }
    return made;
  }

  using Loops = std::map<std::size_t, const Statement*>;
  static const Statement* only_loop(const Affine& at, const Loops& of) {
    if (at.start != 0 || at.steps.size() != 1 || at.steps.begin()->second != 1) return nullptr;
    const auto found = of.find(at.steps.begin()->first);
    return found == of.end() ? nullptr : found->second;
  }

  // A loop that is summed over, and one of pieces that steps over all of it; together they are the
  // whole axis.
  bool take_pieces(const Affine& at, const Dim& axis, const Statement*& pieces,
                   const Statement*& inside) const {
    if (at.start != 0) return false;
    for (const auto& [id, step] : at.steps) {
      if (const auto summed = reduction_.find(id); summed != reduction_.end()) {
        if (step != 1 || inside != nullptr) return false;
        inside = summed->second;
      } else {
        if (pieces != nullptr) return false;
        pieces = parallel_.at(id);
      }
    }
    if (inside == nullptr) return false;
    if (pieces == nullptr) return inside->extent == axis;
    return inside->extent.is_constant() && at.steps.at(pieces->id) == inside->extent.constant() &&
           pieces->extent == ceil_div(axis, inside->extent.constant());
  }

  // The image is read where the gradient is, and so far on as the window's loop says.
  bool take_window(Affine image, const Affine& gradient, const Statement*& loop,
                   std::int64_t& before) const {
    before = -image.start;
    image.start = 0;
    for (const auto& [id, step] : gradient.steps) {
      const auto found = image.steps.find(id);
      if (found == image.steps.end() || found->second != step) return false;
      image.steps.erase(found);
    }
    loop = only_loop(image, parallel_);
    return loop != nullptr && loop->extent.is_constant() && before >= 0 &&
           before < loop->extent.constant();
  }

  bool has_all_loops() const {
    const std::size_t pieces =
        (tile_.groups != nullptr ? 1U : 0U) + (tile_.bands != nullptr ? 1U : 0U);
    return parallel_.size() == 4 + pieces && reduction_.size() == 3 &&
           std::all_of(sum_.parallel.begin(), sum_.parallel.end(),
                       [](const Statement* loop) { return !loop->limit.is_defined(); });
  }

  const nests::Contraction& sum_;
  Loops parallel_, reduction_;
  WeightGradientTile tile_;
};

bool suits(const WeightGradientTile& tile, const Target& target) {
  const auto is_tiled = [](const Statement* loop) {
    return loop->extent.is_constant() && loop->extent.constant() % kTile == 0;
  };
  return target.has_wgmma() && target.allows_tf32 && is_tiled(tile.outputs) &&
         is_tiled(tile.channels) && tile.channels->extent == tile.image->view[3] &&
         tile.outputs->extent == tile.gradient->view[3] &&
         tile.columns->extent == Dim(kWindowColumns) &&
         tile.rows->extent.constant() <= kMostWindowRows;
}

std::int64_t tile_pairs(const WeightGradientTile& tile) {
  return tile.outputs->extent.constant() / kTile * (tile.channels->extent.constant() / kTile);
}

// Images to a group and rows to a band.
struct Pieces {
  std::int64_t images = 1, lines = 1;
};

// What leaves the fewest multiprocessors idle for the shortest time: blocks take turns, and each
// reads the rows of a window again where a band begins.
Pieces choose_pieces(const WeightGradientTile& tile, const Target& target) {
  const std::int64_t units = gpu_facts(target.architecture).units, tiles = tile_pairs(tile);
  const std::int64_t lines = tile.lines->extent.constant(),
                     again = tile.rows->extent.constant() - 1;
  constexpr std::int64_t kUsualBatch = 8;
  const std::int64_t batch =
      tile.images->extent.is_constant() ? tile.images->extent.constant() : kUsualBatch;
  // A partial sum is written and read: as long as so many rows.
  constexpr double kSumRows = 4;
  Pieces best;
  double least = std::numeric_limits<double>::max();
  for (std::int64_t images = 1; images <= batch; images *= 2) {
    for (std::int64_t bands = 1; bands <= lines; ++bands) {
      const std::int64_t band = (lines + bands - 1) / bands;
      const std::int64_t count =
          tiles * ((batch + images - 1) / images) * ((lines + band - 1) / band);
      const auto turns = static_cast<double>((count + units - 1) / units);
      const double cost = turns * (static_cast<double>(images * band) +
                                   0.25 * static_cast<double>(images * again) + kSumRows);
      if (cost < least) {
        least = cost;
        best = {images, band};
      }
      if (count > 4 * units) break;
    }
  }
  return best;
}

Scalar load_of(std::size_t buffer, const Dims& dims, std::vector<Scalar> at) {
  ScalarNode node;
  node.kind = ScalarKind::Load;
  node.dtype = DType::F32;
  node.id = buffer;
  node.args = std::move(at);
  node.view = dims;
  return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
}

const Statement& fold_of(const Statement& loop) {
  const Statement* statement = &loop;
  while (statement->kind == Statement::Kind::Loop) statement = &statement->body.front();
  return *statement;
}

// Pieces may end beyond the last row: there is nothing but zeros.
void fill_with_zeros(Statement& fold, const WeightGradientTile& tile) {
  Block block{std::move(fold)};
  nests::Rewriting rewriting([&](ScalarNode node) {
    const bool is_factor = node.kind == ScalarKind::Load && node.bounds == Bounds::Inside &&
                           (node.id == tile.image->id || node.id == tile.gradient->id);
    if (is_factor) {
      node.bounds = Bounds::Fill;
      node.args.push_back(literal_scalar(DType::F32, 0, 0));
    }
    return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
  });
  rewriting.apply(block);
  fold = std::move(block.front());
}

}  // namespace

std::optional<std::vector<NestSequence::Part>> split_weight_gradient(NestSequence& sequence,
                                                                     const NestSequence::Part& part,
                                                                     const nests::Contraction& sum,
                                                                     const Target& target) {
  const std::optional<WeightGradientTile> found = Recogniser(sum).run();
  if (!found || found->groups != nullptr || found->bands != nullptr || !suits(*found, target) ||
      !starts_from_zero((*sum.inner)[0]) || strip_columns(*found) < kFewestColumns ||
      !found->lines->extent.is_constant())
    return std::nullopt;
  const WeightGradientTile& tile = *found;
  const Pieces pieces = choose_pieces(tile, target);
  const Dim groups = ceil_div(tile.images->extent, pieces.images),
            bands = ceil_div(tile.lines->extent, pieces.lines);
  const std::vector<const Statement*> window = {tile.outputs, tile.rows, tile.columns,
                                                tile.channels};
  Dims dims = {groups, bands};
  for (const Statement* loop : window) dims.push_back(loop->extent);
  const std::size_t temporary = sequence.buffers.size(), local = (*sum.inner)[0].id;
  sequence.buffers.push_back({NestSequence::BufferRole::Temporary, 0, DType::F32, dims});
  const std::size_t buffer = part.nest.buffers.size();

  NestSequence::Part first = part, second = part;
  std::vector<Scalar> place;
  for (NestSequence::Part* made : {&first, &second}) {
    const bool is_first = made == &first;
    made->nest.buffers.push_back(
        {concat("m", temporary), DType::F32, dims, is_first ? Storage::Result : Storage::Operand});
    made->buffers.push_back(temporary);
    LoopNest& nest = made->nest;
    const std::size_t group = nest.new_loop("group"), band = nest.new_loop("band");
    place = {loop_scalar(group), loop_scalar(band)};
    for (const Statement* loop : window) place.push_back(loop_scalar(loop->id));
    Block body{(*sum.inner)[0]};
    Statement fold = fold_of((*sum.inner)[1]);
    if (is_first) {
      fill_with_zeros(fold, tile);
      Block inner{std::move(fold)};
      const auto moved = [](std::size_t piece, std::int64_t size, std::size_t inside) {
        return nests::plus(nests::times(loop_scalar(piece), integer_scalar(size)),
                           loop_scalar(inside));
      };
      const std::size_t image = nest.new_loop("image"), line = nest.new_loop("line");
      nests::substitute_loop(inner, tile.images->id, moved(group, pieces.images, image));
      nests::substitute_loop(inner, tile.lines->id, moved(band, pieces.lines, line));
      inner = {nests::loop_statement(tile.along->id, tile.along->extent, std::move(inner))};
      inner = {nests::loop_statement(line, Dim(pieces.lines), std::move(inner))};
      body.push_back(nests::loop_statement(image, Dim(pieces.images), std::move(inner)));
      Statement store;
      store.kind = Statement::Kind::Store;
      store.id = buffer;
      store.value = local_scalar(local, nest.locals[local]);
      store.indices = place;
      store.view = dims;
      body.push_back(std::move(store));
      nest.body = nests::in_loops(window, std::move(body));
      nest.body = {nests::loop_statement(band, bands, std::move(nest.body), true)};
      nest.body = {nests::loop_statement(group, groups, std::move(nest.body), true)};
    } else {
      fold.value = load_of(buffer, dims, place);
      body.push_back(nests::loop_statement(
          group, groups, {nests::loop_statement(band, bands, {std::move(fold)})}));
      body.insert(body.end(), sum.inner->begin() + 2, sum.inner->end());
      nest.body = nests::in_loops(window, std::move(body));
      nest.name += "_epilogue";
    }
    list_extents(nest);
    nests::drop_unused_buffers(*made);
  }
  return std::vector<NestSequence::Part>{std::move(first), std::move(second)};
}

std::optional<WeightGradientTile> match_weight_gradient_tile(const LoopNest& nest,
                                                             const Target& target) {
  const auto sum = nests::find_contraction(nest);
  if (!sum || !starts_from_zero((*sum->inner)[0])) return std::nullopt;
  std::optional<WeightGradientTile> tile = Recogniser(*sum).run();
  if (!tile || tile->groups == nullptr || tile->bands == nullptr || !suits(*tile, target))
    return std::nullopt;
  const std::optional<Statement> store = only_store(*sum);
  if (!store || store->value->kind != ScalarKind::Local ||
      nest.buffers[store->id].dtype != DType::F32 || store->view.size() != 6)
    return std::nullopt;
  const std::vector<const Statement*> order = {tile->groups, tile->bands,   tile->outputs,
                                               tile->rows,   tile->columns, tile->channels};
  for (std::size_t axis = 0; axis < order.size(); ++axis) {
    const Scalar& at = store->indices[axis];
    if (at->kind != ScalarKind::Loop || at->id != order[axis]->id ||
        !(store->view[axis] == order[axis]->extent))
      return std::nullopt;
  }
  tile->result = store->id;
  return tile;
}

std::int64_t strip_columns(const WeightGradientTile& tile) {
  const std::int64_t all = tile.along->extent.constant() + kWindowColumns - 1;
  std::int64_t best = kMostColumns, least = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t columns = kMostColumns; columns >= kStep; columns -= kStep) {
    const std::int64_t strips = (all + columns - 1) / columns,
                       done = strips * (columns + kStep / 2);
    if (done < least) {
      least = done;
      best = columns;
    }
  }
  return best;
}

Dim unit_count(const WeightGradientTile& tile) {
  return tile.groups->extent * tile.bands->extent * Dim(tile_pairs(tile));
}

std::uint32_t weight_gradient_shared_bytes(const WeightGradientTile& tile) {
  const std::int64_t columns = strip_columns(tile);
  const std::int64_t half = ((columns + kWindowColumns - 1) * 128 + 1023) / 1024 * 1024;
  return static_cast<std::uint32_t>(1024 + (kImageRows + kStagedRows) * (kMostColumns * kTile * 4) +
                                    kGradientRows * 2 * half);
}

}  // namespace tenon::codegen::cuda
