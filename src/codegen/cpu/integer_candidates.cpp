#include "codegen/cpu/integer_candidates.h"

#include "base/error.h"
#include "base/text.h"
#include "codegen/cpu/integer_tiles.h"
#include "codegen/cpu/nest_passes.h"
#include "expr/access.h"
#include "nests/integer_contraction.h"
#include "target/dot_instructions.h"

#include <algorithm>

namespace tenon::codegen::cpu {
namespace {

// Cost factor of alternatives that the cost model cannot distinguish from the default: they are
// chosen only by tuning.
constexpr double kUntimedInteger = 1.1;

// Totals over all int8 contractions of a nest: multiply-accumulates and bytes of weights; the
// longest reduction.
struct Int8Contraction {
  double products = 0, weights = 0, length = 0;
};
std::optional<Int8Contraction> find_int8_contraction(LoopNest nest) {
  Block* stages = stages_of(nest);
  double around = 1;
  for (const Block* block = &nest.body; stages != nullptr && block != stages;
       block = &block->front().body)
    around *= size_hint(block->front().extent);
  Int8Contraction all;
  for (std::size_t k = 0; k < (stages == nullptr ? 1 : stages->size()); ++k) {
    const Block stage = stages == nullptr ? nest.body : Block{(*stages)[k]};
    const auto sum = nests::find_integer_contraction(stage);
    if (!sum) continue;
    double results = around, length = 1, weights = 1;
    for (const Statement* loop : sum->parallel) results *= size_hint(loop->extent);
    for (const Statement* loop : sum->reduction) length *= size_hint(loop->extent);
    for (const Dim& dim : sum->b->view) weights *= size_hint(dim);
    all.products += results * length;
    all.length = std::max(all.length, length);
    all.weights += weights;
  }
  return all.products > 0 ? std::optional(all) : std::nullopt;
}

}  // namespace

std::vector<Candidate> integer_candidates(const KernelWork& work, const TargetFacts& facts) {
  const std::optional<Int8Contraction> sum = find_int8_contraction(work.part.nest);
  if (!sum) return {};
  const unsigned lanes = facts.vector_bits / 32;
  std::vector<TileShape> shapes = {{facts.registers >= 32 ? 14U : 5U, 2 * lanes},
                                   {facts.registers >= 32 ? 8U : 4U, 2 * lanes}};
  if (facts.registers >= 32) shapes.push_back({6, 4 * lanes});
  const std::vector<bool> packs = may_pack(work.part, work.is_constant);
  const std::string refusal = integer_tile_refusal(work.part.nest, packs);
  // With AMX the listed int8 rate is that of tiles; VNNI vectors have four times the f32 rate.
  const bool has_amx_tiles = dot_instructions(facts) == "amx-int8";
  const bool fits = has_amx_tiles && fits_amx_tiles(work.part.nest, packs);
  // AMX accumulators are moved to vectors through memory. For short reductions this takes longer
  // than computing with VNNI vectors.
  const bool pays = fits && sum->length > facts.heuristics.max_vnni_reduction;
  if (fits) shapes.insert(pays ? shapes.begin() : shapes.end(), {2 * kOwnTileRows, 2 * lanes});
  const double products = has_amx_tiles && !pays ? 4 * facts.multiply_adds_per_cycle()
                                                 : facts.multiply_adds_per_cycle(DType::U8);
  const double cost =
      sum->products / products + sum->weights / facts.bytes_per_cycle(facts.memory());
  std::vector<Candidate> list;
  for (const bool is_loop_order_swapped : {false, true}) {
    for (TileShape shape : shapes) {
      shape.is_loop_order_swapped = is_loop_order_swapped;
      const bool is_first = list.empty();
      Candidate& made = list.emplace_back();
      made.name = concat("dot tiles ", shape.rows, "x", shape.columns,
                         is_loop_order_swapped ? " reordered" : "");
      made.verdict = refusal.empty() ? yes(is_first ? cost : cost * kUntimedInteger) : no(refusal);
      made.make =
          made_by_passes(work, [shape, &facts] { return integer_tile_passes(shape, facts); });
    }
  }
  return list;
}

}  // namespace tenon::codegen::cpu
