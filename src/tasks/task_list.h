#pragma once

#include "ir/constant.h"
#include "ir/constraint.h"
#include "ir/op_def.h"
#include "nests/loop_nest.h"
#include "nests/packing.h"
#include "nests/winograd_weights.h"
#include "program/program.h"
#include "program/symbols.h"
#include "program/tensor_map.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tenon::inline tasks {

/// Lifetime of a buffer's content.
enum class Lifetime : std::uint8_t {
  /// Provided by the caller; read-only.
  Input,
  /// Written for the caller.
  Output,
  /// Known at compile time.
  Constant,
  /// Intermediate result whose extents depend on the input shapes at most; lives in the arena.
  Value,
  /// Intermediate result of data-dependent extents, or no tensor; allocated during the run.
  Sized
};

/// Intermediate form between kernel selection and memory planning: buffers, kernels and tasks, with
/// alternatives per task and no memory addresses yet. Buffers, kernels and tasks are referenced by
/// index. Bodies of control flow follow the task that runs them.
struct TaskList {
  using Symbol = ProgramSymbol;
  /// Packed or Winograd-transformed copy of a constant, computed at compile time. `text` is the
  /// key: equal forms have equal texts.
  struct Form {
    /// The constant that is copied; an earlier buffer.
    std::uint32_t source = 0;
    std::string text;
    /// The transformation; empty in a list read by `parse_tasks`.
    std::variant<std::monostate, nests::Packing, nests::WinogradWeights> how;
  };
  struct Buffer {
    std::string name;
    DType dtype = DType::F32;
    Dims dims;
    Lifetime lifetime = Lifetime::Value;
    /// Position in `inputs` or `outputs`.
    std::uint32_t port = 0;
    /// Set for types other than tensors of known rank.
    std::optional<Type> opaque = {};
    /// The buffer whose bytes it shares, under other extents.
    std::optional<std::uint32_t> view_of = {};
    /// Set on a constant that is derived from another one.
    std::optional<Form> form = {};
    /// Set on a constant that is accessed by data-dependent indices, as in an embedding lookup.
    bool is_looked_up = false;
  };
  using TensorMap = BasicTensorMap<Dim>;
  struct Kernel {
    std::string name;
    /// Empty for a library function.
    nests::LoopNest nest;
    /// Per thread on the CPU, per block on a GPU.
    Dim scratch_bytes = 0;
    /// Threads per block on a GPU.
    std::uint32_t threads = 0;
    /// A library function that replaces generated code (`program/library_call.h`).
    std::string library = "";
    /// Dynamic shared memory per block, in addition to the static shared memory of its code.
    std::uint32_t shared_bytes = 0;
    /// TMA descriptors: the kernel's last parameters on a GPU.
    std::vector<TensorMap> maps = {};
    /// Blocks per cluster; 0: a persistent kernel with one block per multiprocessor.
    std::uint32_t cluster = 1;
  };
  /// A kernel launch.
  struct Call {
    /// Index in `kernels`.
    std::uint32_t kernel = 0;
    /// Arguments for the nest's non-scratch buffers, in order.
    std::vector<std::uint32_t> buffers;
    /// Values of the symbols that the kernel takes as arguments, in its nest's order.
    Dims extents;
    /// Number of independent work items: divided among threads on the CPU, blocks on a GPU.
    Dim work = 1;
    /// Arithmetic operations and bytes moved, for reports; 0 if they depend on symbols.
    double flops = 0, bytes = 0;
  };
  /// Range of a symbol for which an alternative is valid.
  using Guard = SymbolGuard;
  /// One alternative implementation of a task: a sequence of calls. Buffers between the calls
  /// belong to the alternative.
  struct Alternative {
    /// Name of the implementation, for reports.
    std::string candidate;
    /// The alternative runs if all guards hold; without guards, always. The guards of a task's
    /// alternatives are disjoint and cover all shapes: every alternative whose guards hold runs.
    /// `verify` does not check this.
    std::vector<Guard> when;
    std::vector<Call> calls;
  };
  /// An operator that the host executes because no kernel computes it.
  struct Host {
    const OpDef* op = nullptr;
    Attributes attributes;
    /// `kNoBuffer` for an absent operand or result.
    std::vector<std::uint32_t> operands, results;
    /// By operand; empty for operands without a layout.
    std::vector<std::string> layouts;
    /// Location for error messages.
    std::string where;
  };
  struct Task {
    enum class Kind : std::uint8_t {
      /// Kernels of a node.
      Compute,
      /// An operator without kernels, executed on the CPU.
      Host,
      /// Kernels that copy a value into an output of the caller.
      Copy,
      /// Control flow; its bodies follow.
      Branch,
      Loop
    };
    Kind kind = Kind::Compute;
    /// The fused operators and the node's name, for example "conv+relu conv1".
    std::string name;
    /// Name of the node's first result.
    std::string value;
    /// Buffers that the alternatives together read and write, and `may_share`: see `derive_uses`.
    std::vector<std::uint32_t> reads, writes;
    /// Empty for Host, Branch and Loop.
    std::vector<Alternative> alternatives;
    /// Pairs of a result and an operand that it may overwrite after the operand's last use.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> may_share;
    /// Exactly one is set for a task of that kind. Ends of bodies (`then_end`, `else_end`, `end`)
    /// are indices in `tasks`.
    std::optional<Host> host = {};
    std::optional<BranchStep> branch = {};
    std::optional<LoopStep> loop = {};
  };

  /// A constraint on extents, checked before any of the given tasks runs.
  struct ConstraintCheck : Constraint {
    /// The tasks [begin, end) of a body; by default all tasks.
    std::uint32_t begin = 0, end = kNoBuffer;
  };

  std::string name;
  std::vector<Symbol> symbols;
  std::vector<ConstraintCheck> checks;
  std::vector<Buffer> buffers;
  std::vector<std::uint32_t> inputs, outputs;
  std::vector<Kernel> kernels;
  /// In execution order.
  std::vector<Task> tasks;
  /// States of the graph; `may_overwrite` is a permission that `assemble` narrows.
  std::vector<Program::State> states;
  /// By buffer; packed and transformed forms have no entry.
  std::map<std::uint32_t, Constant> constants;
};

std::string_view name_of(TaskList::Task::Kind kind);
std::string_view name_of(Lifetime lifetime);

/// Derives a task's reads, writes and `may_share` from the nests of its calls; for a task without
/// kernels, from its operator or its control flow.
void derive_uses(const TaskList& tasks, TaskList::Task& task);

/// Returns the buffer that owns the bytes: the base of a view, otherwise the buffer itself.
std::uint32_t root_of(const TaskList& tasks, std::uint32_t buffer);
/// Returns the index after the last body of a task; the next index if it has no body.
std::uint32_t end_of(const TaskList& tasks, std::uint32_t task);

/// Returns the text form without nests and constants. `parse_tasks` reads a list that prints the
/// same text.
std::string to_string(const TaskList& tasks);
/// Throws Error with line and column.
TaskList parse_tasks(std::string_view text, std::string_view source_name = "text");

/// Throws InternalError if the list is inconsistent: an index out of range, a value read before it
/// is written, a constant or input that is written, an output that is not written. Does not check
/// nests (`nests::verify`).
void verify(const TaskList& tasks);

}  // namespace tenon::inline tasks
