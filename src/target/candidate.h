#pragma once

#include "nests/nest_builder.h"
#include "nests/packing.h"
#include "nests/winograd_weights.h"
#include "target/facts.h"

#include <functional>
#include <string>
#include <vector>

namespace tenon {

/// What a candidate says to a piece of work: yes, and what it would cost; or no, and why.
struct Verdict {
  bool accepts = false;
  /// estimated, in cycles of one core
  double cost = 0;
  /// of a refusal
  std::string reason;
};
Verdict yes(double cost);
Verdict no(std::string reason);

/// One nest of a sequence, that kernels are to be made for.
struct KernelWork {
  const nests::NestSequence& sequence;
  const nests::NestSequence::Part& part;
  /// by the sequence's buffers
  const std::vector<bool>& is_constant;
  bool allow_winograd = true;
};

/// What a candidate makes: nests whose loops say how they run, with the constants that they want
/// laid out anew.
struct MadeKernel {
  nests::NestSequence::Part part;
  std::vector<nests::Packing> packings;
};

/// A way to compute a piece of work.
struct Candidate {
  /// "tiles 6x16", "winograd 4x4"
  std::string name;
  Verdict verdict;
  bool is_winograd = false;
  /// Asks that the verdict is yes. May add buffers to the sequence, those of role `Derived` with
  /// their weights.
  std::function<std::vector<MadeKernel>(nests::NestSequence&, std::vector<nests::WinogradWeights>&)>
      make;
};

/// Whether each buffer of the work's nest, not only those that it is given, may be laid out anew:
/// constants that are read in one place. Elsewhere the order for that place would be wrong.
std::vector<bool> may_pack(const nests::NestSequence::Part& part,
                           const std::vector<bool>& is_constant);

/// The place of the cheapest that accepts.
std::size_t cheapest(const std::vector<Candidate>& candidates);

/// The work in words that are the same wherever the same is to be done: the nest without its name,
/// which operands are constant, the ranges of its symbols.
std::string canonical_text(const KernelWork& work);

/// The symbols that decide the extents of a nest's loops and buffers.
SymbolRanges symbols_of(const nests::LoopNest& nest);

}  // namespace tenon
