#pragma once

#include "nests/loop_nest.h"
#include "nests/nest_pass.h"
#include "target/candidate.h"
#include "target/facts.h"
#include "target/target_spec.h"
#include "tasks/task_list.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tenon::codegen {
class TaskWriter;
struct TaskContext;
}  // namespace tenon::codegen

namespace tenon::inline target {

/// Compiled kernels: an object file of a processor, a module of a GPU.
struct Module {
  std::vector<std::byte> code;
  /// Intermediate representation and assembly, or source; filled instead of `code` on request.
  std::string text;
};

/// A difference between a target's graph passes and the standard list.
struct PassChange {
  std::string pass;
  /// The pass before the inserted one; empty: the pass is removed.
  std::string after;
  std::string reason;
};

/// Interface to a kind of processor: chooses kernels and emits code. Each folder of `codegen`
/// implements one; the rest of `codegen` asks its questions in place of testing for a target.
///
/// Questions with a default answer describe a processor that runs loop nests on threads of the
/// host. A target that needs no more than candidates and code has the common task writer.
class Target {
 public:
  virtual ~Target() = default;

  virtual TargetSpec spec() const = 0;
  virtual const TargetFacts& facts() const = 0;

  /// Returns the changes to the standard list of graph passes, applied in order.
  virtual std::vector<PassChange> graph_pipeline() const { return {}; }

  /// Returns the names of all passes over nests in order, those of candidates included.
  virtual std::span<const nests::NestPassInfo> nest_pass_list() const = 0;
  /// Returns the passes over the nests of a node that precede the choice between candidates. The
  /// target must outlive them.
  virtual std::vector<nests::NestPass> nest_passes(bool allow_winograd) const = 0;

  /// Returns all candidates for the work, refusals included. Ties in cost go to the first. The last
  /// candidate accepts any work.
  virtual std::vector<Candidate> candidates(const KernelWork& work) const = 0;
  /// Returns the first words of the candidates' names, which users may prefer.
  virtual std::vector<std::string> candidate_names() const = 0;
  /// Schedules a nest that needs no choice between candidates.
  virtual void schedule(nests::LoopNest& nest) const = 0;
  /// Returns a writer of tasks; null: the common one, which asks `candidates` for each nest. Shared
  /// so that this header compiles without the writer's definition.
  virtual std::shared_ptr<codegen::TaskWriter> task_writer(const codegen::TaskContext&) const {
    return nullptr;
  }

  /// Kernels have constant extents, so that kernels that differ in numbers only are not merged.
  virtual bool specialises_kernels_to_extents() const { return false; }
  /// Lookup kernels can compute positions in packed tables.
  virtual bool has_packed_lookups() const { return true; }
  /// Kernels of control-flow bodies may write results of the surrounding node directly.
  virtual bool writes_results_in_bodies() const { return true; }
  /// Tasks may be reordered to lower the peak of memory.
  virtual bool reorders_tasks() const { return true; }
  /// Kernels run their nests as these are written, so that `nests::verify` holds for them.
  virtual bool runs_nests_as_written() const { return true; }
  /// Returns the number of units that work on a kernel if the host runs this many threads.
  virtual int working_units(int threads) const { return threads; }

  /// Returns the target of a program with these kernels: "x86-64-v4+avx512-bf16", "cuda:sm_90a".
  virtual std::string program_target(std::span<const TaskList::Kernel> kernels) const = 0;
  /// Throws Error of kind Unsupported if a kernel cannot be generated.
  virtual Module emit(std::span<const TaskList::Kernel> kernels, bool keeps_text) const = 0;

  /// Identifies the conditions that determine speed here: the machine, its features and the target.
  /// Throws Error (Device) if this machine lacks the device.
  virtual std::string machine_name() const = 0;
  /// Identifies the version of the code generator: equal names generate equal code from equal
  /// nests.
  virtual std::string generator_name() const = 0;
};

}  // namespace tenon::inline target
