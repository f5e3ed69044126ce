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

namespace tenon {

/// A program ready to run: its code linked. Never changes; any number of contexts, in any threads,
/// run it at once.
class Executable {
 public:
  /// Throws Error if the code does not fit this machine: of kind Device, by feature, where another
  /// machine could run it.
  explicit Executable(Program program);
  /// On a device that the caller brings.
  using MakeDevice = std::shared_ptr<const DeviceExecutable> (*)(const Program& program);
  Executable(Program program, MakeDevice make_device);

  const Program& program() const { return program_; }
  KernelFunction kernel(std::size_t index) const { return kernels_[index]; }
  const std::vector<Segment>& segments() const { return segments_; }
  /// Of a program for a device; else nothing.
  const DeviceExecutable* device() const { return device_.get(); }

  /// Whether there is nothing left to compare of the constants from byte `begin` up to `end`.
  bool is_compared(std::uint64_t begin, std::uint64_t end) const;
  /// Compares the constants from byte `begin` up to `end`, by whole blocks, with their checksums if
  /// they come from a file and nobody has yet; tells whether it did. Sets `is_altered` if they
  /// were. Not part of loading, for it reads them: asked when they are first used, it leaves them
  /// in the cache.
  bool compare(std::uint64_t begin, std::uint64_t end, std::atomic<bool>& is_altered) const;

 private:
  Program program_;
  std::vector<Segment> segments_;
  std::optional<CodeImage> code_;
  std::vector<KernelFunction> kernels_;
  std::shared_ptr<const DeviceExecutable> device_;
  mutable std::vector<std::atomic<bool>> is_intact_;  // by block with a checksum
};

/// What is said of constants that are not what the compiler wrote, and of the step that reads them.
Error altered_constants(const Program& program, std::optional<std::size_t> step = std::nullopt);

class KernelRunner;

/// Holds a context for one thread. Two at once would write into the same memory; that is a mistake
/// of the caller's which would otherwise show as wrong numbers, now and then. Throws Error (Usage)
/// instead.
class ContextUse {
 public:
  explicit ContextUse(std::atomic_flag& is_in_use);
  ContextUse(const ContextUse&) = delete;
  ~ContextUse() { is_in_use_.clear(std::memory_order_release); }

 private:
  std::atomic_flag& is_in_use_;
};

/// What one caller needs to run a model of kernels alone: an arena and the pointers of every step.
/// One thread at a time uses a context; a second one is refused with an Error (Usage).
class Context {
 public:
  /// `thread_count` 0: as many as the process may use. Results do not depend on it. Throws Error
  /// for a program with other steps than kernels.
  Context(std::shared_ptr<const Executable> model, int thread_count);
  Context(Context&&) noexcept;
  ~Context();

  /// Fixes the shapes of the inputs; needed before the first run where any is symbolic, and again
  /// when one changes. Throws Error, by name, axis and range, for a shape the model does not take.
  void bind(std::span<const std::vector<std::int64_t>> input_shapes);
  /// A constant that others may take the place of (`Buffer::is_weight`) is read from `data` from
  /// now on, which has to outlive the context. Asks for such a buffer; throws Error (Unsupported)
  /// on a device.
  void replace_constant(std::uint32_t buffer, const std::byte* data);
  const Program& program() const;
  const std::vector<std::int64_t>& output_shape(std::size_t output) const;
  std::uint64_t arena_bytes() const;
  /// what kernels keep for themselves, of all threads
  std::uint64_t scratch_bytes() const;
  int thread_count() const;

  /// Runs once. Allocates nothing. Inputs and outputs are row-major and 64-byte aligned or not.
  void run(std::span<const void* const> inputs, std::span<void* const> outputs);
  /// The same in two halves: on a device the first does not wait for the run, so that one thread
  /// keeps several contexts busy, one copying while another computes; on the processor it runs.
  /// Until the second is back outputs are not there, memory that is pinned or the device's has to
  /// stay as it is, and anything else asked of the context is refused with an Error (Usage). What
  /// goes wrong may show in either.
  void start(std::span<const void* const> inputs, std::span<void* const> outputs);
  void finish();
  /// Throws Error (Usage) where a run was started and not finished.
  void require_idle() const;
  /// On a device: runs again on the inputs of the last run, which are still there. Gives the
  /// device's own time in seconds.
  double replay();
  bool is_on_device() const;
  /// On a device: these inputs and outputs stay there between runs, as DeviceContext::keep says.
  void keep_on_device(std::vector<Feedback> states);
  void fetch_input(std::size_t input, void* target);
  void fetch_output(std::size_t output, void* target);
  /// On a device: what is fastest for each step on the shapes that are bound, which this context
  /// takes from now on.
  std::vector<TimedWays> time_ways(const std::vector<bool>& steps);
  double time_steps(std::size_t first, std::size_t count);
  /// The same, seen by a watch: by step of the program.
  void run(std::span<const void* const> inputs, std::span<void* const> outputs, Watch& watch);
  /// The same, and calls `look` behind each step of the program with its number: what the step made
  /// can be looked at then, for later steps may write over it. What it throws ends the run.
  using Look = std::function<void(std::size_t step)>;
  void run(std::span<const void* const> inputs, std::span<void* const> outputs, const Look& look);

  /// Shapes, places and symbols as they are bound, and where the buffers of the last run lie.
  const KernelRunner& runner() const;
  /// All of the arena, to be looked at between runs or filled before one.
  std::span<std::byte> arena();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tenon
