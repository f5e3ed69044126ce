#pragma once

#include "codegen/contraction.h"
#include "codegen/cpu/emit.h"
#include "codegen/winograd.h"

#include <functional>
#include <string>
#include <vector>

namespace tenon::codegen {

/// What a candidate says to a piece of work: yes, and what it would cost; or no, and why.
struct Verdict {
  bool accepts = false;
  double cost = 0;     ///< estimated, in cycles of one core
  std::string reason;  ///< of a refusal
};
Verdict yes(double cost);
Verdict no(std::string reason);

/// One nest of a sequence, that kernels are to be made for.
struct KernelWork {
  const NestSequence& sequence;
  const NestSequence::Part& part;
  const std::vector<bool>& is_constant;  ///< by the sequence's buffers
  bool allow_winograd = true;
  cpu::Registers registers = {};
};

/// What a candidate makes: nests whose loops say how they run, with the constants that they want
/// laid out anew.
struct MadeKernel {
  NestSequence::Part part;
  std::vector<Packing> packings;
};

/// A way to compute a piece of work.
struct Candidate {
  std::string name;  ///< "tiles 6x16", "winograd 4x4"
  Verdict verdict;
  bool is_winograd = false;
  /// Asks that the verdict is yes. May add buffers to the sequence, those of role `Derived` with
  /// their weights.
  std::function<std::vector<MadeKernel>(NestSequence&, std::vector<WinogradWeights>&)> make;
};

/// All that there are for the work, those that refuse among them. Where costs are equal the first is
/// the one to take. The last, plain loops, accepts whatever there is.
std::vector<Candidate> candidates_for(const KernelWork& work);

/// The place of the cheapest that accepts.
std::size_t cheapest(const std::vector<Candidate>& candidates);

/// The work in words that are the same wherever the same is to be done: the nest without its name,
/// which operands are constant, the ranges of its symbols.
std::string canonical_text(const KernelWork& work);

/// The symbols that decide the extents of a nest's loops and buffers.
SymbolRanges symbols_of(const LoopNest& nest);

}  // namespace tenon::codegen
