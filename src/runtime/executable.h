#pragma once

#include "base/error.h"
#include "program/program.h"
#include "runtime/code_image.h"
#include "runtime/device.h"
#include "runtime/segments.h"
#include "runtime/watch.h"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tenon::inline runtime {

/// A linked, immutable program. Any number of contexts in any threads run it concurrently.
class Executable {
 public:
  /// Throws Error if the code does not fit this machine: of kind Device, by feature, if another
  /// machine could run it.
  explicit Executable(Program program);
  /// As above, with a function of the caller that loads a device program, in place of
  /// `load_on_device`. It is not called for a program that targets the CPU.
  using MakeDevice = std::shared_ptr<const DeviceExecutable> (*)(const Program& program);
  Executable(Program program, MakeDevice make_device);

  const Program& program() const { return program_; }
  /// Returns the code of a kernel of the program; only on the CPU.
  KernelFunction kernel(std::size_t index) const { return kernels_[index]; }
  /// Returns the maximal runs of kernel steps without a host step between them, in order. A
  /// kernel-only program is one segment.
  const std::vector<Segment>& segments() const { return segments_; }
  /// Null unless the program is for a device.
  const DeviceExecutable* device() const { return device_.get(); }

  /// True if the constants from byte `begin` up to `end` are already verified.
  bool is_compared(std::uint64_t begin, std::uint64_t end) const;
  /// Verifies the checksums of constants from byte `begin` up to `end`, by whole blocks, unless
  /// done before or not loaded from a file; returns true if it verified any. Sets `is_altered` on a
  /// mismatch. Verification is lazy, not part of loading, because it reads the bytes: at first use
  /// it leaves them in the cache.
  bool compare(std::uint64_t begin, std::uint64_t end, std::atomic<bool>& is_altered) const;

 private:
  Program program_;
  std::vector<Segment> segments_;
  std::optional<CodeImage> code_;
  std::vector<KernelFunction> kernels_;
  std::shared_ptr<const DeviceExecutable> device_;
  mutable std::vector<std::atomic<bool>> is_intact_;  // by block with a checksum
};

/// Returns the error for constants that differ from the compiler's, and the step that reads them.
Error altered_constants(const Program& program, std::optional<std::size_t> step = std::nullopt);

class KernelRunner;

/// Reserves a context for one thread. Concurrent use would corrupt its memory and produce wrong
/// numbers intermittently; it throws Error (Usage) instead.
class ContextUse {
 public:
  explicit ContextUse(std::atomic_flag& is_in_use);
  ContextUse(const ContextUse&) = delete;
  ~ContextUse() { is_in_use_.clear(std::memory_order_release); }

 private:
  std::atomic_flag& is_in_use_;
};

/// Execution state of one caller for a kernel-only program: an arena and the pointers of every
/// step. A context is used by one thread at a time; concurrent use throws Error (Usage). Calling a
/// function marked "On a device" for a program on the CPU is an error of the caller, and so is a
/// run with unbound shapes: both fail an assertion or are undefined.
class Context {
 public:
  /// `thread_count` 0 uses all available threads. Results do not depend on it. Throws Error
  /// (Unsupported) for a program with host steps. Binds the shapes of a program without symbols.
  Context(std::shared_ptr<const Executable> model, int thread_count);
  Context(Context&&) noexcept;
  ~Context();

  /// Binds the shapes of the inputs: required before the first run if any is symbolic, and after
  /// every change. Throws Error, with name, axis and range, for a shape that the model does not
  /// accept.
  void bind(std::span<const std::vector<std::int64_t>> input_shapes);
  /// Reads a replaceable constant (`Buffer::is_weight`) from `data`, which must outlive the
  /// context. Throws Error (Unsupported) on a device.
  void replace_constant(std::uint32_t buffer, const std::byte* data);
  const Program& program() const;
  /// Returns the extents of an output for the bound shapes; the caller allocates it.
  const std::vector<std::int64_t>& output_shape(std::size_t output) const;
  /// Size of the arena for the bound shapes.
  std::uint64_t arena_bytes() const;
  /// Scratch memory of kernels, of all threads.
  std::uint64_t scratch_bytes() const;
  int thread_count() const;

  /// Runs once, without allocations. One pointer per input and output, in the program's order, into
  /// memory that the caller owns. Inputs and outputs are row-major, with any alignment. Throws
  /// Error if a kernel reports a data error (an index out of bounds, an integer division by zero)
  /// or if constants are altered; outputs are then undefined.
  void run(std::span<const void* const> inputs, std::span<void* const> outputs);
  /// Split-phase run: on a device `start` does not wait, so that one thread keeps several contexts
  /// busy and copies overlap with computation; on the processor `start` runs. Until `finish`
  /// returns, outputs are undefined, pinned and device memory must not change, and other calls
  /// throw Error (Usage). Either call may report a failure.
  void start(std::span<const void* const> inputs, std::span<void* const> outputs);
  void finish();
  /// Throws Error (Usage) if a started run is not finished.
  void require_idle() const;
  /// On a device: repeats the last run on the inputs that are still there. Returns the device time
  /// in seconds.
  double replay();
  /// True if the program targets a GPU.
  bool is_on_device() const;
  /// On a device: keeps these inputs and outputs there between runs as states. A null pointer for
  /// such an input continues from the previous output.
  void keep_on_device(std::vector<Feedback> states);
  /// On a device: copies an input or output of the last run to host memory at `target`.
  void fetch_input(std::size_t input, void* target);
  void fetch_output(std::size_t output, void* target);
  /// On a device: times the library algorithms of the steps for which `steps`, indexed by step of
  /// the program, is true, on the bound shapes; the context uses the fastest from then on.
  std::vector<TimedCandidates> time_candidates(const std::vector<bool>& steps);
  /// On a device: executes the steps [first, first + count) on the bound shapes and the present
  /// data. Returns the device time in seconds.
  double time_steps(std::size_t first, std::size_t count);
  /// Runs once and records times by step of the program.
  void run(std::span<const void* const> inputs, std::span<void* const> outputs, Watch& watch);
  /// Runs once and calls the observer `look` after each step, before later steps overwrite its
  /// results. An exception ends the run.
  using Look = std::function<void(std::size_t step)>;
  void run(std::span<const void* const> inputs, std::span<void* const> outputs, const Look& look);

  /// Bound shapes, symbols and addresses of the last run's buffers.
  const KernelRunner& runner() const;
  /// The whole arena, for inspection between runs or initialization before one.
  std::span<std::byte> arena();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tenon::inline runtime
