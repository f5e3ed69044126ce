#pragma once

#include "nests/nest_pass.h"
#include "nests/packing.h"
#include "program/library_call.h"
#include "target/facts.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::inline target {

/// A candidate's answer to a kernel work item: accepted with a cost estimate, or refused with a
/// reason.
struct Verdict {
  bool accepts = false;
  /// Estimated, in cycles of one core.
  double cost = 0;
  /// Set on a refusal.
  std::string reason;
};
Verdict yes(double cost);
Verdict no(std::string reason);

/// One nest of a sequence that needs kernels.
struct KernelWork {
  const nests::NestSequence& sequence;
  const nests::NestSequence::NestCall& part;
  /// Indexed by the sequence's buffers.
  const std::vector<bool>& is_constant;
  bool allow_winograd = true;
  /// Services of the passes of candidates; may be null.
  const nests::NestPassOptions* pass_options = nullptr;
  /// "conv+relu conv1", for reports of passes.
  std::string_view name = "";
};

/// The scheduled nests that a candidate produces, and the packings that it requests for their
/// constants.
struct MadeKernel {
  nests::NestSequence::NestCall part;
  std::vector<nests::Packing> packings;
  /// A library call that replaces the nest, which then has a name only, and its extents.
  std::optional<LibraryCall> library = {};
  std::vector<Dim> library_extents = {};
};

/// One implementation choice for a work item.
struct Candidate {
  /// For example "tiles 6x16" or "winograd 4x4".
  std::string name;
  Verdict verdict;
  bool is_winograd = false;
  /// Precondition: the verdict accepts. May add buffers of role `Derived` and their weights to the
  /// sequence.
  std::function<std::vector<MadeKernel>(nests::NestSequence&, std::vector<nests::WinogradWeights>&)>
      make;
};

/// Returns a `make` that runs passes over a copy of the work's nest.
decltype(Candidate::make) made_by_passes(const KernelWork& work,
                                         std::function<std::vector<nests::NestPass>()> passes);

/// Returns for every buffer of the work's nest, intermediate buffers included, whether it may be
/// packed: constants with a single reading place. A layout chosen for one reader would be wrong for
/// another.
std::vector<bool> may_pack(const nests::NestSequence::NestCall& part,
                           const std::vector<bool>& is_constant);

/// Returns the index of the cheapest candidate that accepts.
std::size_t cheapest(const std::vector<Candidate>& candidates);

/// Returns a text that is equal for equal work: the nest without its name, which operands are
/// constant, and the ranges of its symbols. Key of the tuning cache.
std::string canonical_text(const KernelWork& work);

/// Returns the symbols that determine the extents of a nest's loops and buffers.
SymbolRanges symbols_of(const nests::LoopNest& nest);

}  // namespace tenon::inline target
