#include "codegen/cpu/candidates.h"

#include "base/error.h"
#include "codegen/cpu/integer_candidates.h"
#include "codegen/cpu/nest_passes.h"
#include "codegen/cpu/work_partition.h"
#include "expr/access.h"
#include "nests/materialise.h"
#include "target/bf16.h"

#include <algorithm>
#include <cmath>

namespace tenon::codegen::cpu {
namespace {

using nests::WinogradWeights;

constexpr double kLatency = 4;
// Cost factor of alternatives that the cost model cannot distinguish from the default: they are
// chosen only by tuning.
constexpr double kUntimed = 1.1;
// Cost factor of an unblocked reduction if the facts favor K-blocking.
constexpr double kLostWhole = 1.05;

// Cycles per reduction step of a register tile: two FMAs and two loads issue per cycle, and an
// accumulator waits for its previous FMA.
double step_cycles(double rows, double vectors) {
  return std::max({rows * vectors / 2, (rows + vectors) / 2, kLatency});
}

// Balanced row tiles, as the emitter creates them: sizes and counts.
struct RowTiles {
  std::int64_t large = 1, large_count = 1, small = 0, small_count = 0;
};
RowTiles row_tiles(std::optional<std::int64_t> row_count, std::int64_t most) {
  if (!row_count) return {most, 10, 1, most / 2};
  const std::int64_t count = std::max<std::int64_t>(*row_count, 1),
                     tiles = (count + most - 1) / most;
  RowTiles split;
  split.large = (count + tiles - 1) / tiles;
  split.small = split.large - 1;
  split.large_count = count - split.small * tiles;
  split.small_count = tiles - split.large_count;
  return split;
}

std::int64_t column_width(std::int64_t column_count, std::int64_t columns) {
  while (columns > 4 && columns > column_count) columns /= 2;
  return columns;
}

// Cycles per reduction step over all rows and columns, for vectors of `lanes` elements.
double tiled_cycles(const TileFacts& facts, const TileShape& shape, std::int64_t lanes) {
  const RowTiles rows = row_tiles(facts.row_count, std::min(shape.rows, facts.max_rows));
  const auto cycles = [&](double vectors) {
    return static_cast<double>(rows.large_count) *
               step_cycles(static_cast<double>(rows.large), vectors) +
           static_cast<double>(rows.small_count) *
               step_cycles(static_cast<double>(rows.small), vectors);
  };
  const std::int64_t width = column_width(facts.column_count, shape.columns);
  const std::int64_t whole = facts.column_count / width, left = facts.column_count % width;
  // Remaining columns use single vectors.
  return static_cast<double>(whole) * cycles(static_cast<double>((width + lanes - 1) / lanes)) +
         static_cast<double>((left + lanes - 1) / lanes) * cycles(1);
}

std::string tile_name(const TileShape& shape) {
  return concat(shape.is_paired ? "pairs " : "tiles ", shape.rows, "x", shape.columns,
                shape.depth > 0 ? concat(" by ", shape.depth) : "",
                shape.is_loop_order_swapped ? " reordered" : "");
}

double product_count(const Contraction& contraction) {
  double products = 1;
  for (const auto* loops : {&contraction.parallel, &contraction.reduction}) {
    for (const Statement* loop : *loops) products *= size_hint(loop->extent);
  }
  return products;
}

// Number of folds in a nest of several stages.
double products_in(const Block& block) {
  double count = 0;
  for (const Statement& statement : block) {
    count += statement.kind == Statement::Kind::Fold ? 1 : 0;
    if (statement.kind == Statement::Kind::Loop)
      count += size_hint(statement.extent) * products_in(statement.body);
  }
  return count;
}

class Lister {
 public:
  Lister(const KernelWork& work, const TargetFacts& facts)
      : work_(work),
        target_(facts),
        products_(facts.multiply_adds_per_cycle()),
        bytes_(facts.bytes_per_cycle(facts.memory())),
        sum_(find_contraction(work.part.nest)) {}

  std::vector<Candidate> run() {
    if (sum_) add_windows();
    const std::vector<bool> packs = may_pack(work_.part, work_.is_constant);
    const TileFacts facts = tile_facts(work_.part.nest, packs, target_);
    const bool has_reductions = sum_ || facts.refusal.empty() || facts.reduction_refusal.empty();
    if (has_reductions) add_tiles(facts, packs);
    std::vector<Candidate> of_bytes = integer_candidates(work_, target_);
    const bool has_any = has_reductions || !of_bytes.empty();
    for (Candidate& candidate : of_bytes) list_.push_back(std::move(candidate));
    add_loops(has_any ? weight_bytes(packs) : 0);
    return std::move(list_);
  }

 private:
  void add(std::string name, Verdict verdict, decltype(Candidate::make) make = {}) {
    list_.push_back({std::move(name), std::move(verdict), false, std::move(make)});
  }

  void add_windows() {
    const FoundWindow found = find_window(work_.part, work_.is_constant);
    std::string refusal = found.refusal;
    if (found.window) {
      const WinogradWeights& w = found.window->weights;
      if (std::min(w.channels, w.outputs) < kFewestChannels) {
        refusal = concat("transforms outweigh the products of fewer than ", kFewestChannels,
                         " channels or outputs; here ", w.channels, " and ", w.outputs);
      }
    }
    if (!work_.allow_winograd) refusal = "disabled: larger rounding errors";
    for (const int tile : {4, 2}) {
      const std::string name = concat("winograd ", tile, "x", tile);
      if (!refusal.empty()) {
        add(name, no(refusal));
      } else {
        add_winograd(name, *found.window, tile);
      }
    }
  }

  // The cost model gives all block sizes equal cost; the default is used unless tuned.
  void add_winograd(const std::string& name, WindowContraction window, int tile) {
    const double cost = estimated(window, tile);
    window.weights.tile = tile;
    window.weights.columns = winograd_columns(window, target_);
    const std::int64_t usual = tiles_in_block(window);
    add_block(name, window, cost, usual);
    for (const std::int64_t wanted : {0, 12, 24, 48, 96}) {
      const std::string full_name =
          wanted == 0 ? name + " all at once" : concat(name, " by ", wanted);
      const std::int64_t blocks = wanted == 0 ? 1 : (window.tiles_hint() + wanted - 1) / wanted;
      const std::int64_t block = wanted == 0 ? 0 : (window.tiles_hint() + blocks - 1) / blocks;
      if (block == usual) {
        add(full_name, no(concat("identical here to ", name)));
      } else if (wanted != 0 && blocks < 2) {
        add(full_name, no(concat("its ", window.tiles_hint(), " tiles are one block")));
      } else {
        add_block(full_name, window, cost * kUntimed, block);
      }
    }
  }

  void add_block(const std::string& name, const WindowContraction& window, double cost,
                 std::int64_t block) {
    add(name, yes(cost), made_by([window, block, &target = target_] {
          return winograd_passes(window, block, target);
        }));
    list_.back().is_winograd = true;
  }

  // Winograd must win by a margin that justifies its memory use and larger rounding errors.
  double estimated(WindowContraction window, int tile) const {
    constexpr double kPays = 0.8;
    window.weights.tile = tile;
    return at_size_hint(winograd_cost(window, target_) / kPays, window);
  }

  // For a symbolic batch, other candidates count images by the size hint, whereas Winograd counts
  // the minimum. Scales the cost to the size hint for comparison.
  double at_size_hint(double cost, const WindowContraction& window) const {
    if (window.batches.is_constant()) return cost;
    const double products = product_count(*sum_) / products_;
    const double weights = weight_bytes(may_pack(work_.part, work_.is_constant)) / bytes_;
    return cost * std::max(products, weights) /
           std::max(products / size_hint(window.batches), weights);
  }

  // Constants, which every candidate reads.
  double weight_bytes(const std::vector<bool>& packs) const {
    double bytes = 0;
    for (std::size_t k = 0; k < packs.size(); ++k) {
      const NestBuffer& buffer = work_.part.nest.buffers[k];
      if (packs[k])
        bytes +=
            static_cast<double>(info(buffer.dtype).storage_bytes) * size_hint(product(buffer.dims));
    }
    return bytes;
  }

  void add_tiles(const TileFacts& facts, const std::vector<bool>& packs) {
    const std::vector<TileShape> shapes = tile_shapes();
    const auto lanes = static_cast<std::int64_t>(target_.vector_bits / 32);
    const double products = sum_ ? product_count(*sum_) : products_in(work_.part.nest.body);
    // Weights stream from memory while arithmetic overlaps.
    const double cost = std::max(products / products_, weight_bytes(packs) / bytes_);
    const double usual = facts.refusal.empty() ? tiled_cycles(facts, shapes.front(), lanes) : 1;
    const bool has_parts = facts.refusal.empty() && facts.depth_refusal.empty() &&
                           gains_by_k_blocking(shapes.front(), target_);
    for (const bool is_loop_order_swapped : {false, true}) {
      for (TileShape shape : shapes) {
        shape.is_loop_order_swapped = is_loop_order_swapped;
        const std::string refusal =
            facts.refusal.empty() ? refusal_of(shape, facts, shapes) : facts.refusal;
        if (!refusal.empty()) {
          add(tile_name(shape), no(refusal));
          continue;
        }
        const bool is_first = is_same(shape, shapes.front()) && !is_loop_order_swapped;
        const double share =
            is_first ? 1 : kUntimed * std::max(tiled_cycles(facts, shape, lanes) / usual, 1.0);
        add(tile_name(shape), yes(cost * share * (has_parts ? kLostWhole : 1)), tiles(shape));
      }
    }
    add_pairs(facts, shapes.front(), cost);
    add_depths(facts, shapes.front(), cost);
    add_reduction_vectors(facts, shapes.front(), cost);
  }

  // bf16 dot products without widening.
  void add_pairs(const TileFacts& facts, TileShape shape, double cost) {
    shape.is_paired = true;
    const std::string& refusal = facts.refusal.empty() ? facts.pair_refusal : facts.refusal;
    // With AMX the listed bf16 rate is that of tiles; vectors of pairs are as fast as f32.
    const double pairs = target_.multiply_adds_per_cycle(DType::BF16);
    const double share = facts.has_amx_tiles || bf16_instructions(target_) != "amx-bf16"
                             ? products_ / pairs
                             : kUntimed;
    if (!refusal.empty()) {
      add(tile_name(shape), no(refusal));
    } else {
      add(tile_name(shape), yes(cost * share), tiles(shape));
    }
  }

  // K-blocking, with columns that stay in L1. Only measurement tells whether L2 is fast enough to
  // reread them for every row tile.
  void add_depths(const TileFacts& facts, TileShape shape, double cost) {
    const unsigned most = k_block_for(shape, target_);
    for (const unsigned depth : {most, most / 2}) {
      shape.depth = depth;
      const std::string& refusal = facts.refusal.empty() ? facts.depth_refusal : facts.refusal;
      const bool is_first = depth == most && gains_by_k_blocking(shape, target_);
      if (!refusal.empty()) {
        add(tile_name(shape), no(refusal));
      } else {
        add(tile_name(shape), yes(cost * (is_first ? 1 : kUntimed)), tiles(shape));
      }
    }
  }

  // Each FMA loads a vector of the row and one of the shared operand, and lanes are reduced at the
  // end.
  void add_reduction_vectors(const TileFacts& facts, const TileShape& shape, double cost) {
    constexpr double kDots = 1.25, kFold = 8;
    const std::string name = concat("dots ", shape.rows);
    if (!facts.reduction_refusal.empty()) {
      add(name, no(facts.reduction_refusal));
      return;
    }
    double results = 1;
    for (const Statement* loop : sum_ ? sum_->parallel : std::vector<const Statement*>())
      results *= size_hint(loop->extent);
    double cycles = cost * kDots + results * kFold;
    TileShape along = shape;
    along.lanes_along_k = true;
    if (facts.refusal.empty()) {
      const auto lanes = static_cast<double>(target_.vector_bits / 32),
                 columns = static_cast<double>(facts.column_count);
      const double half = lanes / 2, vectors = std::floor(columns / half),
                   left = columns - vectors * half;
      cycles /= (vectors + left) * lanes /
                columns;  // Speed-up over tiles, which leave lanes unused with few columns.
    }
    add(name, yes(cycles), tiles(along));
  }

  // The default shape, then others whose accumulators, with one vector per column block and one row
  // element, fit the registers.
  std::vector<TileShape> tile_shapes() const {
    const unsigned lanes = target_.vector_bits / 32;
    std::vector<TileShape> shapes = {tile_for(target_.registers, target_.vector_bits)};
    std::vector<TileShape> others = {{6, 2 * lanes}, {4, 2 * lanes}, {3, 4 * lanes}, {2, 4 * lanes},
                                     {12, lanes},    {8, lanes},     {1, 8 * lanes}};
    if (target_.registers >= 32) others.insert(others.begin(), {{14, 2 * lanes}, {6, 4 * lanes}});
    for (const TileShape& other : others) {
      if (!is_same(other, shapes.front())) shapes.push_back(other);
    }
    return shapes;
  }

  static bool is_same(const TileShape& a, const TileShape& b) {
    return a.rows == b.rows && a.columns == b.columns;
  }

  // Skips shapes that result in the same tile as an earlier one.
  static std::string refusal_of(const TileShape& shape, const TileFacts& facts,
                                const std::vector<TileShape>& shapes) {
    const auto outcome = [&](const TileShape& s) {
      const RowTiles rows = row_tiles(facts.row_count, std::min(s.rows, facts.max_rows));
      return std::make_pair(rows.large, column_width(facts.column_count, s.columns));
    };
    for (const TileShape& other : shapes) {
      if (is_same(other, shape)) break;
      if (outcome(other) == outcome(shape)) {
        return concat("identical here to ",
                      tile_name({other.rows, other.columns, shape.is_loop_order_swapped}));
      }
    }
    if (!shape.is_loop_order_swapped) return "";
    if (!facts.has_other_loops) return "there are no loops around the tiles to turn";
    if (facts.column_count <= shape.columns) return "there is one block of columns";
    return "";
  }

  // Runs passes over the work's nest.
  decltype(Candidate::make) made_by(std::function<std::vector<NestPass>()> passes) const {
    return made_by_passes(work_, std::move(passes));
  }
  decltype(Candidate::make) tiles(const TileShape& shape) const {
    return made_by([shape, &target = target_] { return register_tile_passes(shape, target); });
  }
  decltype(Candidate::make) loops(const LoopShape& shape) const {
    return made_by([shape] { return loop_passes(shape); });
  }

  void add_loops(double read_bytes) {
    LoopNest base = work_.part.nest;
    materialise_subexpressions(base);
    LoopNest usual = base;
    const double cost = schedule(usual) * size_hint_share(base.body) + read_bytes / bytes_;
    const std::string usual_text = to_string(usual);
    if (!sum_) {
      for (const unsigned interleave : {1U, 2U, 8U}) {
        LoopShape shape;
        shape.interleave = interleave;
        const std::string name = concat("loops x", interleave);
        LoopNest other = base;
        schedule(other, shape);
        if (to_string(other) == usual_text) {
          add(name, no("no loop is simple enough for more than one vector at a time"));
        } else {
          add(name, yes(cost * kUntimed), loops(shape));
        }
      }
      for (const LoopCost& other : vectorize_others(base)) {
        LoopShape shape;
        shape.along = other.loop;
        add(concat("loops along ", base.loop_names[other.loop]),
            yes(std::max(other.cost, cost) * kUntimed), loops(shape));
      }
    }
    add("loops", yes(cost), loops({}));
  }

  // `schedule` assumes a fixed count for symbolic extents, other candidates use size hints. This
  // factor converts between them.
  static double size_hint_share(const Block& body) {
    double share = 1;
    for (const Block* block = &body;
         block->size() == 1 && block->front().kind == Statement::Kind::Loop;
         block = &block->front().body) {
      const Dim& extent = block->front().extent;
      if (!extent.is_constant()) share *= size_hint(extent) / kUnknownExtent;
    }
    return share;
  }

  static constexpr std::int64_t kFewestChannels = 16;
  const KernelWork& work_;
  const TargetFacts& target_;
  double products_, bytes_;  // FMAs, and bytes of weights from memory, per cycle of one core.
  std::optional<Contraction> sum_;
  std::vector<Candidate> list_;
};

}  // namespace

std::vector<Candidate> candidates_for(const KernelWork& work, const TargetFacts& facts) {
  return Lister(work, facts).run();
}

}  // namespace tenon::codegen::cpu
