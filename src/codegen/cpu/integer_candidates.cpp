#include "codegen/cpu/integer_candidates.h"

#include "base/error.h"
#include "base/text.h"
#include "codegen/cpu/integer_tiles.h"
#include "codegen/cpu/schedule.h"
#include "nests/integer_contraction.h"
#include "nests/materialise.h"
#include "ops/access.h"

namespace tenon::codegen::cpu {
namespace {

// What only the clock can tell from the first choice costs more: it has to be timed to be taken.
constexpr double kUntimed = 1.1;

decltype(Candidate::make) dots(const KernelWork& work, const TileShape& shape,
                               const TargetFacts& target) {
  return [shape, part = &work.part, &is_constant = work.is_constant, &target](
             NestSequence& sequence, std::vector<nests::WinogradWeights>&) {
    std::vector<MadeKernel> made;
    for (NestSequence::Part& nest : nests::split_byte_padding(sequence, *part)) {
      materialise_subexpressions(nest.nest);
      auto packings = tile_integers(nest.nest, may_pack(nest, is_constant), shape, target);
      if (!packings) schedule(nest.nest);
      nest.is_scheduled = true;
      made.push_back({std::move(nest), packings ? std::move(*packings) : std::vector<Packing>()});
    }
    return made;
  };
}

}  // namespace

std::vector<Candidate> integer_candidates(const KernelWork& work, const TargetFacts& facts) {
  const auto sum = nests::find_integer_contraction(work.part.nest.body);
  if (!sum) return {};
  const unsigned lanes = facts.vector_bits / 32;
  std::vector<TileShape> shapes = {{facts.registers >= 32 ? 14U : 5U, 2 * lanes},
                                   {facts.registers >= 32 ? 8U : 4U, 2 * lanes}};
  if (facts.registers >= 32) shapes.push_back({6, 4 * lanes});
  const std::string refusal =
      integer_tile_refusal(work.part.nest.body, may_pack(work.part, work.is_constant));
  double products = 1, weights = 1;
  for (const auto* loops : {&sum->parallel, &sum->reduction}) {
    for (const Statement* loop : *loops) products *= usual_value(loop->extent);
  }
  for (const Dim& dim : sum->b->view) weights *= usual_value(dim);
  const double cost = products / facts.products_per_cycle(DType::U8) +
                      weights / facts.bytes_per_cycle(facts.memory());
  std::vector<Candidate> list;
  for (const bool is_reordered : {false, true}) {
    for (TileShape shape : shapes) {
      shape.is_reordered = is_reordered;
      const bool is_first = list.empty();
      Candidate& made = list.emplace_back();
      made.name =
          concat("dot tiles ", shape.rows, "x", shape.columns, is_reordered ? " reordered" : "");
      made.verdict = refusal.empty() ? yes(is_first ? cost : cost * kUntimed) : no(refusal);
      made.make = dots(work, shape, facts);
    }
  }
  return list;
}

}  // namespace tenon::codegen::cpu
