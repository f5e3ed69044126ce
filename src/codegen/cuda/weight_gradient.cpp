#include "codegen/cuda/weight_gradient.h"

#include "base/error.h"
#include "codegen/cuda/library_conditions.h"
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
constexpr std::int64_t kMostColumns = 64;  // columns of a strip
constexpr std::int64_t kStep = 8;          // positions per wgmma instruction (K)
constexpr std::int64_t kWindowPart = 3;    // rows and columns of the window per unit
constexpr std::int64_t kMostWindow = 7;
// Minimum columns of a strip: below, the overhead per row exceeds the products.
constexpr std::int64_t kFewestColumns = 24;
// Minimum share of useful channels in the tiles: below, the padding costs more than the kernel
// gains.
constexpr double kLeastUsed = 0.7;
// Copies are aligned to 16 bytes.
constexpr std::int64_t kAligned = 4;
// Ring-buffer rows of transposed images, gradients and staged images, as in
// `weight_gradient_template()`.
constexpr std::int64_t kImageRows = 5, kGradientRows = 3, kStagedRows = 2;

// Recognises how loads index the parallel and reduction loops.
class Recogniser {
 public:
  explicit Recogniser(const nests::Contraction& contraction) : contraction_(contraction) {
    for (const Statement* loop : contraction.parallel) parallel_[loop->id] = loop;
    for (const Statement* loop : contraction.reduction) reduction_[loop->id] = loop;
  }

  std::optional<WeightGradientTile> run() {
    for (const bool is_a_gradient : {true, false}) {
      tile_ = {};
      tile_.gradient = is_a_gradient ? contraction_.a : contraction_.b;
      tile_.image = is_a_gradient ? contraction_.b : contraction_.a;
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

  // Matches a reduction loop and an optional outer loop over pieces of it that together cover the
  // axis.
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

  // Matches image index = gradient index + window loop - padding.
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
           std::all_of(contraction_.parallel.begin(), contraction_.parallel.end(),
                       [](const Statement* loop) { return !loop->limit.is_defined(); });
  }

  const nests::Contraction& contraction_;
  Loops parallel_, reduction_;
  WeightGradientTile tile_;
};

std::int64_t tiles_of(const Statement* loop) {
  return (loop->extent.constant() + kTile - 1) / kTile;
}

bool fills_tiles(const WeightGradientTile& tile) {
  double used = 1;
  for (const Statement* loop : {tile.outputs, tile.channels}) {
    if (!loop->extent.is_constant() || loop->extent.constant() % kAligned != 0) return false;
    used *=
        static_cast<double>(loop->extent.constant()) / static_cast<double>(tiles_of(loop) * kTile);
  }
  return used >= kLeastUsed;
}

bool suits(const WeightGradientTile& tile, const CudaTarget& target) {
  const std::int64_t columns = tile.columns->extent.constant();
  return target.has_wgmma() && target.allows_tf32 && fills_tiles(tile) &&
         tile.channels->extent == tile.image->view[3] &&
         tile.outputs->extent == tile.gradient->view[3] && columns >= kWindowPart &&
         columns <= kMostWindow && tile.rows->extent.constant() <= kMostWindow &&
         strip_of(tile).columns >= kFewestColumns;
}

std::int64_t tile_pairs(const WeightGradientTile& tile) {
  return tiles_of(tile.outputs) * tiles_of(tile.channels);
}

// Parts of the window in the order of their units: rows times columns of each.
std::vector<std::int64_t> window_parts(const WeightGradientTile& tile) {
  const auto parts_of = [](std::int64_t all) {
    const std::int64_t parts = (all + kWindowPart - 1) / kWindowPart;
    std::vector<std::int64_t> made;
    for (std::int64_t k = 0; k < parts; ++k) made.push_back(all / parts + (k < all % parts));
    return made;
  };
  std::vector<std::int64_t> columns = parts_of(tile.columns->extent.constant()), made;
  for (const std::int64_t rows : parts_of(tile.rows->extent.constant())) {
    for (const std::int64_t each : columns) made.push_back(rows * each);
    std::reverse(columns.begin(), columns.end());
  }
  return made;
}

// Makespan of the busiest block when units are assigned round-robin: units of one part are
// consecutive, `count` each.
std::int64_t longest_turns(const std::vector<std::int64_t>& parts, std::int64_t count,
                           std::int64_t blocks) {
  std::vector<std::int64_t> taken(static_cast<std::size_t>(blocks));
  std::size_t block = 0;
  for (const std::int64_t part : parts) {
    for (std::int64_t k = 0; k < count; ++k) {
      taken[block] += part;
      if (++block == taken.size()) block = 0;
    }
  }
  return *std::max_element(taken.begin(), taken.end());
}

// Images per group and rows per band.
struct Pieces {
  std::int64_t images = 1, lines = 1;
};

constexpr std::int64_t kUsualBatch = 8;
std::int64_t batch_of(const WeightGradientTile& tile) {
  return tile.gradient->view[0].is_constant() ? tile.gradient->view[0].constant() : kUsualBatch;
}

// Chooses pieces that minimize the makespan. Every band rereads the overlapping rows of a window at
// its start.
Pieces choose_pieces(const WeightGradientTile& tile, const CudaTarget& target) {
  const std::int64_t units = gpu_facts(target.architecture).units, tiles = tile_pairs(tile);
  const std::vector<std::int64_t> parts = window_parts(tile);
  const std::int64_t lines = tile.lines->extent.constant(),
                     again = std::min(tile.rows->extent.constant(), kWindowPart) - 1;
  // Images in one strip count as one.
  const std::int64_t together = strip_of(tile).images,
                     batch = (batch_of(tile) + together - 1) / together;
  // Cost of writing and reading a partial sum, in rows.
  constexpr double kSumRows = 4;
  Pieces best;
  double least = std::numeric_limits<double>::max();
  for (std::int64_t images = 1; images <= batch; ++images) {
    const std::int64_t groups = (batch + images - 1) / images;
    if (images > 1 && groups == (batch + images - 2) / (images - 1)) continue;
    for (std::int64_t bands = 1; bands <= lines; ++bands) {
      const std::int64_t band = (lines + bands - 1) / bands;
      const std::int64_t count = tiles * groups * ((lines + band - 1) / band);
      const double turns = static_cast<double>(longest_turns(parts, count, units)) /
                           static_cast<double>(parts.front());
      const double cost = turns * (static_cast<double>(images * band) +
                                   0.25 * static_cast<double>(images * again) + kSumRows);
      if (cost < least) {
        least = cost;
        best = {images * together, band};
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

// Pieces may end past the last row: those reads yield zero.
void fill_with_zeros(Statement& fold, const WeightGradientTile& tile) {
  Block block{std::move(fold)};
  nests::ScalarRewriter rewriting([&](ScalarNode node) {
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

std::optional<std::vector<NestSequence::NestCall>> split_weight_gradient(
    NestSequence& sequence, const NestSequence::NestCall& part,
    const nests::Contraction& contraction, const CudaTarget& target) {
  const std::optional<WeightGradientTile> found = Recogniser(contraction).run();
  if (!found || found->groups != nullptr || found->bands != nullptr || !suits(*found, target) ||
      !starts_from_zero((*contraction.inner)[0]) || !found->lines->extent.is_constant())
    return std::nullopt;
  const WeightGradientTile& tile = *found;
  const Pieces pieces = choose_pieces(tile, target);
  const Dim groups = ceil_div(tile.images->extent, pieces.images),
            bands = ceil_div(tile.lines->extent, pieces.lines);
  const std::vector<const Statement*> window = {tile.outputs, tile.rows, tile.columns,
                                                tile.channels};
  Dims dims = {groups, bands};
  for (const Statement* loop : window) dims.push_back(loop->extent);
  const std::size_t temporary = sequence.buffers.size(), local = (*contraction.inner)[0].id;
  sequence.buffers.push_back({NestSequence::BufferRole::Temporary, 0, DType::F32, dims});
  const std::size_t buffer = part.nest.buffers.size();

  NestSequence::NestCall first = part, second = part;
  std::vector<Scalar> place;
  for (NestSequence::NestCall* made : {&first, &second}) {
    const bool is_first = made == &first;
    made->nest.buffers.push_back({concat("m", temporary), DType::F32, dims,
                                  is_first ? StorageClass::Result : StorageClass::Operand});
    made->buffers.push_back(temporary);
    LoopNest& nest = made->nest;
    const std::size_t group = nest.new_loop("group"), band = nest.new_loop("band");
    place = {loop_scalar(group), loop_scalar(band)};
    for (const Statement* loop : window) place.push_back(loop_scalar(loop->id));
    Block body{(*contraction.inner)[0]};
    Statement fold = fold_of((*contraction.inner)[1]);
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
      body.insert(body.end(), contraction.inner->begin() + 2, contraction.inner->end());
      nest.body = nests::in_loops(window, std::move(body));
      nest.name += "_epilogue";
    }
    list_extents(nest);
    nests::drop_unused_buffers(*made);
  }
  return std::vector<NestSequence::NestCall>{std::move(first), std::move(second)};
}

std::optional<WeightGradientTile> match_weight_gradient_tile(const LoopNest& nest,
                                                             const CudaTarget& target) {
  const auto contraction = nests::find_contraction(nest);
  if (!contraction || !starts_from_zero((*contraction->inner)[0])) return std::nullopt;
  std::optional<WeightGradientTile> tile = Recogniser(*contraction).run();
  if (!tile || tile->groups == nullptr || tile->bands == nullptr || !suits(*tile, target) ||
      tile->images->extent.constant() % strip_of(*tile).images != 0)
    return std::nullopt;
  const std::optional<Statement> store = only_store(*contraction);
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

GradientStrip strip_of(const WeightGradientTile& tile) {
  const std::int64_t window = tile.columns->extent.constant(), before = tile.columns_before,
                     row = tile.image->view[2].constant();
  // Overhead per row, in columns of products.
  constexpr std::int64_t kRowColumns = kStep / 2;
  GradientStrip best{kMostColumns, 1, 0};
  double least = std::numeric_limits<double>::max();
  const auto consider = [&](const GradientStrip& strip, double columns) {
    if (columns >= least) return;
    least = columns;
    best = strip;
  };
  for (std::int64_t columns = kMostColumns; columns >= kStep; columns -= kStep) {
    const std::int64_t strips = (row + columns - 1) / columns;
    consider({columns, 1, 0}, static_cast<double>(strips * (columns + kRowColumns)));
  }
  // Padding between images keeps shifted reads of one row out of the next.
  const std::int64_t pitch =
      std::max(row + before, tile.gradient->view[2].constant() + window - 1 - before);
  const std::int64_t most = std::min(kMostColumns / pitch, batch_of(tile));
  for (std::int64_t images = 2; images <= most; ++images) {
    const std::int64_t columns = (images * pitch + kStep - 1) / kStep * kStep;
    consider({columns, images, pitch},
             static_cast<double>(columns + kRowColumns) / static_cast<double>(images));
  }
  return best;
}

Dim unit_count(const WeightGradientTile& tile) {
  const auto parts = static_cast<std::int64_t>(window_parts(tile).size());
  return tile.groups->extent * tile.bands->extent * Dim(tile_pairs(tile) * parts);
}

std::uint32_t weight_gradient_shared_bytes(const WeightGradientTile& tile) {
  const std::int64_t columns = strip_of(tile).columns + tile.columns->extent.constant() - 1;
  const std::int64_t half = (columns * 128 + 1023) / 1024 * 1024;
  return static_cast<std::uint32_t>(1024 + (kImageRows + kStagedRows) * (kMostColumns * kTile * 4) +
                                    kGradientRows * 2 * half);
}

}  // namespace tenon::codegen::cuda
