#pragma once

#include "program/control.h"
#include "program/extent.h"
#include "program/shape_check.h"
#include "program/symbols.h"
#include "program/tensor_map.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tenon::inline program {

/// Arguments of a kernel on the CPU. Generated code accesses them by offset: the order is part of
/// the program format.
struct KernelArguments {
  /// Addresses of `Call::buffers`, in order.
  void* const* buffers = nullptr;
  /// Values of `Call::extents`, in order.
  const std::int64_t* extents = nullptr;
  /// Scratch memory of the calling thread: `Kernel::scratch_bytes`.
  void* scratch = nullptr;
  /// Receives the number of a failed check, an index from 1 into `Kernel::checks`. The kernel
  /// writes nothing if all checks hold: the caller sets it to 0 before.
  std::int64_t* error = nullptr;
};
/// Computes the work items in [begin, end). Items are independent: threads may compute disjoint
/// ranges at the same time and in any order.
using KernelFunction = void (*)(const KernelArguments*, std::int64_t begin, std::int64_t end);

/// A compiled network as plain data: buffers, kernels as machine code, and one list of steps, in
/// which the bodies of control flow follow the step that runs them.
struct Program {
  using Symbol = ProgramSymbol;
  /// Memory of a buffer.
  enum class BufferKind : std::uint8_t {
    /// Caller's memory, read-only.
    Input,
    /// Caller's memory.
    Output,
    /// In `constants`.
    Constant,
    /// In the arena of a context, at a planned offset.
    Arena,
    /// Allocated at run time: the size is data-dependent, or the value is not a plain tensor.
    Slot,
    /// The bytes of another buffer with other extents.
    View,
  };
  struct Buffer {
    std::string name;
    /// E.g. "f32"; for values that are not tensors of known rank, their full type.
    std::string dtype;
    /// 0 if the value is not a tensor of known rank.
    std::uint32_t element_bytes = 4;
    /// Extents; elements are row-major and contiguous.
    std::vector<Extent> dims;
    BufferKind place = BufferKind::Arena;
    /// By kind. Input, Output: position in `inputs` or `outputs`. Constant: byte offset in
    /// `constants`. Arena: byte offset, if planned. View: id of an earlier buffer. Slot: unused.
    std::uint64_t offset = 0;
    /// First and last step that use a buffer in the arena or a slot, inclusive.
    std::uint32_t first_step = 0, last_step = 0;
    /// Set for a constant of which the data selects rows, e.g. an embedding table.
    bool is_looked_up = false;
    /// Set for a constant that may be replaced by another of its type when a context is created.
    bool is_weight = false;
  };
  using TensorMap = BasicTensorMap<Extent>;
  /// Start of the window's last position along columns (0) or rows (1), relative to the last
  /// element of the image.
  static std::int64_t last_place(const TensorMap& map, std::size_t axis);
  struct Kernel {
    std::string name;
    /// Symbol of its function in the code.
    std::string symbol;
    /// Scratch memory per thread on the CPU, per block on a GPU.
    Extent scratch_bytes;
    /// Messages of failed checks, numbered from 1.
    std::vector<std::string> checks;
    /// Threads per block on a device, where the work items of a call are blocks.
    std::uint32_t threads = 0;
    /// Library function in place of code, as described in `program/library_call.h`.
    std::string library = "";
    /// Dynamic shared memory per block.
    std::uint32_t shared_bytes = 0;
    /// Tensor maps, passed as the last parameters.
    std::vector<TensorMap> maps = {};
    /// Blocks per thread-block cluster. 0: a persistent kernel that loops over the work, launched
    /// with one block per multiprocessor.
    std::uint32_t cluster = 1;
  };
  /// Range of a symbol's values for which a step runs.
  using Guard = SymbolGuard;
  /// A kernel launch.
  struct Call {
    /// Index in `kernels`.
    std::uint32_t kernel = 0;
    /// Buffer ids of the arguments, in the kernel's order.
    std::vector<std::uint32_t> buffers;
    /// Symbolic extents that the kernel takes as arguments.
    std::vector<Extent> extents;
    /// Number of work items: the range [0, work) of `KernelFunction`; blocks on a GPU.
    Extent work = 1;
    /// Name of the implementation that kernel selection chose, for reports.
    std::string candidate;
  };
  /// Kind of a step. Threads share the work items of a kernel step.
  enum class StepKind : std::uint8_t { Kernel, Host, Branch, Loop };
  /// For steps without a kernel, `buffers` lists all buffers that the step itself uses.
  struct Step : Call {
    /// Operators and their origin: "conv+relu conv1".
    std::string name;
    /// First result of its node.
    std::string value;
    StepKind kind = StepKind::Kernel;
    /// Index into `operators`, `branches` or `loops`.
    std::uint32_t detail = 0;
    /// The step is skipped unless all guards hold.
    std::vector<Guard> when;
    /// Arithmetic operations and bytes moved, for reports; 0 if symbolic.
    double flops = 0, bytes = 0;
  };

  /// An asynchronous copy (offload) of an arena buffer to a file or back, concurrent with the
  /// steps. Copies start in list order.
  struct Transfer {
    std::uint32_t buffer = 0;
    /// From the arena to the file.
    bool is_out = false;
    /// Offset in the file, in bytes.
    std::uint64_t file_offset = 0;
    /// The copy starts before this step.
    std::uint32_t begin_step = 0;
    /// The executor waits for the copy before this step.
    std::uint32_t end_step = 0;
  };

  /// A value that one run passes to the next; its name and type are those of the input.
  struct State {
    /// Positions in `inputs` and `outputs` of the current and the next value.
    std::uint32_t input = 0, output = 0;
    /// Constant with the value before the first run; kNoBuffer: zeros if `starts_with_zeros`, else
    /// the caller's.
    std::uint32_t initial = kNoBuffer;
    bool starts_with_zeros = false;
    /// The next value may take the memory of the current one: each element is read before it is
    /// written.
    bool may_overwrite = false;
    bool operator==(const State&) const = default;
  };

  std::string name;
  /// Target that the code needs: an instruction set with extensions, as in
  /// "x86-64-v4+avx512-bf16", or "cuda:sm_90a".
  std::string target;
  std::vector<Symbol> symbols;
  /// Conditions on the symbols, checked when shapes are bound.
  std::vector<ShapeCheck> checks;
  std::vector<Buffer> buffers;
  /// Buffer ids in the network's order.
  std::vector<std::uint32_t> inputs, outputs;
  std::vector<State> states;
  std::vector<Kernel> kernels;
  std::vector<Step> steps;
  std::vector<HostOperator> operators;
  std::vector<BranchStep> branches;
  std::vector<LoopStep> loops;
  /// Empty unless memory was planned within a budget.
  std::vector<Transfer> transfers;
  /// Size of the arena if `is_arena_planned`, otherwise 0.
  std::uint64_t arena_bytes = 0;
  /// All arena buffers have static shapes, and the compiler assigned their offsets. Otherwise each
  /// context assigns offsets when shapes are bound (`program/arena.h`).
  bool is_arena_planned = false;
  /// CPU: a relocatable object file. CUDA: compiled device code.
  std::vector<std::byte> code;
  /// Page-aligned; shares ownership with the file mapping.
  std::shared_ptr<const std::byte> constants;
  std::uint64_t constant_bytes = 0;
  /// The constants are file-backed: released pages are read again on access.
  bool is_mapped = false;
  /// Checksums by block (`program/checksum.h`) for constants from a file; empty for newly compiled
  /// ones.
  std::vector<std::uint64_t> constant_checksums;

  /// True for a kernel-only program, which a runtime without operators can execute.
  bool is_kernel_only() const;
};

/// Returns the buffers that a step itself uses: those of its kernel call, its operator or its
/// control flow. `detail` must be valid.
std::vector<std::uint32_t> buffers_of(const Program& program, const Program::Step& step);
/// Follows views to the buffer that owns the bytes.
std::uint32_t root_of(const Program& program, std::uint32_t buffer);
/// Returns the end of a step's last body, or the next step if it has no body.
std::uint32_t end_of(const Program& program, std::uint32_t step);

}  // namespace tenon::inline program
