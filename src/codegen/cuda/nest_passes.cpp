#include "codegen/cuda/nest_passes.h"

#include "codegen/cuda/attention.h"
#include "codegen/cuda/distribute_loops.h"
#include "codegen/cuda/fuse_epilogues.h"
#include "codegen/cuda/inline_copies.h"
#include "codegen/cuda/inline_scratch.h"
#include "codegen/cuda/library_conditions.h"
#include "codegen/cuda/merge_loops.h"
#include "nests/contraction.h"
#include "nests/simplify_indices.h"
#include "nests/split_reductions.h"
#include "target/gpu_facts.h"

namespace tenon::codegen::cuda {
namespace {

using nests::NestPass;
using nests::NestWork;

constexpr nests::NestPassInfo kPasses[] = {
    {"simplify-indices", "first: matchers and copies expect affine indices"},
    {"drop-factor-casts", "before all matchers of contractions, which expect bare factors"},
    {"fuse-attention", "before copies are inlined: it reads more of them at their source"},
    {"inline-copies", "before epilogues, which read the result of a contraction in place"},
    {"fuse-epilogues", "before passes that split nests"},
    {"split-reductions", "before loops are distributed: a long sum becomes two nests"},
    {"distribute-loops", "before scratch is inlined, which works within a nest"},
    {"inline-scratch", "before loops are merged: its consumers move next to other loops"},
    {"merge-loops", "last: neighbours are final"},
};

NestPass named(std::string_view name, std::function<void(NestWork&)> run) {
  return nests::pass_of(kPasses, name, std::move(run));
}
template <class Run>
NestPass for_each_call(std::string_view name, Run run) {
  return named(name, [run](NestWork& work) {
    for (NestSequence::NestCall& part : work.sequence.parts) run(part);
  });
}

}  // namespace

std::span<const nests::NestPassInfo> nest_pass_list() { return kPasses; }

std::vector<NestPass> node_passes(const CudaTarget& target) {
  return {
      for_each_call("simplify-indices",
                    [](NestSequence::NestCall& part) { nests::simplify_indices(part.nest); }),
      for_each_call("drop-factor-casts",
                    [](NestSequence::NestCall& part) { nests::drop_casts_of_factors(part.nest); }),
      named("fuse-attention",
            [&](NestWork& work) {
              if (compute_capability(target.architecture) >= kFragmentCapability)
                fuse_attention(work.sequence, target);
              for (NestSequence::NestCall& part : work.sequence.parts)
                part.is_indivisible = match_attention(part.nest).has_value();
            }),
      named("inline-copies", [](NestWork& work) { inline_copies(work.sequence); }),
      named("fuse-epilogues", [](NestWork& work) { fuse_epilogues(work.sequence); }),
      // 64 KiB per sum are a few hundred iterations of neighbouring threads; longer sums are split.
      named("split-reductions",
            [](NestWork& work) {
              nests::split_reductions(work.sequence, {.bytes = 64 << 10, .are_split_again = true});
            }),
      named("distribute-loops", [](NestWork& work) { distribute_loops(work.sequence); }),
      for_each_call("inline-scratch", inline_scratch),
      for_each_call("merge-loops",
                    [](NestSequence::NestCall& part) { merge_neighbouring_loops(part.nest); }),
  };
}

}  // namespace tenon::codegen::cuda
