#pragma once

#include "nests/loop_nest.h"
#include "target/candidate.h"
#include "target/facts.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace tenon {

/// A kernel that code is to be made for, and what its function is to be called.
struct KernelSource {
  const nests::LoopNest* nest = nullptr;
  std::string symbol;
};

/// Machine code.
struct Module {
  /// a relocatable object file
  std::vector<std::byte> code;
  /// where asked for, in place of the code
  std::string ir, assembly;
};

/// What kernels are chosen and written for: `codegen/cpu` makes one.
class Target {
 public:
  virtual ~Target() = default;

  virtual const TargetFacts& facts() const = 0;

  /// All ways there are to do the work, those that refuse among them. Where costs are equal the
  /// first is the one to take. The last accepts whatever there is.
  virtual std::vector<Candidate> candidates(const KernelWork& work) const = 0;
  /// Gives a nest that nothing has to be chosen for its schedule.
  virtual void schedule(nests::LoopNest& nest) const = 0;
  /// Throws Error of kind Unsupported for what kernels cannot compute.
  virtual Module emit(std::span<const KernelSource> kernels, bool keeps_text) const = 0;

  /// What decides how fast its code is here: this machine, what it can do, the target.
  virtual std::string machine_name() const = 0;
  /// What decides which code is made of a nest.
  virtual std::string generator_name() const = 0;
};

}  // namespace tenon
