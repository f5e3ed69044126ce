#include "codegen/cpu/nest_passes.h"

#include "codegen/cpu/candidates.h"
#include "codegen/cpu/integer_tiles.h"
#include "codegen/cpu/run_time_packing.h"
#include "nests/integer_contraction.h"
#include "nests/materialise.h"
#include "nests/schedule/pad.h"
#include "nests/schedule/strip_mine_quotients.h"
#include "nests/schedule/transposed_operand.h"
#include "nests/schedule/trim_masked_loops.h"
#include "nests/schedule/trim_padding_loops.h"
#include "nests/split_reductions.h"
#include "nests/tile_and_fuse.h"
#include "target/bf16.h"
#include "target/candidate.h"
#include "target/fusion_prices.h"

#include <iterator>
#include <memory>
#include <optional>
#include <utility>

namespace tenon::codegen::cpu {
namespace {

using nests::NestWork;
using Calls = std::vector<NestSequence::NestCall>;

constexpr nests::NestPassInfo kPasses[] = {
    {"drop-factor-casts", "first: all matchers of contractions expect bare factors"},
    {"strip-mine-quotients", "before matchers, which expect affine coordinates"},
    {"split-reductions", "before fusion, which would hide the traversals that reductions share"},
    {"reserve-winograd", "before passes that rewrite operands: Winograd reads the given layout"},
    {"transpose-operands", "before fusion: the copies are stages that it fuses"},
    {"tile-and-fuse", "last before the choice: candidates schedule the fused stages"},
    {"winograd", "alone: its nests are built with their schedule"},
    {"pad-operands", "first of the candidates' passes: tiles read inside their operands"},
    {"pad-bytes", "like pad-operands, with reductions of a multiple of four"},
    {"materialise-subexpressions", "before tiles, which schedule the loops that it adds"},
    {"register-tile", "after padding; chooses the operands to pack"},
    {"integer-tile", "after padding; chooses the operands to pack"},
    {"pack-at-run-time", "after tiles, which request the packings"},
    {"trim-masked-loops", "after tiles, whose rows decide which keys are hidden"},
    {"trim-padding-loops", "after tiles, whose rows decide which window rows are padding"},
    {"bind-loops", "last: schedules the nests without tiles"},
};

NestPass named(std::string_view name, std::function<void(NestWork&)> run) {
  return nests::pass_of(kPasses, name, std::move(run));
}
NestPass for_each_nest(std::string_view name, std::function<void(LoopNest&)> run) {
  return named(name, [run = std::move(run)](NestWork& work) {
    for (NestSequence::NestCall& part : work.sequence.parts) run(part.nest);
  });
}

// Replaces each part by those that `rewrite` returns for it.
template <class Rewrite>
void replace_parts(NestWork& work, const Rewrite& rewrite) {
  Calls parts = std::exchange(work.sequence.parts, {});
  Calls made;
  for (NestSequence::NestCall& part : parts) {
    Calls replacements = rewrite(part);
    std::ranges::move(replacements, std::back_inserter(made));
  }
  work.sequence.parts = std::move(made);
}

bool prefers_winograd(const NestWork& work, const NestSequence::NestCall& part,
                      const TargetFacts& facts, bool allow_winograd) {
  if (!nests::find_contraction(part.nest)) return false;
  const std::vector<Candidate> candidates =
      candidates_for({work.sequence, part, work.is_constant, allow_winograd}, facts);
  return candidates[cheapest(candidates)].is_winograd;
}

// Pads operands that are read beyond their edges, since fused tiles read inside their operands.
// The nests stay unchanged if none are fused.
void pad_and_fuse(NestWork& work, const TargetFacts& facts) {
  const bool in_pairs = !bf16_instructions(facts).empty();
  NestSequence fused = work.sequence;
  fused.parts.clear();
  for (const NestSequence::NestCall& part : work.sequence.parts) {
    if (part.is_indivisible) {
      fused.parts.push_back(part);
      continue;
    }
    for (NestSequence::NestCall& made :
         split_padding(fused, part, work.is_constant, in_pairs, facts.llc_bytes_per_operand()))
      fused.parts.push_back(std::move(made));
  }
  const std::size_t count = fused.parts.size();
  tile_and_fuse(fused, fusion_prices(facts));
  if (fused.parts.size() != count) work.sequence = std::move(fused);
}

void mark_tiled(NestSequence::NestCall& part, std::optional<std::vector<Packing>> packings) {
  if (!packings) return;
  part.packings = std::move(*packings);
  part.is_scheduled = true;
}

NestPass pack_operands() {
  return named("pack-at-run-time", [](NestWork& work) {
    replace_parts(work, [&](NestSequence::NestCall& part) {
      Calls made = pack_at_run_time(work.sequence, part, part.packings, work.is_constant);
      made.push_back(std::move(part));
      return made;
    });
  });
}

NestPass bind_loops(const LoopShape& shape) {
  return named("bind-loops", [shape](NestWork& work) {
    for (NestSequence::NestCall& part : work.sequence.parts) {
      if (!part.is_scheduled) schedule(part.nest, shape);
      part.is_scheduled = true;
    }
  });
}

}  // namespace

std::span<const nests::NestPassInfo> nest_pass_list() { return kPasses; }

std::vector<NestPass> node_passes(const TargetFacts& facts, bool allow_winograd) {
  return {
      for_each_nest("drop-factor-casts", nests::drop_casts_of_factors),
      for_each_nest(
          "strip-mine-quotients",
          [&](LoopNest& nest) { nests::strip_mine_quotients(nest, facts.vector_bits / 32); }),
      named("split-reductions", [](NestWork& work) { split_reductions(work.sequence); }),
      named("reserve-winograd",
            [&, allow_winograd](NestWork& work) {
              for (NestSequence::NestCall& part : work.sequence.parts)
                part.is_indivisible = prefers_winograd(work, part, facts, allow_winograd);
            }),
      named("transpose-operands",
            [&](NestWork& work) {
              transpose_operands(work.sequence, work.is_constant, facts.line_bytes / 4,
                                 !bf16_instructions(facts).empty());
            }),
      named("tile-and-fuse", [&](NestWork& work) { pad_and_fuse(work, facts); }),
  };
}

std::vector<NestPass> register_tile_passes(const TileShape& shape, const TargetFacts& facts) {
  // Known between padding and tiling only.
  const auto border = std::make_shared<std::optional<nests::ZeroPadding>>();
  return {
      named("pad-operands",
            [=, &facts](NestWork& work) {
              replace_parts(work, [&](const NestSequence::NestCall& part) {
                return split_padding(work.sequence, part, work.is_constant, shape.is_paired,
                                     facts.llc_bytes_per_operand());
              });
              const Calls& parts = work.sequence.parts;
              if (parts.size() == 2 && !shape.is_paired)
                *border = nests::zero_padding(parts[0], parts[1]);
            }),
      for_each_nest("materialise-subexpressions", nests::materialise_subexpressions),
      named("register-tile",
            [=, &facts](NestWork& work) {
              for (NestSequence::NestCall& part : work.sequence.parts) {
                std::vector<bool> packs = may_pack(part, work.is_constant);
                add_profitable_packings(packs, part, shape, facts);
                mark_tiled(part, tile_contraction(part.nest, packs, shape, facts));
              }
            }),
      pack_operands(),
      named("trim-masked-loops",
            [](NestWork& work) {
              for (NestSequence::NestCall& part : work.sequence.parts) {
                if (part.is_scheduled) nests::trim_masked_loops(part.nest);
              }
            }),
      named("trim-padding-loops",
            [=](NestWork& work) {
              NestSequence::NestCall& sum = work.sequence.parts.back();
              if (*border && sum.is_scheduled) nests::trim_padding_loops(sum.nest, **border);
            }),
      bind_loops({}),
  };
}

std::vector<NestPass> integer_tile_passes(const TileShape& shape, const TargetFacts& facts) {
  return {
      named("pad-bytes",
            [](NestWork& work) {
              replace_parts(work, [&](const NestSequence::NestCall& part) {
                return nests::split_byte_padding(work.sequence, part);
              });
            }),
      for_each_nest("materialise-subexpressions", nests::materialise_subexpressions),
      named("integer-tile",
            [=, &facts](NestWork& work) {
              for (NestSequence::NestCall& part : work.sequence.parts)
                mark_tiled(
                    part, tile_integers(part.nest, may_pack(part, work.is_constant), shape, facts));
            }),
      bind_loops({}),
  };
}

std::vector<NestPass> winograd_passes(const WindowContraction& window, std::int64_t block,
                                      const TargetFacts& facts) {
  return {named("winograd", [=, &facts](NestWork& work) {
    const NestSequence::NestCall part = work.sequence.parts.front();
    const bool is_constant = window.has_constant_weights;
    const std::size_t weights = work.sequence.buffers.size();
    work.sequence.buffers.push_back(
        {is_constant ? NestSequence::BufferRole::Derived : NestSequence::BufferRole::Temporary,
         is_constant ? work.derived.size() : 0, DType::F32, window.weights.dims()});
    Calls made;
    if (is_constant) {
      work.derived.push_back(window.weights);
    } else {
      made.push_back(weight_nest(work.sequence, part.nest.name, window.weights, weights));
    }
    Calls nests = winograd_nests(work.sequence, part, window, weights, block, facts);
    std::ranges::move(nests, std::back_inserter(made));
    for (NestSequence::NestCall& each : made) each.is_scheduled = true;
    work.sequence.parts = std::move(made);
  })};
}

std::vector<NestPass> loop_passes(const LoopShape& shape) {
  return {for_each_nest("materialise-subexpressions", nests::materialise_subexpressions),
          bind_loops(shape)};
}

}  // namespace tenon::codegen::cpu
