#pragma once

#include "nests/loop_nest.h"
#include "nests/nest_pass.h"
#include "target/candidate.h"
#include "target/facts.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace tenon::inline target {

/// A nest that needs code, and the symbol of its function.
struct KernelSource {
  const nests::LoopNest* nest = nullptr;
  std::string symbol;
};

/// Compiled machine code.
struct Module {
  /// A relocatable object file.
  std::vector<std::byte> code;
  /// Filled instead of `code` on request.
  std::string ir, assembly;
};

/// Interface to a device: chooses kernels and emits code. `codegen/cpu` implements one.
class Target {
 public:
  virtual ~Target() = default;

  virtual const TargetFacts& facts() const = 0;

  /// Returns the names of all passes over nests in order, those of candidates included.
  virtual std::span<const nests::NestPassInfo> nest_pass_list() const = 0;
  /// Returns the passes over the nests of a node that precede the choice between candidates. The
  /// target must outlive them.
  virtual std::vector<nests::NestPass> nest_passes(bool allow_winograd) const = 0;

  /// Returns all candidates for the work, refusals included. Ties in cost go to the first. The last
  /// candidate accepts any work.
  virtual std::vector<Candidate> candidates(const KernelWork& work) const = 0;
  /// Schedules a nest that needs no choice between candidates.
  virtual void schedule(nests::LoopNest& nest) const = 0;
  /// Throws Error of kind Unsupported if a kernel cannot be generated.
  virtual Module emit(std::span<const KernelSource> kernels, bool keeps_text) const = 0;

  /// Identifies the conditions that determine speed here: the machine, its features and the target.
  virtual std::string machine_name() const = 0;
  /// Identifies the version of the code generator: equal names generate equal code from equal
  /// nests.
  virtual std::string generator_name() const = 0;
};

}  // namespace tenon::inline target
