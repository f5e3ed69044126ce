#pragma once

#include "program/control.h"
#include "program/extent.h"
#include "program/shape_check.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tenon {

/// What a kernel is called with. Generated code reads these by offset: the order is part of the
/// format of programs.
struct KernelArguments {
  void* const* buffers = nullptr;
  const std::int64_t* extents = nullptr;
  /// of this thread
  void* scratch = nullptr;
  /// where a kernel writes the number of the check that failed
  std::int64_t* error = nullptr;
};
/// Does the items of work from `begin` up to `end`; items do not depend on each other.
using KernelFunction = void (*)(const KernelArguments*, std::int64_t begin, std::int64_t end);

/// All that is needed to run a network, as plain data: buffers, kernels as machine code, and one
/// list of steps, in which bodies of control flow stand behind the step that runs them.
struct Program {
  /// An extent that is known when the value is that has it: an input, or what a step gives.
  struct Symbol {
    std::string name;
    std::int64_t lo = 0, hi = 0;
    /// where it is read from; nothing: nobody tells it
    std::uint32_t buffer = kNoBuffer, axis = 0;
  };
  enum class Place : std::uint8_t {
    Input,
    Output,
    Constant,
    Arena,
    /// wherever the run has it: its size is known only then, or it is no plain tensor
    Slot,
    /// another buffer's bytes under other extents
    View,
  };
  struct Buffer {
    std::string name;
    /// "f32"; of what is no tensor of known rank, all of its type
    std::string dtype;
    /// 0 of what is no tensor of known rank
    std::uint32_t element_bytes = 4;
    std::vector<Extent> dims;
    Place place = Place::Arena;
    /// Which input or output; where in the constants; where in the arena if that is planned ahead;
    /// whose bytes a view shows.
    std::uint64_t offset = 0;
    /// in the arena or a slot: when it is alive
    std::uint32_t first_step = 0, last_step = 0;
    /// of a constant: the data says which of it is read, as a table's rows
    bool is_looked_up = false;
    /// of a constant: another of its type may take its place when a context is made
    bool is_weight = false;
  };
  /// How a kernel on a device reads one of its buffers: in boxes, zeros beyond the edges (a tensor
  /// map of TMA's). Axes stand innermost first; the outermost one has `rows`.
  struct TensorMap {
    /// which of the call's
    std::uint32_t buffer = 0;
    Extent rows;
    /// of the axes inside
    std::vector<std::uint64_t> extents;
    /// elements from one to the next along each axis but the innermost
    std::vector<std::uint64_t> pitches;
    /// what it spans; of that every `steps`th is copied
    std::vector<std::uint64_t> box;
    std::vector<std::uint64_t> steps;
    /// Unless empty, a window is moved over columns and rows (`steps` each time), and what is
    /// copied is as many of its places as the box has columns, on from row to row and from image to
    /// image (im2col). Of both axes: zeros before the image, and how many places the window comes
    /// to.
    std::vector<std::uint64_t> before = {}, places = {};

    bool operator==(const TensorMap&) const = default;
  };
  /// Where a window's last place begins along columns (0) or rows (1), from the image's last one.
  static std::int64_t last_place(const TensorMap& map, std::size_t axis);
  struct Kernel {
    std::string name;
    /// of its function in the code
    std::string symbol;
    Extent scratch_bytes;
    /// what the numbers of failed checks mean, from 1
    std::vector<std::string> checks;
    /// of a block, on a device; then a call's work is blocks
    std::uint32_t threads = 0;
    /// in place of code: a library's function, as `program/library_call.h` describes it
    std::string library = "";
    /// of a block, beside what its code declares
    std::uint32_t shared_bytes = 0;
    /// its last parameters
    std::vector<TensorMap> maps = {};
    /// So many blocks work together. 0: a block goes on with the next work that there is, and one
    /// for each multiprocessor is enough.
    std::uint32_t cluster = 1;
  };
  /// The values of a symbol that a step is for.
  struct Guard {
    std::uint32_t symbol = 0;
    std::int64_t lo = 0, hi = 0;
  };
  /// A kernel and what it is called with.
  struct Call {
    std::uint32_t kernel = 0;
    std::vector<std::uint32_t> buffers;
    std::vector<Extent> extents;
    /// items
    Extent work = 1;
    /// of those that could compute it
    std::string candidate;
  };
  /// What a step is. Threads share the items of a kernel's.
  enum class StepKind : std::uint8_t { Kernel, Host, Branch, Loop };
  /// of what is no kernel's, `buffers` are all that it uses itself
  struct Step : Call {
    /// what it computes and where that comes from: "conv+relu conv1"
    std::string name;
    /// what its node makes first
    std::string value;
    StepKind kind = StepKind::Kernel;
    /// of `operators`, `branches` or `loops`
    std::uint32_t detail = 0;
    /// it is left out unless all of these hold
    std::vector<Guard> when;
    /// for reports; 0 where symbols decide
    double flops = 0, bytes = 0;
  };

  /// A copy of a buffer of the arena to a file, or back from it, beside the steps. Copies begin in
  /// their order.
  struct Transfer {
    std::uint32_t buffer = 0;
    bool is_out = false;
    std::uint64_t file_offset = 0;
    /// before this step it begins
    std::uint32_t begin_step = 0;
    /// before this step it has to be done; it is waited for
    std::uint32_t end_step = 0;
  };

  std::string name;
  /// what the code needs: "x86-64-v3"
  std::string target;
  std::vector<Symbol> symbols;
  /// of the symbols, when shapes are bound
  std::vector<ShapeCheck> checks;
  std::vector<Buffer> buffers;
  /// buffers, in the network's order
  std::vector<std::uint32_t> inputs, outputs;
  std::vector<Kernel> kernels;
  std::vector<Step> steps;
  std::vector<HostOperator> operators;
  std::vector<BranchStep> branches;
  std::vector<LoopStep> loops;
  /// none but where memory was planned within a budget
  std::vector<Transfer> transfers;
  /// Bytes of the arena where every offset is planned ahead; 0 where shapes decide at run time.
  std::uint64_t arena_bytes = 0;
  bool is_arena_planned = false;
  /// a relocatable object file
  std::vector<std::byte> code;
  /// Page-aligned; shared with whoever mapped the file.
  std::shared_ptr<const std::byte> constants;
  std::uint64_t constant_bytes = 0;
  /// they lie in a file: what is let go of them comes back when it is read
  bool is_mapped = false;
  /// By block (`program/checksum.h`), of constants that come from a file; none of those made just
  /// now.
  std::vector<std::uint64_t> constant_checksums;

  /// Whether kernels are all that there is, and a runtime runs it that knows no operators.
  bool is_kernels_alone() const;
};

/// The buffers that a step uses itself: of a kernel its call's, else those of its operator or of
/// its control flow. Asks for a `detail` that there is.
std::vector<std::uint32_t> buffers_of(const Program& program, const Program::Step& step);
/// The buffer whose bytes a buffer's are.
std::uint32_t root_of(const Program& program, std::uint32_t buffer);
/// Where the last body of a step ends; the step behind it if it has none.
std::uint32_t end_of(const Program& program, std::uint32_t step);

}  // namespace tenon
