#pragma once

#include "runtime/bound_shapes.h"
#include "runtime/device.h"
#include "runtime/executable.h"
#include "runtime/guarded_call.h"
#include "runtime/memory.h"
#include "runtime/segments.h"
#include "runtime/swap.h"
#include "runtime/thread_pool.h"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace tenon::inline runtime {

/// Executes the kernels of a program, segment by segment, with its own arena. Used by one thread at
/// a time. `Executor` uses it for kernel-only programs; `HostSteps` call it between host steps.
class KernelRunner : public BoundShapes {
 public:
  KernelRunner(std::shared_ptr<const Executable> model, int thread_count);
  ~KernelRunner();

  const Program& program() const { return model_->program(); }
  const Executable& model() const { return *model_; }
  int thread_count() const { return thread_count_; }
  std::uint64_t arena_bytes() const;
  std::uint64_t pinned_bytes() const;
  /// 0 on the processor.
  std::uint64_t device_bytes() const;
  std::uint64_t scratch_bytes() const;
  std::span<std::byte> arena() { return {arena_.data(), arena_.bytes()}; }

  /// Binds the shapes of the inputs and allocates memory for them. Throws Error for shapes that the
  /// program does not accept.
  void bind(std::span<const std::vector<std::int64_t>> input_shapes);
  bool is_bound() const { return is_bound_; }

  /// Sets the address of an input, an output or a slot.
  void set_address(std::uint32_t buffer, void* address) { addresses_[buffer] = address; }
  /// Returns a buffer's address; null if it is not set.
  std::byte* address(std::uint32_t buffer) const;

  /// Reads a constant from `data` from now on.
  void replace_constant(std::uint32_t buffer, const std::byte* data);

  /// Prepares a segment for the current symbols, unless already done; afterwards the shapes of its
  /// buffers are known.
  void prepare(std::size_t segment);
  /// Runs a prepared segment. Allocates only on a device.
  void run(std::size_t segment);
  /// Split-phase run: on a device `start` does not wait.
  void start(std::size_t segment);
  void finish(std::size_t segment);
  void run(std::size_t segment, Watch& watch);
  /// Calls the observer after each step, before later steps overwrite its results.
  using StepObserver = std::function<void(std::size_t step)>;
  void run(std::size_t segment, const StepObserver& look);
  /// Verifies the checksum of a constant that a host step will read. Throws Error.
  void require_intact(std::uint32_t constant) const;

  /// Device context of a kernel-only program, else null.
  DeviceContext* device() const {
    return prepared_.empty() ? nullptr : prepared_.front().device.get();
  }

 private:
  // A pointer argument that receives the caller's address.
  struct Patch {
    std::size_t pointer = 0;
    std::uint32_t buffer = 0;
  };
  struct Prepared;
  // A step with kernel, pointers and extents resolved.
  struct ReadyStep {
    KernelFunction kernel = nullptr;
    std::size_t first_pointer = 0, first_extent = 0;
    std::int64_t work = 0, chunk = 1;
    std::size_t step = 0;
    Prepared* segment = nullptr;
    KernelRunner* owner = nullptr;
    std::int64_t reversed_items = 0;  // chunk size when iterating backward; 0: always forward
  };
  struct Prepared {
    bool is_ready = false;
    std::vector<std::int64_t> symbols;  // for which it is prepared
    std::vector<void*> pointers;
    std::vector<std::int64_t> extents;
    std::vector<ReadyStep> steps;
    std::vector<Patch> patches;
    bool has_run = false;  // has run since prepared: constants of its steps are verified
    ThreadPool::Order order = ThreadPool::Order::Forward;  // of the current run
    std::unique_ptr<DeviceContext> device;                 // replaces most of the members above
  };
  // A constant that a kernel call reads.
  struct Read {
    const Program::Buffer* buffer = nullptr;
    std::uint64_t bytes = 0;
    bool is_streamed() const;
  };

  void place_buffers(const Segment& segment, Prepared& prepared);
  void prepare_steps(const Segment& segment, Prepared& prepared);
  void find_reversed_steps(Prepared& prepared) const;
  std::unique_ptr<GuardedCall> guarded(const ReadyStep& ready);
  std::byte* scratch_of(std::size_t thread) const {
    return scratch_.data() + thread * scratch_stride_;
  }
  std::byte* scratch_for(const ReadyStep& ready, std::size_t thread) const;
  std::int64_t chunk_of(const Program::Step& step, std::int64_t work) const;
  template <class F>
  void for_each_constant(const ReadyStep& ready, F visit) const;
  bool is_compared(const ReadyStep& ready) const;
  void compare_before(const ReadyStep& ready, ThreadPool::Caller& caller);
  struct BoundPorts {
    std::vector<const void*> sources;
    std::vector<void*> targets;
  };
  BoundPorts places_of(std::size_t segment) const;
  void run_on_device(std::size_t segment, std::span<double> seconds);
  template <class Seen>
  void run_steps(Prepared& prepared, Seen& seen);
  std::int64_t items_at_once(const ReadyStep& ready) const;
  void compare_share(const ReadyStep& ready, std::int64_t begin, std::int64_t end);
  void run_items(const ReadyStep& ready, std::size_t thread, std::int64_t begin, std::int64_t end);
  void compare_and_run(ReadyStep& ready, ThreadPool::Caller& caller);
  void require_checks_passed(const ReadyStep& ready) const;

  std::shared_ptr<const Executable> model_;
  int thread_count_ = 1;
  bool is_bound_ = false;
  Memory arena_, scratch_;
  std::uint64_t scratch_stride_ = 0;
  std::vector<void*> addresses_;                                  // by buffer
  std::unique_ptr<Swapper> swapper_;                              // for programs with transfers
  std::unordered_map<std::uint32_t, const std::byte*> replaced_;  // constants, by buffer
  std::vector<Prepared> prepared_;                                // by segment
  std::int64_t error_ = 0;
  std::optional<GuardedEnd> guard_ = guarded_end();
  std::atomic<bool> is_altered_ = false;
  Watch* watch_ = nullptr;  // of the observed run
};

}  // namespace tenon::inline runtime
