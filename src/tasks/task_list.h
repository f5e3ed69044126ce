#pragma once

#include "ir/constant.h"
#include "ir/constraint.h"
#include "ir/op_def.h"
#include "nests/loop_nest.h"
#include "nests/packing.h"
#include "nests/winograd_weights.h"
#include "program/control.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tenon {

/// Where bytes are kept.
struct MemorySpace {
  enum class Kind : std::uint8_t { Host, Pinned, Device, File };
  Kind kind = Kind::Host;
  std::uint16_t device = 0;
  bool operator==(const MemorySpace&) const = default;
};

/// How long a buffer holds what it holds. Sized: its extents are known only in the run.
enum class Life : std::uint8_t { Input, Output, Constant, State, Value, Sized };

/// What is to be done, in which buffers and in which ways, once kernels are chosen and before
/// anything has a place in memory. Buffers, kernels and tasks are named by their numbers. Bodies of
/// control flow stand behind the task that runs them.
struct TaskList {
  /// An extent that is known when the value is that has it: an input, or what a task gives.
  struct Symbol {
    std::string name;
    std::int64_t lo = 0, hi = 0;
    /// where it is first read from; nothing: nobody tells it
    std::uint32_t buffer = kNoBuffer, axis = 0;
    bool operator==(const Symbol&) const = default;
  };
  /// Another order or form of what a buffer holds. `text` is the same for the same form.
  struct Form {
    std::uint32_t source = 0;
    std::string text;
    std::variant<std::monostate, nests::Packing, nests::WinogradWeights> how;
  };
  struct Buffer {
    std::string name;
    DType dtype = DType::F32;
    Dims dims;
    Life life = Life::Value;
    MemorySpace space = {};
    /// which input or output
    std::uint32_t port = 0;
    /// of what is no tensor of known rank
    std::optional<Type> opaque = {};
    /// the same bytes as another, under other extents
    std::optional<std::uint32_t> view_of = {};
    /// of a constant: made from another
    std::optional<Form> form = {};
    /// of a constant: the data says which of it is read
    bool is_looked_up = false;
  };
  /// As the program has it (`Program::TensorMap`).
  struct TensorMap {
    std::uint32_t buffer = 0;
    Dim rows;
    std::vector<std::uint64_t> extents, pitches, box, steps;
    /// of a window, as a program has it
    std::vector<std::uint64_t> before = {}, places = {};
  };
  struct Kernel {
    std::string name;
    /// none of a library's function
    nests::LoopNest nest;
    /// of a thread, or of a block on a device
    Dim scratch_bytes = 0;
    /// of a block, on a device
    std::uint32_t threads = 0;
    /// in place of code: a library's function (`program/library_call.h`)
    std::string library = "";
    /// of a block, beside what its code declares
    std::uint32_t shared_bytes = 0;
    /// its last parameters, on a device
    std::vector<TensorMap> maps = {};
    /// So many blocks work together; 0: one for each multiprocessor goes through all work.
    std::uint32_t cluster = 1;
  };
  struct Call {
    std::uint32_t kernel = 0;
    /// those of the nest that are not scratch, in order
    std::vector<std::uint32_t> buffers;
    /// that the kernel is told, in its nest's order
    Dims extents;
    /// items that threads may share
    Dim work = 1;
    /// for reports; 0 where symbols decide
    double flops = 0, bytes = 0;
  };
  /// The values of a symbol that a way is for.
  struct Guard {
    std::uint32_t symbol = 0;
    std::int64_t lo = 0, hi = 0;
    bool operator==(const Guard&) const = default;
  };
  /// One way to do a task: calls one after another. What they hand each other is their own.
  struct Way {
    std::string candidate;
    /// all hold; of the ways of a task at most one is for any values
    std::vector<Guard> when;
    std::vector<Call> calls;
  };
  /// An operator's own function, for what no kernel computes.
  struct Host {
    const OpDef* op = nullptr;
    Attributes attributes;
    /// or `kNoBuffer`
    std::vector<std::uint32_t> operands, results;
    /// by operand, as far as they have one
    std::vector<std::string> layouts;
    /// for messages
    std::string where;
  };
  struct Task {
    enum class Kind : std::uint8_t { Compute, Form, Host, Copy, Branch, Loop };
    Kind kind = Kind::Compute;
    /// what it computes and where that comes from: "conv+relu conv1"
    std::string name;
    /// what its node makes first
    std::string value;
    std::vector<std::uint32_t> reads, writes;
    std::vector<Way> ways;
    /// A result, and an operand that it may overwrite where nobody needs that any more.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> may_share;
    /// Of these kinds. Bodies end at tasks.
    std::optional<Host> host = {};
    std::optional<BranchStep> branch = {};
    std::optional<LoopStep> loop = {};
  };

  /// What must hold of extents wherever one of these tasks runs.
  struct Check : Constraint {
    /// of a body; else of all
    std::uint32_t begin = 0, end = kNoBuffer;
  };

  std::string name;
  std::vector<Symbol> symbols;
  std::vector<Check> checks;
  std::vector<Buffer> buffers;
  std::vector<std::uint32_t> inputs, outputs;
  std::vector<Kernel> kernels;
  /// in the order in which they run
  std::vector<Task> tasks;
  /// by buffer, of those that are no form of another
  std::map<std::uint32_t, Constant> constants;
};

std::string_view name_of(TaskList::Task::Kind kind);
std::string_view name_of(Life life);

/// Fills in what a task reads and writes, and what may share memory, from the nests of its calls;
/// of one that calls no kernels, from its operator or its control flow.
void derive_uses(const TaskList& tasks, TaskList::Task& task);

/// The buffer whose bytes a buffer's are.
std::uint32_t root_of(const TaskList& tasks, std::uint32_t buffer);
/// Where the last body of a task ends; the task behind it if it has none.
std::uint32_t end_of(const TaskList& tasks, std::uint32_t task);

/// The text form, but for nests and constants: `parse_tasks` gives back a list that prints the
/// same.
std::string to_string(const TaskList& tasks);
/// Throws Error with line and column.
TaskList parse_tasks(std::string_view text, std::string_view source_name = "text");

/// Throws InternalError where the list does not hold together: a number of nothing, a value that is
/// read before it is written, a constant or input that is written, an output that is not.
void verify(const TaskList& tasks);

}  // namespace tenon
